"""RBMs with Potts visible units against enumeration, to 1e-12, on both backends, with mutants that are rejected."""

import itertools
from types import SimpleNamespace
from unittest import mock

import numpy as np
import pytest
from scipy.special import logsumexp, softmax

import meltpoint as mp
from contract.cases import saved_and_evaluated
from meltpoint.annealing.blocks import Segment
from meltpoint.backends.numba.bipartite import BipartiteBackend
from meltpoint.backends.reference import ReferenceBackend
from meltpoint.backends.registry import BACKENDS, prepare_path
from meltpoint.backends.tiles import anneal
from meltpoint.kernels.streams import Streams
from meltpoint.layers import Potts
from meltpoint.randomness import Purpose

EXACT, LOUD = 1e-12, 1e-3
BETAS = np.array([0.0, 0.3, 0.8, 1.0])
SITES, STATES, HIDDEN = 2, 3, 2
VISIBLE = np.array(list(itertools.product(range(STATES), repeat=SITES)), np.uint8)
BITS = np.array(list(itertools.product((0, 1), repeat=HIDDEN)), np.uint8)


def random_rbm(hidden, sites=SITES, states=STATES, n_hidden=HIDDEN, scale=1.2, seed=0):
    rng = np.random.default_rng(seed)
    return mp.RBM(
        rng.normal(0, scale, (sites, states, n_hidden)),
        rng.normal(0, scale, (sites, states)),
        rng.normal(0, scale, n_hidden),
        visible="potts",
        hidden=hidden,
    )


def base_of(model, seed=1):
    rng = np.random.default_rng(seed)
    return mp.Base(
        "every layer", (rng.normal(0, 1, model.visible_bias.shape), rng.normal(0, 1, model.n_hidden))
    )


def joint(model, visible_bias, hidden_bias, weights):
    """log f (visible state, hidden state), term by term."""
    values = BITS if model.hidden.name == "bernoulli" else 2.0 * BITS - 1
    table = np.zeros((len(VISIBLE), len(BITS)))
    for a, v in enumerate(VISIBLE):
        for b, h in enumerate(values):
            table[a, b] = sum(visible_bias[i, v[i]] for i in range(SITES)) + hidden_bias @ h
            table[a, b] += sum(weights[i, v[i]] @ h for i in range(SITES))
    return table


def tables(model, base):
    """log f (visible state, hidden state) of the base and of the model."""
    zero = np.zeros_like(model.weights)
    return joint(model, *base.biases, zero), joint(
        model, model.visible_bias, model.hidden_bias, model.weights
    )


def at(model, base, beta):
    """log f_beta (visible state, hidden state)."""
    first, last = tables(model, base)
    return (1 - beta) * first + beta * last


def transition(path, beta):
    """Probability (from, to) of a sweep of the library, all outcomes of both draws dictated."""
    matrix = np.zeros((len(VISIBLE), len(VISIBLE)))
    for start, v in enumerate(VISIBLE):
        for h in BITS:
            for end, after in enumerate(VISIBLE):
                log_prob = 0.0

                def draw(block, inputs, h=h, after=after):
                    nonlocal log_prob
                    outcome = h if block.size == HIDDEN and block.unit.n_states == 2 else after
                    t = inputs[0] if inputs.ndim == 3 else np.stack([np.zeros(HIDDEN), inputs[0]], axis=1)
                    log_prob += np.log(softmax(t, axis=1))[np.arange(len(outcome)), outcome].sum()
                    return outcome[np.newaxis]

                moved = path.transition.move(path, beta, v[np.newaxis], SimpleNamespace(units=draw))
                np.testing.assert_array_equal(moved[0], after)
                matrix[start, end] += np.exp(log_prob)
    return matrix


def expected_z(path):
    """E[exp(log weight)] of AIS times Z_0, by the library's sweeps and weights."""
    row = np.zeros(len(VISIBLE))
    row[0] = 1.0
    for beta, following in itertools.pairwise(BETAS):
        row = row @ transition(path, beta)
        row = row * np.exp(path.log_f(following, VISIBLE) - path.log_f(beta, VISIBLE))
    return row.sum() * np.exp(path.log_z_base + path.target.log_constant)


hiddens = pytest.mark.parametrize("hidden", ["bernoulli", "spin"])


