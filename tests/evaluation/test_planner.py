"""What to run next: whether a stage grows, or a new one has more steps."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

from meltpoint.defaults import Settings
from meltpoint.estimators.ais import log_z_of
from meltpoint.estimators.particles import Melted
from meltpoint.evaluation import planner, stage_sizes
from meltpoint.evaluation.planner import Planner
from meltpoint.evaluation.stage_sizes import LEAST_ESS, Observed, measure, next_size
from meltpoint.models.log_f import LogF
from meltpoint.stages.decisions import Decision
from meltpoint.stages.stage import Size
from meltpoint.statistics.log_space import log_mean_exp

BUDGET = SimpleNamespace(left=1e9)


def planner_of(**settings):
    log_f = LogF.exact(np.random.default_rng(0).normal(-80, 5, 1000))
    return Planner(Settings(**{"gap": 0.1, **settings}), log_f, 1000, 1, "data", BUDGET)


def look(index, steps, chains, ess, half_width, begun=None):
    stage = SimpleNamespace(
        index=index, size=Size(steps, 50, 2, chains), ais_chains=chains, begun_with=(50, begun or chains)
    )
    return SimpleNamespace(
        base="data", stage=stage, summary=SimpleNamespace(ess=ess), half_width=half_width, starts=None
    )


def seen(forward, steps=2000, loss=0.5):
    """A stage with these forward log weights, whose examples lose so much."""
    rng = np.random.default_rng(1)
    forward = forward - log_mean_exp(forward)
    g = rng.normal(loss, math.sqrt(2 * loss), (50, 2))
    log_f = planner_of().log_f
    melted = Melted(log_f.values[:50, np.newaxis] - g, g)
    measured = measure(melted, log_f.values[:50], log_z_of(forward), steps)
    size = Size(steps, 50, 2, len(forward))
    return Observed(size, forward, melted, np.arange(50), log_f, None, measured)


@pytest.mark.parametrize(
    ("effective", "times", "grown"),
    [(0.5, 4, 4), (0.1, 1.5, 1.5), (0.1, 3, 2), (0.05, 2, 2), (0.05, 2.5, None)],
)
def test_a_stage_that_few_chains_carry_doubles_or_gets_more_steps(monkeypatch, effective, times, grown):
    own = planner_of()
    own.looks = [look(0, 2000, 256, 25, 1.0), look(1, 8000, 500, 500 * effective, 0.15)]
    own._observed = [SimpleNamespace(size=each.stage.size) for each in own.looks]
    own._measured = {"data": own._observed[-1]}
    larger = Size(8000, 50, 2, round(500 * times))
    fresh = planner._Option(Decision(Size(20_000, 50, 1, 500), "data"), 0.09, 1e9)
    monkeypatch.setattr(planner, "grown_size", lambda *_: (0.09, larger))
    monkeypatch.setattr(Planner, "_begin", lambda *_: fresh)
    expected = Decision(Size(8000, 50, 2, round(500 * grown)), "data", 1) if grown else fresh.decision
    assert own.decide(2) == expected


def test_a_stage_that_grew_by_little_twice_has_grown_by_much(monkeypatch):
    own = planner_of()
    own.looks = [look(1, 8000, 900, 45, 0.15, begun=500)]
    own._observed = [SimpleNamespace(size=each.stage.size) for each in own.looks]
    monkeypatch.setattr(planner, "grown_size", lambda *_: (0.09, Size(8000, 50, 2, 1200)))
    assert not own._grow(0.002, 1e12).even


def test_one_dominant_weight_of_few_does_not_widen_the_prediction():
    """The report's formulas would repeat it: three times as wide, and several times the cost."""
    weights = np.random.default_rng(3).normal(0, 1.4, 256)
    outlier = weights.copy()
    outlier[0] = weights.max() + 4
    assert log_z_of(outlier).ess < LEAST_ESS < log_z_of(weights).ess
    sizes = []
    for forward in (weights, outlier):
        own = planner_of(gap=0.3)
        own._measured = {"data": seen(forward)}
        sizes.append(own._begin(0.0058, 1e12).decision.size)
    assert sizes[1].work(1) < 2 * sizes[0].work(1)


def test_of_sizes_of_equal_cost_the_one_with_most_steps_is_taken():
    measured = seen(np.random.default_rng(4).normal(0, 1.4, 256)).measured
    taken = next_size(measured, 0.1, 3.0, math.inf, 1000, 1, 1e12)
    quickest = next_size_with(measured, flat=1.0)
    assert taken.steps > quickest.steps
    assert quickest.work(1) < taken.work(1) <= 1.15 * quickest.work(1)


def next_size_with(measured, flat):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stage_sizes, "_FLAT", flat)
        return next_size(measured, 0.1, 3.0, math.inf, 1000, 1, 1e12)


def test_the_size_that_follows_reaches_the_target_with_the_weights_to_come():
    """Lognormal weights of which five in 256 are effective: the variance falls as steps to the minus 0.7."""
    widths, variance, target = [], 4.0, 0.3
    for seed in range(9):
        rng = np.random.default_rng(seed)
        own = planner_of(gap=target)
        own._measured = {"data": seen(rng.normal(0, math.sqrt(variance), 256))}
        size = own._begin(0.0058, 1e12).decision.size
        assert 500 <= size.ais_chains <= 4000
        assert 2000 < size.steps < 20_000  # a variance of 0.3 would take 81,000
        to_come = rng.normal(0, math.sqrt(variance * (2000 / size.steps) ** 0.7), size.ais_chains)
        stage = seen(to_come, size.steps, 0.5 * 2000 / size.steps)
        widths.append(stage.half_width(Size(size.steps, 50, 1, size.ais_chains), 0.0058))
    assert 0.7 * target < np.median(widths) <= target
    assert max(widths) < 2 * target  # what is missing then, the stage grows by
