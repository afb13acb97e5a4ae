"""Cells are computed once, kept whole, and computed again when anything they depend on has changed."""

import json
import shutil

import numpy as np
import pytest

import meltpoint as mp
from meltpoint.errors import InputError
from meltpoint.paper.cells import Plan
from meltpoint.paper.profiles import Profile
from meltpoint.paper.run import missing, run
from meltpoint.paper.shelf import Shelf
from meltpoint.paper.store import Store
from meltpoint.paper.subjects import DBNS, RBMS, SMALL

TINY = Profile("tiny", 4, (2, 4), 8, examples=3, chains=2, ais_chains=5, test_examples=20)
PLAN = Plan(TINY, parameters=False)


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "results")


def test_cells_are_those_of_evaluate(shelf, store):
    subject = SMALL[0]
    cells = [PLAN.exact(subject), *PLAN.both(subject, "data", 4)]
    run(cells, shelf, store)
    loaded = shelf[subject.name]
    report = mp.evaluate(
        loaded.model,
        loaded.test(cells[0]),
        loaded.data.train,
        steps=np.linspace(0, 1, 5),
        chains=2,
        examples=3,
        ais_chains=5,
    ).to_dict()
    exact, ais, raised = (store.read(cell)["result"] for cell in cells)
    assert exact["estimate"]["value"] == report["exact"]["value"]
    assert ais["estimate"] == report["optimistic"]
    assert ais["ess"] == report["ess"]
    assert raised["estimate"]["value"] == report["conservative"]["value"]
    assert raised["estimate"]["stderr"] == report["conservative"]["stderr"]
    assert raised["control_variate_gain"] == report["control_variate_gain"]
    assert raised["examples"] == report["examples"]


def test_what_is_there_is_not_computed_again(shelf, store):
    cells = list(PLAN.both(SMALL[1], "uniform", 2))
    assert set(missing([cells, cells], shelf, store)) == set(cells)
    run(cells[:1], shelf, store)
    assert missing([cells], shelf, store) == cells[1:]
    before = store.path(cells[0]).stat().st_mtime_ns
    run(cells, shelf, store)
    assert store.path(cells[0]).stat().st_mtime_ns == before
    assert missing([cells], shelf, store) == []


def test_another_model_in_the_file_makes_its_cells_stale(models, data, store, tmp_path):
    cell = PLAN.ais(SMALL[0], "uniform", 2)
    run([cell], Shelf(models), store)
    other = shutil.copytree(models, tmp_path / "other")
    mp.save(mp.RBM(np.zeros((784, 2)), np.zeros(784), np.zeros(2)), other / f"{SMALL[0].name}.npz")
    assert missing([[cell]], Shelf(other), store) == [cell]
    run([cell], Shelf(other), store)
    assert store.read(cell)["model"]["what"] == "RBM 784-2"


@pytest.mark.parametrize("damage", ["", "{", "[]", "{}"])
def test_half_a_file_counts_as_none(shelf, store, damage):
    cell = PLAN.ais(SMALL[0], "uniform", 2)
    run([cell], shelf, store)
    store.path(cell).write_text(damage, encoding="utf-8")
    assert missing([[cell]], shelf, store) == [cell]


def test_log_f_of_a_deep_model_is_estimated_once(shelf, store, monkeypatch):
    cells = [cell for steps in (2, 4) for cell in PLAN.both(DBNS[0], "uniform", steps)]
    asked = []
    estimate = mp.DBN.log_f_estimate
    monkeypatch.setattr(mp.DBN, "log_f_estimate", lambda *a, **k: asked.append(1) or estimate(*a, **k))
    run(missing([cells[:2]], shelf, store), shelf, store)
    run(missing([cells], shelf, store), shelf, store)
    assert len(asked) == 1
    assert missing([cells], shelf, store) == []
    kept, ais = store.read(cells[0])["result"], store.read(cells[1])["result"]
    assert ais["log_f"] == kept
    assert ais["estimate"]["value"] == pytest.approx(kept["mean"] - ais["log_z"]["value"], abs=1e-12)


def test_an_interruption_keeps_whole_cells_only(shelf, store):
    cells = [PLAN.ais(subject, "uniform", 2) for subject in RBMS[:3]]

    def stop(cell, _record):
        if cell == cells[1]:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(cells, shelf, store, finished=stop)
    assert missing([cells], shelf, store) == cells[2:]
    assert [path.suffix for path in store.path(cells[0]).parent.iterdir()] == [".json"] * 2


def test_progress_is_that_of_the_whole(shelf, store):
    cells = list(PLAN.both(SMALL[0], "data", 4))
    told = []
    run(cells, shelf, store, progress=lambda *told_of: told.append(told_of))
    whole = [(done, total) for task, done, total in told if task == "all cells"]
    assert whole == sorted(whole)
    assert whole[-1][0] == pytest.approx(whole[-1][1])


def test_records_are_plain_json(shelf, store):
    cell = PLAN.raise_(SMALL[0], "uniform", 2)
    run([cell], shelf, store)
    record = json.loads(store.path(cell).read_text(encoding="utf-8"))
    assert {"fingerprint", "cell", "model", "data", "result", "seconds", "threads", "versions"} <= set(record)


def test_a_missing_model_is_named(tmp_path, data, store):
    with pytest.raises(InputError, match=r"mnistCD1-20\.npz in the folder of models.*--models"):
        missing([[PLAN.exact(SMALL[0])]], Shelf(tmp_path), store)
