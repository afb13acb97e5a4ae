"""Rounded weights in between, exact ends: one more intermediate distribution, and nothing else.

Every trajectory of the real `anneal` is enumerated here: its tiles, segments, precision spans and changes. Weights
are rounded far more coarsely than in earnest, so that a forgotten factor is loud.
"""

from functools import partial
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from meltpoint.annealing.base import uniform
from meltpoint.backends.numba.bipartite import BipartiteBackend, PreparedBipartite
from meltpoint.backends.numba.kernels.packing import pack
from meltpoint.backends.numba.precision import PrecisionSpan, round_weights
from meltpoint.backends.registry import prepare_path
from meltpoint.errors import InputError
from meltpoint.models.dbm import DBM
from meltpoint.models.rbm import RBM
from oracle.driving import models
from oracle.driving.checks import EXACT, LOUD
from oracle.driving.estimates import expected_probabilities, expected_z, sampled_distribution
from oracle.driving.trajectories import exact_front, final_distribution
from oracle.driving.truth import oracle_path
from oracle.tables import marginal

COARSE = 0.75
BETAS = np.array([0.0, 0.3, 1.0])
MODELS = [models.rbm(21, 2, 2, scale=2.0), models.dbm(21, [1, 1, 1], scale=3.0)]


def coarse(path, kind=PreparedBipartite):
    rounded = round_weights(path, COARSE)
    return kind(path, pack(path, np.float32), rounded, pack(rounded, np.int16, COARSE), path)


def rounded_model(model):
    def near(weights):
        return np.rint(weights / COARSE) * COARSE

    if isinstance(model, DBM):
        return DBM([near(w) for w in model.weights], model.biases)
    return RBM(near(model.weights), model.visible_bias, model.hidden_bias)


def composite_p_ann(model, base, betas):
    """The annealing model whose moves use rounded weights, but for the last one, at beta 1."""
    exact, rounded = oracle_path(model, base), oracle_path(rounded_model(model), base)
    distribution = exact.p(0.0)
    for beta in betas[1:-1]:
        distribution = distribution @ rounded.gibbs(beta)
    return marginal(distribution @ exact.gibbs(1.0), exact.visible)


def errors(model, base, betas, kind=PreparedBipartite):
    """Relative errors of AIS, of RAISE and of the sampler on the composite path of a `kind` of PreparedBipartite."""
    front, p_ann = exact_front(partial(coarse, kind=kind)), composite_p_ann(model, base, betas)

    def distribution(path, segments):
        return final_distribution(coarse(path, kind), segments)

    z = expected_z(model, base, betas, front)
    p = expected_probabilities(model, base, betas, front)
    sampled = sampled_distribution(model, base, betas, distribution=distribution)
    return (
        abs(z / oracle_path(model, base).z(1.0) - 1),
        np.abs(p / p_ann - 1).max(),
        np.abs(sampled / p_ann - 1).max(),
    )


@pytest.mark.parametrize("betas", [BETAS, np.array([0.0, 1.0])], ids=len)
@pytest.mark.parametrize("kind", models.BASES)
@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_the_composite_path_is_unbiased(model, kind, betas) -> None:
    assert max(errors(model, models.base(kind, model), betas)) < EXACT


def test_a_longer_composite_path_is_unbiased() -> None:
    model = models.rbm(22, 2, 1, scale=2.0)
    assert max(errors(model, models.base("data", model), np.array([0.0, 0.2, 0.7, 1.0]))) < EXACT


class WithoutChange(PreparedBipartite):
    """Mutant: the factor f_exact / f_rounded is left out."""

    def change(self, beta, state, to_exact):
        return np.zeros(len(state))


class ChangedTheWrongWay(PreparedBipartite):
    """Mutant: the factor is turned over."""

    def change(self, beta, state, to_exact):
        return super().change(beta, state, not to_exact)


