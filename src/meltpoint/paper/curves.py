"""Curves over the number of steps: the points of the figures, and the same as text."""

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import dataclass

from meltpoint.paper.cells import CURVES, BaseName, Method, Plan
from meltpoint.paper.rows import read_estimate
from meltpoint.paper.store import Store
from meltpoint.paper.subjects import Subject
from meltpoint.statistics.estimate import Estimate


@dataclass(frozen=True)
class Curve:
    """Estimates of one model by one method, from few steps to many; only those that are finished."""

    subject: Subject
    base: BaseName
    method: Method
    steps: list[int]
    estimates: list[Estimate]


def curves_of(name: str, plan: Plan, store: Store) -> list[Curve]:
    """The curves of a figure."""
    found = []
    for subject, base, methods in CURVES[name]:
        for method in methods:
            cell_of = plan.ais if method == "ais" else plan.raise_
            points = [(k, read_estimate(cell_of(subject, base, k), store)) for k in plan.profile.curve]
            kept = [(k, estimate) for k, estimate in points if estimate is not None]
            found.append(Curve(subject, base, method, [k for k, _ in kept], [e for _, e in kept]))
    return found


def curves_csv(curves: Sequence[Curve]) -> str:
    """A line for each point."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["model", "base", "method", "steps", "value", "stderr"])
    for curve in curves:
        for steps, estimate in zip(curve.steps, curve.estimates, strict=True):
            kept = estimate.to_dict()
            numbers = ["" if kept[name] is None else repr(kept[name]) for name in ("value", "stderr")]
            writer.writerow([curve.subject.name, curve.base, curve.method.upper(), steps, *numbers])
    return text.getvalue()


def curves_json(curves: Sequence[Curve]) -> str:
    """An object for each curve."""
    objects = [
        {
            "model": curve.subject.name,
            "base": curve.base,
            "method": curve.method.upper(),
            "points": [
                {"steps": steps, **estimate.to_dict()}
                for steps, estimate in zip(curve.steps, curve.estimates, strict=True)
            ],
        }
        for curve in curves
    ]
    return json.dumps(objects, indent=1, allow_nan=False) + "\n"
