"""Unit x model x backend against enumeration, to 1e-12, each with a mutant that is rejected."""

from dataclasses import replace
from unittest import mock

import numpy as np
import pytest

import meltpoint as mp
from contract import cases
from contract.three_blocks import states_of
from meltpoint.annealing.blocks import Segment
from meltpoint.annealing.field import BlockPath
from meltpoint.annealing.path import BlockGibbs
from meltpoint.backends.numba.bipartite import BipartiteBackend
from meltpoint.backends.reference import ReferenceBackend, ReferencePath
from meltpoint.backends.registry import BACKENDS, prepare_path
from meltpoint.backends.tiles import anneal
from meltpoint.kernels.streams import Streams
from meltpoint.layers import Spin
from meltpoint.models import bipartite
from meltpoint.randomness import Purpose
from oracle.concentration import FALSE_ALARM, bernstein
from oracle.driving import models
from oracle.driving.checks import EXACT, LOUD, ais_error, raise_error, sampling_error
from oracle.driving.estimates import expected_probabilities, weight_moments
from oracle.driving.steps import exact_anneal, moments, step_at
from oracle.driving.truth import f_visible, oracle_path, p_ann
from oracle.tables import all_states, code, marginal

BETAS = np.array([0.0, 0.3, 0.8, 1.0])
every_model = pytest.mark.parametrize("model", cases.ALL, ids=cases.name)
two_sided = pytest.mark.parametrize("model", cases.TWO_SIDED, ids=cases.name)
three_blocks = pytest.mark.parametrize("model", cases.THREE_BLOCKS, ids=cases.name)
spins = pytest.mark.parametrize("model", cases.SPINS, ids=cases.name)
heated = pytest.mark.parametrize("model", cases.HEATED, ids=cases.name)


def base_of(model):
    return models.base("every layer", model)


def p_state(model, beta):
    """The distribution (state,) at beta, by the oracle."""
    path = oracle_path(model, base_of(model))
    n = model.mrf.n_state
    kept = np.arange(path.visible.size) < n if model.bipartite is None else path.even
    return marginal(path.p(beta), kept)


# The path and its sweeps.


@every_model
def test_the_path_is_the_oracles(model) -> None:
    mine, path = model.path(base_of(model)), oracle_path(model, base_of(model))
    states = all_states(model.mrf.n_state)
    generic = BlockPath(mine.target, mine.base)
    for beta in BETAS:
        f = np.exp(mine.log_f(beta, states))
        np.testing.assert_allclose(f / f.sum(), p_state(model, beta), rtol=EXACT)
        np.testing.assert_allclose(
            generic.log_f(beta, states), mine.log_f(beta, states), rtol=EXACT, atol=EXACT
        )
    assert np.exp(mine.log_f(1.0, states)).sum() * np.exp(model.mrf.log_constant) == pytest.approx(
        path.z(1.0), rel=EXACT
    )
    n = model.undirected.n_visible
    expected = np.log(marginal(path.p(0.0), path.visible))
    for found in (mine, generic):
        np.testing.assert_allclose(found.log_prob_base(all_states(n)), expected, rtol=EXACT, atol=EXACT)


@pytest.mark.parametrize("beta", [0.0, 0.4, 1.0])
@every_model
def test_a_sweep_leaves_its_distribution_invariant_and_the_reversed_sweep_is_its_reversal(
    model, beta
) -> None:
    path, p = model.path(base_of(model)), p_state(model, beta)
    forward = step_at(path, beta).probability
    backward = step_at(path, beta, reversed_sweeps=True).probability
    np.testing.assert_allclose(forward.sum(axis=1), 1, rtol=EXACT)
    np.testing.assert_allclose(p @ forward, p, rtol=EXACT)
    np.testing.assert_allclose(p[:, np.newaxis] * forward, (p[:, np.newaxis] * backward).T, rtol=1e-10)


