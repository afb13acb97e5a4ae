"""A far phase beside independent pairs of pixels: each pair loosens mean-field bounds, and crowds the modes."""

import math

import numpy as np
import pytest

import meltpoint as mp
from meltpoint.annealing.schedule import as_betas
from meltpoint.estimators import starts
from meltpoint.estimators.evidence import MODES, Start, Starts, is_weighed
from meltpoint.estimators.starts import ask_starts
from meltpoint.runs.records import from_arrays, to_arrays

ALONE, PAIR, WITHIN = 7.0, 5.0, 1.5


def far_phase(pairs, units):
    """An RBM with three quarters of its mass in another phase than its examples, these, and the true mean log p."""
    rng = np.random.default_rng(1)
    sign = 2.0 * rng.integers(0, 2, units) - 1
    fields = -WITHIN * sign
    softplus = np.logaddexp(0, fields).sum()
    weights = np.zeros((units + 2 * pairs, 1 + pairs))
    weights[:units, 0] = ALONE * sign
    for k in range(pairs):
        weights[units + 2 * k : units + 2 * k + 2, 1 + k] = PAIR
    bias = softplus - np.logaddexp(0, fields + ALONE * sign).sum() + math.log(3)
    model = mp.RBM(
        weights,
        np.concatenate([fields, np.full(2 * pairs, -PAIR / 2)]),
        np.concatenate([[bias], np.full(pairs, -PAIR)]),
    )
    states = np.array([[h, a, b] for h in (0, 1) for a in (0, 1) for b in (0, 1)])
    f = np.exp(PAIR * (states[:, 0] * (states[:, 1:].sum(axis=1) - 1) - states[:, 1:].sum(axis=1) / 2))
    drawn = states[rng.choice(len(states), (200, pairs), p=f / f.sum()), 1:].reshape(200, 2 * pairs)
    alone = rng.random((200, units)) < 1 / (1 + np.exp(-fields))
    examples = np.concatenate([alone, drawn], axis=1).astype(np.uint8)
    log_z = softplus + math.log(4) + pairs * math.log(f.sum())
    return model, examples, float(np.mean(model.log_f(examples))) - log_z


def is_false(report, truth):
    return report.verdict.trusted and not report.between[0] <= truth <= report.between[1]


def test_the_exact_value_of_the_family():
    model, examples, truth = far_phase(3, 20)
    assert np.mean(model.log_f(examples)) - mp.exact_log_z(model) == pytest.approx(truth, abs=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("steps", "pairs", "units"),
    [  # every number of pairs with every number of steps and of units
        (300, 0, 20),
        (300, 10, 50),
        (300, 40, 50),
        (1000, 0, 50),
        (1000, 10, 20),
        (1000, 40, 20),
        (3000, 0, 20),
        (3000, 10, 50),
        (3000, 40, 50),
    ],
)
def test_a_far_phase_is_refused_or_right(steps, pairs, units):
    model, examples, truth = far_phase(pairs, units)
    report = mp.evaluate(model, examples, examples, steps=steps, exact=False)
    assert not is_false(report, truth)


@pytest.mark.slow
def test_mutants_that_skip_modes_in_silence_are_wrong(monkeypatch):
    model, examples, truth = far_phase(40, 50)
    how = {"steps": 300, "exact": False}
    right = mp.evaluate(model, examples, examples, **how)
    assert not is_false(right, truth)
    assert right.evidence.starts < right.evidence.modes + 2
    monkeypatch.setattr(starts, "_PLACES", 0)
    skipped = mp.evaluate(model, examples, examples, **how)
    assert (skipped.verdict.reason, skipped.evidence.unweighed) == ("unweighed", 16)
    assert "16 modes were out of reach and not weighed" in str(skipped.verdict)
    assert skipped.evidence.starts == 2
    monkeypatch.setattr(starts, "_OUT_OF_REACH", 0.0)
    silent = mp.evaluate(model, examples, examples, **how)
    assert is_false(silent, truth)


def asked(places, monkeypatch):
    """Starts of a path from the base of the examples, with so many places for modes."""
    monkeypatch.setattr(starts, "_PLACES", places)
    model, examples, _ = far_phase(4, 20)
    base, betas = mp.data_rates(examples), as_betas(100)
    forward = mp.ais_log_z(model, base=base, steps=betas, chains=60, threads=1).log_weights
    return ask_starts(model, base, betas, forward, [(mp.uniform(), betas)]), forward


def test_modes_without_a_place_are_a_doubt_and_not_a_start(monkeypatch):
    all_asked, forward = asked(16, monkeypatch)
    none_asked, _ = asked(0, monkeypatch)
    assert all_asked.modes == none_asked.modes > 2
    assert all_asked.evidence(forward).starts == 2 + all_asked.weighed
    assert none_asked.evidence(forward).starts == 2
    assert none_asked.unweighed > all_asked.unweighed
    assert none_asked.unweighed + none_asked.weighed <= none_asked.modes


def test_a_mode_in_which_few_chains_end_is_not_weighed():
    weights = np.full(24, -np.inf)
    weights[:4] = 0.0
    assert not is_weighed(weights)
    found = Starts((Start(MODES, weights, np.zeros(2)), Start(MODES, np.zeros(24), np.zeros(2))), modes=9)
    assert found.evidence(np.zeros(40)).weighed == 1


def test_what_was_not_weighed_is_kept(monkeypatch):
    found, forward = asked(2, monkeypatch)
    assert found.unweighed > 0
    again = from_arrays(Starts, to_arrays(found))
    assert again.evidence(forward) == found.evidence(forward)
