"""One sentence on whether the bracket can be trusted, with a reason that machines can read."""

import math
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from meltpoint.statistics.estimate import Estimate, decimals

Reason: TypeAlias = Literal["agree", "gap", "inverted", "degenerate", "noisy"]

_ENOUGH_ESS = 5.0
_SIGMAS = 2.0  # within which noise may lie
_SURE_SIGMAS = 3.0  # beyond which noise does not reach: one run in a thousand
_WORTH_A_WORD = 0.1  # of the tolerance: a smaller inversion changes nobody's conclusion


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


def judge(gap: Estimate, ess: float, ais_chains: int, tolerance: float, base: str = "data") -> Verdict:
    """Judge a bracket from its gap, the effective sample size of the AIS chains and the tolerated gap.

    What is certain comes first, whatever the noise: a gap or an inversion far beyond the tolerance. Then what
    makes the rest unknowable: weights carried by few chains, noise above the tolerance. Then the finer cases.

    >>> judge(Estimate(0.05, 0.02, "difference", ""), ess=80.0, ais_chains=400, tolerance=1.0).reason
    'agree'
    """
    if not math.isfinite(gap.value):
        return _doubt(
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
    # Not "ess < …": an effective sample size that is NaN must not pass.
    if not ess >= min(_ENOUGH_ESS, ais_chains / 2):
        return _doubt(
            "degenerate",
            f"Degenerate weights: of {ais_chains:,} AIS chains as few as {ess:.1f} carry the estimate, so "
            "its error is not known. Raise steps, or ais_chains.",
        )
    if not known:
        return _doubt(
            "noisy",
            "Noise unknown: a single chain or a single example has no standard error, so agreement would "
            "mean nothing. Use at least two of each.",
        )
    if _SIGMAS * error > tolerance:
        return _doubt(
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


def _doubt(reason: Reason, sentence: str) -> Verdict:
    return Verdict(reason, False, sentence)


def _wide(gap: Estimate, base: str) -> Verdict:
    other = "" if base == "data" else ", or anneal from data base rates (train)"
    return _doubt(
        "gap",
        f"Gap too large: the two estimates are {decimals(gap.value, 2)} nats apart, and the truth may lie "
        f"anywhere between them. Raise steps{other}.",
    )


def _inverted(gap: Estimate) -> Verdict:
    return _doubt(
        "inverted",
        f"Inverted: RAISE lies {decimals(-gap.value, 2)} nats above AIS. RAISE bounds the annealing model's "
        "likelihood, and with these steps that seems to be a better model than the one evaluated (or AIS is "
        "off by noise). Raise steps: the annealing model turns into the model.",
    )
