"""Cells are computed once, kept whole, and computed again when anything they depend on has changed."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import meltpoint as mp
from oracle.driving import models as oracle_models
from oracle.tables import all_states
from reproduce import compute
from reproduce.cells import Cell, Plan, Profile
from reproduce.compute import Task, describe_configurations, missing, run
from reproduce.figures import pictures_of
from reproduce.models import DBMS, DBNS, RBMS, SMALL, Inputs
from reproduce.results import Results

TINY = Profile("tiny", 4, (2, 4), 8, examples=3, chains=2, ais_chains=5, test_examples=20)
PLAN = Plan(TINY, parameters=False)
KINDS = pytest.mark.parametrize("model", [SMALL[0], DBMS[0], DBNS[0]], ids=lambda model: model.label)


@pytest.fixture
def results(tmp_path):
    return Results(tmp_path / "results")


def evaluated(cells, inputs, results, **sizes):
    """The results of the cells of one model, and the report of evaluate() on the whole test set."""
    run(cells, inputs, results)
    task = Task(cells[-1], inputs[cells[-1].model])
    settings = {"base": "data", "steps": 4, "schedule": "linear", "examples": 3, "exact": True}
    report = mp.evaluate(task.loaded.model, task.test, task.loaded.data.train, **settings, **sizes)
    return [results.read(cell)["result"] for cell in cells], report.to_dict()


def same(found, wanted):
    """Whether estimates are the same but for rounding."""
    assert found["value"] == pytest.approx(wanted["value"], abs=1e-9)
    assert found["stderr"] == pytest.approx(wanted["stderr"], rel=1e-9)
    assert (found["direction"], found["covers"]) == (wanted["direction"], wanted["covers"])


def same_examples(found, report):
    """RAISE's values are the same to the bit; the rounding of log f depends on the number of rows."""
    found, wanted = dict(found["examples"]), dict(report["examples"])
    assert found.pop("log_f") == pytest.approx(wanted.pop("log_f"), abs=1e-9)
    assert found == wanted


@pytest.mark.slow
@KINDS
def test_cells_are_those_of_evaluate(model, inputs, results):
    log_f = [] if model in RBMS else [PLAN.cell(model, "log-f")]
    cells = [*log_f, PLAN.cell(model, "exact")]
    cells += [PLAN.cell(model, method, "data", 4) for method in ("ais", "raise")]
    sizes = {"chains": 2, "ais_chains": 5, "particles": 1}
    (*_, exact, ais, raised), report = evaluated(cells, inputs, results, **sizes)
    same(exact["estimate"], report["exact"])
    same(ais["estimate"], report["optimistic"])
    assert ais["ess"] == report["ess"]
    same(raised["estimate"], report["conservative"])
    assert raised["control_variate_gain"] == pytest.approx(report["control_variate_gain"])
    same_examples(raised, report)
    assert raised["certificate"] == report["certificate"]


@pytest.mark.slow
@KINDS
def test_n_particles_are_those_of_evaluate(model, inputs, results):
    log_f = [] if model in RBMS else [PLAN.cell(model, "log-f")]
    cell = PLAN.cell(model, "raise-n", "data", 4)
    (*_, found), report = evaluated([*log_f, cell], inputs, results, chains=1, ais_chains=cell.forward)
    assert found["particles"] == report["particles"] == 4
    same(found["estimate"], report["conservative"])
    same(found["optimistic"], report["optimistic"])
    same(found["gap"], report["gap"])
    same_examples(found, report)


@pytest.mark.slow
def test_an_estimated_log_f_is_that_of_evaluate(inputs, results, tmp_path, data):
    rng = np.random.default_rng(1)
    below = 0.1 * rng.normal(size=(784, 14)), rng.normal(size=784) - 2, np.zeros(14)
    dbn = mp.DBN([below], mp.RBM(0.1 * rng.normal(size=(14, 12)), np.zeros(14), np.zeros(12)))
    mp.save(dbn, tmp_path / f"{DBNS[0].name}.npz")
    cells = [PLAN.cell(DBNS[0], "log-f"), *(PLAN.cell(DBNS[0], m, "data", 4) for m in ("ais", "raise-n"))]
    sizes = {"chains": 1, "ais_chains": 3}
    (log_f, _, raised), report = evaluated(cells, Inputs(tmp_path), results, **sizes)
    assert log_f["stderr"] > 0
    same(raised["optimistic"], report["optimistic"])
    # Log f of the examples is estimated with other random numbers.
    assert raised["estimate"]["value"] == pytest.approx(report["conservative"]["value"], abs=0.1)
    assert raised["estimate"]["stderr"] == pytest.approx(report["conservative"]["stderr"], rel=0.05)
    assert raised["gap"]["stderr"] == pytest.approx(report["gap"]["stderr"], rel=0.05)


def test_draws_are_other_binarisations_of_the_same_examples(inputs):
    loaded = inputs[SMALL[0].name]
    cell = Cell(SMALL[0].name, "draws", chains=3, test_examples=20)
    found = Task(cell, loaded).compute()
    assert len(set(found["means"])) == 3
    assert found["spread"] == pytest.approx(np.std(found["means"], ddof=1))
    # Pixels that are surely on or off are drawn as they are: then nothing moves.
    images = replace(loaded.data.images, test=loaded.data.test, white=1)
    surely = Task(cell, replace(loaded, data=replace(loaded.data, images=images)))
    assert surely.compute()["means"] == [loaded.model.log_f(surely.test).mean()] * 3