@three_blocks
def test_a_sweep_that_is_not_reversed_is_rejected(model) -> None:
    path, p = model.path(base_of(model)), p_state(model, 1.0)
    flow = p[:, np.newaxis] * step_at(path, 1.0).probability
    assert np.abs(flow - flow.T).max() > LOUD


@pytest.mark.parametrize("reversed_sweeps", [False, True])
@every_model
def test_clamped_units_do_not_move_and_the_others_keep_their_distribution(model, reversed_sweeps) -> None:
    path, p = model.path(base_of(model)), p_state(model, 0.7)
    clamped = np.arange(model.mrf.n_state) % 2 == 0
    matrix = step_at(path, 0.7, clamped=clamped, reversed_sweeps=reversed_sweeps).probability
    held = code(all_states(clamped.size)[:, clamped])
    assert (matrix[held[:, np.newaxis] != held] == 0).all()
    np.testing.assert_allclose(p @ matrix, p, rtol=EXACT)


# The estimators.


@pytest.mark.parametrize("model", cases.EXACT_LOG_F, ids=cases.name)
def test_log_f(model) -> None:
    x = model.decode(states_of(model))
    np.testing.assert_allclose(np.exp(model.log_f(x)), f_visible(model), rtol=EXACT)
    np.testing.assert_array_equal(model.log_f_estimate(x).values, model.log_f(x))


@every_model
def test_exact_log_z(model) -> None:
    log_z = np.log(oracle_path(model, base_of(model)).z(1.0))
    assert mp.exact_log_z(model, threads=1) == pytest.approx(log_z, abs=EXACT)


@pytest.mark.parametrize("kind", models.BASES)
@every_model
def test_ais_raise_and_samples(model, kind) -> None:
    base = models.base(kind, model)
    assert ais_error(model, base, BETAS) < EXACT
    assert raise_error(model, base, BETAS) < EXACT
    assert sampling_error(model, base, BETAS) < EXACT
    assert expected_probabilities(model, base, BETAS).sum() == pytest.approx(1, rel=EXACT)


@three_blocks
def test_blocks_that_are_not_reversed_are_rejected_where_normalisation_is_blind(model) -> None:
    with mock.patch.object(BlockGibbs, "reversed", lambda self: self):
        assert raise_error(model, base_of(model), BETAS) > LOUD
        total = expected_probabilities(model, base_of(model), BETAS).sum()
    assert total == pytest.approx(1, rel=EXACT)


@heated
def test_a_clamped_unit_that_moves_is_rejected(model) -> None:
    mutant = exact_anneal(change_segments=lambda segments: [replace(s, clamped=None) for s in segments])
    assert raise_error(model, base_of(model), BETAS, mutant) > LOUD


@spins
def test_a_constant_of_spins_left_out_is_rejected(model) -> None:
    """The affine map's constant where there are two sides, that of a spin's partition where not."""

    in_bits = bipartite.in_bits

    def without_constant(layers, units):
        return replace(in_bits(layers, units), log_constant=0.0)

    if model.bipartite is None:
        whole = Spin.log_partition
        with mock.patch.object(Spin, "log_partition", lambda self, t: whole(self, t) - np.log(2)):
            assert ais_error(model, base_of(model), BETAS) > LOUD
        return
    undirected = model.undirected
    with mock.patch.object(bipartite, "in_bits", without_constant):
        broken = type(undirected).from_arrays(
            list(undirected.arrays().values()), [unit.name for unit in undirected.units]
        )
        assert ais_error(broken, base_of(broken), BETAS) > LOUD
        log_z = np.log(oracle_path(undirected, base_of(undirected)).z(1.0))
        assert abs(mp.exact_log_z(broken) - log_z) > LOUD


SPINS = [model for model in cases.TWO_SIDED if any(unit.name == "spin" for unit in model.units)]


@pytest.mark.parametrize("model", SPINS, ids=cases.name)
def test_the_affine_map_of_weights_left_out_is_rejected(model) -> None:
    plain = type(model).from_arrays(list(model.arrays().values()))
    found = expected_probabilities(plain, base_of(plain), BETAS)
    assert np.abs(found / p_ann(model, base_of(model), BETAS) - 1).max() > LOUD