@hiddens
def test_log_f_and_log_z(hidden) -> None:
    model = random_rbm(hidden)
    table = tables(model, base_of(model))[1]
    np.testing.assert_allclose(model.log_f(VISIBLE), logsumexp(table, axis=1), rtol=EXACT)
    assert mp.exact_log_z(model) == pytest.approx(logsumexp(table), abs=EXACT)
    wide = random_rbm(hidden, sites=2, n_hidden=7)  # fewer visible than hidden states: those are enumerated
    assert wide.mrf.enumerated is wide.mrf
    states = np.array(list(itertools.product(range(STATES), repeat=2)))
    assert mp.exact_log_z(wide) == pytest.approx(logsumexp(wide.log_f(states)), abs=EXACT)


@hiddens
def test_the_path_the_sweeps_and_the_weights(hidden) -> None:
    model = random_rbm(hidden)
    base = base_of(model)
    path = model.path(base)
    for beta in BETAS:
        p = softmax(logsumexp(at(model, base, beta), axis=1))
        np.testing.assert_allclose(softmax(path.log_f(beta, VISIBLE)), p, rtol=1e-11)
        matrix = transition(path, beta)
        np.testing.assert_allclose(matrix.sum(axis=1), 1, rtol=EXACT)
        np.testing.assert_allclose(p @ matrix, p, rtol=1e-11)
        flow = p[:, np.newaxis] * matrix
        np.testing.assert_allclose(flow, flow.T, rtol=1e-10)  # a two-sided move is its own reversal
    z = np.exp(logsumexp(at(model, base, 1.0)))
    assert expected_z(path) == pytest.approx(z, rel=EXACT)
    p0 = softmax(logsumexp(at(model, base, 0.0), axis=1))
    np.testing.assert_allclose(np.exp(path.log_prob_base(VISIBLE)), p0, rtol=1e-11)


@hiddens
def test_raise_gives_the_annealing_model(hidden) -> None:
    model = random_rbm(hidden)
    base = base_of(model)
    path = model.path(base)
    p_ann = softmax(logsumexp(at(model, base, 0.0), axis=1))
    for beta in BETAS[1:]:
        p_ann = p_ann @ transition(path, beta)
    start = model.raise_start(path, VISIBLE, BETAS, 0, np.zeros((len(VISIBLE), 2), np.int64))
    (melt,) = start.segments
    rows = np.diag(np.exp(start.log_weights))
    for beta, following in itertools.pairwise(melt.betas):
        rows = rows @ transition(path, beta)
        rows = rows * np.exp(path.log_f(following, VISIBLE) - path.log_f(beta, VISIBLE))
    np.testing.assert_allclose(rows.sum(axis=1), p_ann, rtol=1e-11)


def test_a_constant_left_out_of_the_partition_is_rejected() -> None:
    model = random_rbm("bernoulli")
    z = np.exp(logsumexp(tables(model, base_of(model))[1]))
    whole = Potts.log_partition
    with mock.patch.object(Potts, "log_partition", lambda self, t: whole(self, t) - np.log(self.q)):
        assert abs(expected_z(model.path(base_of(model))) / z - 1) > LOUD


def test_a_state_off_by_one_is_rejected() -> None:
    model = random_rbm("bernoulli")
    z = np.exp(logsumexp(tables(model, base_of(model))[1]))
    whole = Potts.coupled
    with mock.patch.object(Potts, "coupled", lambda self, v: whole(self, (v + 1) % STATES)):
        assert abs(expected_z(model.path(base_of(model))) / z - 1) > LOUD


SIZES = [(3, 3, 2), (5, 4, 7), (40, 21, 10), (33, 2, 70)]


@pytest.mark.parametrize("sizes", SIZES, ids=str)
@hiddens
def test_the_fused_kernels_do_what_the_reference_does(hidden, sizes) -> None:
    model, n = random_rbm(hidden, *sizes, scale=0.5), 50
    path = model.path(base_of(model))
    assert [backend.name for backend in BACKENDS if backend.supports(path)] == ["bipartite", "reference"]
    betas = np.linspace(0, 1, 12)
    segments = [
        Segment(betas),
        Segment(betas, np.arange(sizes[0]) < 1),
        Segment(betas[::-1], reversed_sweeps=True),
    ]
    start = np.random.default_rng(0).integers(0, sizes[1], (n, sizes[0]), np.uint8)
    streams = Streams(7, Purpose.AIS, np.arange(n))

    def run(backend, precision, tile):
        return anneal(backend.prepare(path, precision), segments, start, streams, tile=tile)

    fused, reference = run(BipartiteBackend(), "float64", 20), run(ReferenceBackend(), "float64", 50)
    np.testing.assert_array_equal(fused.state, reference.state)
    assert fused.state.dtype == np.uint8
    np.testing.assert_allclose(
        fused.cumulative_log_weights, reference.cumulative_log_weights, rtol=1e-11, atol=1e-10
    )
    again = run(ReferenceBackend(), "float64", 7)
    np.testing.assert_array_equal(again.cumulative_log_weights, reference.cumulative_log_weights)
    for precision in ("float32", "mixed"):
        one, other = (run(BipartiteBackend(), precision, tile) for tile in (7, 50))
        np.testing.assert_array_equal(one.state, other.state)
        np.testing.assert_array_equal(one.cumulative_log_weights, other.cumulative_log_weights)