def test_progress_grows_with_the_chains_and_not_before_them(inputs, results):
    cells = [PLAN.cell(SMALL[0], "ais", "uniform", steps) for steps in (2, 4)]
    told = []
    run(cells, inputs, results, progress=lambda _task, done, whole: told.append(done / whole))
    assert told == sorted(told)
    assert told[0] == 0
    assert told[-1] == 1


def test_what_is_there_is_not_computed_again(inputs, results):
    cells = PLAN.row(SMALL[1], "uniform", 2)
    assert set(missing([cells, cells], inputs, results)) == set(cells)
    run(cells[:1], inputs, results)
    assert set(missing([cells], inputs, results)) == set(cells[1:])
    before = results.path(cells[0]).stat().st_mtime_ns
    run(cells, inputs, results)
    assert results.path(cells[0]).stat().st_mtime_ns == before
    assert missing([cells], inputs, results) == []


@pytest.mark.slow
def test_an_interrupted_cell_continues_with_the_same_numbers(inputs, tmp_path, monkeypatch):
    monkeypatch.setattr(compute, "_SHORT", 0.0)
    cell = Cell(SMALL[0].name, "raise-n", "data", steps=300, examples=40, chains=1, forward=400)
    whole, half = Results(tmp_path / "whole"), Results(tmp_path / "half")
    run([cell], inputs, whole)

    def stop(_task, done, total):
        if done > total / 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run([cell], inputs, half, threads=1, progress=stop)
    assert half.read(cell) is None
    (folder,) = (tmp_path / "half" / "under-way").iterdir()
    assert list(folder.rglob("*.npz"))
    run([cell], inputs, half)
    assert half.read(cell)["result"] == whole.read(cell)["result"]
    assert not folder.exists()


@pytest.mark.slow
def test_another_model_in_the_file_makes_its_cells_stale(models, data, results, tmp_path):
    cell = PLAN.cell(SMALL[0], "ais", "uniform", 2)
    run([cell], Inputs(models), results)
    other = shutil.copytree(models, tmp_path / "other")
    mp.save(mp.RBM(np.zeros((784, 2)), np.zeros(784), np.zeros(2)), other / f"{SMALL[0].name}.npz")
    assert missing([[cell]], Inputs(other), results) == [cell]
    run([cell], Inputs(other), results)
    assert results.read(cell)["model"]["what"] == "RBM 784-2"


def test_a_number_changed_by_hand_counts_as_none(inputs, results):
    cell = PLAN.cell(SMALL[0], "ais", "uniform", 2)
    run([cell], inputs, results)
    record = json.loads(results.path(cell).read_text(encoding="utf-8"))
    assert {"fingerprint", "cell", "model", "data", "result", "seconds", "threads", "versions"} <= set(record)
    record["result"]["estimate"]["value"] += 1e-9
    results.path(cell).write_text(json.dumps(record), encoding="utf-8")
    assert results.read(cell) is None
    assert missing([[cell]], inputs, results) == [cell]


def test_a_missing_model_is_named(tmp_path, data, results):
    with pytest.raises(mp.InputError, match=r"mnistCD1-20\.npz in the folder of models.*--models"):
        missing([[PLAN.cell(SMALL[0], "exact")]], Inputs(tmp_path), results)


@given(hnp.arrays(np.uint8, st.tuples(st.integers(1, 5), st.just(15)), elements=st.integers(0, 1)))
def test_letters_give_the_pictures_back(pictures):
    back, shape = pictures_of(compute.picture_result(pictures, (3, 5)))
    np.testing.assert_array_equal(back, pictures)
    assert shape == (3, 5)


def test_each_method_draws_its_own_pictures(inputs):
    loaded, name = inputs["mnistCD1-20"], "mnistCD1-20"

    def drawn(*settings, **sizes):
        return pictures_of(Task(Cell(name, *settings, chains=2, **sizes), loaded).compute())[0]

    np.testing.assert_array_equal(drawn("samples", steps=3), mp.sample(loaded.model, 2, steps=3))
    base = mp.data_rates(loaded.data.train)
    annealed = mp.sample_annealing_model(loaded.model, 2, base=base, steps=3)
    np.testing.assert_array_equal(drawn("annealed", "data", steps=3), annealed)
    for example in drawn("training"):
        assert (loaded.data.train == example).all(axis=1).any()


@given(
    seed=st.integers(0, 1000), visible=st.integers(1, 4), hidden=st.integers(1, 4), block=st.integers(1, 20)
)
def test_configurations_are_the_marginal_of_the_joint(seed, visible, hidden, block):
    rbm = oracle_models.rbm(seed, visible, hidden)
    v, h = all_states(visible).astype(float), all_states(hidden).astype(float)
    log_f = (v @ rbm.visible_bias)[:, None] + h @ rbm.hidden_bias + v @ rbm.weights @ h.T
    joint = np.exp(log_f) / np.exp(log_f).sum()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compute, "_BLOCK", block)
        found = describe_configurations(rbm)
    probs = np.sort(joint.sum(axis=0))[::-1]
    np.testing.assert_allclose(found["largest"], probs[:10], rtol=1e-12)
    assert found["perplexity"] == pytest.approx(np.exp(-probs @ np.log(probs)))


def test_configurations_are_described():
    told = describe_configurations(mp.RBM([[0.0, 0.0]], [0.0], [np.log(9.0), -50.0]))
    assert told["configurations"] == 4
    assert told["largest"][:2] == pytest.approx([0.9, 0.1])
    assert told["carry_the_share"] in (1, 2)  # nine tenths exactly, but for rounding
    assert told["perplexity"] == pytest.approx(np.exp(-0.9 * np.log(0.9) - 0.1 * np.log(0.1)))
