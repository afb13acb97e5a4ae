"""compare() against exact differences of small models, and what it does with names, folders and Ctrl-C."""

import json
import os
from dataclasses import replace

import numpy as np
import pytest

import meltpoint as mp
from meltpoint.errors import InputError, RunWarning, SystemFailure
from meltpoint.results import pair as pairs
from meltpoint.results.pair import ComparedModel, compose_pair
from meltpoint.statistics.paired import limits_of_difference

QUICK = {
    "steps": 40,
    "schedule": "linear",
    "chains": 1,
    "examples": 20,
    "ais_chains": 60,
    "threads": 1,
}


def two_models(seed, near=True, visible=10, hidden=4):
    """Two RBMs, and test and training examples that favour neither much."""
    rng = np.random.default_rng(seed)
    shapes = [(visible, hidden), (visible,), (hidden,)]
    first = [rng.normal(0, 1.2, shape) for shape in shapes]
    second = [(0.98 * array if near else 0.0) + rng.normal(0, 0.2, array.shape) for array in first]
    return (
        mp.RBM(*first),
        mp.RBM(*second),
        rng.integers(0, 2, (60, visible)),
        rng.integers(0, 2, (80, visible)),
    )


def exact_difference(one, other, test):
    values = [float(np.mean(model.log_f(test))) - mp.exact_log_z(model) for model in (one, other)]
    return values[0] - values[1]


def test_each_report_is_that_of_evaluate():
    one, other, test, train = two_models(0)
    found = mp.compare([one, other], test, train, seed=3, **QUICK)
    assert list(found.reports) == ["model 1", "model 2"]
    for model, report in zip((one, other), found.reports.values(), strict=True):
        alone = mp.evaluate(model, test, train, seed=3, **QUICK)
        np.testing.assert_array_equal(report.ais_log_weights, alone.ais_log_weights)
        assert report.between == alone.between
        assert report.conservative == alone.conservative
    positions = [report.per_example.positions for report in found.reports.values()]
    np.testing.assert_array_equal(*positions)


def test_the_difference_of_enumerated_models_is_exact():
    one, other, test, train = two_models(1)
    (pair,) = mp.compare([one, other], test, train, **QUICK).pairs
    assert pair.exact == pytest.approx(exact_difference(one, other, test), abs=1e-12)
    assert pair.between == pytest.approx((pair.exact, pair.exact), abs=1e-12)
    differences = one.log_f(test) - other.log_f(test)
    assert pair.sampling_error == pytest.approx(np.std(differences, ddof=1) / np.sqrt(60))
    assert pair.population[0] < pair.exact < pair.population[1]


@pytest.mark.slow
def test_intervals_hold_as_promised_and_are_never_wider_than_separate_ones(monkeypatch):
    """14 pairs at 90 %: more than 7 misses have a probability below 2e-5; the mutant without noise misses more."""
    missed = mutant_missed = narrower = 0
    for seed in range(14):
        one, other, test, train = two_models(seed, near=seed % 2 == 0)
        found = mp.compare([one, other], test, train, seed=seed, exact=False, confidence=0.9, **QUICK)
        (pair,) = found.pairs
        exact = exact_difference(one, other, test)
        missed += not pair.between[0] <= exact <= pair.between[1]
        width, separate = (ends[1] - ends[0] for ends in (pair.between, pair.separate))
        reports = list(found.reports.values())
        printed = sum(report.between[1] - report.between[0] for report in reports)
        assert width <= separate + 1e-9
        assert separate == pytest.approx(printed)
        narrower += width < 0.95 * separate
        assert pair.population[1] - pair.population[0] >= width
        sides = [ComparedModel(name, report) for name, report in found.reports.items()]
        assert compose_pair(*sides, 0.1).between == pytest.approx(pair.between)
        with monkeypatch.context() as patch:
            patch.setattr(pairs, "limits_of_difference", _without_noise)
            low, high = compose_pair(*sides, 0.1).between
            mutant_missed += not low <= exact <= high
    assert missed <= 7
    assert mutant_missed > 7
    assert narrower > 7


def _without_noise(first, second, correlation=0.0, more_noise=0.0):
    first, second = (replace(each, noise=(0.0, 0.0), rest=(0.0, 0.0)) for each in (first, second))
    return limits_of_difference(first, second, correlation, more_noise)


