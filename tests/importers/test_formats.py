"""Each format gives the model that its program means: log f by the format's definition, on all small states."""

import gzip
import io
import tarfile

import numpy as np
import pytest
import scipy.io

import meltpoint as mp
from importers import written
from importers.written import all_states, potts_log_f, rbm_log_f

RNG = np.random.default_rng(0)
COUPLINGS, FIELDS = written.potts(RNG)
STATES = all_states(3, 4)
LOG_F = potts_log_f(COUPLINGS, FIELDS, STATES)
LETTERS = "-ACG"  # as many as there are states
W, B, C = RNG.normal(size=(4, 3)), RNG.normal(size=4), RNG.normal(size=3)
BITS = all_states(4, 2)


def load(path, content, **options):
    path.write_bytes(content)
    return mp.load(path, **options)


def agrees(model, states, log_f, atol=1e-12):
    np.testing.assert_allclose(model.log_f(states), log_f, rtol=0, atol=atol)


# UAI


def factors_log_f(factors, states):
    return np.array([sum(np.log(values[tuple(x[list(scope)])]) for scope, values in factors) for x in states])


FACTORS = [
    ((0,), RNG.uniform(0.1, 2, 2)),
    ((2, 0), RNG.uniform(0.1, 2, (3, 2))),
    ((1, 0, 2), RNG.uniform(0.1, 2, (2, 2, 3))),
]


@pytest.mark.parametrize("kind", ["MARKOV", "BAYES"])
def test_uai(tmp_path, kind):
    states = np.array([x for x in all_states(3, 3) if x[0] < 2 and x[1] < 2])
    model = load(tmp_path / "a.txt", written.uai([2, 2, 3], FACTORS, kind))
    agrees(model, states, factors_log_f(FACTORS, states))


def test_uai_with_comments_exponents_and_a_factor_without_variables(tmp_path):
    text = b"c made by hand\nMARKOV\nc two variables\n2\n2 2\n3\n2 0 1\n1 0\n0\n"
    text += b"\n4\n 1e-3 2.5E+2\n1 1.0\n2 1 1e0\n1 2.5e-1\n"
    expected = np.log([[1e-3, 2.5e2], [1, 1]]).ravel() + np.log(0.25)
    agrees(load(tmp_path / "a.uai", text), all_states(2, 2), expected)


def test_uai_with_a_variable_of_one_state(tmp_path):
    values = np.array([[[0.5, 2.0]]])
    model = load(tmp_path / "a.uai", written.uai([1, 2, 1], [((0, 2, 1), values)]))
    agrees(model, np.array([[0, 0, 0], [0, 1, 0]]), np.log([0.5, 2.0]))


def test_sparse_uai(tmp_path):
    text = b"SPARSEMARKOV\n2\n2 3\n1\n2 0 1\n0.5 2\n0 2 3.0\n1 0 1e1\n"
    agrees(load(tmp_path / "a.uai", text), [[0, 0], [0, 2], [1, 0]], np.log([0.5, 3, 10]))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"MARKOV 2 2 2 1 2 0 1 4 1 2 3", "too early"),
        (b"MARKOV 2 2 2 1 2 0 1 4 1 2 3 4 5", "1 numbers after the last table"),
        (b"MARKOV 2 2 2 1 2 0 1 3 1 2 3", "a table of 3 values where"),
        (b"MARKOV 2 2 2 1 2 0 2 4 1 2 3 4", r"over the variables \(0, 2\)"),
        (b"MARKOV 2 2 2 1 2 0 0 4 1 2 3 4", r"over the variables \(0, 0\)"),
        (b"MARKOV 2 2 2 1 2 0 1 4 1 2 -3 4", "tables of f, not of log f"),
        (b"MARKOV 2 2 2 1 2 0 1 4 1 x 3 4", "'x' in place of a number"),
        (b"MARKOV 2 2.5 2 1 2 0 1 4 1 2 3 4", "2.5 in place of a cardinality"),
        (b"MARKOV 2 2 2 1 2 0 1 4 1 0 3 4", "zero|-inf"),
        (b"SPARSEMARKOV 2 2 3 1 2 0 1 0.5 1 0 3 1.0", "outside its table"),
        (b"SPARSEMARKOV 2 200 200 1 2 0 1 0.5 1 0 3 x", "'x' in place"),
    ],
)
def test_uai_that_does_not_fit(tmp_path, text, message):
    with pytest.raises(mp.InputError, match=message) as caught:
        load(tmp_path / "a.uai", text)
    assert "a.uai" in str(caught.value)


