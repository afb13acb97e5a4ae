"""Rows of the tables and points of the curves, read from the cells that are finished."""

import math
from dataclasses import dataclass

from meltpoint.paper.cells import BASES, BaseName, Cell, Plan
from meltpoint.paper.store import Store
from meltpoint.paper.subjects import DBNS, DEEP, PARAMETERS, RBMS, SMALL, Subject
from meltpoint.statistics.estimate import Estimate

ENOUGH_ESS = 5.0


@dataclass(frozen=True)
class Bracket:
    """RAISE and AIS from one base distribution, with AIS's effective sample size; None where not finished."""

    conservative: Estimate | None
    optimistic: Estimate | None
    ess: float | None = None

    @property
    def degenerate(self) -> bool:
        """Whether so few chains carry AIS that its error is not known."""
        return self.optimistic is not None and not (self.ess or 0.0) >= ENOUGH_ESS

    @property
    def gap(self) -> Estimate | None:
        """AIS minus RAISE."""
        if self.conservative is None or self.optimistic is None:
            return None
        return Estimate(
            self.optimistic.value - self.conservative.value,
            math.hypot(self.optimistic.stderr, self.conservative.stderr),
            "difference",
            "both errors",
        )


@dataclass(frozen=True)
class Row:
    """One model with one number of steps; brackets by base distribution, those the paper has."""

    subject: Subject
    steps: int
    exact: Estimate | None
    csl: Estimate | None
    brackets: dict[BaseName, Bracket]


def table1_rows(plan: Plan, store: Store) -> list[Row]:
    """The RBMs, and the paper's own parameters where they are there, with few steps and with many."""
    subjects = [(subject, plan.profile.steps) for subject in RBMS]
    if plan.parameters:
        subjects += [(PARAMETERS, plan.profile.steps), (PARAMETERS, plan.profile.long_steps)]
    return [_row(subject, steps, plan, store) for subject, steps in subjects]


def table2_rows(plan: Plan, store: Store) -> list[Row]:
    """The deep models."""
    return [_row(subject, plan.profile.steps, plan, store) for subject in DEEP]


def bracket(subject: Subject, base: BaseName, steps: int, plan: Plan, store: Store) -> Bracket:
    """Both estimates of a model with so many steps."""
    ais = plan.ais(subject, base, steps)
    record = store.read(ais)
    return Bracket(
        read_estimate(plan.raise_(subject, base, steps), store),
        read_estimate(ais, store),
        None if record is None else record["result"]["ess"],
    )


def read_estimate(cell: Cell, store: Store) -> Estimate | None:
    """The estimate of a cell, None if it is not finished."""
    record = store.read(cell)
    if record is None:
        return None
    kept = record["result"]["estimate"]
    value, error = (math.nan if kept[name] is None else kept[name] for name in ("value", "stderr"))
    return Estimate(value, error, kept["direction"], kept["covers"])


def _row(subject: Subject, steps: int, plan: Plan, store: Store) -> Row:
    shallow = subject not in DEEP and steps == plan.profile.steps
    return Row(
        subject,
        steps,
        exact=read_estimate(plan.exact(subject), store) if subject in SMALL else None,
        csl=read_estimate(plan.csl(subject), store) if shallow else None,
        brackets={
            base: bracket(subject, base, steps, plan, store)
            for base in (BASES[:1] if subject in DBNS else BASES)
        },
    )
