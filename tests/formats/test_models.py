"""A model comes back from its file exactly, and a file that is not a model says what it is."""

import errno
import os
import time
import zipfile
from itertools import pairwise

import numpy as np
import pytest
import scipy.io
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from meltpoint.errors import InputError, SystemFailure
from meltpoint.formats import npz
from meltpoint.formats.load import load
from meltpoint.formats.models import read_note, save
from meltpoint.models.dbm import DBM
from meltpoint.models.dbn import DBN
from meltpoint.models.rbm import RBM

PRECISIONS = [np.float16, np.float32, np.float64]
SIZES = st.integers(1, 4)
# A busy machine is no failure.
UNHURRIED = settings(deadline=None)


def parameters(*shape, limit=6e4):
    return hnp.arrays(np.float64, shape, elements=st.floats(-limit, limit))


@st.composite
def rbms(draw, visible=None):
    visible, hidden = visible or draw(SIZES), draw(SIZES)
    return RBM(draw(parameters(visible, hidden)), draw(parameters(visible)), draw(parameters(hidden)))


@st.composite
def dbms(draw):
    sizes = draw(st.lists(SIZES, min_size=2, max_size=5))
    weights = [draw(parameters(low, high)) for low, high in pairwise(sizes)]
    return DBM(weights=weights, biases=[draw(parameters(size)) for size in sizes])


@st.composite
def dbns(draw):
    sizes = draw(st.lists(SIZES, min_size=1, max_size=4))
    directed = [
        (draw(parameters(low, high)), draw(parameters(low)), draw(parameters(high)))
        for low, high in pairwise(sizes)
    ]
    return DBN(directed=directed, top=draw(rbms(visible=sizes[-1])))


@st.composite
def spins(draw):
    """A model of any kind whose units are of any kind."""
    model = draw(rbms() | dbms() | dbns())
    names = draw(
        st.lists(st.sampled_from(["bernoulli", "spin"]), min_size=len(model.units), max_size=len(model.units))
    )
    return type(model).from_arrays(list(model.arrays().values()), names)


MODELS = rbms() | dbms() | dbns() | spins()


@pytest.fixture
def rbm():
    rng = np.random.default_rng(0)
    return RBM(rng.normal(size=(3, 2)), rng.normal(size=3), rng.normal(size=2))


@UNHURRIED
@given(model=MODELS, dtype=st.sampled_from(PRECISIONS))
def test_what_is_stored_is_the_model(folder, model, dtype):
    save(model, folder / "model.npz", dtype=dtype)
    found = load(folder / "model.npz")
    assert type(found) is type(model)
    assert found.units == model.units
    stored, given = found.arrays(), model.arrays()
    assert list(stored) == list(given)
    for name, array in stored.items():
        assert array.dtype == np.float64
        np.testing.assert_array_equal(array, given[name].astype(dtype).astype(np.float64))


@pytest.mark.slow
@UNHURRIED
@given(
    model=MODELS, dtype=st.sampled_from(PRECISIONS), note=st.text(max_size=20).filter(lambda t: "\0" not in t)
)
def test_a_loaded_model_saves_to_the_same_bytes(folder, model, dtype, note):
    save(model, folder / "a.npz", dtype=dtype, note=note)
    save(load(folder / "a.npz"), folder / "b.npz", dtype=dtype, note=read_note(folder / "a.npz"))
    assert (folder / "a.npz").read_bytes() == (folder / "b.npz").read_bytes()


def test_the_bytes_depend_on_neither_time_nor_memory_order(tmp_path, rbm, monkeypatch):
    save(rbm, tmp_path / "a.npz")
    monkeypatch.setattr(time, "time", lambda: 2e9)
    monkeypatch.setattr(time, "localtime", lambda *_: time.gmtime(2e9))
    save(RBM(np.asfortranarray(rbm.weights), rbm.visible_bias, rbm.hidden_bias), tmp_path / "b.npz")
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()


def test_numpy_opens_a_model_file(tmp_path, rbm):
    save(rbm, tmp_path / "model.npz", note="café")
    with np.load(tmp_path / "model.npz", allow_pickle=False) as file:
        assert str(file["meltpoint_kind"]) == "RBM"
        assert int(file["meltpoint_version"]) == 1
        assert str(file["meltpoint_note"]) == "café"
        np.testing.assert_array_equal(file["weights"], rbm.weights)
    with zipfile.ZipFile(tmp_path / "model.npz") as archive:
        assert all(entry.compress_type == zipfile.ZIP_DEFLATED for entry in archive.infolist())


@UNHURRIED
@given(note=st.text().filter(lambda text: "\0" not in text))
def test_a_note_comes_back_as_it_was(folder, note):
    model = RBM([[1.0]], [0.0], [0.0])
    save(model, folder / "model.npz", note=note)
    assert read_note(folder / "model.npz") == note
    assert isinstance(load(folder / "model.npz"), RBM)


