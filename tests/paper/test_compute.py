"""Cells are computed once, kept whole, and computed again when anything they depend on has changed."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest

import meltpoint as mp
from meltpoint.errors import InputError
from meltpoint.kernels.announcing import PREPARING
from meltpoint.paper import compute
from meltpoint.paper.cells import Cell, Plan, Profile
from meltpoint.paper.compute import cell_test_set, describe_draws, missing, run
from meltpoint.paper.models import DBMS, DBNS, RBMS, SMALL, Inputs
from meltpoint.paper.results import Results

TINY = Profile(
    "tiny",
    4,
    (2, 4),
    8,
    examples=3,
    chains=2,
    ais_chains=5,
    test_examples=20,
)
PLAN = Plan(TINY, parameters=False)


@pytest.fixture
def results(tmp_path):
    return Results(tmp_path / "results")


def evaluated(cells, inputs, results, **sizes):
    """The results of the cells of one model, and the report of evaluate() with linear steps."""
    run(cells, inputs, results)
    loaded = inputs[cells[0].model]
    test, train, steps = cell_test_set(cells[0], loaded), loaded.data.train, np.linspace(0, 1, 5)
    base = cells[-1].base
    report = mp.evaluate(loaded.model, test, train, base=base, steps=steps, examples=3, exact=True, **sizes)
    return [results.read(cell)["result"] for cell in cells], report.to_dict()


@pytest.mark.slow
@pytest.mark.parametrize("model", [SMALL[0], DBMS[0], DBNS[0]])
def test_cells_are_those_of_evaluate(inputs, results, model):
    cells = [PLAN.exact(model), PLAN.ais(model, "data", 4), PLAN.raise_(model, "data", 4)]
    sizes = {"chains": 2, "ais_chains": 5, "particles": 1}
    (exact, ais, raised), report = evaluated(cells, inputs, results, **sizes)
    assert exact["estimate"] == report["exact"]
    assert ais["estimate"] == report["optimistic"]
    assert ais["ess"] == report["ess"]
    assert raised["estimate"] == report["conservative"]
    assert raised["control_variate_gain"] == report["control_variate_gain"]
    assert raised["examples"] == report["examples"]
    assert raised["certificate"] == report["certificate"]


@pytest.mark.slow
@pytest.mark.parametrize("model", [SMALL[0], DBMS[0], DBNS[0]])
def test_n_particles_are_those_of_evaluate(inputs, results, model):
    cell = PLAN.raise_n(model, "data", 4)
    (found,), report = evaluated([cell], inputs, results, chains=1, ais_chains=cell.forward)
    assert found["particles"] == report["particles"] == 4
    assert found["estimate"] == report["conservative"]
    assert found["optimistic"] == report["optimistic"]
    assert found["gap"] == report["gap"]
    assert found["examples"] == report["examples"]


def test_draws_are_other_binarisations_of_the_same_examples(inputs):
    loaded = inputs[SMALL[0].name]
    cell = Cell(SMALL[0].name, "draws", chains=3, test_examples=20)
    found = describe_draws(cell, loaded)
    assert len(set(found["means"])) == 3
    assert found["spread"] == pytest.approx(np.std(found["means"], ddof=1))
    # Pixels that are surely on or off are drawn as they are: then nothing moves.
    images = replace(loaded.data.images, test=loaded.data.test, white=1)
    surely = describe_draws(cell, replace(loaded, data=replace(loaded.data, images=images)))
    assert surely["means"] == [loaded.model.log_f(cell_test_set(cell, loaded)).mean()] * 3


def test_progress_grows_with_the_chains_and_not_before_them(inputs, results):
    cells = [PLAN.ais(SMALL[0], "uniform", 2), PLAN.ais(SMALL[0], "uniform", 4)]
    told = []
    run(cells, inputs, results, progress=lambda _task, done, whole: told.append(done / whole))
    assert told == sorted(told)
    assert told[0] < told[-1] == 1


def test_compiled_kernels_are_no_part_of_the_work():
    told = []
    tell = compute.portion(lambda _task, done, whole: told.append(done / whole), 1.0, 2.0, 4.0)
    tell(PREPARING, 1.0, 1.0)
    tell("AIS", 1.0, 2.0)
    tell("AIS", 2.0, 2.0)
    assert told == [0.25, 0.5, 0.75]


def test_forward_chains_make_the_error_larger(inputs, results):
    plan = Plan(replace(TINY, examples=20, chains=3), parameters=False)
    cell = plan.raise_n(SMALL[0], "uniform", 40)
    run([cell], inputs, results)
    found = results.read(cell)["result"]
    own = np.std(np.subtract(found["examples"]["log_prob"], found["examples"]["log_f"]), ddof=1) / 20**0.5
    assert found["estimate"]["stderr"] > own


def test_what_is_there_is_not_computed_again(inputs, results):
    cells = list(PLAN.row(SMALL[1], "uniform", 2))
    assert set(missing([cells, cells], inputs, results)) == set(cells)
    run(cells[:1], inputs, results)
    assert set(missing([cells], inputs, results)) == set(cells[1:])
    before = results.path(cells[0]).stat().st_mtime_ns
    run(cells, inputs, results)
    assert results.path(cells[0]).stat().st_mtime_ns == before
    assert missing([cells], inputs, results) == []


@pytest.mark.slow
def test_another_model_in_the_file_makes_its_cells_stale(models, data, results, tmp_path):
    cell = PLAN.ais(SMALL[0], "uniform", 2)
    run([cell], Inputs(models), results)
    other = shutil.copytree(models, tmp_path / "other")
    mp.save(mp.RBM(np.zeros((784, 2)), np.zeros(784), np.zeros(2)), other / f"{SMALL[0].name}.npz")
    assert missing([[cell]], Inputs(other), results) == [cell]
    run([cell], Inputs(other), results)
    assert results.read(cell)["model"]["what"] == "RBM 784-2"


@pytest.mark.parametrize("damage", ["", "{", "[]", "{}"])
def test_half_a_file_counts_as_none(inputs, results, damage):
    cell = PLAN.ais(SMALL[0], "uniform", 2)
    run([cell], inputs, results)
    results.path(cell).write_text(damage, encoding="utf-8")
    assert missing([[cell]], inputs, results) == [cell]


def test_a_number_changed_by_hand_counts_as_none(inputs, results):
    cell = PLAN.ais(SMALL[0], "uniform", 2)
    run([cell], inputs, results)
    record = json.loads(results.path(cell).read_text(encoding="utf-8"))
    record["result"]["estimate"]["value"] += 1e-9
    results.path(cell).write_text(json.dumps(record), encoding="utf-8")
    assert results.read(cell) is None


def test_log_f_of_a_deep_model_is_estimated_once(inputs, results, monkeypatch):
    cells = [cell for steps in (2, 4) for cell in PLAN.row(DBNS[0], "uniform", steps)]
    asked = []
    part = mp.DBN.log_f_part

    def counting(model, states, *arguments, **options):
        asked.append(len(states))
        return part(model, states, *arguments, **options)

    monkeypatch.setattr(mp.DBN, "log_f_part", counting)
    run(missing([cells[:2]], inputs, results), inputs, results)
    run(missing([cells], inputs, results), inputs, results)
    assert asked == [1, 20]  # a single one tells whether it is exact
    assert missing([cells], inputs, results) == []
    kept, ais = results.read(cells[0])["result"], results.read(cells[1])["result"]
    assert ais["log_f"] == kept
    assert ais["estimate"]["value"] == pytest.approx(kept["mean"] - ais["log_z"]["value"], abs=1e-12)


def test_an_interruption_keeps_whole_cells_only(inputs, results):
    cells = [PLAN.ais(model, "uniform", 2) for model in RBMS[:3]]

    def stop(cell, _record):
        if cell == cells[1]:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(cells, inputs, results, finished=stop)
    assert missing([cells], inputs, results) == cells[2:]
    assert [path.suffix for path in results.path(cells[0]).parent.iterdir()] == [".json"] * 2


def test_progress_is_that_of_the_whole(inputs, results):
    cells = list(PLAN.row(SMALL[0], "data", 4))
    told = []
    run(cells, inputs, results, progress=lambda *told_of: told.append(told_of))
    whole = [(done, total) for task, done, total in told if task == "all cells"]
    assert whole == sorted(whole)
    assert whole[-1][0] == pytest.approx(whole[-1][1])


def test_records_are_plain_json(inputs, results):
    cell = PLAN.raise_(SMALL[0], "uniform", 2)
    run([cell], inputs, results)
    record = json.loads(results.path(cell).read_text(encoding="utf-8"))
    assert {"fingerprint", "cell", "model", "data", "result", "seconds", "threads", "versions"} <= set(record)


def test_a_missing_model_is_named(tmp_path, data, results):
    with pytest.raises(InputError, match=r"mnistCD1-20\.npz in the folder of models.*--models"):
        missing([[PLAN.exact(SMALL[0])]], Inputs(tmp_path), results)
