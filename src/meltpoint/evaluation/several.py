"""Evaluations of several models on one test set, each in a folder of its own: what compare() and trace() share."""

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias, TypedDict

from numpy.typing import ArrayLike

from meltpoint.annealing.base import Base
from meltpoint.annealing.precision import Precision
from meltpoint.annealing.schedule import Steps
from meltpoint.errors import InputError, Progress
from meltpoint.estimators.pilot import ScheduleName
from meltpoint.evaluation.evaluate import evaluate
from meltpoint.evaluation.prerequisites import Origin
from meltpoint.evaluation.settings import BaseName
from meltpoint.evaluation.stored import read_run
from meltpoint.files.models import load
from meltpoint.files.temporary import temporary_folder
from meltpoint.models import Model
from meltpoint.models.log_f import LogF
from meltpoint.report.report import Report

Source: TypeAlias = Model | str | os.PathLike[str]
"""A model, or the file that it is in."""


class EvaluationOptions(TypedDict, total=False):
    """Keywords that evaluations of several models hand on to `evaluate`; its docstring explains them."""

    particles: int | None
    base: BaseName | Base | None
    steps: Steps | None
    schedule: ScheduleName
    chains: int | None
    examples: int | None
    ais_chains: int | None
    precision: Precision
    tolerance: float | None
    exact: bool | None
    executor: Executor | None
    threads: int | None


@dataclass(frozen=True, eq=False)
class Evaluated:
    """A model's report with what it was made from: log f of every test example, the stage's number, the origin."""

    report: Report
    log_f: LogF
    stage: int
    origin: Origin


def evaluate_in_folder(
    model: Model,
    test: ArrayLike,
    train: ArrayLike | None,
    folder: Path,
    **options: Any,  # noqa: ANN401
) -> Evaluated:
    """Evaluate a model in a folder, or continue there, and read what the report was made from."""
    report = evaluate(model, test, train, run=folder, **options)
    stored = read_run(folder)
    assert stored.log_f is not None, "there is a report"
    s = report.settings
    size = (s.steps, s.examples, s.chains, s.ais_chains)
    same = [
        k
        for k, stage in enumerate(report.stages)
        if (stage.steps, stage.examples, stage.chains, stage.ais_chains) == size
    ]
    return Evaluated(report, stored.log_f, same[-1] if same else 0, stored.origins[s.base])


@contextmanager
def folder_of_runs(run: str | os.PathLike[str] | None) -> Iterator[Path]:
    """The folder in which each model has one of its own; a temporary one if none is given."""
    if run is not None:
        yield Path(run)
        return
    with temporary_folder() as folder:
        yield folder


def folder_name(number: int, name: str) -> str:
    """Name of a model's folder: its number, and what of its name any file system takes.

    >>> folder_name(2, "run/epoch 5?")
    '02-run-epoch-5'
    """
    return f"{number:02d}-{re.sub(r'[^A-Za-z0-9._-]+', '-', name).strip('-.')[:60]}".rstrip("-")


def named_sources(
    models: "Mapping[str, Source] | Iterable[Source]", names: Sequence[str] | None = None, noun: str = "model"
) -> dict[str, Source]:
    """Models or files by name: the names that are given, those of the files, or "model 1", "model 2", ….

    Files of one name in different folders are told apart by their folders.
    """
    if isinstance(models, Mapping):
        named = {str(name): _checked_source(source) for name, source in models.items()}
        return dict(zip(_checked_names(names, len(named)), named.values(), strict=True)) if names else named
    if isinstance(models, str | os.PathLike | Model):
        models = [models]
    sources = [_checked_source(source) for source in models]
    if names is not None:
        return dict(zip(_checked_names(names, len(sources)), sources, strict=True))
    own = [
        f"{noun} {k + 1}" if isinstance(source, Model) else Path(source).stem
        for k, source in enumerate(sources)
    ]
    own = [
        str(Path(source).with_suffix("")) if own.count(name) > 1 and not isinstance(source, Model) else name
        for name, source in zip(own, sources, strict=True)
    ]
    for k, name in enumerate(own):
        own[k] = f"{name} ({k + 1})" if name in own[:k] else name
    return dict(zip(own, sources, strict=True))


def _checked_source(source: Source) -> Source:
    if not isinstance(source, Model | str | os.PathLike):
        raise InputError(
            found=f"a model of type {type(source).__name__}",
            expected="a model of this library, or the path of a model's file",
            remedy="make one from its parameters, meltpoint.RBM(weights, visible_bias, hidden_bias)",
        )
    return source


def _checked_names(names: Sequence[str], count: int) -> list[str]:
    chosen = [names] if isinstance(names, str) else [str(name) for name in names]
    if len(chosen) != count or len(set(chosen)) != count:
        raise InputError(
            found=f"the names {', '.join(chosen) or '(none)'} for {count:,} models",
            expected="a name for each of them, all different",
            remedy="leave them out for the names of the files",
        )
    return chosen


def load_source(source: Source) -> Model:
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
