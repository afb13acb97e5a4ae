"""Certificates hold for the estimators as they are: on 200 random models, with wrong estimators beside them.

Each certificate may be wrong with probability 1/10, on each model independently, so the number of wrong ones is
at most binomial. A count above ALLOWED has probability 1e-6 if the certificates hold.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import expit, logsumexp
from scipy.stats import binom

from meltpoint.annealing.base import Base
from meltpoint.annealing.blocks import Segment
from meltpoint.annealing.schedule import as_betas
from meltpoint.backends.registry import prepare_path
from meltpoint.backends.tiles import anneal
from meltpoint.estimators.ais import ais_log_z
from meltpoint.estimators.particles import certify_mean_log_prob
from meltpoint.estimators.raise_ import raise_log_prob
from meltpoint.kernels.streams import Streams
from meltpoint.layers.unit import States
from meltpoint.models.bipartite import BipartitePath
from meltpoint.models.rbm import RBM
from meltpoint.randomness import Purpose
from meltpoint.statistics.certificate import certify_log_z
from meltpoint.statistics.log_space import log_mean_exp
from oracle import chains, zoo
from oracle.concentration import FALSE_ALARM
from oracle.tables import Table, all_states

MODELS = 200
N_VISIBLE, N_HIDDEN = 6, 5
CONFIDENCE = 0.9
EXAMPLES = 5
ALLOWED = int(binom.isf(FALSE_ALARM, MODELS, 1 - CONFIDENCE))


@dataclass(frozen=True)
class Case:
    """A strong model with few steps and chains, so that weights are heavy-tailed, and samples of it as examples."""

    model: RBM
    base: Base
    betas: Table
    chains: int
    seed: int

    @property
    def log_f(self) -> Table:
        """Log f (visible state,)."""
        return self.model.log_f(all_states(N_VISIBLE))

    @property
    def log_z(self) -> float:
        """By enumeration."""
        return float(logsumexp(self.log_f))

    def samples(self, n: int) -> NDArray[np.int64]:
        """Numbers of n visible states, exact draws from the model."""
        return np.random.default_rng([self.seed, 2]).choice(
            2**N_VISIBLE, n, p=np.exp(self.log_f - self.log_z)
        )


def cases() -> Iterator[Case]:
    for seed in range(MODELS):
        rng = np.random.default_rng([seed, 1])
        drawn = zoo.layers(rng, [N_VISIBLE, N_HIDDEN], rng.uniform(2, 8))
        yield Case(
            RBM(drawn.weights[0], *drawn.biases),
            Base("random", tuple(rng.normal(0, 1, size) for size in (N_VISIBLE, N_HIDDEN)[: seed % 3])),
            as_betas(int(rng.integers(3, 7))),
            int(rng.integers(1, 4)),
            seed,
        )


def p_ann(model: RBM, base: Base, betas: Table) -> Table:
    """The annealing model (visible state,): the base, moved at every beta but the first."""
    path = model.path(base)
    assert isinstance(path, BipartitePath)
    v, h = all_states(model.n_visible), all_states(model.n_hidden)
    p = independent(v, path.base_even)
    for beta in betas[1:]:
        to_hidden = independent(h, beta * (v @ model.weights) + path.odd_bias(beta))
        to_visible = independent(v, beta * (h @ model.weights.T) + path.even_bias(beta))
        p = p @ to_hidden @ to_visible
    return p


def independent(states: np.ndarray, inputs: Table) -> Table:
    """Probability (…, state) of states of independent units with inputs (…, unit)."""
    on = expit(inputs)[..., np.newaxis, :]
    return np.where(states, on, 1 - on).prod(axis=-1)


def test_p_ann_is_the_oracles() -> None:
    layers = zoo.layers(np.random.default_rng(0), [3, 2])
    biases, betas = (np.array([1.0, -2.0, 0.5]), np.array([-1.0, 0.3])), np.array([0.0, 0.1, 0.6, 1.0])
    pushed = p_ann(RBM(layers.weights[0], *layers.biases), Base("random", biases), betas)
    np.testing.assert_allclose(pushed, chains.p_ann(chains.path(biases, layers), betas), rtol=1e-12)


def wrong_log_z(estimate: Callable[[Case], Table]) -> int:
    """Number of models on which the certificate for log Z claims too much."""
    return sum(certify_log_z(estimate(case), CONFIDENCE).bound >= case.log_z for case in cases())


def by_ais(case: Case) -> Table:
    return ais_log_z(
        case.model, base=case.base, steps=case.betas, chains=case.chains, seed=case.seed, threads=1
    ).log_weights


def from_above(case: Case) -> Table:
    """The other "reverse AIS": chains that melt samples of the model bound log Z from above."""
    prepared = prepare_path(case.model.path(case.base))
    start = all_states(N_VISIBLE)[case.samples(case.chains)]
    streams = Streams(case.seed, Purpose.AIS, np.arange(case.chains))
    run = anneal(prepared, [Segment(case.betas[::-1].copy())], start, streams)
    return np.array([prepared.path.log_z_base - float(log_mean_exp(run.log_weights))])


@pytest.mark.slow
def test_log_z() -> None:
    assert wrong_log_z(by_ais) <= ALLOWED


@pytest.mark.slow
def test_log_z_from_the_wrong_side_is_rejected() -> None:
    assert wrong_log_z(from_above) > ALLOWED


def wrong_mean(estimate: Callable[[Case, States], Table]) -> int:
    """Number of models on which the certificate for the mean of log p_ann claims too much."""
    wrong = 0
    for case in cases():
        which = case.samples(EXAMPLES)
        values = estimate(case, all_states(N_VISIBLE)[which])[:, np.newaxis]
        certificate, _ = certify_mean_log_prob(values, np.zeros_like(values), np.zeros(0), CONFIDENCE)
        wrong += certificate.bound >= np.log(p_ann(case.model, case.base, case.betas)[which]).mean()
    return wrong


def by_raise(case: Case, x: States) -> Table:
    return raise_log_prob(
        case.model,
        x,
        base=case.base,
        steps=case.betas,
        chains=case.chains,
        seed=case.seed,
        precision="float64",  # mixed precision anneals with rounded weights: p_ann is another in the fourth digit
        threads=1,
    ).values


def optimistic(case: Case, x: States) -> Table:
    """The likelihood with AIS's log Z, which errs on the other side."""
    return case.model.log_f(x) - log_mean_exp(by_ais(case))


@pytest.mark.slow
def test_mean_log_p_ann() -> None:
    assert wrong_mean(by_raise) <= ALLOWED


@pytest.mark.slow
def test_the_optimistic_likelihood_is_rejected() -> None:
    assert wrong_mean(optimistic) > ALLOWED