# J/h text


@pytest.mark.parametrize("base", [0, 1])
@pytest.mark.parametrize("letters", [None, LETTERS])
@pytest.mark.parametrize("h_first", [False, True])
def test_couplings_as_text(tmp_path, base, letters, h_first):
    content = written.couplings_text(COUPLINGS, FIELDS, base, letters, h_first, comment="# made by hand\n")
    options = {"alphabet": LETTERS} if letters else {}
    agrees(load(tmp_path / "a.dat", content, **options), STATES, LOG_F)


def test_letters_of_a_known_alphabet_need_not_be_told(tmp_path):
    couplings, fields = written.potts(RNG, 2, 21)
    states = RNG.integers(0, 21, (50, 2))
    model = load(tmp_path / "a.pottsgraph", written.couplings_text(couplings, fields, 1, written.LETTERS))
    agrees(model, states, potts_log_f(couplings, fields, states))


def test_missing_lines_are_zeros_and_pairs_may_be_either_way_round(tmp_path):
    text = b"h 0 2 1.5\nh 2 0 0.25\nJ 0 1 1 2 3.0\nJ 2 1 0 2 -1.0\n"
    model = load(tmp_path / "a.dat", text)
    # J 2 1 0 2: state 0 at site 2, state 2 at site 1.
    agrees(model, [[0, 0, 1], [2, 1, 1], [1, 2, 0], [0, 0, 0]], [0.0, 1.5, 3.0 - 1.0 + 0.25, 0.25])


@pytest.mark.parametrize("units", ["spin", "bernoulli"])
def test_ising_as_text(tmp_path, units):
    text = b"J 0 1 0.5\nJ 2 0 -1.25e0\nh 0 0.1\nh 1 0.2\nh 2 0.3\n"
    couplings = np.array([[0, 0.5, -1.25], [0, 0, 0], [0, 0, 0]])
    values = all_states(3, 2) * (2 if units == "spin" else 1) - (units == "spin")
    model = load(tmp_path / "a.dat", text, units=units)
    agrees(model, values, written.ising_log_f(couplings, np.array([0.1, 0.2, 0.3]), values))


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        (b"J 0 1 0.5\nh 0 0.1\n", {}, 'no units, expected units="spin" or "bernoulli"'),
        (b"J 3 4 0 0 0.5\n", {}, "no base, expected base=0 or 1"),
        (b"h 3 0 0.5\n", {"base": 2}, "base=2, expected 0 or 1"),
        (b"h 0 - 0.5\nh 0 A 1\n", {}, "no alphabet, expected alphabet="),
        (b"h 0 - 0.5\nh 0 Z 1\n", {"alphabet": "rna"}, "states 'Z'"),
        (b"h 0 0 0.5\nJ 0 0 0 0 1.0\n", {}, "site with itself"),
        (b"h 0 0 0.5\nh 0 0 1.5\n", {}, "h is there twice"),
        (b"J 0 1 0 0 0.5\nJ 1 0 0 0 1.5\nh 0 0 0\n", {}, "J is there twice"),
        (b"h 0 0 0.5\nh 1 0.5\n", {}, "a line 'h 1 0.5'"),
        (b"h 0 0 0.5\nk 1 0.5\n", {}, "a line 'k 1 0.5'"),
        (b"h 0 0 0.5\nJ 0 1 2.0\n", {}, "lines with states and lines without"),
        (b"h 0 0 0.5\nh 999999999 0 0.5\n", {}, "a small file with 1,000,000,000 units"),
        (b"h 0 0 0.5\nh 0 999999999 0.5\n", {}, "a small file whose arrays take"),
        (b"h 0 0 nan\n", {}, "NaN or infinite"),
        (b"h 0 AAA nan\nh 0 - 1\n", {"alphabet": "-A"}, "neither numbers nor single letters"),
        (b"h 0 0 1\n", {"alphabet": "-A"}, "alphabet for"),
        (b"h 1 0 1\nJ 0 1 0 0 1\nh 0 1 2\n", {"base": 1}, "site below 1|that is not there"),
    ],
)
def test_text_that_does_not_fit(tmp_path, text, options, message):
    with pytest.raises(mp.InputError, match=message) as caught:
        load(tmp_path / "a.dat", text, **options)
    assert "a.dat" in str(caught.value) or "base=2" in str(caught.value)


