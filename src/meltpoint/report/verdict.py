"""One sentence on whether the bracket can be trusted, with a reason that machines can read."""

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from meltpoint.statistics.estimate import Estimate

Reason: TypeAlias = Literal["agree", "gap", "inverted", "degenerate", "noisy"]

_ENOUGH_ESS = 5.0
_SIGMAS = 2.0


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


def judge(gap: Estimate, ess: float, ais_chains: int, tolerance: float) -> Verdict:
    """Judge a bracket from its gap, the effective sample size of the AIS chains and the tolerated gap in nats.

    >>> judge(Estimate(0.05, 0.02, "difference", ""), ess=80.0, ais_chains=400, tolerance=1.0).reason
    'agree'
    """
    error = gap.stderr if gap.stderr == gap.stderr else 0.0
    if gap.value > tolerance:
        return Verdict(
            "gap",
            False,
            f"Gap too large: the two estimates are {gap.value:.2f} nats apart, so at least one of them is wrong. "
            "Raise steps, or anneal from data base rates.",
        )
    if ess < min(_ENOUGH_ESS, ais_chains / 2):
        return Verdict(
            "degenerate",
            False,
            f"Degenerate weights: {ess:.1f} of {ais_chains:,} AIS chains carry the estimate, so its error is not "
            "known. Raise steps, or chains.",
        )
    if gap.value < -max(_SIGMAS * error, 0.1 * tolerance):
        return Verdict(
            "inverted",
            False,
            f"Inverted: RAISE lies {-gap.value:.2f} nats above AIS. RAISE bounds the annealing model's likelihood; "
            "here that model is better than the one evaluated (or AIS is off by noise). Raise steps, and quote AIS.",
        )
    if _SIGMAS * error > tolerance:
        return Verdict(
            "noisy",
            False,
            f"Too noisy: the gap is only known to ± {error:.2f}. Raise examples, or chains.",
        )
    return Verdict(
        "agree",
        True,
        f"Agree: the two estimates are within {max(abs(gap.value), 0.01):.2f} nats of each other; the likelihood "
        "lies between them.",
    )
