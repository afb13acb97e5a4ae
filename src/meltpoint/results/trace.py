"""The result of a trace: the likelihood of test and training examples along a training run, from both sides."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from meltpoint.errors import shortened
from meltpoint.progress import duration
from meltpoint.records import Record, plain_fields
from meltpoint.results.charts import Axis, Chart, Mark, band, joined, upright
from meltpoint.results.document import Document, Fact, Readable, Section, Table
from meltpoint.results.words import interval, listed, percent
from meltpoint.statistics.estimate import Estimate, decimals

Interval: TypeAlias = tuple[float, float]

WhenEvidence: TypeAlias = Literal["some", "all", "none"]
"""At which checkpoints other starts are tried: where the schedule is new and at the last one, at all, or at none."""

HEAD = ("checkpoint", "RAISE", "AIS", "test, between", "train, between", "overfit", "")
"""Columns of the table; the last one has marks."""

_NOT_A_DOUBT = ("agree", "unchecked")
_NAME = 16


@dataclass(frozen=True)
class TracePoint(Record):
    """One checkpoint, in nats per example.

    `conservative`, `optimistic` and `between` are those of its report on the test examples, `exact` the exact value if
    it is known; `train` and `train_between` are AIS's estimate and the interval for the training examples. `overfit`
    is the training examples' mean less the test examples': where log f is exact it depends on no chain, and its error
    is that of the choice of examples. `new_schedule` says whether a pilot was run here, `checked` whether other
    starts were tried; `reason` is that of the report's verdict, or
    "misread" where the data fit another reading of the parameters much better.
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
        """Whether the report has no defect; that no other starts were tried here is none."""
        return self.reason in _NOT_A_DOUBT

    @property
    def ends(self) -> Interval:
        """The interval; both ends are the exact value where that is known."""
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


@dataclass(frozen=True, eq=False, repr=False)
class Trace(Readable):
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

    def document(self) -> Document:
        title = f"{len(self.points)} checkpoints on {self.test_examples:,} test examples"
        if self.train_examples:
            title += f" and {self.train_examples:,} training examples"
        last = self.points[-1].overfit
        known = last is not None and math.isfinite(last.stderr)
        spent = f"{duration(self.seconds)} in all, {duration(self.points[0].seconds)} for the first"
        section = Section.of(
            "trace",
            "The trace",
            self._chart(),
            Table(HEAD, [trace_row(point) for point in self.points], "Checkpoints", words=(0, 6)),
            Fact(
                "columns",
                f"RAISE and AIS on the test examples; intervals with {percent(self.confidence)} confidence each, if no "
                "start missed a mode; overfit: training less test. s: schedule from a pilot here, others reuse it; "
                "e: other starts were tried; !: not to be trusted",
            ),
            Fact(
                "overfit", f"{last} at the end; the error is that of the choice of examples" if known else ""
            ),
            Fact("run", spent),
        )
        title = f"{title}, nats per example"
        return Document(title, self.trusted, self.verdict, [section], interrupted=self.interrupted)

    def _chart(self) -> Chart:
        points = self.points
        places = np.arange(len(points), dtype=np.float64)
        names = [(float(k), shortened(point.name, _NAME)) for k, point in enumerate(points)]
        ends = np.array([point.between for point in points])
        train = np.array([point.train_between or (math.nan, math.nan) for point in points])
        exact = [math.nan if point.exact is None else point.exact for point in points]
        marks: list[Mark] = [band(places, ends, "conservative", "test, between")]
        if points[0].train_between is not None:
            marks.insert(0, band(places, train, "optimistic", "training, between"))
        marks += joined(places, [point.optimistic.value for point in points], "optimistic", "test, AIS")
        marks += joined(places, [point.conservative.value for point in points], "conservative", "test, RAISE")
        if np.isfinite(exact).all():
            marks.append(Mark("solid", places, exact, "exact", "test, exact"))
        marks.append(upright(float(points.index(self.best))))
        return Chart(
            "trace",
            f"Best on the test examples: {shortened(self.best.name, 30)}",
            Axis("checkpoint", -0.3, len(points) - 0.7, names),
            Axis("mean log-probability, nats"),
            marks,
            "; ".join(
                f"{point.name}: {interval(point.between)}" for point in points[:: 1 + len(points) // 12]
            ),
            "Bands: intervals. Dashed: the best checkpoint.",
        )

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
        """The first checkpoint after the best that is certainly worse on test and better on training examples."""
        best = self.best
        for point in self.points[self.points.index(best) + 1 :]:
            train = best.train_ends, point.train_ends
            if train[0] and train[1] and point.ends[1] < best.ends[0] and train[1][0] > train[0][1]:
                return point
        return None

    @property
    def doubtful(self) -> list[TracePoint]:
        return [point for point in self.points if not point.sound]

    @property
    def trusted(self) -> bool:
        """Whether every checkpoint is sound, and other starts were tried somewhere: the command's exit code."""
        return not self.doubtful and not self.interrupted and any(point.checked for point in self.points)

    @property
    def verdict(self) -> str:
        names = [self.best.name, *(point.name for point in self.rivals)]
        said = [f"Best on the test examples: {names[0]}{', or ' * (len(names) > 1)}{listed(names[1:], 3)}."]
        if self.overfits is not None:
            said.append(
                f"Overfits: at {self.overfits.name} test examples have lost and training examples gained."
            )
        if self.doubtful:
            reasons = [f"{point.name} ({point.reason})" for point in self.doubtful]
            said.append(f"Not to be trusted: {listed(reasons, 5)}.")
        elif not any(point.checked for point in self.points):
            said.append("Not checked for missed modes.")
        if self.interrupted:
            said.append(f"Interrupted: {len(self.missing)} checkpoints not reached.")
        return " ".join(said)

    def to_dict(self) -> dict[str, Any]:
        return {
            **plain_fields(self),
            "best": self.best.name,
            "rivals": [point.name for point in self.rivals],
            "overfits": self.overfits.name if self.overfits else None,
            "trusted": self.trusted,
            "verdict": self.verdict,
        }


def trace_row(point: TracePoint) -> list[str]:
    """The cells of a checkpoint, below `HEAD`."""
    return [
        point.name,
        decimals(point.conservative.value, 2),
        decimals(point.optimistic.value, 2),
        interval(point.between),
        interval(point.train_between),
        decimals(point.overfit.value, 2) if point.overfit else "",
        ("s" if point.new_schedule else "") + ("e" if point.checked else "") + ("" if point.sound else "!"),
    ]
