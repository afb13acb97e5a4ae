"""What a computation of log Z alone found: both sides, the interval, a verdict, and what is needed to repeat it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from meltpoint.defaults import LogZSettings
from meltpoint.estimators.ais import LogZ, log_z_of
from meltpoint.estimators.evidence import Evidence
from meltpoint.estimators.log_z_sides import Sides
from meltpoint.layers.unit import Floats
from meltpoint.records import fields_html
from meltpoint.results.log_z_verdict import judge_log_z
from meltpoint.results.stages import alpha_of, within_text
from meltpoint.results.verdict import Verdict
from meltpoint.statistics.certificate import Certificate
from meltpoint.statistics.estimate import Estimate, plain, plain_fields
from meltpoint.statistics.pareto import pareto_k

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class LogZStage:
    """One stage: its base and size, both sides with their errors, half the width of its interval, effective chains."""

    base: str
    steps: int
    chains: int
    lower: float
    lower_stderr: float
    upper: float
    upper_stderr: float
    half_width: float
    ess: float

    @property
    def within(self) -> str:
        """How well log Z is known, in words."""
        return within_text(self.half_width, self.ess)

    def to_dict(self) -> dict[str, Any]:
        """The same as plain values."""
        return plain_fields(self)


@dataclass(frozen=True, eq=False, repr=False)
class LogZBracket:
    """log Z from both sides, in nats. Print it, plot it, or call `to_dict()`.

    `lower` (AIS) and `upper` (states melted back) are the sides, `gap` is their distance, `between` an interval with
    the confidence of the settings, and `rests_on` says in words what the upper side and the interval rest on. `exact`
    is log Z itself where it is cheap to compute. `lower_certificate` holds whatever was missed; so does
    `certified_upper`, which needs exact samples and is None without them. After Ctrl-C the bracket is
    `interrupted` and made of what was finished.
    """

    model: str
    clamped: int
    settings: LogZSettings
    lower: LogZ
    upper: Estimate
    gap: Estimate
    between: tuple[float, float]
    rests_on: str
    exact: float | None
    lower_certificate: Certificate
    certified_upper: float | None
    evidence: Evidence
    starts: int
    pareto_k: float
    verdict: Verdict
    log_reverse_weights: Floats
    stages: tuple[LogZStage, ...]
    seconds: dict[str, float]
    versions: dict[str, str]
    interrupted: bool = False

    def __repr__(self) -> str:
        return f"LogZBracket({self.model}: {self.lower} to {self.upper}, {self.verdict.reason})"

    def __str__(self) -> str:
        from meltpoint.results.log_z_text import render_log_z

        return render_log_z(self)

    def _repr_html_(self) -> str:
        from meltpoint.results.log_z_text import log_z_details

        details = log_z_details(self)
        rows = {"log Z of": self.model, "lower (AIS)": str(self.lower)}
        if self.exact is not None:
            rows["exact"] = f"{self.exact:.4f}"
        rows |= {"upper (melted back)": str(self.upper), "verdict": str(self.verdict)}
        return fields_html(
            rows | {name: details[name] for name in ("between", "rests on") if name in details}
        )

    def plot(self) -> Figure:
        """A figure of the two sides over steps and of the weights of both directions; save it with savefig."""
        from meltpoint.results.log_z_text import plot_log_z

        return plot_log_z(self)

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain numbers, strings and lists: JSON."""
        return {
            "model": self.model,
            "clamped": self.clamped,
            "settings": vars(self.settings).copy(),
            **{name: plain(getattr(self, name)) for name in ("lower", "upper", "gap", "between")},
            "rests_on": self.rests_on,
            **{
                name: plain(getattr(self, name)) for name in ("exact", "lower_certificate", "certified_upper")
            },
            "evidence": self.evidence.to_dict(self.settings.confidence),
            "starts": self.starts,
            "ess": plain(self.lower.ess),
            **{name: plain(getattr(self, name)) for name in ("pareto_k", "verdict", "stages")},
            "seconds": self.seconds,
            "versions": self.versions,
            "interrupted": self.interrupted,
        }


def compose_log_z(
    model: str,
    clamped: int,
    settings: LogZSettings,
    sides: Sides,
    rests_on: str,
    exact: float | None,
    seconds: dict[str, float],
    versions: dict[str, str],
    *,
    stage: int | None = None,
    interrupted: bool = False,
) -> LogZBracket:
    """The bracket that follows from both sides' weights; a stage of several has its part of alpha."""
    alpha = 1 - settings.confidence
    own_alpha = alpha if stage is None else alpha_of(stage, alpha)
    lower, upper = log_z_of(sides.forward), sides.upper()
    evidence = sides.evidence()
    between = sides.between(own_alpha)
    gap = Estimate(
        upper.value - lower.value, upper.stderr, "difference", "the errors of both sides", df=upper.df
    )
    certificate = sides.certified_lower(own_alpha)
    return LogZBracket(
        model=model,
        clamped=clamped,
        settings=settings,
        lower=lower,
        upper=upper,
        gap=gap,
        between=between,
        rests_on=rests_on,
        exact=exact,
        lower_certificate=Certificate(certificate.bound, settings.confidence, certificate.quantity),
        certified_upper=sides.certified_upper(own_alpha),
        evidence=evidence,
        starts=sides.n_starts,
        pareto_k=pareto_k(sides.forward),
        verdict=judge_log_z(gap, lower, evidence, between, exact, settings.tolerance, settings.base),
        log_reverse_weights=sides.melted,
        stages=(),
        seconds=seconds,
        versions=versions,
        interrupted=interrupted,
    )


def bracket_half_width(bracket: LogZBracket) -> float:
    """Half the width of the interval; infinite where an end is not known."""
    return (bracket.between[1] - bracket.between[0]) / 2


def stage_of(bracket: LogZBracket) -> LogZStage:
    """What a stage was and what it found."""
    return LogZStage(
        base=bracket.settings.base,
        steps=bracket.settings.steps,
        chains=len(bracket.lower.log_weights),
        lower=bracket.lower.value,
        lower_stderr=bracket.lower.stderr,
        upper=bracket.upper.value,
        upper_stderr=bracket.upper.stderr,
        half_width=bracket_half_width(bracket),
        ess=bracket.lower.ess,
    )
