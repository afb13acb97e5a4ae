"""Run folders made by somebody else: nothing outside them is touched, nothing hangs, every error is a sentence."""

import json
import os
import tempfile
import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis.strategies import text

from meltpoint.annealing.base import Base
from meltpoint.errors import InputError, RunWarning
from meltpoint.evaluation.evaluate import evaluate
from meltpoint.evaluation.stored import merge_runs, read_run
from meltpoint.layers.unit import Floats
from meltpoint.models.rbm import RBM
from meltpoint.runs import files
from meltpoint.runs.files import is_locked, locked, read_sealed, write_sealed
from meltpoint.runs.records import to_arrays
from meltpoint.runs.run import Run
from meltpoint.runs.specification import FILE, read_specification
from meltpoint.runs.store import RunFolder, open_run
from runs.test_store import SPECIFICATION

pytestmark = pytest.mark.skipif(os.name != "posix", reason="links and pipes as POSIX has them")
CHUNK = {"values": np.arange(3.0)}


@pytest.fixture
def folder(tmp_path):
    """A run with one chunk, and a file outside it."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "precious").write_bytes(b"precious")
    with open_run(tmp_path / "run", SPECIFICATION) as run:
        run.write("part-0/a", CHUNK)
    return tmp_path / "run"


def reopened(folder):
    return open_run(folder, SPECIFICATION)


def outside(folder):
    return {
        path.name: path.read_bytes() if path.is_file() else None
        for path in (folder.parent / "outside").iterdir()
    }


PRECIOUS = {"precious": b"precious"}


def test_a_linked_report_is_replaced_and_its_target_left_alone(folder):
    (folder / "report.json").symlink_to("../outside/precious")
    with reopened(folder) as run:
        run.finish({"gap": 1.0})
    assert outside(folder) == PRECIOUS
    assert json.loads((folder / "report.json").read_text()) == {"gap": 1.0}


def test_a_linked_chunk_is_neither_read_nor_written_through(folder):
    target = folder.parent / "outside" / "precious"
    write_sealed(target, CHUNK, SPECIFICATION.fingerprint, "part-0/b")
    before = target.read_bytes()
    (folder / "part-0" / "b.npz").symlink_to(target)
    with reopened(folder) as run:
        with pytest.warns(RunWarning, match=r"\(a link\).* counts as missing"):
            assert run.load("part-0/b", dict) is None
        run.write("part-0/b", {"values": np.zeros(2)})
    assert outside(folder) == {"precious": before}
    assert not (folder / "part-0" / "b.npz").is_symlink()


def test_a_linked_folder_is_not_left_by(folder):
    (folder / "part-1").symlink_to("../outside")
    with reopened(folder) as run:
        with pytest.warns(RunWarning, match="part-1, a link out of"):
            run.write("part-1/a", CHUNK)
        np.testing.assert_array_equal(run.load("part-1/a", dict)["values"], CHUNK["values"])
        run._waiting.clear()
    assert outside(folder) == PRECIOUS


@pytest.mark.parametrize("name", ["a/../../outside/new", "../outside/new", "{outside}/new"])
def test_no_name_of_a_chunk_leads_out_of_the_folder(folder, name):
    (folder / "a").mkdir()
    name = name.format(outside=folder.parent / "outside")
    write_sealed(folder.parent / "outside" / "new.npz", CHUNK, SPECIFICATION.fingerprint, name)
    before = outside(folder)
    with reopened(folder) as run:
        with pytest.warns(RunWarning, match=r"a path out of .* counts as missing"):
            assert run.load(name, dict) is None
        with pytest.warns(RunWarning, match="a path out of"):
            run.write(name, {"values": np.zeros(2)})
        run._waiting.clear()
    assert outside(folder) == before


def test_a_link_above_the_folder_is_the_callers(folder):
    (folder.parent / "here").symlink_to(folder)
    with open_run(folder.parent / "here", SPECIFICATION) as run:
        run.write("part-0/b", CHUNK)
        assert run.load("part-0/a", dict) is not None
    assert (folder / "part-0" / "b.npz").is_file()


def merged_with_base_named(name, tmp_path):
    """Merge a run whose sealed stage calls its base by this name, with a chunk for it where the name leads."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rbm, base = RBM([[0.0], [0.0]], [0.0, 0.0], [0.0]), Base("mine", (np.zeros(2),))
        evaluate(rbm, [[0, 1], [1, 1]], base=base, schedule="linear", steps=5, run=tmp_path / "in" / "run")
    run = tmp_path / "in" / "run"
    digest, stage = read_specification(run).fingerprint, "part-0/stage-0/stage"
    arrays = read_sealed(run / f"{stage}.npz", digest, stage)
    write_sealed(run / f"{stage}.npz", {**arrays, "base.name": np.array(name)}, digest, stage)
    (run / "base-a").mkdir()
    (tmp_path / "out").mkdir()
    chunk = (run / f"base-{name}.npz").resolve()
    write_sealed(chunk, to_arrays(base), digest, f"base-{name}")
    return merge_runs([run], tmp_path / "out" / "run")


