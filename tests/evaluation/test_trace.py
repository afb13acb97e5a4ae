"""trace() along models with exact values: what is carried on, training against test, files, folders and Ctrl-C."""

import json

import numpy as np
import pytest
import scipy.sparse

import meltpoint as mp
from meltpoint.annealing.base import Base
from meltpoint.errors import InputError
from meltpoint.evaluation import trace as tracing
from meltpoint.evaluation.trace import Tracer, find_checkpoints, in_natural_order, load_checkpoint

QUICK = {"steps": 40, "examples": 20, "ais_chains": 60, "threads": 1}


def path_of_models(count=4, visible=10, hidden=4, scale=1.0, seed=0):
    """RBMs whose weights grow, and examples of a model like the last one."""
    rng = np.random.default_rng(seed)
    weights, bias = rng.normal(0, scale, (visible, hidden)), rng.normal(0, 0.5, visible)
    models = {
        f"epoch-{k + 1}": mp.RBM(weights * k / (count - 1), bias, np.zeros(hidden)) for k in range(count)
    }
    drawn = mp.sample(models[f"epoch-{count}"], 140, steps=100, seed=seed)
    return models, drawn[:60], drawn[60:]


@pytest.fixture(scope="module")
def traced():
    models, test, train = path_of_models()
    return models, test, train, mp.trace(models, test, train, **QUICK)


def exact_mean(model, examples):
    return float(np.mean(model.log_f(examples))) - mp.exact_log_z(model)


def test_every_point_holds_its_exact_values(traced):
    """Eight intervals of 99 %: a false alarm has a probability of at most 8 %, and none with this seed."""
    models, test, train, found = traced
    assert found.train_examples == 80
    for point, model in zip(found.points, models.values(), strict=True):
        assert point.exact == pytest.approx(exact_mean(model, test), abs=1e-12)
        assert point.between[0] - 1e-9 <= point.exact <= point.between[1] + 1e-9
        exact = exact_mean(model, train)
        assert point.train_between[0] - 1e-9 <= exact <= point.train_between[1] + 1e-9
        assert point.overfit.value == pytest.approx(exact - point.exact, abs=1e-10)
        assert np.subtract(*point.train_between) == pytest.approx(np.subtract(*point.between))


def test_sparse_examples_are_examples(traced):
    models, test, train, _ = traced
    two = {name: models[name] for name in ("epoch-1", "epoch-4")}
    sparse = mp.trace(two, scipy.sparse.csr_array(test), scipy.sparse.coo_array(train), **QUICK)
    assert [point.between for point in sparse.points] == [
        point.between for point in mp.trace(two, test, train, **QUICK).points
    ]


def test_base_and_schedule_are_carried_on_with_random_numbers_of_their_own(traced):
    _, _, _, found = traced
    assert [point.new_schedule for point in found.points] == [True, False, False, True]
    assert [point.checked for point in found.points] == [True, False, False, True]
    assert len({point.seed for point in found.points}) == 4
    assert found.trusted


def test_a_point_is_an_evaluation_with_the_base_and_betas_of_an_earlier_one(traced):
    models, test, train, found = traced
    first, second, *_ = models.values()
    base = mp.data_rates(train, first)
    friction = mp.friction_schedule(first, train, base=base, seed=found.points[0].seed, threads=1)
    alone = mp.evaluate(
        second,
        test,
        train,
        base=Base("data", base.biases),
        seed=found.points[1].seed,
        evidence=False,
        chains=1,
        **QUICK | {"steps": friction.betas(40)},
    )
    assert found.points[1].optimistic == alone.optimistic
    assert found.points[1].between == alone.between


@pytest.mark.slow
def test_steps_follow_the_effective_chains_and_a_pilot_is_run_when_they_have_become_few(
    tmp_path, monkeypatch
):
    models, test, train = path_of_models(count=2)
    model = models["epoch-2"]
    tracer = Tracer(test, train, tmp_path, evidence="none", examples=20, ais_chains=60, threads=1)
    shares = iter([0.9, 0.9, 0.2, 0.4, 0.9, 0.9])
    steps, new = [], []
    original = Tracer._carry_on

    def carry_on(self, found, new):
        object.__setattr__(found, "ess", next(shares) * 60)
        original(self, found, new)

    monkeypatch.setattr(Tracer, "_carry_on", carry_on)
    for k in range(6):
        point = tracer.evaluate(f"epoch-{k}", model, last=k == 5)
        steps.append(point.steps)
        new.append(point.new_schedule)
    assert steps == [2000, 1000, 500, 1000, 1000, 2000]
    assert new == [True, False, False, True, False, True]


def test_overfitting_shows():
    """A model that has learned its training examples by heart, after one that has not."""
    rng = np.random.default_rng(1)
    test, train = rng.integers(0, 2, (2, 40, 8))
    learned = mp.RBM(6.0 * (2 * train[:6] - 1).T, np.zeros(8), 8 - 6.0 * train[:6].sum(axis=1))
    fair = mp.RBM(np.zeros((8, 6)), np.zeros(8), np.zeros(6))
    found = mp.trace({"fair": fair, "learned": learned}, test, train[:6], base="uniform", **QUICK)
    assert found.best.name == "fair"
    assert found.overfits.name == "learned"
    assert "Overfits: at learned" in found.verdict
    assert found.points[1].overfit.value > 1


def test_without_training_examples_there_is_no_training_side():
    models, test, _ = path_of_models(count=2)
    found = mp.trace(models, test, evidence="none", **QUICK)
    assert found.points[0].train is None
    assert found.train_examples == 0
    assert not found.trusted
    assert "Not checked for missed modes." in found.verdict
    json.dumps(found.to_dict(), allow_nan=False)
    assert len(found.plot().axes) == 1