def test_matrix_of_couplings(tmp_path):
    matrix = COUPLINGS.transpose(0, 2, 1, 3).reshape(12, 12)
    text = "\n".join(" ".join(f"{x:.17g}" for x in row) for row in [*matrix, FIELDS.ravel()]) + "\n"
    agrees(load(tmp_path / "a.txt", text.encode(), states=4), STATES, LOG_F)
    with pytest.raises(mp.InputError, match="no states, expected states="):
        mp.load(tmp_path / "a.txt")
    with pytest.raises(mp.InputError, match="with states=5"):
        mp.load(tmp_path / "a.txt", states=5)


def test_the_zero_sum_gauge_is_the_same_model(tmp_path):
    model = load(tmp_path / "a.dat", written.couplings_text(COUPLINGS, FIELDS), gauge="zero-sum")
    agrees(model, STATES, LOG_F)
    for table in model.couplings:
        np.testing.assert_allclose(table.sum(0), 0, atol=1e-12)
        np.testing.assert_allclose(table.sum(1), 0, atol=1e-12)


# plmc and CCMpred


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize(("dtype", "atol"), [("<f4", 1e-5), ("<f8", 1e-12)])
def test_plmc(tmp_path, version, dtype, atol):
    couplings, fields = written.potts(RNG, 4, 21)
    states = RNG.integers(0, 21, (30, 4))
    content = written.plmc(couplings, fields, written.LETTERS, version, dtype)
    agrees(load(tmp_path / "a.params", content), states, potts_log_f(couplings, fields, states), atol)


def test_states_in_another_order(tmp_path):
    couplings, fields = written.potts(RNG, 3, 21)
    wanted = "ARNDCQEGHILKMFPSTWYV-"
    model = load(
        tmp_path / "a.params", written.plmc(couplings, fields, written.LETTERS, 2, "<f8"), alphabet=wanted
    )
    states = RNG.integers(0, 21, (30, 3))
    in_the_file = np.array([written.LETTERS.index(wanted[a]) for a in range(21)])[states]
    agrees(model, states, potts_log_f(couplings, fields, in_the_file))
    with pytest.raises(mp.InputError, match="the same letters, in the order"):
        mp.load(tmp_path / "a.params", alphabet="rna")


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize("gap", ["state", "masked"])
def test_ccm(tmp_path, binary, packed, gap):
    couplings, fields = written.potts(RNG, 3, 21)
    if binary:
        content = pytest.importorskip("msgpack").packb(written.ccm_map(couplings, fields[:, :20]))
    else:
        content = written.ccm_text(couplings, fields[:, :20], meta={"version": 1})
    q = 21 if gap == "state" else 20
    fields[:, 20] = 0
    states = RNG.integers(0, q, (40, 3))
    model = load(tmp_path / "a", gzip.compress(content) if packed else content, gap=gap)
    agrees(model, states, potts_log_f(couplings, fields, states))
    assert set(model.cardinalities) == {q}


def test_ccm_asks_about_gaps(tmp_path):
    couplings, fields = written.potts(RNG, 2, 21)
    with pytest.raises(mp.InputError, match='no gap, expected gap="state" or "masked"'):
        load(tmp_path / "a.raw", written.ccm_text(couplings, fields[:, :20]))


# dimod


def test_coo_numbers_with_exponents_and_units_that_must_be_told(tmp_path):
    text = b"0 0 -1e-1\n0 7 2.5E0\n7 0 1\n7 7 +.5\n"
    with pytest.raises(mp.InputError, match='no units, expected units="spin" or "bernoulli"'):
        load(tmp_path / "a.coo", text, temperature=2)
    model = mp.load(tmp_path / "a.coo", temperature=2, units="spin")
    agrees(model, [[1, 1], [1, -1]], [-(-0.1 + 0.5 + 3.5) / 2, -(-0.1 - 0.5 - 3.5) / 2])


