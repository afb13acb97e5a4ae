"""Formats of graphs give the model that their programs mean: log f by its definition, on all small states."""

import gzip
import io
import tarfile

import numpy as np
import pytest

import meltpoint as mp
from formats import written
from formats.written import all_states, potts_log_f

RNG = np.random.default_rng(0)
COUPLINGS, FIELDS = written.potts(RNG)
STATES = all_states(3, 4)
LOG_F = potts_log_f(COUPLINGS, FIELDS, STATES)
LETTERS = "-ACG"  # as many as there are states


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


def test_states_from_0_tell_that_sites_count_from_0_too(tmp_path):
    agrees(load(tmp_path / "a.dat", b"J 1 2 0 1 3.0\nh 1 0 0.5\n"), [[0, 0, 1], [1, 0, 0]], [3.5, 0.5])


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
        (b"h 0 0 0.5\nh 1 0.5\n", {}, "requires 4 columns but 3 were found at row 2"),
        (b"h 0 0 0.5\nk 1 0.5\n", {}, "a line 'k 1 0.5'"),
        (b"h 0 0 0.5\nJ 0 1 2.0\n", {}, "convert string|columns|truncated"),
        (b"h 0 0 0.5\nh 999999999 0 0.5\n", {}, "a small file with 1,000,000,000 units"),
        (b"h 0 0 0.5\nh 0 999999999 0.5\n", {}, "a small file whose arrays take"),
        (b"h 0 0 nan\n", {}, "NaN or infinite"),
        (b"h 0.5 0 1\n", {"base": 0}, "damaged|unknown|swapped"),
        (b"h 0 0 1\nh 1.5 0 1\n", {}, "damaged"),
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


def test_ccm_pairs_may_be_either_way_round(tmp_path):
    couplings, fields = written.potts(RNG, 2, 21)
    content = written.ccm_text(couplings.transpose(0, 1, 3, 2), fields[:, :20]).replace(b"# 0 1", b"# 1 0")
    states = RNG.integers(0, 20, (40, 2))
    agrees(load(tmp_path / "a.raw", content, gap="masked"), states, potts_log_f(couplings, fields, states))


def test_ccm_asks_about_gaps(tmp_path):
    couplings, fields = written.potts(RNG, 2, 21)
    with pytest.raises(mp.InputError, match='no gap, expected gap="state" or "masked"'):
        load(tmp_path / "a.raw", written.ccm_text(couplings, fields[:, :20]))


def test_mi3(tmp_path):
    pairs = np.array([-COUPLINGS[i, j].ravel() for i, j in written.pairs_of(3)])
    np.save(tmp_path / "J.npy", pairs)
    agrees(mp.load(tmp_path / "J.npy", states=4), STATES, potts_log_f(COUPLINGS, 0 * FIELDS, STATES))
    with pytest.raises(
        mp.InputError, match=r"no states, expected states=4 if it is J\.npy of Mi3 with 3 sites.*swapped"
    ):
        mp.load(tmp_path / "J.npy")
    np.save(tmp_path / "data.npy", pairs[:2])
    with pytest.raises(mp.InputError, match=r"a .npy file, expected a model.*swapped"):
        mp.load(tmp_path / "data.npy")


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
        mp.InputError, match=r"with folder/first.txt, folder/second.txt, expected member=NAME"
    ):
        load(tmp_path / "a.tar.gz", both)
    agrees(load(tmp_path / "a.tar.gz", both, member="folder/second.txt"), STATES, LOG_F)
    with pytest.raises(mp.InputError, match="but not one 'third'"):
        load(tmp_path / "a.tar.gz", both, member="third")


def test_the_name_of_a_file_tells_nothing(tmp_path):
    content = written.couplings_text(COUPLINGS, FIELDS)
    for name in ("a.npz", "a.mat", "a.h5", "a.pt", "a"):
        agrees(load(tmp_path / name, content), STATES, LOG_F)