def test_a_note_with_a_zero_byte_is_refused(tmp_path, rbm):
    with pytest.raises(InputError, match="zero byte in the note"):
        save(rbm, tmp_path / "model.npz", note="text\0")


def test_a_mat_file_has_no_note(tmp_path):
    scipy.io.savemat(tmp_path / "rbm.mat", {"vishid": np.eye(2), "visbiases": [0, 0], "hidbiases": [0, 0]})
    assert read_note(tmp_path / "rbm.mat") == ""


@UNHURRIED
@given(model=rbms())
def test_an_rbm_of_salakhutdinov_s_code(folder, model):
    rows = {"visbiases": model.visible_bias[np.newaxis], "hidbiases": model.hidden_bias[np.newaxis]}
    scipy.io.savemat(folder / "rbm.mat", {"vishid": model.weights, **rows})
    found = load(folder / "rbm.mat")
    assert isinstance(found, RBM)
    for name, array in model.arrays().items():
        np.testing.assert_array_equal(getattr(found, name), array)


def test_the_paper_s_rbm(shared):
    model = load(shared / "models/mnistvh_CD25.mat")
    assert repr(model) == "RBM 784-500"
    stored = scipy.io.loadmat(shared / "models/mnistvh_CD25.mat")
    np.testing.assert_array_equal(model.weights, stored["vishid"])
    np.testing.assert_array_equal(model.visible_bias, stored["visbiases"].ravel())
    np.testing.assert_array_equal(model.hidden_bias, stored["hidbiases"].ravel())


def test_a_mat_file_without_an_rbm_lists_what_it_has(tmp_path):
    scipy.io.savemat(tmp_path / "data.mat", {"images": np.eye(2), "labels": [1, 2]})
    with pytest.raises(InputError, match=r"data\.mat with the arrays images, labels.*name the arrays"):
        load(tmp_path / "data.mat")


def test_a_dbm_of_salakhutdinov_s_code_is_not_taken_for_its_lower_half(tmp_path):
    names = ["vishid", "visbiases", "hidbiases", "hidpen", "penbiases"]
    scipy.io.savemat(tmp_path / "dbm.mat", {name: np.eye(2) for name in names})
    with pytest.raises(InputError, match="no second hidden layer"):
        load(tmp_path / "dbm.mat")


@pytest.mark.parametrize("dtype", [np.int64, np.complex128, "O", "no such type", np.longdouble])
def test_other_precisions_are_refused(tmp_path, rbm, dtype):
    with pytest.raises(InputError, match="expected float16, float32 or float64"):
        save(rbm, tmp_path / "model.npz", dtype=dtype)
    assert list(tmp_path.iterdir()) == []


def test_parameters_beyond_the_precision_are_refused(tmp_path):
    model = RBM([[7e4]], [0.0], [0.0])
    with pytest.raises(InputError, match=r"weights up to 7e\+04.*at most 6\.55e\+04.*dtype=numpy\.float64"):
        save(model, tmp_path / "model.npz", dtype=np.float16)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["model", "model.mat", "", "folder.npz/"])
def test_only_npz_files_are_written(tmp_path, rbm, name):
    if name.endswith("/"):
        (tmp_path / name).mkdir()
    with pytest.raises(InputError, match=r"ends in \.npz|not a regular file"):
        save(rbm, f"{tmp_path}/{name}")


def test_only_models_are_saved(tmp_path):
    with pytest.raises(InputError, match="a model of type list"):
        save([1, 2], tmp_path / "model.npz")


def test_a_missing_folder(tmp_path, rbm):
    with pytest.raises(InputError, match=r"folder that does not exist while writing .*model\.npz"):
        save(rbm, tmp_path / "nowhere" / "model.npz")


@pytest.mark.parametrize("after", [0, 1, 3])
def test_a_disk_that_fills_up_leaves_the_old_model(tmp_path, rbm, monkeypatch, after):
    save(rbm, tmp_path / "model.npz")
    old = (tmp_path / "model.npz").read_bytes()
    write, calls = npz.npy.write_array, []

    def until_full(*args, **kwargs):
        if len(calls) == after:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        calls.append(None)
        return write(*args, **kwargs)

    monkeypatch.setattr(npz.npy, "write_array", until_full)
    with pytest.raises(SystemFailure, match=r"no space left on the disk while writing .*model\.npz"):
        save(RBM(rbm.weights + 1, rbm.visible_bias, rbm.hidden_bias), tmp_path / "model.npz")
    assert [path.name for path in tmp_path.iterdir()] == ["model.npz"]
    assert (tmp_path / "model.npz").read_bytes() == old


