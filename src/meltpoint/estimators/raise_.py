"""RAISE, the reverse AIS estimator: test examples are melted back to the base (paper, section 3).

With N particles the forward chains of AIS take part: docs/raise-n.md has the derivation. N = 1 is the paper's.
This is not the "reverse AIS" that starts chains at model samples to bound log Z. RAISE starts at test
examples and bounds log p(v) from below, under the annealing model.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, logsumexp, softmax

from meltpoint.annealing.backend import PreparedPath
from meltpoint.annealing.base import Base, BaseName, annealing_path, resolve_base
from meltpoint.annealing.loop import anneal, prepare_path
from meltpoint.annealing.precision import Precision
from meltpoint.annealing.schedule import Steps, as_betas
from meltpoint.annealing.streams import Streams
from meltpoint.errors import InputError, Progress
from meltpoint.estimators.ais import LogZ, path_digest
from meltpoint.estimators.checks import check_count
from meltpoint.models.model import Model
from meltpoint.randomness import Purpose
from meltpoint.statistics.log_space import log_mean_error, log_mean_exp
from meltpoint.units.bernoulli import softplus
from meltpoint.units.unit import Bits, Floats


@dataclass(frozen=True, eq=False, repr=False)
class LogProb:
    """Conservative estimates of log p_N(v) (example,), with standard errors, from log weights (example, chain).

    `particles` is N; N = 1 is the paper's estimator. exp(log_weights) is unbiased for p_N(v). `stderrs`
    cover the noise of an example's own chains; `forward_shares` (example, group) tell how much of a relative error of
    each group's sum of forward weights reaches the value, with a minus sign: forward chains are shared by all examples.
    `forward_stderrs` (group,) are the relative standard errors of those sums.
    """

    values: Floats
    stderrs: Floats
    log_weights: Floats
    particles: int = 1
    forward_shares: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    forward_stderrs: Floats = field(default_factory=lambda: np.zeros(0))

    def __repr__(self) -> str:
        examples, chains = self.log_weights.shape
        mean = float(np.mean(self.values))
        return (
            f"LogProb(mean {mean:.4f} of {examples:,} examples × {chains:,} chains, N = {self.particles:,})"
        )


class RaiseWeights(NamedTuple):
    """What melting gives: log weights and log reverse weights (example, chain), finished examples (example,).

    exp(log_weights) is unbiased for p_ann(v). exp(log_reverse_weights) is the AIS weight of the path that an example
    was melted along, as if a forward chain had gone it. `interrupted` says whether Ctrl-C ended the run.
    """

    log_weights: Floats
    log_reverse_weights: Floats
    finished: NDArray[np.bool_]
    interrupted: bool


def raise_log_prob(
    model: Model,
    x: ArrayLike,
    *,
    forward: LogZ | ArrayLike | None = None,
    particles: int | None = None,
    base: Base | BaseName | None = None,
    steps: Steps = 3000,
    chains: int = 4,
    seed: int = 0,
    precision: Precision = "mixed",
    threads: int | None = None,
    progress: Progress | None = None,
) -> LogProb:
    """Estimate log p(v) of every example from below, under the annealing model with these steps.

    exp(log_weights) is unbiased for p_N(v), the probability of v under the generative process "run N AIS chains,
    keep one of them in proportion to its weight, make one more move at beta 1": so the estimate of log p_N errs on
    the low side. Ctrl-C gives the estimates of the leading examples whose chains were all finished by then.

    Parameters
    ----------
    model
        An RBM, DBM or DBN.
    x
        Examples (example, visible unit).
    forward
        What `ais_log_z` found from the same base with the same steps and precision, or its log weights (chain,):
        the forward chains of the N particles, shared by all examples. Without them N is 1, the paper's estimator.
    particles
        N: by itself one more than there are forward chains. A smaller N forms groups of N - 1 forward chains and
        averages over them; 1 leaves them out.
    base
        The base distribution, or its name: "uniform" (the default) or "model".
    steps
        A number of equal steps, or the betas.
    chains
        Melting chains per example.
    seed, precision, threads, progress
        As in `ais_log_z`.

    >>> from meltpoint.estimators.ais import ais_log_z
    >>> from meltpoint.models.rbm import RBM
    >>> rbm = RBM([[1.0, -2.0], [0.5, 1.0]], [0.0, 0.1], [0.2, 0.0])
    >>> forward = ais_log_z(rbm, steps=100, chains=50)
    >>> raise_log_prob(rbm, [[0, 1], [1, 1]], steps=100, chains=2, forward=forward).particles
    51
    """
    chains = check_count(chains, "chains", "1 is enough with many steps, the paper uses 50")
    states = model.encode(x)
    betas = as_betas(steps)
    path = annealing_path(model, resolve_base(base, model, seed=seed, threads=threads, progress=progress))
    if isinstance(forward, LogZ):
        forward.check_path(path_digest(path, betas, precision))
    others = check_forward(forward.log_weights if isinstance(forward, LogZ) else forward, particles)
    found = run_raise(
        model,
        prepare_path(path, precision),
        betas,
        states,
        np.arange(len(states)),
        np.arange(chains),
        seed,
        threads=threads,
        progress=progress,
    )
    n = len(states) if found.finished.all() else int(np.argmin(found.finished))
    if n == 0:
        raise KeyboardInterrupt
    return particle_log_prob(found.log_weights[:n], found.log_reverse_weights[:n], others, particles)


def run_raise(
    model: Model,
    prepared: PreparedPath,
    betas: Floats,
    states: Bits,
    examples: NDArray[np.integer],
    chains: NDArray[np.integer],
    seed: int,
    *,
    threads: int | None = None,
    progress: Progress | None = None,
) -> RaiseWeights:
    """Melt examples: their log weights, and which of them have all their chains finished.

    `states` (example, visible unit), from `model.encode`, are those of the examples with the numbers `examples`
    (example,); each is melted by the chains with the numbers `chains` (chain,). A weight does not depend on what is run
    with it.
    """
    keys = np.stack(np.meshgrid(examples, chains, indexing="ij"), axis=-1).reshape(-1, 2)
    visible = np.repeat(states, len(chains), axis=0)
    start = model.raise_start(prepared.path, visible, betas, seed, keys)
    run = anneal(
        prepared,
        start.segments,
        start.state,
        Streams(seed, Purpose.RAISE, keys),
        threads=threads,
        progress=progress,
        task="RAISE",
    )
    shape = len(examples), len(chains)
    cumulative = run.cumulative_log_weights
    melted = cumulative[:, -1] - cumulative[:, -2] if len(start.segments) > 1 else cumulative[:, -1]
    log_z_base = prepared.path.log_z_base + prepared.path.target.log_constant
    return RaiseWeights(
        (start.log_weights + run.log_weights).reshape(shape),
        (log_z_base - melted).reshape(shape),
        np.logical_and.reduce(run.finished.reshape(shape), axis=1),
        run.interrupted,
    )


def check_forward(forward: ArrayLike | None, particles: int | None) -> Floats:
    """Log weights (chain,) of forward chains, none without any, or an error if there are too few for N."""
    log_weights = np.zeros(0) if forward is None else np.asarray(forward, np.float64)
    if log_weights.ndim != 1 or np.isnan(log_weights).any():
        raise InputError(
            found=f"forward log weights of shape {log_weights.shape}"
            + (" with NaN" if np.isnan(log_weights).any() else ""),
            expected="a vector, one number for each forward chain",
            remedy="pass what ais_log_z gives, or its log_weights",
        )
    if particles is not None:
        n = check_count(particles, "particles", "1 is the paper's estimator; leave it out for all AIS chains")
        if n - 1 > len(log_weights):
            raise InputError(
                found=f"particles={n:,} with {len(log_weights):,} forward chains",
                expected=f"at most {len(log_weights) + 1:,}: each particle but the example's own is a forward chain",
                remedy="run more AIS chains, or leave particles out",
            )
    return log_weights


def particle_log_prob(
    log_weights: Floats, log_reverse_weights: Floats, forward: Floats, particles: int | None = None
) -> LogProb:
    """Estimates of log p_N(v) from RAISE's weights (example, chain) and forward log weights (chain,).

    With w_rev the reverse weight and S the sum of N - 1 forward weights,

        p_N(v) = E[ exp(log_weight) N w_rev / (w_rev + S) ].

    Where there are more forward chains than N - 1, they form as many whole groups as they can, and the estimate is the
    mean over groups, which is unbiased too.
    """
    n = len(forward) + 1 if particles is None else particles
    if n == 1:
        return LogProb(
            log_mean_exp(log_weights),
            log_mean_error(log_weights),
            log_weights,
            forward_shares=np.zeros((len(log_weights), 0)),
        )
    groups = forward[: len(forward) // (n - 1) * (n - 1)].reshape(-1, n - 1)
    log_sums = np.asarray(logsumexp(groups, axis=1))
    # (example, chain, group): log of S / w_rev, which may be infinite on either side
    odds = log_sums - log_reverse_weights[:, :, np.newaxis]
    terms = log_weights[:, :, np.newaxis] + np.log(n) - softplus(odds)
    per_chain = log_mean_exp(terms)
    share = softmax(terms, axis=(1, 2)) * expit(odds)
    return LogProb(
        log_mean_exp(per_chain),
        log_mean_error(per_chain),
        per_chain,
        n,
        share.sum(axis=1),
        np.asarray(log_mean_error(groups)),
    )