def test_a_qubo_that_was_cut_off_is_read_with_a_warning(tmp_path):
    text = b"c remark\np qubo 0 3 3 1\n0 0 1.0\n1 1 2.0\n2 2 3.0\n0 2 -1.0\n"
    agrees(load(tmp_path / "a.qubo", text, beta=1), [[1, 0, 1], [0, 1, 0]], [-3.0, -2.0])
    with pytest.warns(
        UserWarning, match="promises 3 linear biases and 1 couplings, there are 2 and 1: was it cut off"
    ):
        load(tmp_path / "a.qubo", text.replace(b"1 1 2.0\n", b""), beta=1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "without a temperature, expected temperature="),
        ({"temperature": 1, "beta": 1}, "both temperature and beta"),
        ({"temperature": 0}, "a positive number"),
        ({"beta": -1}, "a positive number"),
        ({"beta": 1, "units": "bernoulli"}, "whose header says spin"),
        (
            {"beta": 1, "gap": "state"},
            "gap for .*expected only what this format leaves open: beta, temperature, units",
        ),
    ],
)
def test_what_energies_need(tmp_path, options, message):
    with pytest.raises(mp.InputError, match=message):
        load(tmp_path / "a.coo", b"# vartype=SPIN\n0 1 1.0\n", **options)


# Arrays by name


def save_npz(path, **arrays):
    with path.open("wb") as file:
        np.savez(file, **arrays)


def save_mat(path, **arrays):
    with path.open("wb") as file:
        scipy.io.savemat(file, arrays)


def save_h5(path, **arrays):
    with pytest.importorskip("h5py").File(path, "w") as file:
        for name, array in arrays.items():
            file[f"model/{name}"] = array


@pytest.mark.parametrize("save", [save_npz, save_mat, save_h5])
@pytest.mark.parametrize(
    ("names", "transposed"),
    [
        (("W", "b", "c"), False),
        (("W", "b", "c"), True),
        (("W", "a", "b"), False),
        (("weights", "visible_bias", "hidden_bias"), False),
        (("W", "v_bias", "h_bias"), True),
        (("weights", "visible_biases", "hidden_biases"), False),
        (("components_", "intercept_visible_", "intercept_hidden_"), True),
        (("W", "bv", "bh"), False),
        (("weight_matrix", "vbias", "hbias"), False),
    ],
)
def test_named_arrays(tmp_path, save, names, transposed):
    arrays = dict(zip(names, (W.T if transposed else W, B, C), strict=True))
    save(tmp_path / "a.bin", **arrays)
    agrees(mp.load(tmp_path / "a.bin"), BITS, rbm_log_f(W, B, C, BITS))


def test_matlab_7_3_has_its_axes_reversed(tmp_path):
    h5py = pytest.importorskip("h5py")
    square = RNG.normal(size=(4, 4))
    with h5py.File(tmp_path / "a.mat", "w", userblock_size=512) as file:
        for name, array in {"vishid": square, "visbiases": B[None], "hidbiases": B[None]}.items():
            file[name] = array.T
    content = bytearray((tmp_path / "a.mat").read_bytes())
    content[:116] = b"MATLAB 7.3 MAT-file".ljust(116)
    model = load(tmp_path / "a.mat", bytes(content))
    agrees(model, BITS, rbm_log_f(square, B, B, BITS))


def test_square_weights_must_be_told(tmp_path):
    square = RNG.normal(size=(4, 4))
    np.savez(tmp_path / "a.npz", W=square, b=B, c=B[::-1])
    with pytest.raises(
        mp.InputError, match=r'square weights W .*no orientation, expected orientation="visible-hidden"'
    ):
        mp.load(tmp_path / "a.npz")
    agrees(
        mp.load(tmp_path / "a.npz", orientation="visible-hidden"), BITS, rbm_log_f(square, B, B[::-1], BITS)
    )
    agrees(
        mp.load(tmp_path / "a.npz", orientation="hidden-visible"), BITS, rbm_log_f(square.T, B, B[::-1], BITS)
    )


def test_units_and_names_that_are_told(tmp_path):
    np.savez(tmp_path / "a.npz", A=W, x=B, y=C, second=np.ones((3, 3)))
    model = mp.load(
        tmp_path / "a.npz", weights="A", visible_bias="x", hidden_bias="y", visible="spin", hidden="spin"
    )
    agrees(model, 2 * BITS - 1, rbm_log_f(W, B, C, 2 * BITS - 1, (-1, 1)))


