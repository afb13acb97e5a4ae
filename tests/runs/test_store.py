"""A run's folder: one writer, one specification, and nothing lost when the disk is full."""

import errno
import os
import subprocess
import sys
import warnings
from dataclasses import replace

import numpy as np
import pytest

from meltpoint.errors import InputError, RunWarning, SystemFailure
from meltpoint.runs import files
from meltpoint.runs.files import is_locked, write_sealed
from meltpoint.runs.specification import METHOD, Specification, read_specification
from meltpoint.runs.store import open_run

SPECIFICATION = Specification(
    model="RBM 4-3",
    test_examples=10,
    fingerprints={"model": "m", "test set": "t"},
    settings={"steps": 100, "base": "data"},
    reporting_settings={"tolerance": 1.0},
    versions={"meltpoint": "0"},
    parts=(0,),
)
PIECE = {"values": np.arange(3.0)}

HOLD = """
import sys
import warnings
from meltpoint.runs.files import locked
from pathlib import Path
with locked(Path(sys.argv[1], "lock"), "", ""):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_pieces_are_there_when_it_is_opened_again(tmp_path):
    with open_run(tmp_path / "run", SPECIFICATION) as run:
        assert run.load("part-0/a", dict) is None
        run.write("part-0/a", PIECE)
    with open_run(tmp_path / "run", SPECIFICATION) as run:
        np.testing.assert_array_equal(run.load("part-0/a", dict)["values"], PIECE["values"])
    assert read_specification(tmp_path / "run") == SPECIFICATION


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"fingerprints": {"model": "n", "test set": "t"}},
            "a run with another model in .*, expected the same model",
        ),
        ({"fingerprints": {"model": "m", "test set": "u"}}, "a run with another test set"),
        ({"fingerprints": {"model": "m"}}, "a run with a test set in .*, expected the same arguments"),
        ({"fingerprints": {"model": "m", "test set": "t", "base": "b"}}, "a run with no base"),
        ({"settings": {"steps": 200, "base": "data"}}, "a run with steps=100 in .*, expected steps=200"),
        ({"settings": {"steps": 100}}, "a run with base='data' in .*, expected base=None"),
        ({"method": METHOD + 1}, f"version {METHOD} of the method in .*, expected version {METHOD + 1}"),
        ({"parts": (1,)}, "a run of part 0 in .*, expected one of part 1: .* meltpoint runs merge"),
    ],
    ids=str,
)
def test_other_runs_are_refused(tmp_path, changes, message):
    with open_run(tmp_path, SPECIFICATION):
        pass
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    with (
        pytest.raises(InputError, match=message),
        open_run(tmp_path, replace(SPECIFICATION, **changes)),
    ):
        pass
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_what_changes_no_number_may_change(tmp_path):
    with open_run(tmp_path, SPECIFICATION) as run:
        run.write("a", PIECE)
    other = replace(SPECIFICATION, reporting_settings={"tolerance": 0.1}, versions={"meltpoint": "1"})
    with open_run(tmp_path, other) as run:
        assert run.load("a", dict) is not None


def test_a_folder_with_something_else_is_left_alone(tmp_path):
    (tmp_path / "thesis.tex").write_text("…")
    with (
        pytest.raises(InputError, match=r"thesis.tex in .*, which is not a run's folder"),
        open_run(tmp_path, SPECIFICATION),
    ):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]
    with pytest.raises(InputError, match="which is a file"), open_run(tmp_path / "thesis.tex", SPECIFICATION):
        pass


@pytest.mark.parametrize(
    "content", ["", "{", "[]", '{"format": 2}', '{"format": 2, "model": "", "test_examples": 1}']
)
def test_a_damaged_specification_is_told(tmp_path, content):
    (tmp_path / "specification.json").write_text(content)
    with pytest.raises(InputError, match=r"specification.json, damaged"), open_run(tmp_path, SPECIFICATION):
        pass


@pytest.mark.parametrize("version", [1, 3])
def test_a_folder_of_another_layout_is_refused(tmp_path, version):
    with open_run(tmp_path, SPECIFICATION):
        pass
    path = tmp_path / "specification.json"
    path.write_text(path.read_text().replace('"format": 2', f'"format": {version}'))
    with pytest.raises(InputError, match=rf"version {version} in .*, expected version 2"):
        read_specification(tmp_path)


def test_there_is_one_writer(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "_LOCK_SECONDS", 0.05)
    with open_run(tmp_path, SPECIFICATION):
        assert is_locked(tmp_path / "lock")
        with pytest.raises(InputError, match="another process at work in"), open_run(tmp_path, SPECIFICATION):
            pass
    assert not is_locked(tmp_path / "lock")


def test_a_writer_in_another_process_and_its_death(tmp_path):
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, tmp_path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(InputError, match="another process at work in"), open_run(tmp_path, SPECIFICATION):
            pass
    finally:
        holder.kill()
        holder.communicate()
    with open_run(tmp_path, SPECIFICATION):
        pass


def test_what_a_killed_writer_left_half_written_is_swept(tmp_path):
    (tmp_path / "part-0").mkdir()
    with open_run(tmp_path / "part-0" / "run", SPECIFICATION) as run:
        run.write("part-0/a", PIECE)
    left = [tmp_path / "part-0/run" / name for name in (".meltpoint-1.tmp", "part-0/.meltpoint-2.tmp")]
    for path in left:
        path.touch()
    with open_run(tmp_path / "part-0" / "run", SPECIFICATION) as run:
        assert run.load("part-0/a", dict) is not None
    assert not any(path.exists() for path in left)


class Disk:
    """A disk that can be full."""

    def __init__(self, monkeypatch):
        self.full = False
        sync = os.fsync

        def fsync(descriptor):
            if self.full:
                raise OSError(errno.ENOSPC, "No space left on device")
            sync(descriptor)

        monkeypatch.setattr(os, "fsync", fsync)


def write_all(run, *names):
    for name in names:
        run.write(name, PIECE)


def test_what_a_full_disk_does_not_take_is_written_later(tmp_path, monkeypatch):
    disk = Disk(monkeypatch)
    with open_run(tmp_path, SPECIFICATION) as run:
        disk.full = True
        with pytest.warns(RunWarning, match=r"no space left on the disk while .*: free some space") as told:
            write_all(run, "a", "b")
        assert len(told) == 1
        assert run.load("a", dict) is not None
        assert not list(tmp_path.glob("*.npz"))
        disk.full = False
        run.write("c", PIECE)
    assert sorted(path.stem for path in tmp_path.glob("*.npz")) == ["a", "b", "c"]
    assert not list(tmp_path.glob(".meltpoint-*"))


def test_a_piece_that_is_too_large_does_not_keep_the_others_out(tmp_path, monkeypatch):
    def write(path, arrays, *context):
        if path.stem == "large":
            raise SystemFailure(found="no space", expected="some", remedy="free some")
        write_sealed(path, arrays, *context)

    monkeypatch.setattr("meltpoint.runs.store.write_sealed", write)
    with warnings.catch_warnings(record=True, action="always") as told:
        with open_run(tmp_path, SPECIFICATION) as run:
            write_all(run, "a", "large", "b")
        assert sorted(path.stem for path in tmp_path.glob("*.npz")) == ["a", "b"]
    assert "Nothing is lost so far" in str(told[0].message)
    assert "1 finished chunk of the run could not be written" in str(told[-1].message)
    assert len(told) == 2


def test_what_could_not_be_written_to_the_end_is_told(tmp_path, monkeypatch):
    disk = Disk(monkeypatch)
    opened = open_run(tmp_path, SPECIFICATION)
    run = opened.__enter__()
    disk.full = True
    with pytest.warns(RunWarning, match="Nothing is lost so far"):
        write_all(run, "a", "b")
    with pytest.warns(RunWarning, match="the report is made again"):
        run.finish({"gap": 1.0})
    with pytest.warns(RunWarning, match="2 finished chunks of the run could not be written"):
        opened.__exit__(None, None, None)


def test_a_full_disk_at_the_beginning_is_an_error(tmp_path, monkeypatch):
    Disk(monkeypatch).full = True
    with (
        pytest.raises(SystemFailure, match="no space left on the disk"),
        open_run(tmp_path / "run", SPECIFICATION),
    ):
        pass
