"""log_z: the interval holds the exact value, sides are never reversed, and what is printed says what it rests on."""

import json
import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import meltpoint as mp
from meltpoint.errors import InputError
from meltpoint.estimators.evidence import Start, Starts
from meltpoint.estimators.log_z_sides import Sides, inverse_log_z
from meltpoint.evaluation.log_z import choose_base
from meltpoint.evaluation.reporting import FinishedStage, best_stages
from meltpoint.results.text import render_text
from results.made import bracket, made


def random_rbm(seed: int = 0, scale: float = 1.0, shape: tuple[int, int] = (12, 8)) -> mp.RBM:
    rng = np.random.default_rng(seed)
    return mp.RBM(
        scale * rng.standard_normal(shape),
        scale * rng.standard_normal(shape[0]),
        scale * rng.standard_normal(shape[1]),
    )


def two_far_modes() -> mp.RBM:
    """All units on has as much mass as all off; chains from rates of one mode do not get to the other."""
    n = 40
    return mp.RBM(np.full((n, 1), 4.0), np.full(n, -2.0), [-2.0 * n])


@pytest.mark.slow
@pytest.mark.parametrize("exact", [None, False])
@pytest.mark.parametrize("scale", [0.3, 2.0])
def test_the_interval_holds_the_exact_value(exact, scale) -> None:
    """With 99 % confidence each: 16 intervals would all hold with probability 0.85; the seeds are fixed."""
    for seed in range(4):
        model = random_rbm(seed, scale)
        found = mp.log_z(model, steps=200, chains=200, exact=exact, seed=seed)
        truth = mp.exact_log_z(model)
        assert found.between[0] <= truth <= found.between[1]
        assert found.verdict.trusted
        assert (found.exact is None) == (exact is False)
        assert (found.certified_upper is None) == (exact is False)
        assert found.lower_certificate.bound < truth
        if found.certified_upper is not None:
            assert truth < found.certified_upper


def test_the_same_seed_gives_the_same_answer_on_any_number_of_threads() -> None:
    model = random_rbm()
    found = [mp.log_z(model, steps=50, chains=60, seed=3, threads=n) for n in (1, 2)]
    dicts = [{name: value for name, value in one.to_dict().items() if name != "seconds"} for one in found]
    assert dicts[0] == dicts[1]
    assert mp.log_z(model, steps=50, chains=60, seed=4).lower.value != found[0].lower.value


def test_units_without_weights_are_known_at_once() -> None:
    found = mp.log_z(mp.RBM(np.zeros((3, 2)), np.zeros(3), np.zeros(2)), steps=5, chains=4)
    assert found.lower.value == pytest.approx(5 * math.log(2))
    assert found.upper.value == pytest.approx(5 * math.log(2), abs=1e-9)
    low, high = found.between
    assert low <= 5 * math.log(2) + 1e-12
    assert low <= high


@pytest.mark.parametrize("exact", [None, False])
def test_a_missed_mode_is_seen(exact) -> None:
    """Chains from the rates of one of two modes lack half of Z, and other starts say so; the interval allows for it."""
    model = two_far_modes()
    off = mp.Base("off", (np.full(40, -6.0), np.full(1, -6.0)))
    found = mp.log_z(model, base=off, steps=100, chains=200, exact=exact)
    truth = mp.exact_log_z(model)
    assert found.lower.value == pytest.approx(truth - math.log(2), abs=0.1)
    assert found.verdict.reason == "modes"
    assert not found.verdict.trusted
    assert found.between[0] <= truth <= found.between[1]
    assert "missed" in str(found)


def test_auto_chooses_the_base_that_found_most() -> None:
    found = mp.log_z(two_far_modes(), steps=200, chains=200)
    assert found.verdict.trusted
    assert found.between[0] <= found.exact <= found.between[1]


def test_dbms_and_dbns() -> None:
    rng = np.random.default_rng(1)
    dbm = mp.DBM(
        [rng.standard_normal((5, 4)), rng.standard_normal((4, 3))], [np.zeros(5), np.zeros(4), np.zeros(3)]
    )
    top = random_rbm(2, 1.0, (4, 3))
    dbn = mp.DBN([(rng.standard_normal((5, 4)), np.zeros(5), np.zeros(4))], top)
    for model in (dbm, dbn):
        found = mp.log_z(model, steps=100, chains=100)
        assert found.between[0] <= mp.exact_log_z(model) <= found.between[1]
        assert "exact samples" in found.rests_on