def test_merging_writes_nothing_beside_the_new_folder(tmp_path):
    with (
        pytest.warns(RunWarning, match=r"a base named 'a/\.\./\.\./escaped'"),
        pytest.raises(InputError, match="an unfinished run"),
    ):
        merged_with_base_named("a/../../escaped", tmp_path)
    assert not list((tmp_path / "out").rglob("*escaped*"))
    with pytest.raises(InputError, match="an unfinished run"):  # the chunks are those of another base
        merged_with_base_named("other", tmp_path / "plain")


@pytest.mark.parametrize("name", ["a/../../escaped", "a\\b", "", "a\n", "\x1b[2J", "n" * 201, 5, None])
def test_a_base_has_a_name_that_a_file_may_have(name):
    with pytest.raises(InputError, match=r"a base named .*choose a plain name"):
        Base(name, (np.zeros(2),))


@pytest.mark.slow
@settings(max_examples=20)
@given(text(max_size=60))
def test_names_of_bases_stay_in_the_run_folder(name):
    rbm = RBM([[0.0], [0.0]], [0.0, 0.0], [0.0])
    with tempfile.TemporaryDirectory() as folder:
        try:
            base = Base(name, (np.zeros(2),))
        except InputError:
            return
        run = Path(folder, "below", "run")
        evaluate(rbm, [[0, 1], [1, 1]], base=base, steps=3, evidence=False, run=run)
        assert [path.name for path in Path(folder, "below").iterdir()] == ["run"]
        assert (run / f"base-{name}.npz").is_file()
        assert read_run(run).report().settings.base == name


def test_a_linked_lock_is_refused_and_its_target_left_alone(folder):
    (folder / "lock").unlink()
    (folder / "lock").symlink_to("../outside/precious")
    assert not is_locked(folder / "lock")
    with pytest.raises(InputError, match="lock, which is not a regular file"), reopened(folder):
        pass
    assert outside(folder) == PRECIOUS


def test_a_linked_specification_is_refused(folder):
    (folder / FILE).rename(folder.parent / "outside" / FILE)
    (folder / FILE).symlink_to(folder.parent / "outside" / FILE)
    with pytest.raises(InputError, match=r"specification.json, damaged"):
        read_specification(folder)


@pytest.mark.timeout(20)
@pytest.mark.parametrize("name", ["part-0/a.npz", "lock", FILE])
@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: os.mknod(path, 0o140600)])
def test_what_is_not_a_regular_file_is_told_and_never_waited_for(folder, name, make):
    (folder / name).unlink()
    make(folder / name)
    if name == "part-0/a.npz":
        with reopened(folder) as run, pytest.warns(RunWarning, match="counts as missing"):
            assert run.load("part-0/a", dict) is None
        return
    assert not is_locked(folder / "lock")
    with pytest.raises(InputError), reopened(folder):
        pass


@pytest.mark.timeout(20)
def test_a_pipe_in_place_of_a_chunk_is_replaced(folder):
    (folder / "part-0" / "a.npz").unlink()
    os.mkfifo(folder / "part-0" / "a.npz")
    with reopened(folder) as run:
        run.write("part-0/a", CHUNK)
    assert (folder / "part-0" / "a.npz").is_file()


def test_a_folder_named_like_a_temporary_file_is_left_alone(folder):
    (folder / ".meltpoint-x.tmp").mkdir()
    with reopened(folder) as run:
        assert run.load("part-0/a", dict) is not None


