"""Folders of results made by somebody else: cells that are none are computed again, and nothing outside is touched."""

import errno
import os

import pytest

import meltpoint as mp
from reproduce.cells import Plan, Profile
from reproduce.models import SMALL
from reproduce.results import Results

pytestmark = pytest.mark.skipif(os.name != "posix", reason="links and pipes as POSIX has them")
PLAN = Plan(Profile("tiny", 4, (2, 4), 8, examples=3, chains=2, ais_chains=5, test_examples=20), False)
CELL = PLAN.cell(SMALL[0], "ais", "uniform", 2)
RECORD = {"fingerprint": "", "result": {}}


@pytest.fixture
def results(tmp_path):
    """Results with one cell, and a file outside."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "precious").write_bytes(b"precious")
    made = Results(tmp_path / "results")
    made.write(CELL, RECORD)
    assert made.read(CELL) == RECORD
    return made


def outside(results):
    folder = results.folder.parent / "outside"
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_linked_cell_is_neither_read_nor_written_through(results):
    path = results.path(CELL)
    whole = path.read_bytes()
    target = results.folder.parent / "outside" / "precious"
    target.write_bytes(whole)
    path.unlink()
    path.symlink_to(target)
    assert results.read(CELL) is None
    results.write(CELL, {**RECORD, "result": {"value": 1}})
    assert outside(results) == {"precious": whole}
    assert not path.is_symlink()


def test_a_linked_folder_of_cells_is_refused(results):
    cells = results.folder / "cells"
    cells.rename(results.folder / "moved")
    cells.symlink_to("../outside")
    with pytest.raises(mp.InputError, match="a link out of"):
        results.read(CELL)
    with pytest.raises(mp.InputError, match="a link out of"):
        results.write(CELL, RECORD)
    assert outside(results) == {"precious": b"precious"}


def test_a_linked_folder_of_cells_under_way_is_refused(results):
    class Loaded:
        model_digest = data_digest = ""

    (results.folder / "under-way").symlink_to("../outside")
    with pytest.raises(mp.InputError, match="a link out of"):
        results.run_folder(CELL, Loaded)


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir], ids=["pipe", "folder"])
def test_what_is_not_a_regular_file_is_not_waited_for(results, make):
    results.path(CELL).unlink()
    make(results.path(CELL))
    assert results.read(CELL) is None


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a": ' * 100_000, "9" * 5000, "\ud800"])
def test_json_that_cannot_be_read_counts_as_none(results, text):
    results.path(CELL).write_bytes(text.encode("utf-8", "surrogatepass"))
    assert results.read(CELL) is None


def test_a_sealed_record_without_a_fingerprint_is_not_that_of_a_cell(results):
    class Loaded:
        model_digest = data_digest = ""

    results.write(CELL, {})
    assert results.read(CELL) == {}
    assert not results.has(CELL, Loaded)


def test_a_disk_that_fails_makes_no_table_with_holes(results, monkeypatch):
    def fail(*_, **__):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr("reproduce.results._read_regular", fail)
    with pytest.raises(OSError, match="Input/output"):
        results.read(CELL)


def test_a_linked_folder_of_tables_is_refused_before_anything_is_computed(tmp_path):
    from typer.testing import CliRunner

    from meltpoint.cli.app import app

    (tmp_path / "outside").mkdir()
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "quick").symlink_to("../outside")
    options = ["--profile", "quick", "--models", tmp_path, "--out", tmp_path / "results"]
    ended = CliRunner().invoke(app, ["paper", "table2", *map(str, options)])
    assert ended.exit_code == 2
    assert "a link out of" in ended.stderr
    assert not list((tmp_path / "outside").iterdir())
