"""`zoo:NAME` is a model that comes with the source, from the clone, the user's folder or a checked download."""

import shutil
from pathlib import Path

import pytest

import meltpoint as mp
from meltpoint.formats import download as zoo
from meltpoint.formats.download import RemoteFile, checksum_of

ZOO = Path(__file__).resolve().parents[2] / "zoo"


def test_it_is_the_model_of_the_clone():
    assert repr(mp.load("zoo:mnistCD1-20")) == "RBM 784-20"
    assert zoo.path_of("zoo:mnistCD1-20.npz") == ZOO / "mnistCD1-20.npz"
    assert zoo.path_of("model.npz") == Path("model.npz")


def test_every_file_has_the_checksum_that_a_download_is_held_to():
    assert set(zoo._ZOO) == {path.stem for path in ZOO.glob("*.npz")}
    for name, (size, digest) in zoo._ZOO.items():
        path = ZOO / f"{name}.npz"
        assert path.stat().st_size == size
        assert checksum_of(path, RemoteFile(name, "zoo", size, f"sha256:{digest}", ())) == f"sha256:{digest}"


def test_without_a_clone_the_users_folder_is_asked(tmp_path, monkeypatch):
    monkeypatch.setattr(zoo, "_CLONE", tmp_path / "none")
    monkeypatch.setenv("MELTPOINT_DATA", str(tmp_path))
    (tmp_path / "zoo").mkdir()
    own = shutil.copy(ZOO / "mnistPCD-20.npz", tmp_path / "zoo")
    assert zoo.path_of("zoo:mnistPCD-20") == Path(own)
    Path(own).write_bytes(b"another file")
    with pytest.raises(mp.InputError, match="get it again from https://"):
        mp.load("zoo:mnistPCD-20")


def test_without_a_network_it_says_where_to_get_it(tmp_path, monkeypatch):
    monkeypatch.setattr(zoo, "_CLONE", tmp_path / "none")
    monkeypatch.setattr(zoo, "_ADDRESS", "http://127.0.0.1:9/zoo/")
    monkeypatch.setattr("meltpoint.formats.download.time.sleep", lambda seconds: None)
    monkeypatch.delenv("MELTPOINT_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(
        (mp.InputError, mp.SystemFailure), match=r"http://127\.0\.0\.1:9/zoo/mnistPCD-20\.npz"
    ):
        mp.load("zoo:mnistPCD-20")


def test_another_name():
    with pytest.raises(mp.InputError, match="did you mean zoo:mnistCD1-20"):
        mp.load("zoo:mnistCD1-2")
