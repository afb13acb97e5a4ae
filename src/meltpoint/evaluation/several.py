"""Several evaluations: sweep(), and what compare() and trace() share, with a folder for each model."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from numpy.typing import ArrayLike

from meltpoint.arguments import Count, public
from meltpoint.defaults import SWEEP_STEPS
from meltpoint.errors import InputError, Progress, printable
from meltpoint.evaluation.evaluate import evaluate
from meltpoint.evaluation.stage import ANNEALING
from meltpoint.formats.load import load
from meltpoint.formats.objects import from_object
from meltpoint.models import Model
from meltpoint.results.report import Report
from meltpoint.runs.contents import SPECIFICATION
from meltpoint.runs.files import check_inside

ModelSource: TypeAlias = Model | str | os.PathLike[str]
"""A model, or the file that it is in."""


def folder_of(run: str | os.PathLike[str] | None, number: int, name: str) -> Path | None:
    """The folder of a model in a folder of runs, None if there is none."""
    if run is None:
        return None
    folder = Path(run) / folder_name(number, name)
    check_inside(folder / SPECIFICATION, folder.parent)
    return folder


def folder_name(number: int, name: str) -> str:
    """Name of a model's folder: its number, and what of its name any file system takes.

    >>> folder_name(2, "run/epoch 5?")
    '02-run-epoch-5'
    """
    return f"{number:02d}-{re.sub(r'[^A-Za-z0-9._-]+', '-', name).strip('-.')[:60]}".rstrip("-")


def named_sources(
    models: Mapping[str, ModelSource | Any] | Iterable[ModelSource | Any],
    names: Sequence[str] | None = None,
    noun: str = "model",
) -> dict[str, ModelSource]:
    """Models or files by name: the names that are given, those of the files, or "model 1", "model 2", ….

    Files of one name in different folders are told apart by their folders.
    """
    own = [printable(str(name)) for name in models] if isinstance(models, Mapping) else None
    if isinstance(models, Mapping):
        models = models.values()
    elif isinstance(models, str | os.PathLike | Model):
        models = [models]
    sources = [each if isinstance(each, str | os.PathLike) else from_object(each) for each in models]
    if names is not None:
        own = [printable(str(name)) for name in ([names] if isinstance(names, str) else names)]
    if own is not None and (len(own) != len(sources) or len(set(own)) != len(own)):
        raise InputError(
            found=f"the names {', '.join(own) or '(none)'} for {len(sources):,} models",
            expected="a name for each of them, all different",
            remedy="leave them out for the names of the files",
        )
    return dict(zip(own or _own_names(sources, noun), sources, strict=True))


def _own_names(sources: Sequence[ModelSource], noun: str) -> list[str]:
    """The names of files, with their folders where these tell them apart, and numbers for models."""
    stems = [None if isinstance(source, Model) else Path(source).stem for source in sources]
    own: list[str] = []
    for k, source in enumerate(sources):
        if isinstance(source, Model):
            name = f"{noun} {k + 1}"
        else:
            path = Path(source)
            name = printable(path.stem if stems.count(path.stem) == 1 else str(path.with_suffix("")))
        own.append(f"{name} ({k + 1})" if name in own else name)
    return own


def load_source(source: ModelSource) -> Model:
    """The model itself, or that in a file."""
    return source if isinstance(source, Model) else load(source)


def check_same_visible(name: str, model: Model, first_name: str, first: Model) -> None:
    """Refuse models whose visible units are not of one number and kind: their probabilities are not comparable."""
    if model.n_visible != first.n_visible:
        raise InputError(
            found=f"{name} with {model.n_visible:,} visible units",
            expected=f"{first.n_visible:,}, as {first_name} has",
            remedy="compare models of the same examples: log-probabilities of others have no common scale",
        )
    if model.units[0] != first.units[0]:
        raise InputError(
            found=f"{name} with visible units of kind {model.units[0].name}",
            expected=f"{first.units[0].name}, as {first_name} has",
            remedy="convert one of the models, so that both take the same examples",
        )


def progress_named(name: str, progress: Progress | None) -> Progress | None:
    """Progress of one model of several: its name before the task."""
    if not callable(progress):
        return progress
    return lambda task, done, total: progress(f"{name}: {task}", done, total)


@public
def sweep(
    model: Model,
    test: ArrayLike,
    train: ArrayLike | None = None,
    *,
    steps: Sequence[Count] = SWEEP_STEPS,
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
    assert not isinstance(progress, bool), "public() has made a callback of it"
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
