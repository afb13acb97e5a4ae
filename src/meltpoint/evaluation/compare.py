"""compare(): several models on one test set, paired, with an order as far as it is known."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Unpack, get_args

from numpy.typing import ArrayLike

from meltpoint.defaults import DEFAULTS
from meltpoint.errors import InputError, Progress
from meltpoint.evaluation.evaluate import Evaluation
from meltpoint.evaluation.settings import SharedOptions, Watch, check_keywords, seconds_of
from meltpoint.evaluation.several import (
    ModelSource,
    check_same_visible,
    evaluate_in_folder,
    folder_of,
    load_source,
    named_sources,
    progress_named,
)
from meltpoint.models import Model
from meltpoint.progress import reports_progress
from meltpoint.results.comparison import Comparison
from meltpoint.results.pair import About, ComparedModel, Pair, compose_pair
from meltpoint.results.stages import alpha_of
from meltpoint.statistics.certificate import check_confidence


@reports_progress
def compare(
    models: Mapping[str, ModelSource | Any] | Iterable[ModelSource | Any],
    test: ArrayLike,
    train: ArrayLike | None = None,
    *,
    names: Sequence[str] | None = None,
    baseline: str | None = None,
    about: About = "test set",
    gap: float | None = None,
    budget: str | float | None = None,
    seed: int = DEFAULTS.seed,
    confidence: float = DEFAULTS.confidence,
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
    assert not isinstance(progress, bool), "reports_progress has made a callback of it"
    check_keywords(compare, options)
    begun = time.perf_counter()
    sources = named_sources(models, names)
    _check(sources, baseline, about)
    check_confidence(confidence)
    loaded = {name: load_source(source) for name, source in sources.items()}
    _check_comparable(loaded)
    settings: dict[str, Any] = dict(options)
    if gap is not None or budget is not None:
        settings |= {"gap": gap, "budget": None if budget is None else seconds_of(budget) / len(loaded)}
    pairs = _pairs(list(loaded), baseline)
    evaluated: dict[str, Evaluation] = {}
    interrupted = False
    for number, (name, model) in enumerate(loaded.items()):
        try:
            evaluated[name] = evaluate_in_folder(
                model,
                test,
                train,
                folder_of(run, number, name),
                seed=seed,
                confidence=confidence,
                evidence=evidence,
                progress=progress_named(name, progress),
                watch=watch,
                **settings,
            )
        except KeyboardInterrupt:
            if not evaluated:
                raise
            interrupted = True
            break
        if evaluated[name].report.interrupted:
            interrupted = True
            break
    alpha = (1 - confidence) / len(pairs)
    return Comparison(
        reports={name: found.report for name, found in evaluated.items()},
        pairs=tuple(
            _compose(first, second, evaluated, alpha)
            for first, second in pairs
            if first in evaluated and second in evaluated
        ),
        test_examples=next(iter(evaluated.values())).report.test_examples,
        confidence=confidence,
        about=about,
        baseline=baseline,
        seconds=time.perf_counter() - begun,
        missing=tuple(name for name in loaded if name not in evaluated),
        interrupted=interrupted,
    )


def _pairs(names: Sequence[str], baseline: str | None) -> list[tuple[str, str]]:
    """The pairs that are asked for."""
    if baseline is not None:
        return [(name, baseline) for name in names if name != baseline]
    return list(itertools.combinations(names, 2))


def _compose(first: str, second: str, evaluated: Mapping[str, Evaluation], alpha: float) -> Pair:
    """The pair, with its part of alpha; where sizes were chosen in stages, each pair of stages has its own part."""
    found = [evaluated[name] for name in (first, second)]
    for each in found:
        if each.report.settings.budget is not None:
            alpha *= alpha_of(each.stage, 1.0)
    one, other = (ComparedModel(name, evaluated[name].report) for name in (first, second))
    return compose_pair(one, other, alpha)


def _check(sources: Mapping[str, ModelSource], baseline: str | None, about: str) -> None:
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
    if about not in get_args(About):
        raise InputError(
            found=f"about={about!r}",
            expected="'test set' or 'population'",
            remedy="'test set' asks for the order on these examples only",
        )


def _check_comparable(models: Mapping[str, Model]) -> None:
    (first_name, first), *others = models.items()
    for name, model in others:
        check_same_visible(name, model, first_name, first)
