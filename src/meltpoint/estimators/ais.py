"""Annealed importance sampling of log Z (Neal 2001; paper, section 2.3)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from meltpoint.annealing.base import Base, BaseName
from meltpoint.annealing.blocks import Segment
from meltpoint.annealing.path import Path
from meltpoint.annealing.schedule import Steps, as_betas
from meltpoint.backends.backend import PreparedPath
from meltpoint.backends.numba.precision import Precision
from meltpoint.backends.tiles import Annealed, anneal
from meltpoint.defaults import AIS_CHAINS, DEFAULTS
from meltpoint.errors import InputError, Progress
from meltpoint.estimators.base_rates import resolve_base
from meltpoint.estimators.chain_batches import Annealing
from meltpoint.fingerprint import fingerprint
from meltpoint.kernels.streams import Streams
from meltpoint.layers.unit import Bits, Floats
from meltpoint.models.checks import check_count
from meltpoint.models.model import Model, ModelLike
from meltpoint.progress import reports_progress
from meltpoint.randomness import Purpose
from meltpoint.records import fields_html
from meltpoint.runs.batch import Batch, Items
from meltpoint.runs.run import Run
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

    def _repr_html_(self) -> str:
        return fields_html(
            {
                "log Z": str(self),
                "direction": f"{self.direction}, on average over runs",
                "effective chains": f"{self.ess:,.1f} of {len(self.log_weights):,}",
                "the error covers": self.covers,
            }
        )

    def check_path(self, path: str) -> None:
        """Refuse to serve as particles on another path."""
        if self.path and self.path != path:
            raise InputError(
                found="forward chains of another model, base, schedule or precision",
                expected="those of ais_log_z with the same model, base, steps and precision",
                remedy="call ais_log_z and raise_log_prob with the same arguments",
            )


@reports_progress
def ais_log_z(
    model: ModelLike,
    *,
    base: Base | BaseName | None = None,
    steps: Steps = DEFAULTS.steps,
    chains: int = AIS_CHAINS,
    seed: int = 0,
    precision: Precision = "mixed",
    threads: int | None = None,
    progress: Progress | bool | None = None,
) -> LogZ:
    """Estimate a model's log Z (for a DBN, its top RBM's) by annealing from a base distribution.

    The estimate of Z is unbiased for any number of steps and chains, so that of log Z errs on the low side and
    likelihoods computed with it on the high side. Ctrl-C gives the estimate from the chains finished by then.

    Parameters
    ----------
    model
        Any model: an RBM, DBM or DBN, an Ising or Potts model, a factor graph.
    base
        The base distribution, or its name: "uniform" (the default) or "model".
    steps
        A number of equal steps, or the betas.
    chains
        Independent chains.
    seed
        Seed of the chains' random numbers.
    precision
        "mixed" is fast and unbiased, "float64" is for checking.
    threads
        Number of threads; all cores by default.
    progress
        Called with (task, done, total).

    >>> from meltpoint.models.rbm import RBM
    >>> rbm = RBM([[1.0, -2.0], [0.5, 1.0]], [0.0, 0.1], [0.2, 0.0])
    >>> abs(ais_log_z(rbm, steps=100, chains=500).value - 3.4506) < 0.1
    True
    """
    assert not isinstance(progress, bool), "reports_progress has made a callback of it"
    betas = as_betas(steps)
    own_base = resolve_base(base, model, seed=seed, threads=threads, progress=progress)
    annealing = Annealing(model, own_base, precision)
    batch = ais_batch(annealing, betas, check_count(chains, "chains", "1,000 chains are usual"), seed)
    (found,), _ = Run(threads, progress).results_so_far([batch], "AIS")
    if found.values is None:
        raise KeyboardInterrupt
    return replace(log_z_of(found.values.log_weights), path=path_digest(model, own_base, betas, precision))


@dataclass(frozen=True, eq=False)
class ForwardWeights:
    """Log weights of AIS chains."""

    log_weights: Annotated[Floats, "chain"]


@dataclass(frozen=True, eq=False)
class ForwardChains:
    """Chains of AIS along betas; their random numbers are named from `first_number` on."""

    annealing: Annealing
    betas: Floats
    seed: int
    first_number: int = 0

    def prepare(self, progress: Progress | None) -> None:
        self.annealing.prepare(progress)

    def compute(self, items: Items, progress: Progress) -> ForwardWeights:
        numbers = self.first_number + items
        return ForwardWeights(
            run_ais(self.annealing.prepared, self.betas, numbers, self.seed, progress=progress).log_weights
        )


def ais_batch(
    annealing: Annealing, betas: Floats, chains: int, seed: int, first_number: int = 0
) -> Batch[ForwardWeights]:
    """So many chains of AIS."""
    return Batch("ais", ForwardChains(annealing, betas, seed, first_number), chains, betas.size - 1.0)


def run_ais(
    prepared: PreparedPath,
    betas: Floats,
    chains: NDArray[np.integer],
    seed: int,
    *,
    progress: Progress | None = None,
) -> Annealed:
    """Run the chains with these numbers (chain,); exp of each log weight is unbiased for Z.

    A chain's weight does not depend on which others are run with it.
    """
    path = prepared.path
    run = anneal(
        prepared,
        [Segment(betas)],
        anywhere(path, len(chains)),
        Streams(seed, Purpose.AIS, chains),
        progress=progress,
        task="AIS",
    )
    log_weights = run.cumulative_log_weights + path.log_z_base + path.log_constant
    return replace(run, cumulative_log_weights=log_weights)


def anywhere(path: Path, chains: int) -> Bits:
    """States (chain, unit) for chains that begin at beta 0, where the first sweep draws from the base exactly."""
    return np.zeros((chains, path.n_state), path.dtype)


def path_digest(model: Model, base: Base, betas: Floats, precision: Precision) -> str:
    """A short text that differs when the path of intermediate distributions does."""
    undirected = model.undirected
    own = undirected.with_biases(base) if isinstance(base, Base) else ()
    biases = {str(k): bias for k, bias in enumerate(own)}
    name = () if biases else (base.name,)
    return fingerprint({"betas": betas, **biases}, undirected.fingerprint(), precision, *name)


def log_z_of(log_weights: Floats) -> LogZ:
    """The estimate of log Z from log weights (chain,)."""
    ess = float(effective_sample_size(log_weights))
    return LogZ(
        value=float(log_mean_exp(log_weights)),
        stderr=float(log_mean_error(log_weights)),
        direction="lower bound",
        covers="the noise of the AIS chains; not what they all have missed",
        df=ess - 1,
        log_weights=log_weights,
        ess=ess,
    )