# Stages.


def test_a_gap_is_reached_and_stages_are_told() -> None:
    told = []
    model = random_rbm(5, 1.0)
    found = mp.log_z(model, gap=0.05, budget="1m", exact=False, watch=told.append)
    assert found.verdict.trusted
    assert (found.between[1] - found.between[0]) / 2 <= 0.05
    assert found.between[0] <= mp.exact_log_z(model) <= found.between[1]
    assert [stage.steps for stage in told] == [stage.steps for stage in found.stages]
    assert found.settings.gap == 0.05


@pytest.mark.slow
def test_a_target_that_is_missed_is_said() -> None:
    found = mp.log_z(random_rbm(6, 3.0, (30, 20)), gap=1e-5, budget=4, exact=False)
    assert found.verdict.reason == "target"
    assert not found.verdict.trusted
    assert len(found.stages) >= 2
    assert found.seconds["total"] < 12


def test_the_base_that_lost_least_among_those_that_found_most() -> None:
    far = np.full(50, -2.0)
    noisy = 1.5 * np.random.default_rng(0).standard_normal(50) - 1.125
    assert choose_base({"data": far, "model": noisy, "uniform": np.zeros(50)}) == "uniform"
    assert choose_base({"data": far, "uniform": noisy}) == "uniform"


# Ctrl-C.


def interrupt_at(task: str):
    def progress(name: str, done: float, total: float) -> None:
        if name == task and done > 0:
            raise KeyboardInterrupt

    return progress


def test_ctrl_c_after_the_lower_side_keeps_it() -> None:
    found = mp.log_z(
        random_rbm(), base="uniform", steps=100, chains=50, progress=interrupt_at("other starts")
    )
    assert found.interrupted
    assert found.verdict.reason == "unchecked"
    assert found.between[1] == math.inf
    assert found.to_dict()["between"][1] is None
    assert "no upper end is known" in str(found)


def test_ctrl_c_in_a_later_stage_keeps_the_earlier_ones() -> None:
    seen = []

    def progress(name: str, _done: float, _total: float) -> None:
        if seen and name == "AIS":
            raise KeyboardInterrupt

    found = mp.log_z(random_rbm(), gap=1e-4, budget="1m", watch=seen.append, progress=progress)
    assert found.interrupted
    assert len(found.stages) == 1
    assert math.isfinite(found.between[1])


# What is printed.


@pytest.mark.parametrize("width", [40, 59, 79])
def test_text_fits_the_terminal(width) -> None:
    found = mp.log_z(random_rbm(), steps=50, chains=50)
    text = render_text(found.document(), width)
    assert max(map(len, text.splitlines())) <= width
    for word in ("lower (AIS)", "upper (melted back)", "exact", "between", "rests on", "certified"):
        assert word in text


def test_json_has_no_nan() -> None:
    found = mp.log_z(random_rbm(), steps=20, chains=20)
    kept = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert kept["between"] == list(found.between)
    assert kept["verdict"]["reason"] == found.verdict.reason
    assert repr(found).startswith("LogZBracket(RBM 12-8: ")


@pytest.mark.slow
def test_figures_are_made() -> None:
    found = mp.log_z(random_rbm(), steps=20, chains=20)
    assert found.plot().axes[0].get_xlabel() == "annealing steps"
    flat = mp.log_z(mp.RBM(np.zeros((3, 2)), np.zeros(3), np.zeros(2)), steps=5, chains=4)
    flat.plot()


# Wrong input.


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"base": "nothing"}, "base='nothing'"),
        ({"base": "data"}, "without training data"),
        ({"chains": 1}, "chains=1, expected a whole number from 2 on"),
        ({"steps": 0}, "steps"),
        ({"gap": -1.0}, "gap"),
        ({"budget": "soon"}, "budget"),
        ({"gap": 0.1, "steps": 5}, "together"),
        ({"tolerance": 0.0}, "tolerance"),
        ({"confidence": 1.0}, "confidence"),
        ({"clamped": {0: 0}, "train": np.zeros((2, 12))}, "train and clamped"),
    ],
)
def test_wrong_arguments_are_refused(arguments, match) -> None:
    with pytest.raises(InputError, match=match):
        mp.log_z(random_rbm(), **arguments)