def test_clamped_sites_keep_their_states() -> None:
    model = random_rbm("bernoulli", 40, 5, 6)
    clamped = np.arange(40) % 3 == 0
    start = np.random.default_rng(0).integers(0, 5, (30, 40), np.uint8)
    for precision in ("mixed", "float32", "float64"):
        prepared = prepare_path(model.path(base_of(model)), precision)
        segment = Segment(np.linspace(0, 1, 20), clamped)
        state = anneal(prepared, [segment], start, Streams(0, Purpose.AIS, np.arange(30))).state
        np.testing.assert_array_equal(state[:, clamped], start[:, clamped])
        assert (state[:, ~clamped] != start[:, ~clamped]).mean() > 0.3


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["mixed", "float32"])
def test_weights_and_samples_of_the_fused_kernels(precision) -> None:
    """Normal approximation of means of 20,000 bounded terms, 6 standard errors: a false alarm in 5e8 for each."""
    model = random_rbm("spin")
    base, n = base_of(model), 20_000
    log_z = mp.exact_log_z(model)
    found = mp.ais_log_z(model, base=base, steps=10, chains=n, precision=precision)
    weights = np.exp(found.log_weights - log_z)
    assert abs(weights.mean() - 1) < 6 * weights.std() / np.sqrt(n)
    betas = np.linspace(0, 1, 11)
    drawn = mp.sample_annealing_model(model, n, base=base, steps=betas, precision=precision)
    path = model.path(base)
    p_ann = softmax(logsumexp(at(model, base, 0.0), axis=1))
    for beta in betas[1:]:
        p_ann = p_ann @ transition(path, beta)
    frequency = np.bincount(drawn @ (STATES, 1), minlength=len(VISIBLE)) / n
    assert (np.abs(frequency - p_ann) < 6 * np.sqrt(p_ann * (1 - p_ann) / n)).all()
    assert np.abs(np.roll(frequency, 1) - p_ann).max() > 0.05  # states off by one would be seen


def test_what_is_not_a_potts_rbm() -> None:
    weights, bias = np.zeros((2, 3, 4)), np.zeros((2, 3))
    for arguments, said in (
        ((weights.reshape(6, 4), bias, np.zeros(4)), "three axes"),
        ((weights, bias.ravel(), np.zeros(4)), r"visible_bias of shape \(6,\).*reshape"),
        ((weights, bias, np.zeros(3)), "hidden_bias of length 3"),
    ):
        with pytest.raises(mp.InputError, match=said):
            mp.RBM(*arguments, visible="potts")
    with pytest.raises(mp.InputError, match="weights of 3 states"):
        mp.RBM(weights, bias, np.zeros(4), visible=Potts(4))
    with pytest.raises(mp.InputError, match="visible_scale with potts"):
        mp.RBM(weights, bias, np.zeros(4), visible="potts", visible_scale=1.0)
    model = mp.RBM(weights, bias, np.zeros(4), visible="potts")
    with pytest.raises(mp.InputError, match="3 axes"):
        mp.RBM(np.zeros((2, 3)), np.zeros(2), np.zeros(3), hidden=Potts(2))
    with pytest.raises(mp.InputError, match="do not all have two states"):
        mp.csl_log_prob(model, [[0, 1]], steps=5, chains=2)


@hiddens
def test_evaluation_files_and_conditionals(hidden, tmp_path) -> None:
    model = random_rbm(hidden, 4, 3, 3)
    x, report = saved_and_evaluated(model, tmp_path)
    assert repr(model) == f"RBM 4-3 (potts(3), {hidden})"
    assert "Lebesgue" not in str(report)
    probabilities = model.visible_given_hidden(model.hidden.decode(np.ones((1, 3), np.uint8)))
    assert probabilities.shape == (1, 4, 3)
    np.testing.assert_allclose(probabilities.sum(axis=2), 1)
    assert model.hidden_given_visible(x[:2]).shape == (2, 3)
