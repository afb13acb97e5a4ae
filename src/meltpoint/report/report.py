"""What an evaluation found: both estimates, their gap, a verdict, and everything needed to repeat it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from meltpoint.estimators.pilot import Pilot
from meltpoint.models.checks import Floats
from meltpoint.report.stages import Spent
from meltpoint.report.verdict import Verdict
from meltpoint.statistics.certificate import Certificate
from meltpoint.statistics.estimate import Estimate, finite_or_none

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Settings:
    """What was asked for."""

    base: str
    schedule: str
    steps: int
    examples: int
    chains: int
    ais_chains: int
    seed: int
    precision: str
    tolerance: float
    confidence: float
    gap: float | None = None
    budget: float | None = None


@dataclass(frozen=True)
class PerExample:
    """RAISE per example: position in the test set, log p, its error, log f, log weights (example, chain)."""

    positions: NDArray[np.integer]
    log_prob: Floats
    stderr: Floats
    log_f: Floats
    log_weights: Floats


@dataclass(frozen=True, repr=False)
class Report:
    """A likelihood from both sides, in nats per example. Print it, plot it, or take `to_dict()`.

    `conservative` (RAISE) and `optimistic` (AIS) are the bracket, `gap` their difference, `verdict` what to
    make of it. `settings` is what was asked for, `pilot` what finding the schedule cost; after Ctrl-C
    `per_example` has fewer examples than that. `between` are the ends that the model's own value lies between, with
    the confidence of the settings; `stages` are those of a run that was asked for a gap.
    """

    model: str
    test_examples: int
    settings: Settings
    pilot: Pilot | None
    conservative: Estimate
    optimistic: Estimate
    gap: Estimate
    between: tuple[float, float]
    exact: Estimate | None
    log_z: Estimate
    ess: float
    pareto_k: float
    log_f_error: float
    control_variate_gain: float
    certificate: Certificate
    log_z_certificate: Certificate
    verdict: Verdict
    per_example: PerExample
    ais_log_weights: Floats
    seconds: dict[str, float]
    versions: dict[str, str]
    stages: tuple[Spent, ...] = ()

    def __repr__(self) -> str:
        return f"Report({self.model}: {self.conservative} to {self.optimistic}, {self.verdict.reason})"

    def __str__(self) -> str:
        from meltpoint.report.text import render

        return render(self)

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C ended the run before all chains were finished."""
        examples, chains = len(self.per_example.log_prob), len(self.ais_log_weights)
        return examples < self.settings.examples or chains < self.settings.ais_chains

    def plot(self) -> Figure:
        """A figure of the estimates per example and the spread of the log weights; save it with savefig."""
        from meltpoint.report.figures import plot_report

        return plot_report(self)

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain numbers, strings and lists: JSON."""
        per = self.per_example
        return {
            "model": self.model,
            "test_examples": self.test_examples,
            "settings": vars(self.settings).copy(),
            "pilot": self.pilot.to_dict() if self.pilot else None,
            "conservative": self.conservative.to_dict(),
            "optimistic": self.optimistic.to_dict(),
            "gap": self.gap.to_dict(),
            "between": [finite_or_none(end) for end in self.between],
            "exact": self.exact.to_dict() if self.exact else None,
            "verdict": self.verdict.to_dict(),
            "log_z": self.log_z.to_dict(),
            "ess": finite_or_none(self.ess),
            "pareto_k": finite_or_none(self.pareto_k),
            "log_f_error": finite_or_none(self.log_f_error),
            "control_variate_gain": finite_or_none(self.control_variate_gain),
            "certificate": self.certificate.to_dict(),
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
        }
