"""Graphs against enumeration, to 1e-12: distributions, sweeps, weights, p_ann, and mutants that are rejected."""

from dataclasses import replace
from unittest import mock

import numpy as np
import pytest

import meltpoint as mp
from contract.graphs import CASES, Graph, base_of
from meltpoint.annealing.blocks import Segment
from meltpoint.annealing.path import BlockGibbs
from meltpoint.backends.numba.graph import GraphBackend
from meltpoint.backends.reference import ReferenceBackend, ReferencePath
from meltpoint.backends.registry import prepare_path
from meltpoint.backends.tiles import anneal
from meltpoint.kernels.streams import Streams
from meltpoint.randomness import Purpose
from oracle.concentration import FALSE_ALARM, bernstein
from oracle.driving.checks import EXACT, LOUD

BETAS = np.array([0.0, 0.3, 0.8, 1.0])
GRAPHS = {name: Graph(model) for name, model in CASES.items()}
every_graph = pytest.mark.parametrize("name", CASES)
MANY_BLOCKS = [name for name, model in CASES.items() if len(model.mrf.state_blocks) > 1]
HEATED = [name for name, model in CASES.items() if model.raise_passes == 2]


def test_the_cases_have_every_kind_of_sweep():
    fields = {name: model.mrf for name, model in CASES.items()}
    kinds = {
        (type(mrf).__name__, len(mrf.state_blocks) > 1, mrf.summed_out is not None, CASES[name].raise_passes)
        for name, mrf in fields.items()
    }
    both = ("PairField", "FactorField")
    assert kinds >= {(kind, True, False, 1) for kind in both}  # colours or single sites, all visible
    assert kinds >= {(kind, False, True, 1) for kind in both}  # two colours
    assert kinds >= {(kind, True, True, 1) for kind in both}  # hidden sites that are not coupled
    assert kinds >= {(kind, True, True, 2) for kind in both}  # hidden sites in the state
    assert len(HEATED) >= 4


@every_graph
def test_the_path_and_the_sums_are_the_oracles(name):
    graph = GRAPHS[name]
    model, oracle = graph.model, graph.oracle
    for beta in BETAS:
        f = np.exp(graph.path.log_f(beta, graph.states))
        np.testing.assert_allclose(f / f.sum(), oracle.marginal(oracle.p(beta), graph.kept), rtol=EXACT)
    z = oracle.z(1.0)
    assert np.exp(model.mrf.log_f(graph.states)).sum() == pytest.approx(z, rel=EXACT)
    assert mp.exact_log_z(model) == pytest.approx(np.log(z), abs=EXACT)
    f = oracle.marginal(np.exp(oracle.log_f(1.0)), graph.visible)
    x = model.decode(graph.examples)
    np.testing.assert_allclose(np.exp(model.log_f(x)), f, rtol=EXACT)
    assert model.log_f_estimate(x).is_exact


@every_graph
def test_sweeps_leave_the_distribution_invariant_and_have_their_reversal(name):
    graph = GRAPHS[name]
    for beta in (0.0, 0.4, 1.0):
        p = graph.oracle.marginal(graph.oracle.p(beta), graph.kept)
        forward, backward = (graph.step(beta, beta, reversed_sweeps=back)[0] for back in (False, True))
        np.testing.assert_allclose(forward.sum(axis=1), 1, rtol=EXACT)
        np.testing.assert_allclose(p @ forward, p, rtol=EXACT)
        np.testing.assert_allclose(p[:, np.newaxis] * forward, (p[:, np.newaxis] * backward).T, rtol=1e-10)


@every_graph
def test_clamped_sites_do_not_move(name):
    graph = GRAPHS[name]
    clamped = graph.kept % 2 == 0
    matrix = graph.step(0.7, 0.7, clamped)[0]
    moved = (graph.states[:, np.newaxis, clamped] != graph.states[:, clamped]).any(axis=2)
    assert (matrix[moved] == 0).all()
    p = graph.oracle.marginal(graph.oracle.p(0.7), graph.kept)
    np.testing.assert_allclose(p @ matrix, p, rtol=EXACT)


@every_graph
def test_ais_is_unbiased_for_z_and_raise_for_p_ann(name):
    graph = GRAPHS[name]
    z_0 = np.exp(graph.path.log_z_base + graph.mrf.log_constant)
    np.testing.assert_allclose(z_0 * graph.expected([Segment(BETAS)]), graph.oracle.z(1.0), rtol=EXACT)
    found, expected = graph.raise_probabilities(BETAS), graph.p_ann(BETAS)
    np.testing.assert_allclose(found, expected, rtol=EXACT)
    assert found.sum() == pytest.approx(1, rel=EXACT)


@pytest.mark.parametrize("name", MANY_BLOCKS)
def test_blocks_that_are_not_reversed_are_rejected_where_normalisation_is_blind(name):
    graph = GRAPHS[name]
    with mock.patch.object(BlockGibbs, "reversed", lambda self: self):
        found = graph.raise_probabilities(BETAS)
    assert np.abs(found / graph.p_ann(BETAS) - 1).max() > LOUD
    assert found.sum() == pytest.approx(1, rel=EXACT)


@pytest.mark.parametrize("name", HEATED)
def test_a_clamped_site_that_moves_is_rejected(name):
    graph = GRAPHS[name]
    found = graph.raise_probabilities(BETAS, lambda segments: [replace(s, clamped=None) for s in segments])
    assert np.abs(found / graph.p_ann(BETAS) - 1).max() > LOUD


@every_graph
def test_a_base_without_biases_is_uniform_and_one_of_visible_sites_leaves_hidden_ones_so(name):
    model = CASES[name]
    for base in (mp.uniform(), mp.Base("data", base_of(model).biases[:1])):
        graph = Graph(model, base)
        np.testing.assert_allclose(graph.raise_probabilities(BETAS), graph.p_ann(BETAS), rtol=EXACT)


@every_graph
def test_the_kernels_do_what_the_reference_does(name):
    model = CASES[name]
    path, n = model.path(base_of(model)), 40
    assert GraphBackend().supports(path)
    assert not isinstance(prepare_path(path), ReferencePath)
    betas = np.linspace(0, 1, 8)
    clamped = np.arange(model.mrf.n_state) < 1
    segments = [Segment(betas), Segment(betas, clamped), Segment(betas[::-1], reversed_sweeps=True)]
    start = np.zeros((n, model.mrf.n_state), np.uint8)
    streams = Streams(7, Purpose.AIS, np.arange(n))
    fast, reference = (
        anneal(backend.prepare(path, "float64"), segments, start, streams, tile=15)
        for backend in (GraphBackend(), ReferenceBackend())
    )
    np.testing.assert_array_equal(fast.state, reference.state)
    np.testing.assert_allclose(
        fast.cumulative_log_weights, reference.cumulative_log_weights, rtol=1e-9, atol=1e-9
    )


@every_graph
def test_samples_of_the_annealing_model(name):
    """Bernstein's inequality: a false alarm once in a million."""
    graph, n = GRAPHS[name], 3000
    drawn = mp.sample_annealing_model(graph.model, n, base=graph.base, steps=BETAS, seed=3)
    expected = graph.p_ann(BETAS)
    rows = {tuple(row): k for k, row in enumerate(graph.model.decode(graph.examples).tolist())}
    frequency = np.bincount([rows[tuple(x)] for x in drawn.tolist()], minlength=len(rows)) / n
    for f, p in zip(frequency, expected, strict=True):
        assert abs(f - p) < bernstein(n, p * (1 - p), 1.0, FALSE_ALARM / len(expected))