# The backends.


def test_backends_are_chosen_because_they_say_so() -> None:
    for model in cases.ALL:
        path = model.path(base_of(model))
        supporting = [backend.name for backend in BACKENDS if backend.supports(path)]
        assert supporting == (["reference"] if model in cases.THREE_BLOCKS else ["bipartite", "reference"])
        assert isinstance(prepare_path(path), ReferencePath) == (model in cases.THREE_BLOCKS)


@two_sided
def test_the_fused_kernels_do_what_the_reference_does(model) -> None:
    path, n = model.path(base_of(model)), 50
    betas = np.linspace(0, 1, 12)
    clamped = np.arange(model.mrf.n_state) < 1
    segments = [Segment(betas), Segment(betas, clamped), Segment(betas[::-1], reversed_sweeps=True)]
    start = np.random.default_rng(0).integers(0, 2, (n, model.mrf.n_state), np.uint8)
    streams = Streams(7, Purpose.AIS, np.arange(n))
    fused, reference = (
        anneal(backend.prepare(path, "float64"), segments, start, streams, tile=20)
        for backend in (BipartiteBackend(), ReferenceBackend())
    )
    np.testing.assert_array_equal(fused.state, reference.state)
    np.testing.assert_allclose(
        fused.cumulative_log_weights, reference.cumulative_log_weights, rtol=EXACT, atol=1e-11
    )
    again = anneal(ReferenceBackend().prepare(path, "float64"), segments[:1], start, streams)
    assert not np.array_equal(again.state, reference.state)  # a backend that stops early would be seen


@pytest.mark.slow
@three_blocks
def test_public_functions_on_three_blocks(model) -> None:
    """Bernstein's inequality with enumerated moments: a false alarm once in a million for each of the three."""
    base, n = base_of(model), 4000
    path = model.path(base)
    given = moments(path, [Segment(BETAS)])
    run = mp.ais_log_z(model, base=base, steps=BETAS, chains=n, seed=1)
    found = np.exp(run.log_weights - path.log_z_base).mean()
    assert abs(found - given.mean[0]) < bernstein(n, given.square[0] - given.mean[0] ** 2, given.largest[0])

    expected = weight_moments(model, base, BETAS)
    log_prob = mp.raise_log_prob(
        model, model.decode(states_of(model)), base=base, steps=BETAS, chains=n, seed=2
    )
    one_of_many = FALSE_ALARM / expected.mean.size
    for weights, mean, square, largest in zip(
        np.exp(log_prob.log_weights), expected.mean, expected.square, expected.largest, strict=True
    ):
        assert abs(weights.mean() - mean) < bernstein(n, square - mean**2, largest, one_of_many)

    drawn = mp.sample_annealing_model(model, n, base=base, steps=BETAS, seed=3)
    frequency = np.bincount(code(model.encode(drawn)), minlength=expected.mean.size) / n
    for f, p in zip(frequency, p_ann(model, base, BETAS), strict=True):
        assert abs(f - p) < bernstein(n, p * (1 - p), 1.0, one_of_many)


@pytest.mark.slow
@pytest.mark.parametrize("model", cases.HEATED[-1:] + cases.THREE_BLOCKS[-2:-1], ids=cases.name)
def test_other_public_functions_on_three_blocks(model) -> None:
    x = mp.sample(model, 30, steps=5, moves=2)
    assert set(np.unique(x)) <= set(model.units[0].values)
    base = mp.model_rates(model)
    assert base.biases[0].shape == (model.n_visible,)
    schedule = mp.friction_schedule(model, x, base="data")
    forward = mp.ais_log_z(model, base=base, steps=schedule.betas(20), chains=50)
    found = mp.raise_log_prob(model, x[:3], base=base, steps=schedule.betas(20), forward=forward)
    assert found.particles == 51
    assert np.isfinite(found.values).all()
    with pytest.raises(mp.InputError, match="visible units depend on each other"):
        mp.csl_log_prob(model, x, steps=5, chains=2)
