"""compare(): several models on one test set, paired, with an order as far as it is known."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Unpack

from numpy.typing import ArrayLike

from meltpoint.arguments import Budget, Confidence, Positive, Seed, public, read
from meltpoint.defaults import DEFAULTS
from meltpoint.errors import InputError, Progress
from meltpoint.evaluation.evaluate import evaluate
from meltpoint.evaluation.settings import SharedOptions, Watch
from meltpoint.evaluation.several import (
    ModelSource,
    check_same_visible,
    folder_of,
    load_source,
    named_sources,
    progress_named,
)
from meltpoint.results.comparison import Comparison
from meltpoint.results.pair import About, ComparedModel, Pair, compose_pair
from meltpoint.results.report import Report
from meltpoint.results.stages import alpha_of


@public
def compare(
    models: Mapping[str, ModelSource | Any] | Iterable[ModelSource | Any],
    test: ArrayLike,
    train: ArrayLike | None = None,
    *,
    names: Sequence[str] | None = None,
    baseline: str | None = None,
    about: About = "test set",
    gap: Positive | None = None,
    budget: Budget | None = None,
    seed: Seed = DEFAULTS.seed,
    confidence: Confidence = DEFAULTS.confidence,
    evidence: bool = DEFAULTS.evidence,
    run: str | os.PathLike[str] | None = None,
    progress: Progress | bool | None = None,
    watch: Watch | None = None,
    **options: Unpack[SharedOptions],
) -> Comparison:
    """Compare the mean test log-probabilities of models, with errors that are those of the differences.

    Every model is evaluated as by `evaluate`, with the same test examples and the same random numbers. Ctrl-C gives
    the comparison of the models finished by then.

    Parameters
    ----------
    models
        Two models or more, objects that `from_object` reads, or the files that they are in; a dictionary gives them
        names. They must have visible units of the same number and kind.
    test
        Test examples (example, visible unit).
    train
        Training examples, for data base rates and for the pilot; never the test set.
    names
        Names of the models. Default: those of the files.
    baseline
        The name of a model: only the differences of the others to it are computed, and share the confidence.
    about
        "test set": the order of the models on these examples only, without any sampling error; "population": the order
        on all examples that the test set was drawn from at random.
    gap, budget
        As in `evaluate`; the budget is for all models together, and each has the same part of it.
    seed
        Seed of the random numbers of all models.
    confidence
        Confidence of all differences together.
    evidence
        As in `evaluate`.
    run
        A folder in which the evaluation of every model is kept, each in a folder of its own; the same call continues.
    progress, watch
        As in `evaluate`; tasks begin with the name of the model.
    options
        particles, base, steps, schedule, chains, examples, ais_chains, precision, tolerance, exact, executor, threads:
        as in `evaluate`, for every model.

    >>> import numpy as np
    >>> from meltpoint.models.rbm import RBM
    >>> fair, biased = (RBM(np.zeros((3, 2)), np.full(3, bias), np.zeros(2)) for bias in (0.0, 1.0))
    >>> found = compare({"fair": fair, "biased": biased}, [[0, 1, 0], [1, 1, 1]], steps=10, examples=2)
    >>> print(found.verdict)
    Order known: biased > fair.
    """
    assert not isinstance(progress, bool), "public() has made a callback of it"
    begun = time.perf_counter()
    sources = named_sources(models, names)
    _check(sources, baseline)
    loaded = {name: load_source(source) for name, source in sources.items()}
    for name, model in loaded.items():
        check_same_visible(name, model, *next(iter(loaded.items())))
    settings: dict[str, Any] = dict(options)
    if gap is not None or budget is not None:
        settings |= {
            "gap": gap,
            "budget": None if budget is None else read(Budget, budget, "budget") / len(loaded),
        }
    if baseline is None:
        pairs = list(itertools.combinations(loaded, 2))
    else:
        pairs = [(name, baseline) for name in loaded if name != baseline]
    reports: dict[str, Report] = {}
    interrupted = False
    for number, (name, model) in enumerate(loaded.items()):
        try:
            reports[name] = evaluate(
                model,
                test,
                train,
                run=folder_of(run, number, name),
                seed=seed,
                confidence=confidence,
                evidence=evidence,
                progress=progress_named(name, progress),
                watch=watch,
                **settings,
            )
            interrupted = reports[name].interrupted
        except KeyboardInterrupt:
            if not reports:
                raise
            interrupted = True
        if interrupted:
            break
    alpha = (1 - confidence) / len(pairs)
    return Comparison(
        reports=reports,
        pairs=tuple(
            _compose(first, second, reports, alpha)
            for first, second in pairs
            if first in reports and second in reports
        ),
        test_examples=next(iter(reports.values())).test_examples,
        confidence=confidence,
        about=about,
        baseline=baseline,
        seconds=time.perf_counter() - begun,
        missing=tuple(name for name in loaded if name not in reports),
        interrupted=interrupted,
    )


def _compose(first: str, second: str, reports: Mapping[str, Report], alpha: float) -> Pair:
    """The pair, with its part of alpha; of several stages each pair has its own part."""
    for report in (reports[first], reports[second]):
        if report.settings.budget is not None or report.stage_number > 0:
            alpha *= alpha_of(report.stage_number, 1.0)
    return compose_pair(ComparedModel(first, reports[first]), ComparedModel(second, reports[second]), alpha)


def _check(sources: Mapping[str, ModelSource], baseline: str | None) -> None:
    if len(sources) < 2:
        raise InputError(
            found=f"{len(sources)} model{'' if len(sources) == 1 else 's'}",
            expected="at least two",
            remedy="for one model there is evaluate",
        )
    if baseline is not None and baseline not in sources:
        raise InputError(
            found=f"baseline={baseline!r}",
            expected=f"the name of a model: {', '.join(sources)}",
            remedy="choose one of them, or leave it out to compare all with each other",
        )
