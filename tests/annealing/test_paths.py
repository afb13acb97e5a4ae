"""Paths besides the straight one: a broken line by enumeration, and a base whose units are not independent."""

import numpy as np
import pytest

import meltpoint as mp
from contract.own_models import Energy, SingleSite
from contract.three_blocks import three_blocks
from meltpoint.annealing.blocks import Segment
from meltpoint.annealing.field import BrokenLine
from meltpoint.backends.registry import prepare_path
from oracle.driving import models
from oracle.driving.steps import final_distribution, moments
from oracle.tables import all_states

BETAS = np.array([0.0, 0.2, 0.4, 0.55, 0.9, 1.0])
PAIRS = [
    (models.rbm(61, 3, 2), models.rbm(62, 3, 2)),
    (three_blocks("visible", "spin"), three_blocks("visible", "spin", seed=1)),
    (three_blocks("summed out", "bernoulli"), three_blocks("summed out", "bernoulli", seed=1)),
]


def broken(model, knot):
    straight = model.path(models.base("every layer", model))
    return BrokenLine(straight.target, straight.base, knots=(knot.mrf,), at=(0.4,))


@pytest.mark.parametrize(("model", "knot"), PAIRS, ids=repr)
def test_a_broken_line(model, knot):
    """AIS is unbiased for Z, RAISE for the annealing model, and log f at the knots is that of the fields."""
    path = broken(model, knot)
    states = all_states(path.n_state)
    for s, own in ((0.4, knot), (1.0, model)):
        expected = own.mrf.log_f(states) - own.mrf.log_constant
        np.testing.assert_allclose(path.log_f(s, states), expected, rtol=1e-12)
    forward = moments(path, [Segment(BETAS)]).mean[0]
    log_z = np.log(forward) + path.log_z_base + path.log_constant
    assert log_z == pytest.approx(mp.exact_log_z(model), abs=1e-12)
    melt = moments(path, [Segment(BETAS[::-1].copy(), reversed_sweeps=True)]).mean
    p_ann = np.exp(path.log_f(1.0, states) - path.log_z_base) * melt
    drawn = final_distribution(path, [Segment(BETAS), Segment(np.ones(2))])
    np.testing.assert_allclose(p_ann, drawn, rtol=1e-10)
    straight = model.path(models.base("every layer", model))
    other = moments(straight, [Segment(BETAS[::-1].copy(), reversed_sweeps=True)]).mean
    mutant = np.exp(path.log_f(1.0, states) - path.log_z_base) * other
    assert np.abs(mutant / drawn - 1).max() > 1e-3


def test_the_kernels_leave_a_broken_line_to_the_reference():
    assert type(prepare_path(broken(*PAIRS[0]))).__name__ == "ReferencePath"


class Mixture:
    """A base of two components of independent bits."""

    name = "mixture"

    def __init__(self, rates):
        self.rates = np.asarray(rates)

    def draw(self, draws):
        component = (draws.uniforms(1)[:, 0] <= 0.5).astype(int)
        return (draws.uniforms(self.rates.shape[1]) <= self.rates[component]).astype(np.uint8)

    def log_prob(self, states):
        p = np.where(states[:, np.newaxis] == 1, self.rates, 1 - self.rates).prod(axis=2)
        return np.log(p.mean(axis=1))


def test_a_base_of_several_components():
    model = Energy(4)
    path = mp.annealing.GeometricPath(
        model, Mixture([[0.1, 0.2, 0.8, 0.7], [0.9, 0.6, 0.3, 0.2]]), SingleSite()
    )
    draws = mp.annealing.GeneratorDraws([np.random.default_rng(3)], 4000)
    start = np.zeros((4000, 4), np.uint8)
    _, log_weights = mp.annealing.anneal_reference(path, Segment(np.linspace(0, 1, 21)), start, draws)
    weights = np.exp(log_weights + path.log_z_base - mp.exact_log_z(model))
    assert abs(weights.mean() - 1) < 5 * weights.std() / np.sqrt(4000)


def test_estimators_take_a_base_of_several_components_where_the_model_does():
    model, base = Energy(4), Mixture([[0.1, 0.2, 0.8, 0.7], [0.9, 0.6, 0.3, 0.2]])
    forward = mp.ais_log_z(model, base=base, steps=20, chains=300)
    assert abs(forward.value - mp.exact_log_z(model)) < 6 * forward.stderr
    x = all_states(4)
    found = mp.raise_log_prob(model, x, base=base, steps=20, chains=50, forward=forward)
    assert np.abs(found.values - model.log_f(x) + mp.exact_log_z(model)).max() < 0.2
    with pytest.raises(mp.InputError, match="forward chains of another"):
        mp.raise_log_prob(model, x, base="uniform", steps=20, forward=forward)
    with pytest.raises(mp.InputError, match="expected independent units"):
        mp.ais_log_z(models.rbm(63, 4, 2), base=base, steps=5)


@pytest.mark.parametrize("backwards", [False, True])
def test_single_site_moves_and_their_reversal_leave_the_distribution(backwards):
    """Expected flows by many chains from exact samples: 5.5 standard errors for each of 16 states."""
    model, n, s = Energy(4), 20_000, 0.6
    path = model.path(mp.uniform())
    states = all_states(4)
    p = np.exp(path.log_f(s, states))
    p /= p.sum()
    rng = np.random.default_rng(8)
    start = states[rng.choice(16, n, p=p)]
    draws = mp.annealing.GeneratorDraws([rng], n)
    end = SingleSite(backwards).move(path, s, start, draws)
    order = states @ (1 << np.arange(4))
    found = np.bincount(end @ (1 << np.arange(4)), minlength=16)[order] / n
    assert (np.abs(found - p) < 5.5 * np.sqrt(p / n)).all()
