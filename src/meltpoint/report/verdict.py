"""One sentence on whether the bracket can be trusted, with a reason that machines can read."""

import math
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from meltpoint.statistics.estimate import Estimate, decimals

Reason: TypeAlias = Literal["agree", "gap", "inverted", "degenerate", "heavy", "halves", "noisy", "target"]

_ENOUGH_ESS = 5.0
_SIGMAS = 2.0  # within which noise may lie
_SURE_SIGMAS = 3.0  # beyond which noise does not reach: one run in a thousand
_WORTH_A_WORD = 0.1  # of the tolerance: a smaller inversion changes nobody's conclusion
_HEAVY_K = 0.7  # from here on a mean converges too slowly for its standard error to be right
_NO_MEAN_K = 1.0
_HEAVY_FACTOR = 3.0  # on errors that were taken from heavy tails
_APART_SIGMAS = 5.0  # between halves that are equal by construction: one run in a million


@dataclass(frozen=True)
class Verdict:
    """`trusted` decides the command's exit code; `sentence` says why."""

    reason: Reason
    trusted: bool
    sentence: str

    def __str__(self) -> str:
        return self.sentence

    def to_dict(self) -> dict[str, Any]:
        """The same as plain values."""
        return {"reason": self.reason, "trusted": self.trusted, "sentence": self.sentence}


@dataclass(frozen=True)
class WeightDiagnostics:
    """What the weights say of themselves: reasons to doubt an error bar.

    `ess` is the effective sample size of `ais_chains` chains and `pareto_k` the shape of their tail; `apart` is how
    far, in standard errors, the estimates from the two halves of the chains lie from each other, AIS's or RAISE's,
    whichever is more. NaN where there are too few chains to tell.
    """

    ess: float
    ais_chains: int
    pareto_k: float = math.nan
    apart: float = math.nan


def judge(gap: Estimate, diagnostics: WeightDiagnostics, tolerance: float, base: str = "data") -> Verdict:
    """Judge a bracket from its gap, the diagnostics its weights give, and the tolerated gap.

    What is certain comes first, whatever the noise: a gap or an inversion far beyond the tolerance. Then what
    makes the rest unknowable: weights carried by few chains, tails without a mean, chains that contradict each
    other, noise above the tolerance. Then the finer cases.

    >>> judge(Estimate(0.05, 0.02, "difference", ""), WeightDiagnostics(ess=80.0, ais_chains=400), tolerance=1.0).reason
    'agree'
    """
    if not math.isfinite(gap.value):
        return _distrust(
            "degenerate",
            f"Degenerate weights: the gap is {gap.value}, because some log weights are not finite. "
            "Are the model's parameters of a sensible size?",
        )
    known = math.isfinite(gap.stderr)
    error = gap.stderr if known else 0.0
    if gap.value > tolerance + _SIGMAS * error:
        return _wide(gap, base)
    if gap.value < -tolerance - _SIGMAS * error:
        return _inverted(gap)
    problem = _distrust_weights(diagnostics, error, tolerance)
    if problem is not None:
        return problem
    if not known:
        return _distrust(
            "noisy",
            "Noise unknown: a single chain or a single example has no standard error, so agreement would "
            "mean nothing. Use at least two of each.",
        )
    if _SIGMAS * error > tolerance:
        return _distrust(
            "noisy",
            f"Too noisy: the gap is only known to ± {decimals(error, 2)} nats. Raise examples, chains or "
            "ais_chains.",
        )
    if gap.value > tolerance:
        return _wide(gap, base)
    if gap.value < -max(_SURE_SIGMAS * error, _WORTH_A_WORD * tolerance):
        return _inverted(gap)
    apart = "less than 0.01" if abs(gap.value) < 0.01 else f"{abs(gap.value):.2f}"
    return Verdict(
        "agree",
        True,
        f"Agree: the two estimates are {apart} nats apart (tolerance {tolerance:g}).",
    )


def _distrust_weights(diagnostics: WeightDiagnostics, error: float, tolerance: float) -> Verdict | None:
    # Not "ess < …": an effective sample size that is NaN must not pass.
    if not diagnostics.ess >= min(_ENOUGH_ESS, diagnostics.ais_chains / 2):
        return _distrust(
            "degenerate",
            f"Degenerate weights: of {diagnostics.ais_chains:,} AIS chains as few as {diagnostics.ess:.1f} carry the "
            "estimate, so its error is not known. Raise steps, or ais_chains.",
        )
    heavy = diagnostics.pareto_k > _HEAVY_K and _HEAVY_FACTOR * _SIGMAS * error > tolerance
    if heavy or diagnostics.pareto_k >= _NO_MEAN_K:
        return _distrust(
            "heavy",
            f"Heavy tails: the AIS weights have a Pareto k of {diagnostics.pareto_k:.2f} ({_HEAVY_K} or less is "
            "fine), so the largest of them has not been seen yet and the errors are too small. Raise steps, or "
            "ais_chains.",
        )
    if diagnostics.apart > _APART_SIGMAS:
        return _distrust(
            "halves",
            f"Halves disagree: the two halves of the chains are {diagnostics.apart:.1f} standard errors apart, so the "
            "errors are too small. Raise steps and chains.",
        )
    return None


def judge_target(verdict: Verdict, half_width: float, target: float) -> Verdict:
    """The verdict of a run that was asked for a gap: agreement is not enough if its interval is wider."""
    if verdict.reason != "agree" or half_width <= target:
        return verdict
    return _distrust(
        "target",
        f"Target missed: the value is only known to ± {decimals(half_width, 2)} nats, and ± {target:g} were asked "
        "for. Give more time (budget): a run with a folder goes on from here.",
    )


def _distrust(reason: Reason, sentence: str) -> Verdict:
    return Verdict(reason, False, sentence)


def _wide(gap: Estimate, base: str) -> Verdict:
    other = "" if base == "data" else ", or anneal from data base rates (train)"
    return _distrust(
        "gap",
        f"Gap too large: the two estimates are {decimals(gap.value, 2)} nats apart, and the truth may lie "
        f"anywhere between them. Raise steps{other}.",
    )


def _inverted(gap: Estimate) -> Verdict:
    return _distrust(
        "inverted",
        f"Inverted: RAISE lies {decimals(-gap.value, 2)} nats above AIS. RAISE bounds the annealing model's "
        "likelihood, and with these steps that seems to be a better model than the one evaluated (or AIS is "
        "off by noise). Raise steps: the annealing model turns into the model.",
    )
