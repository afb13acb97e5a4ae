"""One sentence on whether a bracket of log Z can be trusted; reasons are those of reports."""

import math

from meltpoint.estimators.ais import LogZ
from meltpoint.estimators.evidence import MODES, Evidence
from meltpoint.estimators.log_z_sides import EXACT_SAMPLES
from meltpoint.results.verdict import Reason, Verdict, WeightDiagnostics, distrust_weights, modes_not_weighed
from meltpoint.statistics.estimate import Estimate, decimals
from meltpoint.statistics.pareto import pareto_k
from meltpoint.statistics.split_half import split_half_distance

_SIGMAS = 2.0  # standard errors that are attributed to noise
_ROUNDING = 1e-9  # relative, by which an exact value may miss an interval


def judge_log_z(
    gap: Estimate,
    lower: LogZ,
    evidence: Evidence,
    between: tuple[float, float],
    exact: float | None,
    tolerance: float,
    base: str,
) -> Verdict:
    """Judge the two sides of log Z: their distance, the weights they rest on, and what other starts found.

    Missed modes come first: they explain a distance that more steps would not close.
    """
    if not math.isfinite(lower.value):
        return _distrust(
            "degenerate",
            "Degenerate weights: some log weights are not finite. Are the model's parameters of a sensible size?",
        )
    low, high = between
    if exact is not None:
        rounding = _ROUNDING * max(1.0, abs(exact))
        if not low - rounding <= exact <= high + rounding:
            return _distrust(
                "exact",
                f"Exact value outside: it is {decimals(exact, 4)}, and the interval says {decimals(low, 4)} to "
                f"{decimals(high, 4)}. The chains missed something: raise steps, or use another base. The exact value "
                "is right.",
            )
    if not math.isfinite(gap.value):
        if evidence.asked:
            return _distrust(
                "gap",
                "Gap too large: no melted state is in reach of the chains, so there is no upper side. Raise steps.",
            )
        return _distrust("unchecked", "One side only: no states were melted back, so there is no upper side.")
    missed, larger = evidence.missed(lower.log_weights), evidence.larger(lower.log_weights)
    if missed is not None:
        where = {MODES: "modes of the model", EXACT_SAMPLES: "exact samples"}.get(
            missed.name, f"base {missed.name}"
        )
        remedy = (
            f"use base {larger.name}"
            if larger and larger.name != base
            else "raise steps, or use another base"
        )
        return _distrust(
            "modes",
            f"Modes missed: states from {where} are out of reach of the chains from base {base}, which lack "
            f"{decimals(missed.nats, 2)} ± {decimals(max(missed.nats_error, 0.01), 2)} nats of log Z. The interval "
            f"allows for it. To close it, {remedy}.",
        )
    if larger is not None:
        return _distrust(
            "bases",
            f"Bases disagree: log Z is {decimals(larger.log_z, 2)} ± {decimals(larger.log_z_stderr, 2)} from base "
            f"{larger.name} and {decimals(lower.value, 2)} from base {base}. Each is a lower bound, so the larger one "
            f"is nearer to the truth: raise steps, or use base {larger.name}.",
        )
    if evidence.unweighed:
        return modes_not_weighed(evidence.unweighed)
    if gap.value > tolerance + _SIGMAS * (gap.stderr if math.isfinite(gap.stderr) else 0.0):
        return _wide(gap)
    diagnostics = WeightDiagnostics(
        lower.ess,
        len(lower.log_weights),
        pareto_k(lower.log_weights),
        split_half_distance(lower.log_weights),
    )
    problem = distrust_weights(diagnostics, gap.stderr, tolerance, "chains")
    if problem is not None:
        return problem
    if not _SIGMAS * gap.stderr <= tolerance:
        return _distrust(
            "noisy",
            f"Too noisy: log Z is only known to ± {decimals(gap.stderr, 2)} nats. Raise chains, or steps.",
        )
    if gap.value > tolerance:
        return _wide(gap)
    apart = "less than 0.01" if abs(gap.value) < 0.01 else f"{abs(gap.value):.2f}"
    return Verdict("agree", True, f"Agree: the two sides are {apart} nats apart (tolerance {tolerance:g}).")


def judge_log_z_target(verdict: Verdict, half_width: float, target: float) -> Verdict:
    """The verdict of a run that was asked for a gap: an interval that is wider is what counts then."""
    if half_width <= target or verdict.reason not in ("agree", "noisy", "gap"):
        return verdict
    known = (
        f"only known to ± {decimals(half_width, 2)} nats"
        if math.isfinite(half_width)
        else "not known from above"
    )
    return _distrust(
        "target",
        f"Target missed: log Z is {known}, and ± {target:g} were asked for. Give more time (budget).",
    )


def _wide(gap: Estimate) -> Verdict:
    return _distrust(
        "gap",
        f"Gap too large: the two sides are {decimals(gap.value, 2)} nats apart, and log Z may lie anywhere between "
        "them. Raise steps, or give a gap and a budget.",
    )


def _distrust(reason: Reason, sentence: str) -> Verdict:
    return Verdict(reason, False, sentence)