class NeverExact(PreparedBipartite):
    """Mutant: the move at beta 1 uses rounded weights too; RAISE's p_ann is then another model's."""

    def spans(self, betas):
        return [PrecisionSpan(betas, False)]


class CutByDirection(PreparedBipartite):
    """Mutant: steps into beta 1 are exact as well as steps out of it, so that sampling and melting move differently."""

    def spans(self, betas):
        exact = (betas[:-1] == 1) | (betas[1:] == 1)
        return [PrecisionSpan(betas[k : k + 2], bool(exact[k])) for k in range(len(exact))]


@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_mutants_are_rejected(model) -> None:
    base = models.base("data", model)
    for mutant in (WithoutChange, ChangedTheWrongWay):
        ais, melting, _ = errors(model, base, BETAS, mutant)
        assert ais > LOUD
        assert melting > LOUD
    assert errors(model, base, BETAS, NeverExact)[1] > LOUD
    ais, melting, sampling = errors(model, base, BETAS, CutByDirection)
    assert max(ais, melting) < EXACT  # each alone is right, but they speak of different models
    assert sampling > 1e-5


def test_exactly_the_moves_at_beta_1_are_exact() -> None:
    prepared = coarse(MODELS[0].path(uniform()))
    up = np.array([0.0, 0.5, 1.0])
    assert [(s.betas.tolist(), s.exact) for s in prepared.spans(up)] == [([0.0, 0.5, 1.0], False)]
    down = [(s.betas.tolist(), s.exact) for s in prepared.spans(up[::-1])]
    assert down == [([1.0, 0.5], True), ([0.5, 0.0], False)]
    assert [(s.betas.tolist(), s.exact) for s in prepared.spans(np.ones(3))] == [([1.0, 1.0, 1.0], True)]


@given(st.lists(st.sampled_from([0.0, 0.3, 0.9, 1.0]), min_size=2, max_size=9))
def test_spans_cover_the_betas_in_order(betas) -> None:
    prepared = coarse(MODELS[0].path(uniform()))
    pieces = prepared.spans(np.array(betas))
    steps = [(low, high) for s in pieces for low, high in pairwise(s.betas)]
    assert steps == list(pairwise(betas))
    assert all(piece.exact == (beta == 1) for piece in pieces for beta in piece.betas[:-1])


@pytest.mark.parametrize("largest", [1e-6, 0.5, 30.0])
def test_rounding_is_to_the_nearest_multiple_that_fits_int16(largest) -> None:
    weights = np.random.default_rng(0).normal(size=(40, 50))
    weights *= largest / np.abs(weights).max()
    path = RBM(weights, np.zeros(40), np.zeros(50)).path(uniform())
    prepared = BipartiteBackend().prepare(path, "mixed")
    assert prepared.rounded is not None
    assert prepared.rounded_packed is not None
    side = prepared.rounded_packed.odd
    assert side.feed.weights.dtype == np.int16
    near = prepared.rounded.target.blocks[0].weights
    assert np.abs(near - weights).max() <= side.scale / 2 * (1 + 1e-12)


def test_weights_too_large_for_16_bits_fall_back_to_float32() -> None:
    weights = np.zeros((200, 200))
    weights[0, 0] = 500.0
    prepared = BipartiteBackend().prepare(RBM(weights, np.zeros(200), np.zeros(200)).path(uniform()), "mixed")
    assert prepared.rounded is None
    assert prepared.packed(exact=False) is prepared.exact_packed
    assert prepared.spans(np.array([0.0, 0.5, 1.0]))[0].exact
    assert (prepared.change(0.5, np.zeros((3, 200), np.uint8), to_exact=True) == 0).all()


def test_unknown_precision() -> None:
    path = MODELS[0].path(uniform())
    with pytest.raises(
        InputError, match="found precision='float16', expected 'mixed', 'float32' or 'float64'"
    ):
        prepare_path(path, "float16")  # pyright: ignore[reportArgumentType]
