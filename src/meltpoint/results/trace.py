"""What a trace found: the likelihood of test and training examples along a training run, from both sides."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from meltpoint.statistics.estimate import Estimate, plain

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Interval: TypeAlias = tuple[float, float]

WhenEvidence: TypeAlias = Literal["some", "all", "none"]
"""At which checkpoints other starts are asked: where the schedule is new (also at the last one), at all, at none."""

_NOT_A_DOUBT = ("agree", "unchecked")


@dataclass(frozen=True)
class TracePoint:
    """One checkpoint, in nats per example.

    `conservative`, `optimistic` and `between` are those of its report on the test examples, `exact` the exact value if
    it is known; `train` and `train_between` are AIS's estimate and the interval for the training examples. `overfit`
    is how much more training examples get than test examples: where log f is exact no chain has a part in it, and its
    error is that of the choice of examples. `new_schedule` says whether a pilot was run here, `checked` whether other
    starts were asked; `reason` is that of the report's verdict.
    """

    name: str
    conservative: Estimate
    optimistic: Estimate
    between: Interval
    exact: float | None
    train: Estimate | None
    train_between: Interval | None
    overfit: Estimate | None
    ess: float
    ais_chains: int
    steps: int
    seed: int
    new_schedule: bool
    checked: bool
    reason: str
    seconds: float

    @property
    def sound(self) -> bool:
        """Whether nothing speaks against the point; that other starts were not asked here does not."""
        return self.reason in _NOT_A_DOUBT

    @property
    def ends(self) -> Interval:
        """The interval, both ends of which are the exact value where that is known."""
        return self.between if self.exact is None else (self.exact, self.exact)

    @property
    def train_ends(self) -> Interval | None:
        """The same for the training examples."""
        if self.exact is None or self.overfit is None:
            return self.train_between
        return self.exact + self.overfit.value, self.exact + self.overfit.value

    @property
    def middle(self) -> float:
        """The middle of the interval, or AIS's value where it has no ends."""
        low, high = self.ends
        return (low + high) / 2 if math.isfinite(low) and math.isfinite(high) else self.optimistic.value

    def to_dict(self) -> dict[str, Any]:
        """The same as plain values."""
        return {name: plain(value) for name, value in vars(self).items()}


@dataclass(frozen=True, eq=False, repr=False)
class Trace:
    """Likelihoods along a training run, in the order of its checkpoints. Print it, plot it, or call `to_dict()`.

    Every interval holds with `confidence` by itself, if no start missed a mode. `test_examples` and `train_examples`
    say how many examples the means are over (0 without training examples). After Ctrl-C it is `interrupted`, and
    `missing` names the checkpoints that were not reached.
    """

    points: tuple[TracePoint, ...]
    test_examples: int
    train_examples: int
    confidence: float
    seconds: float
    missing: tuple[str, ...] = ()
    interrupted: bool = False

    def __repr__(self) -> str:
        return f"Trace({len(self.points)} checkpoints: {self.verdict})"

    def __str__(self) -> str:
        from meltpoint.results.trace_views import render_trace

        return render_trace(self)

    def _repr_html_(self) -> str:
        from meltpoint.results.trace_views import trace_html

        return trace_html(self)

    def plot(self) -> Figure:
        """A figure of both likelihoods as bands over the checkpoints; save it with savefig."""
        from meltpoint.results.trace_views import plot_trace

        return plot_trace(self)

    @property
    def best(self) -> TracePoint:
        """The checkpoint with the highest likelihood of the test examples, by the middle of its interval."""
        return max(self.points, key=lambda point: point.middle)

    @property
    def rivals(self) -> list[TracePoint]:
        """Checkpoints that may be better than the best: their intervals reach into its own."""
        best = self.best
        return [point for point in self.points if point is not best and point.ends[1] >= best.ends[0]]

    @property
    def overfits(self) -> TracePoint | None:
        """The first checkpoint after the best at which the test likelihood has surely fallen and training's risen."""
        best = self.best
        for point in self.points[self.points.index(best) + 1 :]:
            if best.train_ends is None or point.train_ends is None:
                return None
            if point.ends[1] < best.ends[0] and point.train_ends[0] > best.train_ends[1]:
                return point
        return None

    @property
    def doubtful(self) -> list[TracePoint]:
        """Checkpoints whose reports are not to be trusted."""
        return [point for point in self.points if not point.sound]

    @property
    def trusted(self) -> bool:
        """Whether every checkpoint is sound, and other starts were asked somewhere: the command's exit code."""
        return not self.doubtful and not self.interrupted and any(point.checked for point in self.points)

    @property
    def verdict(self) -> str:
        """What the trace shows, in a sentence or two."""
        best, rivals = self.best, self.rivals
        also = f", or {', '.join(point.name for point in rivals[:3])}" if rivals else ""
        also += f" and {len(rivals) - 3} more" if len(rivals) > 3 else ""
        said = [f"Best on the test examples: {best.name}{also}."]
        overfits = self.overfits
        if overfits is not None:
            said.append(f"Overfits: at {overfits.name} test examples have lost and training examples gained.")
        if self.doubtful:
            reasons = ", ".join(f"{point.name} ({point.reason})" for point in self.doubtful[:5])
            said.append(f"Not to be trusted: {reasons}{' …' if len(self.doubtful) > 5 else ''}.")
        elif not any(point.checked for point in self.points):
            said.append("Not checked for missed modes.")
        if self.interrupted:
            said.append(f"Interrupted: {len(self.missing)} checkpoints not reached.")
        return " ".join(said)

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain numbers, strings and lists: JSON."""
        return {
            "test_examples": self.test_examples,
            "train_examples": self.train_examples,
            "confidence": self.confidence,
            "best": self.best.name,
            "rivals": [point.name for point in self.rivals],
            "overfits": self.overfits.name if self.overfits else None,
            "trusted": self.trusted,
            "verdict": self.verdict,
            "points": plain(self.points),
            "missing": list(self.missing),
            "interrupted": self.interrupted,
            "seconds": self.seconds,
        }
