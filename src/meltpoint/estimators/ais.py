"""Annealed importance sampling of log Z (Neal 2001; paper, section 2.3)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Annotated

from meltpoint.annealing.base import BaseLike
from meltpoint.annealing.blocks import Segment
from meltpoint.annealing.schedule import Steps, as_betas
from meltpoint.arguments import Count, Seed, Threads, public
from meltpoint.backends.numba.precision import Precision
from meltpoint.backends.tiles import anneal
from meltpoint.defaults import AIS_CHAINS, DEFAULTS
from meltpoint.errors import InputError, Progress
from meltpoint.estimators.base_rates import resolve_base
from meltpoint.estimators.chain_batches import Annealing, PathWork
from meltpoint.kernels.streams import Streams
from meltpoint.layers.unit import Floats
from meltpoint.models.model import ModelLike
from meltpoint.randomness import Purpose
from meltpoint.records import NOT_WRITTEN, fields_html
from meltpoint.runs.batch import Batch, Items
from meltpoint.runs.run import Run
from meltpoint.statistics.estimate import Estimate
from meltpoint.statistics.log_space import effective_sample_size, log_mean_error, log_mean_exp


@dataclass(frozen=True, eq=False, repr=False)
class LogZ(Estimate):
    """log Z with its log weights (chain,) and their effective sample size; a stochastic lower bound.

    `path` identifies the path the chains were annealed along: RAISE takes only particles of its own path.
    """

    log_weights: Floats = field(metadata=NOT_WRITTEN)
    ess: float = field(metadata=NOT_WRITTEN)
    path: str = field(default="", metadata=NOT_WRITTEN)

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


@public
def ais_log_z(
    model: ModelLike,
    *,
    base: BaseLike = None,
    steps: Steps = DEFAULTS.steps,
    chains: Count = AIS_CHAINS,
    seed: Seed = 0,
    precision: Precision = "mixed",
    threads: Threads | None = None,
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
    assert not isinstance(progress, bool), "public() has made a callback of it"
    betas, run = as_betas(steps), Run(threads, progress)
    annealing = Annealing(model, resolve_base(base, model, run, seed=seed), precision)
    batch = ais_batch(annealing, betas, chains, seed)
    (found,), _ = run.results_so_far([batch], "AIS")
    if found.values is None:
        raise KeyboardInterrupt
    return replace(log_z_of(found.values.log_weights), path=annealing.digest(betas))


@dataclass(frozen=True, eq=False)
class ForwardWeights:
    """Log weights of AIS chains: exp of each is unbiased for Z."""

    log_weights: Annotated[Floats, "chain"]


@dataclass(frozen=True, eq=False)
class ForwardChains(PathWork):
    """Chains of AIS along betas; their random numbers are named from `first_number` on."""

    betas: Floats
    seed: int
    first_number: int = 0

    def compute(self, items: Items, progress: Progress) -> ForwardWeights:
        """Log weights of some of them. A weight does not depend on which others are run with it."""
        streams = Streams(self.seed, Purpose.AIS, self.first_number + items)
        path, start = self.annealing.path, self.annealing.anywhere(len(items))
        run = anneal(self.annealing.prepared, [Segment(self.betas)], start, streams, progress=progress)
        return ForwardWeights(run.log_weights + path.log_z_base + path.log_constant)


def ais_batch(
    annealing: Annealing, betas: Floats, chains: int, seed: int, first_number: int = 0
) -> Batch[ForwardWeights]:
    """Chains of AIS as a batch."""
    return Batch("ais", ForwardChains(annealing, betas, seed, first_number), chains, betas.size - 1.0)


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