@pytest.mark.parametrize(
    ("arrays", "options", "message"),
    [
        (
            {"W": W, "b": B, "c": C, "W2": np.ones((3, 3))},
            {},
            "W2 besides the parameters of an RBM.*name the arrays",
        ),
        ({"W": W, "b": B}, {}, "no visible_bias, hidden_bias in .*with the arrays W, b"),
        ({"W": W, "b": C, "c": C}, {}, r"weights W of shape \(4, 3\) with 3 visible and 3 hidden"),
        ({"W": W, "b": B, "c": C}, {"weights": "Q"}, "no array 'Q'"),
        ({"W": W, "b": B, "c": C}, {"orientation": "hidden-visible"}, "the only one that fits"),
        ({"W": W, "b": B, "c": C}, {"units": "spin"}, "visible= and hidden="),
        ({"W": W, "b": B, "c": C}, {"visible": "foo"}, "foo"),
        ({"test": W, "train": W}, {}, "swapped"),
        (
            {"J": np.ones((3, 3)), "h": C},
            {"units": "spin"},
            "neither symmetric nor triangular, or have a diagonal",
        ),
        ({"J": np.eye(3) * 0, "h": C}, {}, "no units, expected"),
        ({"J": np.zeros((3, 2)), "h": C}, {}, r"couplings of shape \(3, 2\)"),
    ],
)
def test_arrays_that_do_not_fit(tmp_path, arrays, options, message):
    np.savez(tmp_path / "a.npz", **arrays)
    with pytest.raises(mp.InputError, match=message):
        mp.load(tmp_path / "a.npz", **options)


def test_scalars_beside_the_parameters_are_no_matter(tmp_path):
    np.savez(tmp_path / "a.npz", W=W, b=B, c=C, epoch=12, name="an RBM")
    assert repr(mp.load(tmp_path / "a.npz")) == "RBM 4-3"


@pytest.mark.parametrize("symmetric", [True, False])
def test_couplings_and_fields_by_name(tmp_path, symmetric):
    upper = np.triu(RNG.normal(size=(4, 4)), 1)
    np.savez(tmp_path / "a.npz", J=upper + upper.T if symmetric else upper, h=B)
    values = 2 * BITS - 1
    agrees(mp.load(tmp_path / "a.npz", units="spin"), values, written.ising_log_f(upper, B, values))


@pytest.mark.parametrize("axes", [(0, 1, 2, 3), (0, 2, 1, 3)])
def test_potts_couplings_by_name(tmp_path, axes):
    np.savez(tmp_path / "a.npz", couplings=COUPLINGS.transpose(axes), fields=FIELDS)
    agrees(mp.load(tmp_path / "a.npz"), STATES, LOG_F)


def test_potts_rbm_by_name(tmp_path):
    weights, visible_bias = RNG.normal(size=(3, 4, 2)), RNG.normal(size=(3, 4))
    np.savez(tmp_path / "a.npz", weights=weights, visible_bias=visible_bias, hidden_bias=C[:2])
    one_hot = np.eye(4)[STATES].reshape(len(STATES), -1)
    expected = rbm_log_f(weights.reshape(12, 2), visible_bias.ravel(), C[:2], one_hot)
    agrees(mp.load(tmp_path / "a.npz"), STATES, expected)


# HDF5 of rbms and RestrictedBoltzmannMachines.jl


def test_old_layout_of_rbms_has_the_states_first(tmp_path):
    h5py = pytest.importorskip("h5py")
    weights, visible_bias = RNG.normal(size=(3, 4, 2)), RNG.normal(size=(3, 4))
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["update_7/weight_matrix"] = weights.transpose(1, 0, 2)
        file["update_7/vbias"] = visible_bias.T
        file["update_7/hbias"] = C[:2]
    one_hot = np.eye(4)[STATES].reshape(len(STATES), -1)
    expected = rbm_log_f(weights.reshape(12, 2), visible_bias.ravel(), C[:2], one_hot)
    agrees(mp.load(tmp_path / "a.h5"), STATES, expected)
    with pytest.raises(mp.InputError, match="with the updates 7 but not update=8"):
        mp.load(tmp_path / "a.h5", update=8)


