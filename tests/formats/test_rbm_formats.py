"""Formats of RBMs, and arrays by name, give the model that is meant: log f by its definition, on all small states."""

import numpy as np
import pytest
import scipy.io

import meltpoint as mp
from formats import written
from formats.test_graph_formats import COUPLINGS, FIELDS, LOG_F, STATES, agrees, load
from formats.written import all_states, rbm_log_f

RNG = np.random.default_rng(1)
W, B, C = RNG.normal(size=(4, 3)), RNG.normal(size=4), RNG.normal(size=3)
BITS = all_states(4, 2)


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
    np.savez(tmp_path / "a.npz", A=W, x=B, y=C, loss=np.ones(100), momentum=W)
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
            r"W2 \(3, 3\) besides the parameters of an RBM.*mp\.DBM or mp\.DBN",
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
    with pytest.raises(mp.InputError, match=r"update=8 for .* which has the updates 7"):
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