def test_views(traced):
    *_, found = traced
    assert max(map(len, str(found).splitlines())) <= 79
    content = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert set(content) == {
        *("test_examples", "train_examples", "confidence", "best", "rivals", "overfits", "trusted"),
        *("verdict", "points", "missing", "interrupted", "seconds"),
    }
    assert set(content["points"][0]) == {
        *(
            "name",
            "conservative",
            "optimistic",
            "between",
            "exact",
            "train",
            "train_between",
            "overfit",
            "ess",
        ),
        *("ais_chains", "steps", "seed", "new_schedule", "checked", "reason", "seconds"),
    }
    (axes,) = found.plot().axes
    legend = [text.get_text() for text in axes.get_legend().get_texts()]
    assert {"test, between", "training, between", "test, AIS", "test, RAISE", "test, exact"} == set(legend)
    assert ">epoch-1</th>" in found._repr_html_()
    assert found.best.name in {"epoch-3", "epoch-4"}
    assert repr(found).startswith("Trace(4 checkpoints: Best on the test examples")


def test_ctrl_c_keeps_what_is_finished_and_the_same_call_continues(tmp_path, traced):
    models, test, train, whole = traced

    def stop(task, done, total):
        if task.startswith("epoch-3"):
            raise KeyboardInterrupt

    part = mp.trace(models, test, train, run=tmp_path / "run", progress=stop, **QUICK)
    assert part.interrupted
    assert part.missing == ("epoch-3", "epoch-4")
    assert not part.trusted
    seen = []
    continued = mp.trace(models, test, train, run=tmp_path / "run", watch=seen.append, **QUICK)
    assert [point.name for point in seen] == list(models)
    for one, other in zip(continued.points, whole.points, strict=True):
        assert one.between == other.between
        assert one.overfit == other.overfit
    with pytest.raises(KeyboardInterrupt):
        mp.trace(models, test, train, progress=lambda *_: (_ for _ in ()).throw(KeyboardInterrupt), **QUICK)


def test_files_come_in_natural_order(tmp_path):
    models, *_ = path_of_models(count=2)
    for number in (1, 2, 10):
        mp.save(models["epoch-2"], tmp_path / f"epoch-{number}.npz")
    expected = ["epoch-1", "epoch-2", "epoch-10"]
    assert list(find_checkpoints(str(tmp_path / "*.npz"))) == expected
    assert list(find_checkpoints(tmp_path)) == expected
    assert in_natural_order(["b10", "b9", "a"]) == ["a", "b9", "b10"]
    assert list(find_checkpoints(list(models.values()))) == ["checkpoint 1", "checkpoint 2"]


def test_training_checkpoints_are_read(tmp_path):
    rng = np.random.default_rng(0)
    data = rng.integers(0, 2, (40, 6))
    file = tmp_path / "run.checkpoint.npz"
    options = {"epochs": 4, "batch": 10, "seed": 1, "checkpoint": file}
    model = mp.train_rbm(data, 3, **options)
    read = load_checkpoint(file)
    assert repr(read) == "RBM 6-3"
    np.testing.assert_array_equal(read.weights, model.weights)
    np.testing.assert_array_equal(read.visible_bias, model.visible_bias)
    file.unlink()
    deep = mp.train_dbm(data, (4, 3), **options)
    read = load_checkpoint(file)
    assert repr(read) == "DBM 6-4-3"
    np.testing.assert_array_equal(read.weights[1], deep.weights[1])
    file.unlink()
    mp.train_dbn(data, (4, 3), **options)
    with pytest.raises(InputError, match="one layer of a stack"):
        load_checkpoint(file)
    mp.save(model, tmp_path / "model.npz")
    assert repr(load_checkpoint(tmp_path / "model.npz")) == "RBM 6-3"


@pytest.mark.parametrize("kind", ["spin", "potts", "gaussian"])
def test_training_checkpoints_of_all_kinds_of_units_are_read(kind, tmp_path) -> None:
    examples = 2 * np.random.default_rng(0).integers(0, 2, (20, 6)) - 1
    examples = np.maximum(examples, 0) if kind == "potts" else examples
    model = mp.train_rbm(examples, 3, visible=kind, epochs=1, checkpoint=tmp_path / "run.npz")
    read = load_checkpoint(tmp_path / "run.npz")
    assert read.fingerprint() == model.fingerprint()


@pytest.mark.parametrize(
    ("checkpoints", "options", "words"),
    [
        ("nowhere/*.npz", {}, "no file nowhere"),
        ([], {}, "no checkpoints"),
        (None, {"evidence": "often"}, "evidence='often'"),
        (None, {"confidence": 2.0}, "confidence=2.0"),
    ],
)
def test_wrong_input(checkpoints, options, words):
    models, test, train = path_of_models(count=2)
    with pytest.raises(InputError, match=words):
        mp.trace(models if checkpoints is None else checkpoints, test, train, **QUICK | options)


def test_checkpoints_of_another_model_are_refused():
    models, test, train = path_of_models(count=2)
    other = mp.RBM(np.zeros((9, 2)), np.zeros(9), np.zeros(2))
    with pytest.raises(InputError, match="other with 9 visible units, expected 10, as epoch-2 has"):
        mp.trace({"epoch-2": models["epoch-2"], "other": other}, test, train, evidence="none", **QUICK)


def test_training_examples_are_as_many_as_the_test_set_from_1000_on():
    train = np.arange(20_000).reshape(-1, 1)
    assert len(tracing._some(train, 60, 0)) == 1000
    assert len(tracing._some(train, 3000, 0)) == 3000
    assert len(tracing._some(train, 15_000, 0)) == 10_000
    assert len(np.unique(tracing._some(train[:70], 60, 0))) == 70