@pytest.mark.parametrize(("kind", "values"), [("Binary", (0, 1)), ("Spin", (-1, 1))])
@pytest.mark.parametrize("standardized", [False, True])
def test_julia(tmp_path, kind, values, standardized):
    h5py = pytest.importorskip("h5py")
    standard = {
        "offset_v": RNG.normal(size=4),
        "scale_v": RNG.uniform(0.5, 2, 4),
        "offset_h": RNG.normal(size=3),
        "scale_h": RNG.uniform(0.5, 2, 3),
    }
    with h5py.File(tmp_path / "a.h5", "w") as file:
        written.julia(
            file,
            (kind, B[None]),
            (kind, C[None]),
            W,
            kind="StandardizedRBM" if standardized else "RBM",
            standard=standard if standardized else {},
        )
    v = np.array(values)[BITS]
    h = np.array(values)[all_states(3, 2)]
    x, y = v, h
    if standardized:
        x, y = (
            (v - standard["offset_v"]) / standard["scale_v"],
            (h - standard["offset_h"]) / standard["scale_h"],
        )
    joint = (v @ B)[:, None] + h @ C + x @ W @ y.T
    expected = np.log(np.exp(joint).sum(1))
    found = mp.load(tmp_path / "a.h5").log_f(v)
    # The constant of a standardised RBM is not kept.
    np.testing.assert_allclose(found - found[0], expected - expected[0], atol=1e-12)
    if not standardized:
        np.testing.assert_allclose(found, expected, atol=1e-12)


def test_julia_potts(tmp_path):
    h5py = pytest.importorskip("h5py")
    weights, fields = RNG.normal(size=(4, 3, 2)), RNG.normal(size=(4, 3))  # Julia's (state, site, hidden)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        written.julia(file, ("Potts", fields[None]), ("Binary", C[None, :2]), weights)
    one_hot = np.eye(4)[STATES]
    inputs = np.einsum("nia,aim->nm", one_hot, weights) + C[:2]
    expected = np.einsum("nia,ai->n", one_hot, fields) + np.logaddexp(0, inputs).sum(1)
    agrees(mp.load(tmp_path / "a.h5"), STATES, expected)


def test_julia_gaussian(tmp_path):
    h5py = pytest.importorskip("h5py")
    theta, gamma = B, RNG.uniform(0.5, 2, 4)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        written.julia(file, ("Gaussian", np.stack([theta, gamma])), ("Binary", C[None]), W)
    v = RNG.normal(size=(6, 4))
    expected = v @ theta - (gamma * v**2 / 2).sum(1) + np.logaddexp(0, v @ W + C).sum(1)
    found = mp.load(tmp_path / "a.h5").log_f(v)
    np.testing.assert_allclose(found - found[0], expected - expected[0], atol=1e-10)


def test_julia_units_that_are_unknown(tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        written.julia(file, ("Binary", B[None]), ("xReLU", np.ones((4, 3))), W)
    with pytest.raises(mp.InputError, match=r"hidden units of type 'xReLU'.*Binary, Spin"):
        mp.load(tmp_path / "a.h5")


# Archives around them


def tar(**contents):
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz") as archive:
        for name, content in contents.items():
            info = tarfile.TarInfo(f"folder/{name}.txt")
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return file.getvalue()


def test_the_only_model_of_a_tar_archive(tmp_path):
    model = written.couplings_text(COUPLINGS, FIELDS)
    agrees(load(tmp_path / "a.tar.gz", tar(remarks=b"some words\n", model=model)), STATES, LOG_F)
    both = tar(first=model, second=model)
    with pytest.raises(
        mp.InputError, match=r"with folder/first.txt, folder/second.txt, expected one model.*member="
    ):
        load(tmp_path / "a.tar.gz", both)
    agrees(load(tmp_path / "a.tar.gz", both, member="folder/second.txt"), STATES, LOG_F)
    with pytest.raises(mp.InputError, match="but no 'third'"):
        load(tmp_path / "a.tar.gz", both, member="third")


def test_the_name_of_a_file_tells_nothing(tmp_path):
    content = written.couplings_text(COUPLINGS, FIELDS)
    for name in ("a.npz", "a.mat", "a.h5", "a.pt", "a"):
        agrees(load(tmp_path / name, content), STATES, LOG_F)