def test_near_models_share_their_noise():
    """With the same random numbers the error of a difference is smaller than that of independent chains."""
    rng = np.random.default_rng(5)
    one, _, test, train = two_models(5)
    other = mp.RBM(one.weights + rng.normal(0, 0.01, one.weights.shape), one.visible_bias, one.hidden_bias)
    base = mp.data_rates(train, one)
    found = mp.compare([one, other], test, train, base=base, exact=False, **QUICK | {"ais_chains": 200})
    (pair,) = found.pairs
    errors = [report.log_z.stderr for report in found.reports.values()]
    assert pair.optimistic.stderr < 0.7 * np.hypot(*errors)
    assert pair.correlation > 0.3
    assert pair.conservative.stderr < np.hypot(*errors)


def test_deep_models_whose_log_f_is_estimated(monkeypatch):
    monkeypatch.setattr("meltpoint.models.dbm.ENUMERATED", 0)
    rng = np.random.default_rng(2)
    deep = [
        mp.DBM(
            [rng.normal(0, scale, (6, 4)), rng.normal(0, scale, (4, 3))],
            [np.zeros(6), np.zeros(4), np.zeros(3)],
        )
        for scale in (0.2, 3.0)
    ]
    test = rng.integers(0, 2, (30, 6))
    found = mp.compare(deep, test, rng.integers(0, 2, (30, 6)), names=["weak", "strong"], **QUICK)
    assert found.verdict.startswith("Order known: weak > strong.")
    (pair,) = found.pairs
    assert pair.at_most is None
    assert pair.exact is None


def test_three_models_share_the_confidence():
    one, other, test, train = two_models(3)
    models = {"a": one, "b": other}
    quick = {"exact": False, "evidence": False} | QUICK
    two, three = (mp.compare(each, test, train, **quick) for each in (models, models | {"c": one}))
    against = mp.compare(models | {"c": one}, test, train, baseline="b", **quick)
    widths = [np.diff(each.pair("a", "b").between)[0] for each in (two, against, three)]
    assert widths[0] < widths[1] < widths[2]
    assert len(three.pairs) == 3
    assert [(pair.first, pair.second) for pair in against.pairs] == [("a", "b"), ("c", "b")]
    same = three.pair("a", "c")
    assert same.optimistic.value == 0
    assert same.better("test set") is None


def test_the_order_of_the_population_needs_more(monkeypatch):
    one, other, test, train = two_models(4)
    here = mp.compare([one, other], test[:10], train, **QUICK | {"examples": 10})
    there = mp.compare([one, other], test[:10], train, about="population", **QUICK | {"examples": 10})
    assert here.order_known
    assert not there.order_known
    assert there.pairs == here.pairs
    assert "that on the population" in " ".join(str(there).split())


def test_files_give_their_names(tmp_path):
    one, other, test, train = two_models(6)
    for folder, model in (("x", one), ("y", other)):
        (tmp_path / folder).mkdir()
        mp.save(model, tmp_path / folder / "model.npz")
    mp.save(one, tmp_path / "best.npz")
    files = [tmp_path / "x" / "model.npz", tmp_path / "y" / "model.npz", tmp_path / "best.npz"]
    found = mp.compare(files, test, train, baseline="best", **QUICK)
    assert list(found.reports) == [str(tmp_path / "x" / "model"), str(tmp_path / "y" / "model"), "best"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"models": 1}, "1 model"),
        ({"names": ["a"]}, "the names a for 2 models"),
        ({"names": ["a", "a"]}, "all different"),
        ({"baseline": "c"}, "baseline='c'"),
        ({"about": "world"}, "about='world'"),
        ({"confidence": 1.5}, "confidence=1.5"),
        ({"wide": True}, "model 2 with 11 visible units, expected 10, as model 1 has"),
        ({"spin": True}, "visible units of kind spin, expected bernoulli"),
        ({"object": True}, "a model of type int"),
    ],
)
def test_wrong_input_is_named_before_any_chain_is_run(change, words):
    one, other, test, train = two_models(0)
    if change.pop("wide", False):
        other = mp.RBM(np.zeros((11, 2)), np.zeros(11), np.zeros(2))
    if change.pop("spin", False):
        other = mp.RBM(np.zeros((10, 2)), np.zeros(10), np.zeros(2), visible="spin")
    models = [one, 5 if change.pop("object", False) else other][: change.pop("models", 2)]
    with pytest.raises(InputError, match=words.replace("(", r"\(")):
        mp.compare(models, test, train, **QUICK, **change)