@pytest.mark.parametrize(
    "change",
    [
        lambda content: "[" * 100_000,
        lambda content: json.dumps(content)[:-1] + ', "extra": ' + "[" * 50_000 + "]" * 50_000 + "}",
        lambda content: " " * 2_000_000 + json.dumps(content),
        lambda content: json.dumps({**content, "parts": []}),
        lambda content: json.dumps({**content, "parts": 3}),
        lambda content: json.dumps({**content, "parts": ["0"]}),
        lambda content: json.dumps({**content, "parts": [-1]}),
        lambda content: json.dumps({**content, "parts": [True]}),
        lambda content: json.dumps({**content, "fingerprints": []}),
        lambda content: json.dumps({**content, "fingerprints": {"model": 1}}),
        lambda content: json.dumps({**content, "settings": None}),
        lambda content: json.dumps({**content, "reporting_settings": "x"}),
        lambda content: json.dumps({**content, "versions": [1]}),
        lambda content: json.dumps({**content, "method": "1"}),
        lambda content: json.dumps({**content, "model": 5}),
        lambda content: json.dumps({**content, "test_examples": None}),
        lambda content: json.dumps({**content, "format": [1]}),
        lambda content: json.dumps([content]),
        lambda content: json.dumps(
            {key: value for key, value in content.items() if key != "reporting_settings"}
        ),
        lambda content: "\x00\xff",
    ],
)
def test_a_changed_specification_is_an_error_in_a_sentence(folder, change):
    path = folder / FILE
    path.write_text(change(json.loads(path.read_text())), encoding="latin-1")
    with pytest.raises(InputError, match="damaged") as caught:
        read_specification(folder)
    assert len(str(caught.value)) <= 500
    with pytest.raises(InputError, match="damaged"), reopened(folder):
        pass


def test_texts_of_a_specification_are_escaped(folder):
    path = folder / FILE
    content = json.loads(path.read_text())
    path.write_text(json.dumps({**content, "settings": {"steps": "\x1b[2J" * 1000}}))
    with pytest.raises(InputError) as caught, reopened(folder):
        pass
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) <= 500


@pytest.mark.parametrize(
    "arrays",
    [
        {},
        {"other": np.zeros(3)},
        {"values": np.zeros(3), "other": np.zeros(3)},
        {"values": np.zeros((3, 1))},
        {"values": np.array(1.0)},
        {"values": np.zeros(3, np.int64)},
        {"values": np.array(["a"])},
    ],
)
def test_a_sealed_chunk_of_another_layout_is_computed_again(folder, arrays):
    @dataclass(frozen=True, eq=False)
    class Values:
        values: Annotated[Floats, "example"]

    write_sealed(folder / "part-0" / "a.npz", arrays, SPECIFICATION.fingerprint, "part-0/a")
    with reopened(folder) as kept:
        assert kept.load("part-0/a", dict) is not None  # the seal is right
        run, found = Run(1, folder=kept), Values(np.zeros(2))
        with pytest.warns(RunWarning, match="counts as missing"):
            assert run.once("part-0/a", Values, lambda: found) is found
        assert run.recall("part-0/a", Values) is not None


@pytest.mark.parametrize("name", ["n" * 300, "a\0b"])
def test_a_name_no_disk_can_have(tmp_path, name):
    with pytest.raises(InputError), open_run(tmp_path / name, SPECIFICATION):
        pass


def test_what_cannot_be_unlocked_loses_nothing(folder, monkeypatch):
    def fail(_descriptor):
        raise OSError(5, "Input/output error")

    with reopened(folder) as run:
        run.finish({"gap": 1.0})
        monkeypatch.setattr(files.os, "close", fail)
    monkeypatch.undo()
    assert (folder / "report.json").exists()


def test_a_lock_keeps_others_out_and_is_no_link(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "_LOCK_SECONDS", 0.05)
    lock = tmp_path / "lock", "process", "try again"
    busy = pytest.raises(InputError, match=r"another process, expected one at a time: .*or try again")
    with locked(*lock), busy, locked(*lock):
        pass
    (tmp_path / "lock").unlink()
    (tmp_path / "lock").symlink_to("/nowhere")
    with pytest.raises(InputError, match="not a regular file"), locked(*lock):
        pass


def test_a_lock_that_was_cut_off_by_nobody(folder):
    (folder / "lock").write_bytes(b"content of somebody's")
    with locked(folder / "lock", "", ""):
        assert is_locked(folder / "lock")
    assert (folder / "lock").read_bytes() == b"content of somebody's"


def test_a_single_sealed_file(tmp_path):
    write_sealed(tmp_path / "c.npz", CHUNK, "digest")
    assert set(read_sealed(tmp_path / "c.npz", "digest")) == {"values"}
    with pytest.raises(InputError):
        read_sealed(tmp_path / "c.npz", "other")


def test_reading_only_creates_nothing(folder):
    (folder / "lock").unlink()
    before = sorted(folder.rglob("*"))
    assert not is_locked(folder / "lock")
    RunFolder(folder, SPECIFICATION.fingerprint).load("part-0/a", dict)
    assert sorted(folder.rglob("*")) == before
    assert read_specification(folder) == replace(SPECIFICATION)