def entries(model, **changes):
    """The entries of a model file, changed or (None) left out."""
    kind, arrays = model.kind_and_units, model.arrays()
    header = {"meltpoint_kind": np.array(kind), "meltpoint_version": np.array(1)}
    return {name: value for name, value in (header | arrays | changes).items() if value is not None}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"meltpoint_kind": np.array("SVM")}, "a 'SVM' of version 1 in .*one of RBM, DBM, DBN"),
        ({"meltpoint_kind": np.array(["RBM", "DBM"])}, "truncated or damaged"),
        ({"meltpoint_kind": np.array(7)}, "values of type int64 in .*meltpoint_kind"),
        (
            {"meltpoint_kind": np.array("DBM")},
            "found hidden_bias, weights in .*nothing but the parameters of one DBM",
        ),
        ({"meltpoint_version": None}, "no meltpoint_version in"),
        ({"meltpoint_version": np.array(3)}, "version 3, expected version 2.*upgrade meltpoint"),
        ({"meltpoint_version": np.array(10**18)}, "upgrade meltpoint"),
        ({"meltpoint_version": np.array(0)}, "of version 0"),
        ({"meltpoint_version": np.array(1.5)}, "values of type float64 in .*meltpoint_version"),
        ({"meltpoint_version": np.array("2")}, "values of type <U1 in .*meltpoint_version"),
        ({"weights": None}, "no weights in .*all of weights, visible_bias, hidden_bias"),
        ({"weights": None, "hidden_bias": None}, "no weights, hidden_bias in"),
        ({"weights": np.zeros((2, 3))}, "visible_bias of length 3 in .*expected 2.*transposed"),
        ({"weights": np.full((3, 2), np.nan)}, "6 NaN or infinite values in weights in "),
        ({"weights": np.zeros((3, 2), complex)}, "values of type complex128 in .*weights"),
        ({"weights": np.array([[{}]])}, "pickled Python objects, which are never opened, in .*weights"),
        ({"extra": np.zeros(1)}, "found extra in .*nothing but the parameters of one RBM"),
    ],
)
def test_model_files_that_do_not_fit(tmp_path, rbm, changes, message):
    np.savez(tmp_path / "model.npz", **entries(rbm, **changes))
    with pytest.raises(InputError, match=message) as caught:
        load(tmp_path / "model.npz")
    assert "model.npz" in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"weights_1": None}, "no weights_1 in .*all of visible_bias, weights_1, hidden_bias_1"),
        ({"weights_2": None}, "found hidden_bias_2 in"),
        ({"hidden_bias_2": None}, "no hidden_bias_2 in"),
        ({"weights_3": np.zeros((2, 2))}, "no hidden_bias_3 in"),
        ({"weights_07": np.zeros((2, 2))}, "no weights_3, hidden_bias_3 in"),
        (
            {"weights_2": np.zeros((7, 2))},
            r"weights\[0\] of shape \(3, 4\) below weights\[1\] of shape \(7, 2\) in",
        ),
        ({"weights_1": None, "weights_2": None}, "found hidden_bias_1, hidden_bias_2 in"),
    ],
)
def test_dbm_files_that_do_not_fit(tmp_path, changes, message):
    model = DBM([np.zeros((3, 4)), np.zeros((4, 2))], [np.zeros(3), np.zeros(4), np.zeros(2)])
    np.savez(tmp_path / "model.npz", **entries(model, **changes))
    with pytest.raises(InputError, match=message) as caught:
        load(tmp_path / "model.npz")
    assert "model.npz" in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"directed_1_recognition_bias": None}, "no directed_1_recognition_bias in"),
        ({"directed_1_weights": None}, "found directed_1_recognition_bias, directed_1_visible_bias in"),
        ({"top_weights": None}, "no top_weights in"),
        ({"directed_3_weights": np.zeros((3, 4))}, "no directed_2_weights"),
        ({"directed_1_weights": np.zeros((3, 5))}, "recognition_bias of length 4 in"),
    ],
)
def test_dbn_files_that_do_not_fit(tmp_path, changes, message):
    top = RBM(np.zeros((4, 2)), np.zeros(4), np.zeros(2))
    model = DBN(directed=[(np.zeros((3, 4)), np.zeros(3), np.zeros(4))], top=top)
    np.savez(tmp_path / "model.npz", **entries(model, **changes))
    with pytest.raises(InputError, match=message) as caught:
        load(tmp_path / "model.npz")
    assert "model.npz" in str(caught.value)


def test_data_in_place_of_a_model(tmp_path):
    np.savez(tmp_path / "data.npz", train=np.zeros(1), test=np.zeros(1))
    with pytest.raises(InputError, match=r"data\.npz with the arrays train, test.*swapped"):
        load(tmp_path / "data.npz")
    np.save(tmp_path / "data.npy", np.zeros(1))
    with pytest.raises(InputError, match=r"data\.npy, a \.npy file, expected a model.*swapped"):
        load(tmp_path / "data.npy")
    with pytest.raises(InputError, match=r"data\.npz with the arrays train, test"):
        read_note(tmp_path / "data.npz")
