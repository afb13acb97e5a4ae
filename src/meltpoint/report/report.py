"""What an evaluation found: both estimates, their gap, a verdict, and everything needed to repeat it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from meltpoint.estimators.ais import LogZ
from meltpoint.estimators.conventions import ConventionCheck
from meltpoint.estimators.evidence import Evidence
from meltpoint.estimators.pilot import Pilot
from meltpoint.models.checks import Floats
from meltpoint.report.settings import Settings
from meltpoint.report.stages import StageSummary
from meltpoint.report.verdict import Verdict
from meltpoint.statistics.certificate import Certificate
from meltpoint.statistics.estimate import Estimate, finite_or_none

if TYPE_CHECKING:
    from matplotlib.figure import Figure


_OF_DENSITIES = " (log density relative to Lebesgue measure)"


@dataclass(frozen=True, eq=False, repr=False)
class PerExample:
    """RAISE per example: position in the test set, log p_N, its own error, log f, and what they were made of.

    `log_weights` and `log_reverse_weights` (example, chain) are those of the paper's estimator, with one particle.
    """

    positions: NDArray[np.integer]
    log_prob: Floats
    stderr: Floats
    log_f: Floats
    log_weights: Floats
    log_reverse_weights: Floats


@dataclass(frozen=True, eq=False, repr=False)
class Report:
    """A likelihood from both sides, in nats per example. Print it, plot it, or take `to_dict()`.

    `conservative` (RAISE with `particles` particles) and `optimistic` (AIS) are the bracket, `gap` their difference,
    `verdict` what to make of it. `settings` is what was asked for, `pilot` what finding the schedule cost; after
    Ctrl-C the report is `interrupted`, and `per_example` may have fewer examples than were asked for. `between` is an
    interval for the model's own value with the confidence of the settings, if no start missed a mode; `evidence` says
    what other starts found, None if they were not asked. The mean log-probability is at most `upper_bound`, with the
    same confidence and without any condition, where log f is exact. `stages` are those of a run that was asked for
    a gap. `conventions` says whether the data fit another reading of the parameters better, None if it was not asked.
    """

    model: str
    test_examples: int
    settings: Settings
    particles: int
    pilot: Pilot | None
    conservative: Estimate
    optimistic: Estimate
    gap: Estimate
    between: tuple[float, float]
    upper_bound: float | None
    exact: Estimate | None
    log_z: Estimate
    ess: float
    pareto_k: float
    log_f_error: float
    control_variate_gain: float
    certificate: Certificate
    certified_estimate: float
    log_z_certificate: Certificate
    verdict: Verdict
    per_example: PerExample
    ais_log_weights: Floats
    seconds: dict[str, float]
    versions: dict[str, str]
    evidence: Evidence | None = None
    stages: tuple[StageSummary, ...] = ()
    interrupted: bool = False
    conventions: ConventionCheck | None = None

    @property
    def unit(self) -> str:
        """What log-probabilities are in; those of real numbers are densities."""
        return f"nats per example{_OF_DENSITIES if 'gaussian' in self.model else ''}"

    def __repr__(self) -> str:
        return f"Report({self.model}: {self.conservative} to {self.optimistic}, {self.verdict.reason})"

    def __str__(self) -> str:
        from meltpoint.report.text import render

        return render(self)

    def plot(self) -> Figure:
        """A figure of the estimates per example and the spread of the log weights; save it with savefig."""
        from meltpoint.report.figures import plot_report

        return plot_report(self)

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain numbers, strings and lists: JSON."""
        per = self.per_example
        return {
            "model": self.model,
            "unit": self.unit,
            "test_examples": self.test_examples,
            "settings": vars(self.settings).copy(),
            "particles": self.particles,
            "pilot": self.pilot.to_dict() if self.pilot else None,
            "conservative": self.conservative.to_dict(),
            "optimistic": self.optimistic.to_dict(),
            "gap": self.gap.to_dict(),
            "between": [finite_or_none(end) for end in self.between],
            "upper_bound": None if self.upper_bound is None else finite_or_none(self.upper_bound),
            "exact": self.exact.to_dict() if self.exact else None,
            "evidence": self.evidence.to_dict(self.settings.confidence) if self.evidence else None,
            "verdict": self.verdict.to_dict(),
            "log_z": self.log_z.to_dict(),
            "ess": finite_or_none(self.ess),
            "pareto_k": finite_or_none(self.pareto_k),
            "log_f_error": finite_or_none(self.log_f_error),
            "control_variate_gain": finite_or_none(self.control_variate_gain),
            "certificate": self.certificate.to_dict(),
            "certified_estimate": finite_or_none(self.certified_estimate),
            "log_z_certificate": self.log_z_certificate.to_dict(),
            "examples": {
                "positions": [int(i) for i in per.positions],
                "log_prob": [finite_or_none(p) for p in per.log_prob.tolist()],
                "stderr": [finite_or_none(e) for e in per.stderr.tolist()],
                "log_f": [finite_or_none(f) for f in per.log_f.tolist()],
            },
            "stages": [stage.to_dict() for stage in self.stages],
            "seconds": self.seconds,
            "versions": self.versions,
            "interrupted": self.interrupted,
            "conventions": self.conventions.to_dict() if self.conventions else None,
        }


class Interrupted(KeyboardInterrupt):
    """Ctrl-C when AIS had an answer and RAISE had none: one side of the bracket, so no report.

    `log_z` is what AIS found with the chains that were finished, `optimistic` the likelihood that follows.
    """

    def __init__(self, optimistic: Estimate, log_z: LogZ, ais_chains: int) -> None:
        done = len(log_z.log_weights)
        stage = (
            f"of {ais_chains:,} AIS chains, {done:,} were finished" if done < ais_chains else "AIS was done"
        )
        super().__init__(
            f"{stage}, RAISE had finished no example: optimistic {optimistic}, conservative unknown "
            f"(log Z {log_z})"
        )
        self.optimistic = optimistic
        self.log_z = log_z