@pytest.mark.slow
def test_ctrl_c_keeps_what_is_finished_and_the_same_call_continues(tmp_path):
    one, other, test, train = two_models(7)
    models = {"one": one, "two": other, "three": one}
    whole = mp.compare(models, test, train, exact=False, **QUICK)

    def stop(task, done, total):
        if task.startswith("three: AIS"):
            raise KeyboardInterrupt

    call = {"exact": False, "run": tmp_path / "night", **QUICK}
    part = mp.compare(models, test, train, progress=stop, **call)
    assert part.interrupted
    assert part.missing == ("three",)
    assert [(pair.first, pair.second) for pair in part.pairs] == [("one", "two")]
    assert part.pairs[0].between == whole.pairs[0].between
    kept = sorted(path.name for path in (tmp_path / "night").iterdir())
    assert kept == ["00-one", "01-two", "02-three"]
    tasks = []
    continued = mp.compare(models, test, train, progress=lambda task, *_: tasks.append(task), **call)
    assert not any("AIS" in task and not task.startswith("three") and "RAISE" not in task for task in tasks)
    assert _without_times(continued) == _without_times(whole)


def test_ctrl_c_before_the_first_model_is_done_is_an_interrupt():
    one, other, test, train = two_models(7)

    def stop(task, done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        mp.compare([one, other], test, train, progress=stop, **QUICK)


@pytest.mark.slow
def test_sizes_may_be_chosen_in_stages():
    one, other, test, train = two_models(8)
    found = mp.compare([one, other], test, train, gap=2.0, budget="20s", exact=False, threads=1)
    exact = exact_difference(one, other, test)
    (pair,) = found.pairs
    assert pair.between[0] <= exact <= pair.between[1]
    assert all(report.stages for report in found.reports.values())


def _without_times(found):
    content = json.loads(json.dumps(found.to_dict()))
    content.pop("seconds")
    for model in content["models"]:
        model.pop("seconds")
        model["evidence"].pop("seconds", None)
    return content


@pytest.mark.slow
def test_objects_of_other_libraries_are_compared():
    one, other, test, train = two_models(0)
    weights = {"W": other.weights, "vbias": other.visible_bias, "hbias": other.hidden_bias}
    options = {"steps": 20, "chains": 1, "ais_chains": 20, "evidence": False}
    found = mp.compare({"one": one, "state dict": weights}, test, train, **options)
    ours = mp.compare({"one": one, "state dict": other}, test, train, **options)
    assert found.pairs[0].to_dict() == ours.pairs[0].to_dict()


def test_a_display_is_shown_for_all_models_together():
    one, other, test, train = two_models(0)
    options = {"steps": 10, "chains": 1, "ais_chains": 10, "examples": 2, "evidence": False}
    shown = mp.compare([one, other], test, train, progress=True, **options)
    assert shown.pairs[0].to_dict() == mp.compare([one, other], test, train, **options).pairs[0].to_dict()


def test_a_disk_that_takes_no_chunk_costs_nothing_but_the_folders(tmp_path, monkeypatch):
    one, other, test, train = two_models(5)
    expected = mp.compare([one, other], test, train, **QUICK)

    def full(path, *_):
        raise SystemFailure(found=f"no space left for {path}", expected="some", remedy="free some")

    monkeypatch.setattr("meltpoint.runs.store.write_sealed", full)
    with pytest.warns(RunWarning, match="no space left"):
        found = mp.compare([one, other], test, train, run=tmp_path / "run", **QUICK)
    assert [pair.to_dict() for pair in found.pairs] == [pair.to_dict() for pair in expected.pairs]


@pytest.mark.skipif(os.name != "posix", reason="links as POSIX has them")
def test_a_link_in_place_of_a_models_folder_is_refused(tmp_path):
    one, other, test, train = two_models(5)
    (tmp_path / "run").mkdir()
    (tmp_path / "outside").mkdir()
    (tmp_path / "run" / "00-model-1").symlink_to("../outside")
    with pytest.raises(InputError, match="a link out of"):
        mp.compare([one, other], test, train, run=tmp_path / "run", **QUICK)
    assert not list((tmp_path / "outside").iterdir())


def test_names_with_escape_sequences_are_made_harmless_where_they_come_in():
    models = {
        f"{word}\x1b[2J\n\u202e": mp.RBM(np.zeros((3, 2)), np.full(3, bias), np.zeros(2))
        for word, bias in (("a", 0), ("b", 1))
    }
    found = mp.compare(models, [[0, 1, 0], [1, 1, 1]], steps=10, examples=2, evidence=False)
    assert list(found.reports) == [f"{word}\\x1b[2J\\n\\u202e" for word in "ab"]
    shown = [str(found), found.to_html(), found._repr_html_(), repr(found)]
    assert not any(sign in text for text in shown for sign in ("\x1b", "\u202e"))
