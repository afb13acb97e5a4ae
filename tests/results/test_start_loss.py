"""What a gap that is too large has as its remedy, where RAISE's starts are drawn: chains, steps, or both."""

from functools import cache

import numpy as np
import pytest

import meltpoint as mp
from meltpoint.results.verdict import Case, judge
from meltpoint.statistics.estimate import Estimate

FINE = {"ess": 80.0, "ais_chains": 400, "tolerance": 1.0}
SHARED = {"seed": 1, "threads": 1, "evidence": False, "exact": False, "tolerance": 0.3}


def data_of(model):
    return mp.sample(model, 40, seed=2, threads=1), mp.sample(model, 200, seed=1, threads=1)


def top(rng, scale):
    return mp.RBM(rng.normal(0, scale, (8, 5)), rng.normal(0, 0.3, 8), rng.normal(0, 0.3, 5))


@cache
def badly_recognised():
    """A DBN with an easy top RBM, whose recognition biases are off."""
    rng = np.random.default_rng(3)
    weights = rng.normal(0, 1.0, (12, 8))
    off = -weights.sum(axis=0) / 2 + rng.normal(0, 2.5, 8)
    model = mp.DBN([(weights, -weights.sum(axis=1) / 2, off)], top(rng, 0.5))
    return model, *data_of(model)


@cache
def well_recognised():
    """A DBN with a hard top RBM, each of whose visible units turns on two units of its own and is known by them."""
    rng = np.random.default_rng(3)
    weights = 8.0 * np.repeat(np.eye(8), 2, axis=0)
    model = mp.DBN([(weights, np.full(16, -4.0), np.full(8, -8.0))], top(rng, 3.0))
    return model, *data_of(model)


@pytest.mark.slow
def test_a_poor_recognition_model_needs_chains_and_not_steps():
    size = {"steps": 200, "chains": 2, "ais_chains": 200} | SHARED
    first, longer, wider = (
        mp.evaluate(*badly_recognised(), **(size | change))
        for change in ({}, {"steps": 1600}, {"chains": 16})
    )
    assert first.verdict.reason == "gap"
    assert "from the recognition distribution: more steps do not mend that. Raise `chains`." in str(
        first.verdict
    )
    assert longer.gap.value > 0.9 * first.gap.value
    assert wider.gap.value < 0.5 * first.gap.value


@pytest.mark.slow
def test_a_good_recognition_model_and_a_hard_top_need_steps():
    size = {"steps": 4, "chains": 2, "ais_chains": 20, "particles": 1, "schedule": "linear"} | SHARED
    size |= {"base": "uniform"}
    first, longer, wider = (
        mp.evaluate(*well_recognised(), **(size | change)) for change in ({}, {"steps": 32}, {"chains": 16})
    )
    assert first.verdict.reason == "gap"
    assert str(first.verdict).endswith("Raise `steps`, or anneal from data base rates (`train`).")
    assert longer.gap.value < 0.2 * first.gap.value
    assert (
        wider.gap.value > 0.4 * first.gap.value
    )  # the mean of eight times as many chains has less noise to lose


@pytest.mark.slow
def test_a_run_that_is_read_says_the_same(tmp_path):
    size = {"steps": 30, "chains": 2, "ais_chains": 100} | SHARED
    report = mp.evaluate(*badly_recognised(), run=tmp_path, **size)
    assert "Raise `chains`" in str(report.verdict)
    assert mp.read_run(tmp_path).report().verdict == report.verdict


@pytest.mark.parametrize(
    ("nats", "remedy"),
    [
        (None, "Raise `steps`."),
        (0.0, "Raise `steps`."),
        (0.4, "Raise `steps`."),
        (2.9, "Raise `chains`, and `steps` for the other 2.10."),
        (4.5, "Raise `chains`."),
        (5.3, "Raise `chains`."),
        (np.nan, "Raise `steps`."),
    ],
)
def test_the_remedy_is_for_what_is_larger_than_the_tolerance(nats, remedy):
    gap = Estimate(5.0, 0.1, "difference", "")
    loss = {} if nats is None else {"start_loss": nats, "starts_from": "a distribution"}
    verdict = judge(Case(gap, **FINE, **loss))
    assert verdict.reason == "gap"
    assert str(verdict).endswith(remedy)
    assert ("from a distribution" in str(verdict)) == ("chains" in remedy)


def test_of_two_small_parts_the_larger_one_has_the_remedy():
    gap = Estimate(1.5, 0.1, "difference", "")
    for nats, remedy in ((0.8, "Raise `chains`."), (0.7, "Raise `steps`.")):
        assert str(judge(Case(gap, **FINE, start_loss=nats, starts_from="q"))).endswith(remedy)


def test_only_models_that_draw_their_starts_say_from_what():
    rng = np.random.default_rng(0)
    rbm = top(rng, 1.0)
    assert badly_recognised()[0].raise_starts_from == "the recognition distribution"
    assert mp.DBN([], rbm).raise_starts_from is None
    deep = mp.DBM([rng.normal(size=(4, 3)), rng.normal(size=(3, 2))], [np.zeros(n) for n in (4, 3, 2)])
    assert rbm.raise_starts_from is None
    assert deep.raise_starts_from is None
