"""Annealed importance sampling of log Z (Neal 2001; paper, section 2.3)."""

import hashlib
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from meltpoint.annealing.anneal import Leg, anneal
from meltpoint.annealing.base import Base, family_of, uniform
from meltpoint.annealing.family import Family
from meltpoint.annealing.precision import Precision, Walk
from meltpoint.annealing.schedule import Steps, as_betas
from meltpoint.annealing.streams import chain_generators
from meltpoint.errors import InputError, Progress
from meltpoint.estimators.checks import check_count
from meltpoint.models import Model
from meltpoint.models.checks import Floats
from meltpoint.randomness import Purpose
from meltpoint.statistics.estimate import Estimate
from meltpoint.statistics.log_space import effective_sample_size, log_mean_error, log_mean_exp


@dataclass(frozen=True, eq=False, repr=False)
class LogZ(Estimate):
    """log Z with its log weights (chain,) and their effective sample size; a stochastic lower bound.

    `path` identifies the path the chains were annealed along: RAISE takes only particles of its own path.
    """

    log_weights: Floats
    ess: float
    path: str = ""

    def __repr__(self) -> str:
        return f"LogZ({self}, {len(self.log_weights):,} chains, {self.ess:,.1f} effective)"

    def check_path(self, path: str) -> None:
        """Refuse to serve as particles on another path."""
        if self.path and self.path != path:
            raise InputError(
                found="forward chains of another model, base, schedule or precision",
                expected="those of ais_log_z with the same model, base, steps and precision",
                remedy="call ais_log_z and raise_log_prob with the same arguments",
            )


def path_digest(family: Family, betas: Floats, precision: Precision) -> str:
    """A short text that differs when the path of intermediate distributions does."""
    digest = hashlib.blake2b(precision.encode(), digest_size=16)
    blocks = (block.weights for block in family.target.blocks)
    for array in (betas, family.base_even, family.base_odd, *blocks):
        digest.update(np.ascontiguousarray(array).tobytes())
    digest.update(family.target.even_bias.tobytes() + family.target.odd_bias.tobytes())
    return digest.hexdigest()


def ais_log_z(
    model: Model,
    *,
    base: Base | None = None,
    steps: Steps = 3000,
    chains: int = 1000,
    seed: int = 0,
    precision: Precision = "mixed",
    threads: int | None = None,
    progress: Progress | None = None,
) -> LogZ:
    """Estimate a model's log Z (for a DBN, its top RBM's) by annealing from a base distribution.

    The estimate of Z is unbiased for any number of steps and chains, so that of log Z errs on the low side and
    likelihoods computed with it on the high side. Ctrl-C gives the estimate from the chains finished by then.

    >>> from meltpoint.models.rbm import RBM
    >>> rbm = RBM([[1.0, -2.0], [0.5, 1.0]], [0.0, 0.1], [0.2, 0.0])
    >>> abs(ais_log_z(rbm, steps=100, chains=500).value - 3.4506) < 0.1
    True
    """
    numbers = np.arange(check_count(chains, "chains", "1,000 chains are usual"))
    betas = as_betas(steps)
    family = family_of(model, base or uniform())
    log_weights, finished = ais_weights(
        family, betas, numbers, seed, precision=precision, threads=threads, progress=progress
    )
    if not finished.any():
        raise KeyboardInterrupt
    return replace(log_z_of(log_weights[finished]), path=path_digest(family, betas, precision))


def ais_weights(
    family: Family,
    betas: Floats,
    chains: NDArray[np.integer],
    seed: int,
    *,
    precision: Precision = "mixed",
    walk: Walk | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
) -> tuple[Floats, NDArray[np.bool_]]:
    """Log weights (chain,) of the chains with these numbers (chain,), and which were finished (chain,).

    exp(log weight) is unbiased for Z. A chain's weight does not depend on which others are run with it.
    """
    run = anneal(
        family,
        [Leg(betas)],
        # At beta 0 the units are independent, so the first move draws from the base exactly, wherever it starts.
        np.zeros((len(chains), family.target.n_even), np.uint8),
        chain_generators(seed, Purpose.AIS, chains),
        precision=precision,
        walk=walk,
        threads=threads,
        progress=progress,
        task="AIS",
    )
    return run.log_weights + family.log_z_base, run.finished


def log_z_of(log_weights: Floats) -> LogZ:
    """The estimate of log Z from log weights (chain,)."""
    return LogZ(
        value=float(log_mean_exp(log_weights)),
        stderr=float(log_mean_error(log_weights)),
        direction="lower bound",
        covers="the noise of the AIS chains; not what they all have missed",
        log_weights=log_weights,
        ess=float(effective_sample_size(log_weights)),
    )
