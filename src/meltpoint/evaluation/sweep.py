"""sweep(): evaluations of one model with several numbers of steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numpy.typing import ArrayLike

from meltpoint.defaults import SWEEP_STEPS
from meltpoint.errors import Progress
from meltpoint.evaluation.evaluate import evaluate
from meltpoint.evaluation.stage import ANNEALING
from meltpoint.models import Model
from meltpoint.progress import reports_progress
from meltpoint.results.report import Report


@reports_progress
def sweep(
    model: Model,
    test: ArrayLike,
    train: ArrayLike | None = None,
    *,
    steps: Sequence[int] = SWEEP_STEPS,
    progress: Progress | bool | None = None,
    **settings: Any,  # noqa: ANN401
) -> list[Report]:
    """Reports with more and more steps, for `reports[-1].plot("bracket", sweep=reports[:-1])`.

    Ctrl-C ends it with a KeyboardInterrupt.

    Parameters
    ----------
    model, test, train
        As in `evaluate`.
    steps
        The numbers of steps.
    progress
        As in `evaluate`; all evaluations are one task.
    settings
        Further arguments of `evaluate`, such as examples and chains.

    >>> from meltpoint.models.rbm import RBM
    >>> rbm = RBM([[0.0], [0.0]], [0.0, 0.0], [0.0])
    >>> [report.settings.steps for report in sweep(rbm, [[0, 1], [1, 1]], base="uniform", steps=(1, 10), chains=2)]
    [1, 10]
    """
    assert not isinstance(progress, bool), "reports_progress has made a callback of it"
    reports: list[Report] = []
    for k, n in enumerate(steps):
        part = None if progress is None else _part(progress, sum(steps[:k]), n, sum(steps))
        report = evaluate(model, test, train, steps=n, progress=part, **settings)
        if report.interrupted:
            raise KeyboardInterrupt
        reports.append(report)
    return reports


def _part(progress: Progress, before: int, steps: int, all_steps: int) -> Progress:
    """Progress of one of the evaluations as progress of all of them, whose cost is their steps."""

    def pass_on(task: str, done: float, total: float) -> None:
        if task == ANNEALING:
            progress("evaluating", before + steps * done / total, all_steps)
        elif task.startswith("preparing"):
            progress(task, done, total)

    return pass_on
