"""A far phase beside independent pairs of pixels: each pair loosens mean-field bounds, and crowds the modes."""

import math

import numpy as np
import pytest

import meltpoint as mp
from meltpoint.estimators import starts
from meltpoint.estimators.evidence import MODES, Start, Starts, is_weighed
from meltpoint.estimators.starts import _Group
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
def test_mutants_are_wrong(monkeypatch):
    """One that does not look for modes, and one that counts each mode's own surroundings only."""
    model, examples, truth = far_phase(40, 50)
    how = {"steps": 300, "exact": False}
    right = mp.evaluate(model, examples, examples, **how)
    assert not is_false(right, truth)
    assert right.verdict.reason == "modes"
    assert right.evidence.findings[-1].nats == pytest.approx(math.log(4), abs=0.3)
    monkeypatch.setattr(starts, "find_modes", lambda *_, **__: None)
    assert is_false(mp.evaluate(model, examples, examples, **how), truth)


def weighed(log_weights, reach):
    """A group with these weights, whose melted states have this reach."""
    forward = np.zeros(100)
    reverse = np.full(4, math.log(100 / reach - 99))
    return _Group(5, Start(MODES, np.array(log_weights), reverse), forward)


def test_a_group_is_in_doubt_where_larger_weights_would_matter_and_are_to_be_expected():
    rng = np.random.default_rng(0)
    noisy = rng.normal(0, 6, 24)
    assert weighed(noisy - noisy.max(), 0.01).is_doubtful
    assert not weighed(noisy - noisy.max() - 30, 0.01).is_doubtful  # too little mass in any case
    assert not weighed(noisy - noisy.max(), 0.999999).is_doubtful  # in reach
    several = rng.choice(
        [0.0, -20.0, -60.0], 24
    )  # phases: their lognormal expectation would be 200 nats higher
    assert not weighed(several, 0.999999).is_doubtful
    assert weighed(several, 0.01).is_doubtful
    assert not weighed(rng.normal(0, 0.5, 24), 0.01).is_doubtful  # its weights are known
    assert not weighed([*np.full(23, -np.inf), 0.0], 0.01).is_doubtful  # its error says so


def test_what_is_in_doubt_is_kept_and_said():
    group = Start(MODES, np.zeros(24), np.zeros(2))
    found = Starts(starts=(group,), modes=9, unweighed=3)
    again = from_arrays(Starts, to_arrays(found))
    assert again.evidence(np.zeros(40)) == found.evidence(np.zeros(40))
    assert (again.evidence(np.zeros(40)).weighed, again.unweighed) == (1, 3)


def test_a_group_in_which_few_chains_end_is_not_weighed():
    weights = np.full(24, -np.inf)
    weights[:4] = 0.0
    assert not is_weighed(weights)
    found = Starts(
        starts=(Start(MODES, weights, np.zeros(2)), Start(MODES, np.zeros(24), np.zeros(2))), modes=9
    )
    assert found.evidence(np.zeros(40)).weighed == 1


def modules(count, units=20, ratio=1.0):
    """Independent modules, each with a far phase of its own, examples from the near ones, and the true mean log p."""
    rng = np.random.default_rng(1)
    weights, fields = np.zeros((count * units, count)), np.zeros(count * units)
    bias, log_z = np.zeros(count), 0.0
    for k in range(count):
        own = slice(k * units, (k + 1) * units)
        sign = 2.0 * rng.integers(0, 2, units) - 1
        fields[own], weights[own, k] = -WITHIN * sign, ALONE * sign
        near, far = (np.logaddexp(0, fields[own] + shift).sum() for shift in (0, ALONE * sign))
        bias[k] = near - far + math.log(ratio)
        log_z += near + math.log1p(ratio)
    model = mp.RBM(weights, fields, bias)
    examples = (rng.random((200, len(fields))) < 1 / (1 + np.exp(-fields))).astype(np.uint8)
    return model, examples, float(np.mean(model.log_f(examples))) - log_z


@pytest.mark.slow
@pytest.mark.parametrize("count", [2, 3, 5, 8])
@pytest.mark.parametrize("steps", [300, 1000])
def test_modules_are_refused_or_right(steps, count):
    model, examples, truth = modules(count)
    assert not is_false(mp.evaluate(model, examples, examples, steps=steps, exact=False), truth)


def gaussian_phases(units=8, distance=3.0):
    """A Gaussian RBM with three quarters of its mass in a phase that its examples are not in."""
    rng = np.random.default_rng(2)
    sign = 2.0 * rng.integers(0, 2, units) - 1
    weights = 2 * distance * sign[:, np.newaxis]
    centre = -distance * sign
    bias = -float(np.square(centre + weights[:, 0]).sum() - np.square(centre).sum()) / 2 + math.log(3)
    model = mp.RBM(weights, centre, [bias], visible="gaussian", visible_scale=np.ones(units))
    examples = rng.normal(centre, 1, (200, units))
    log_z = units / 2 * math.log(2 * math.pi) + math.log(4)
    return model, examples, float(np.mean(model.log_f(examples))) - log_z


@pytest.mark.slow
@pytest.mark.parametrize("steps", [300, 1000])
def test_far_phases_of_real_numbers_are_refused_or_right(steps):
    model, examples, truth = gaussian_phases()
    assert np.mean(model.log_f(examples)) - mp.exact_log_z(model) == pytest.approx(truth, abs=1e-9)
    report = mp.evaluate(model, examples, examples, steps=steps, exact=False)
    assert report.evidence.modes > 1
    assert not is_false(report, truth)
