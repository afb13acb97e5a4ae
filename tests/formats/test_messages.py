"""What a new user met: messages that misled, and what is said or done now."""

import pickle
import sys

import numpy as np
import pytest

import meltpoint as mp
from formats.written import rbm_log_f
from meltpoint.formats.load import read_array


def test_a_pt_file_is_read(files):
    assert repr(mp.load(files / "state.pt")) == "RBM 6-4"


def test_a_pt_file_with_a_whole_module_says_how_to_export_it(files):
    with pytest.raises(mp.InputError) as caught:
        mp.load(files / "module.pt")
    message = str(caught.value)
    assert "an object of class __main__.RBM" in message
    assert (
        "model = torch.load('module.pt', weights_only=False); torch.save(model.state_dict(), 'state.pt')"
        in message
    )
    assert "(none)" not in message


def test_an_h5_file_of_rbms_is_read_or_asks_which_update(files):
    pytest.importorskip("h5py")
    assert repr(mp.load(files / "rbms_bernoulli.h5", update="last")) == "RBM 6-4"
    with pytest.raises(
        mp.InputError, match="with the updates 10, 200, and no update, expected update=one of them"
    ) as caught:
        mp.load(files / "rbms_bernoulli.h5")
    assert "MATLAB" not in str(caught.value)


def test_an_h5_file_without_h5py_names_the_extra(files, monkeypatch):
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(
        mp.InputError, match=r"no h5py in this installation.*pip install 'meltpoint\[h5\]'"
    ) as caught:
        mp.load(files / "rbms_bernoulli.h5")
    assert "MATLAB" not in str(caught.value)


def test_an_h5_file_in_place_of_data(files):
    with pytest.raises(mp.InputError, match=r"an HDF5 file.*models in HDF5 are read by mp\.load") as caught:
        read_array(files / "rbms_bernoulli.h5")
    assert "MATLAB 7.3" not in str(caught.value)


def test_arrays_w_b_c_are_read(tmp_path):
    rng = np.random.default_rng(0)
    W, b, c = rng.normal(size=(5, 3)), rng.normal(size=5), rng.normal(size=3)
    np.savez(tmp_path / "rbm.npz", W=W, b=b, c=c)
    v = rng.integers(0, 2, (4, 5))
    np.testing.assert_allclose(mp.load(tmp_path / "rbm.npz").log_f(v), rbm_log_f(W, b, c, v), atol=1e-12)


def test_arrays_with_other_names_can_be_named(tmp_path):
    np.savez(tmp_path / "rbm.npz", P=np.zeros((5, 3)), q=np.zeros(5), r=np.zeros(3))
    with pytest.raises(
        mp.InputError,
        match=r"with the arrays P, q, r.*name the arrays: weights=…, visible_bias=…, hidden_bias=…",
    ):
        mp.load(tmp_path / "rbm.npz")
    assert repr(mp.load(tmp_path / "rbm.npz", weights="P", visible_bias="q", hidden_bias="r")) == "RBM 5-3"


def test_a_pickle_is_never_opened(tmp_path):
    (tmp_path / "rbm.pkl").write_bytes(pickle.dumps({"W": 1}))
    with pytest.raises(mp.InputError, match=r"a Python pickle.*pickles are never opened"):
        mp.load(tmp_path / "rbm.pkl")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"temprature": 1}, "option 'temprature', expected one of orientation"),
        ({"gap": "yes"}, "gap='yes', expected 'state' or 'masked'"),
        ({"update": 3}, "update for .*expected only what this format leaves open: nothing"),
        ({"states": 21.0}, r"states=21\.0, expected a whole number"),
        ({"states": 0}, "states=0, expected a whole number from 1 on"),
        ({"states": True}, "states=True, expected a whole number"),
        ({"temperature": "1"}, "temperature='1', expected a finite number"),
        ({"update": 1.5}, r"update=1\.5, expected a whole number or text"),
        ({"units": ["spin"]}, "units=a list, expected 'spin' or 'bernoulli'"),
        ({"unpacked": 0}, "unpacked=0, expected a whole number from 1 on"),
        ({"member": "a"}, "member for .*UAI file.*leaves open: nothing"),
    ],
)
def test_options_that_say_nothing(files, options, message):
    with pytest.raises(mp.InputError, match=message):
        mp.load(files / "pgmpy.uai", **options)


def test_meltpoint_s_own_files_leave_nothing_open(tmp_path):
    mp.save(mp.RBM([[1.0]], [0.0], [0.0]), tmp_path / "model.npz")
    assert repr(mp.load(tmp_path / "model.npz")) == "RBM 1-1"
    with pytest.raises(mp.InputError, match=r"units for .*model file of meltpoint"):
        mp.load(tmp_path / "model.npz", units="spin")
