"""Cells are computed as evaluations are: chains are kept as they are finished, and are those of the estimators."""

import numpy as np
import pytest

import meltpoint as mp
from meltpoint.paper.cells import Cell
from meltpoint.paper.compute import chosen_examples, run
from meltpoint.paper.results import Results
from meltpoint.stages import execute

AIS = Cell("mnistCD1-20", "ais", "data", steps=20, chains=300)
RAISE = Cell("mnistCD1-20", "raise", "uniform", steps=20, examples=40, chains=5)
RAISE_N = Cell("mnistCD1-20", "raise-n", "data", steps=20, examples=40, chains=2, forward=130)


@pytest.mark.slow
@pytest.mark.parametrize("cell", [AIS, RAISE, RAISE_N], ids=lambda cell: cell.method)
def test_an_interrupted_cell_continues_with_the_same_numbers(cell, inputs, tmp_path, monkeypatch):
    whole, half = Results(tmp_path / "whole"), Results(tmp_path / "half")
    run([cell], inputs, whole, threads=1)
    computed = []
    compute = execute.PreparedStage.compute

    def counted(prepared, task, *arguments):
        if len(computed) == 2:
            raise KeyboardInterrupt
        computed.append(task)
        return compute(prepared, task, *arguments)

    monkeypatch.setattr(execute.PreparedStage, "compute", counted)
    with pytest.raises(KeyboardInterrupt):
        run([cell], inputs, half, threads=1)
    assert half.read(cell) is None
    monkeypatch.setattr(execute.PreparedStage, "compute", compute)
    kept = sorted(path.stem for path in (tmp_path / "half" / "under-way").glob("*/part-0/stage-0/*-*.npz"))
    assert kept == [task.name for task in computed]
    run([cell], inputs, half, threads=1)
    assert half.read(cell)["result"] == whole.read(cell)["result"]
    assert not (tmp_path / "half" / "under-way").exists()


def test_they_are_the_numbers_of_the_estimators(inputs, tmp_path):
    loaded, results = inputs["mnistCD1-20"], Results(tmp_path)
    run([AIS, RAISE, RAISE_N], inputs, results, threads=1)
    base = mp.data_rates(loaded.data.train, loaded.model)
    assert (
        results.read(AIS)["result"]["log_z"]["value"]
        == mp.ais_log_z(loaded.model, base=base, steps=20, chains=300).value
    )
    _, examples = chosen_examples(RAISE, loaded)
    one = mp.raise_log_prob(loaded.model, examples, steps=20, chains=5)
    np.testing.assert_array_equal(results.read(RAISE)["result"]["examples"]["log_prob"], one.values)
    forward = mp.ais_log_z(loaded.model, base=base, steps=20, chains=130)
    many = mp.raise_log_prob(loaded.model, examples, base=base, steps=20, chains=2, forward=forward)
    np.testing.assert_array_equal(results.read(RAISE_N)["result"]["examples"]["log_prob"], many.values)


@pytest.mark.parametrize("cell", [AIS, Cell("mnistDBM-500-1000", "log-f")], ids=lambda cell: cell.method)
def test_a_link_in_place_of_a_folder_is_not_followed(cell, inputs, tmp_path):
    elsewhere, folder = tmp_path / "elsewhere", tmp_path / "results"
    elsewhere.mkdir()
    folder.mkdir()
    (folder / ("under-way" if cell is AIS else "log-f")).symlink_to(elsewhere)
    with pytest.raises(mp.InputError, match="a link out of"):
        run([cell], inputs, Results(folder), threads=1)
    assert not list(elsewhere.iterdir())