def test_something_else_than_a_model_is_refused() -> None:
    with pytest.raises(InputError, match="type list"):
        mp.log_z([1, 2])  # pyright: ignore[reportArgumentType]


# The two sides, by expectation.


def test_both_estimates_are_unbiased() -> None:
    """E[1 / Z] by exact samples and forward chains of a path with three steps: within 5 errors, false alarm 6e-7."""
    rng = np.random.default_rng(0)
    # A path of one step between two states: forward weight w(x) = f(x) / p_0(x), reverse weight the same.
    f, p0 = np.array([1.0, 5.0]), np.array([0.5, 0.5])
    z, p = f.sum(), f / f.sum()
    n = 40_000
    forward = np.log(f / p0)[rng.choice(2, (n, 3), p=p0)].ravel()
    reverse = np.log(f / p0)[rng.choice(2, n, p=p)]
    inverse = np.exp(inverse_log_z(forward, reverse))
    assert abs(inverse.mean() - 1 / z) < 5 * inverse.std() / math.sqrt(n)
    # The mutant draws the melted states from the base.
    wrong = np.exp(inverse_log_z(forward, np.log(f / p0)[rng.choice(2, n, p=p0)]))
    assert abs(wrong.mean() - 1 / z) > 5 * wrong.std() / math.sqrt(n)


def test_sides_without_melted_states_have_no_upper_end() -> None:
    sides = Sides(np.zeros(10))
    assert sides.between(0.01)[1] == math.inf
    assert sides.upper.value == math.inf
    assert sides.certified_upper(0.01) is None


def test_a_state_out_of_reach_raises_the_upper_side() -> None:
    forward = np.zeros(100)
    near = Sides(forward, Starts((Start("uniform", np.zeros(50), np.zeros(20)),)))
    half = Sides(forward, Starts((Start("uniform", np.zeros(50), np.repeat([0.0, 30.0], 10)),)))
    assert near.upper.value == pytest.approx(0.0, abs=0.02)
    assert half.upper.value == pytest.approx(math.log(2), abs=0.02)
    assert half.between(0.01)[1] > math.log(1.5)
    exact = Sides(forward, Starts(), np.repeat([0.0, 30.0], 10))
    assert exact.upper.value == pytest.approx(math.log(2), abs=0.02)
    assert exact.between(0.01)[1] > math.log(2)


def test_it_takes_what_from_object_reads_and_a_display(capsys):
    rng = np.random.default_rng(4)
    weights = {"W": rng.normal(size=(4, 3)), "vbias": rng.normal(size=4), "hbias": rng.normal(size=3)}
    found = mp.log_z(weights, steps=20, chains=20, progress=True)
    model = mp.RBM(weights["W"], weights["vbias"], weights["hbias"])
    assert found.exact == pytest.approx(mp.exact_log_z(model), abs=1e-12)
    assert found.between == mp.log_z(model, steps=20, chains=20).between


def test_a_notebook_shows_both_sides_and_the_verdict():
    found = mp.log_z(mp.RBM(np.ones((2, 2)), np.zeros(2), np.zeros(2)), steps=20, chains=20)
    shown = found._repr_html_()
    for text in (
        "RBM 2-2",
        found.lower.value_text(4),
        f"{found.exact:.4f}",
        "upper (melted back)",
        "with 99% confidence",
    ):
        assert text in shown
    assert "log_weights" not in shown


# Which stage is reported, with examples and without.


@pytest.mark.parametrize(
    ("make", "apart", "better"),
    [(bracket, (450.0, 450.1), (451.0, 452.0)), (made, (-85.1, -85.0), (-87.0, -86.0))],
)
def test_a_small_interval_that_another_stage_contradicts_is_not_reported(make, apart, better) -> None:
    def stage(between, base="data", log_z=0.0):
        chosen = SimpleNamespace(base=SimpleNamespace(name=base))
        result: Any = SimpleNamespace(stage=chosen, log_weights=np.full(3, log_z))
        return FinishedStage(result, make(between=between), None)

    wrong, right = stage(apart), stage(better)
    assert best_stages([wrong, right]) == best_stages([right, wrong]) == [right]
    wide, uniform = stage((-math.inf, math.inf)), stage(better, "uniform", 1.0)
    assert best_stages([wide, right]) == [right]
    assert best_stages([right, uniform]) == [uniform, right]  # the base that found more
