"""Whether and where an evaluation is kept, and as what."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

from meltpoint.annealing.base import Base
from meltpoint.errors import InputError
from meltpoint.files.parameters import to_arrays
from meltpoint.models import Model
from meltpoint.models.checks import Bits, Floats
from meltpoint.report.compose import versions
from meltpoint.report.report import Report, Settings
from meltpoint.runs.fingerprint import fingerprint
from meltpoint.runs.specification import Specification
from meltpoint.runs.store import NullStore, RunFolder, Store, open_run

_JUDGEMENT = ("tolerance", "confidence", "gap", "budget")
"""Settings that change what is made of the numbers and how many there are, and not the numbers."""


def specify(
    model: Model,
    test: Bits,
    train: Bits | None,
    base: Base | None,
    betas: Floats | None,
    settings: Settings,
    part: int,
) -> Specification:
    """The specification of a run; `base` and `betas` are those that were given, None if made from their names."""
    kind, parameters = to_arrays(model)
    fingerprints = {"model": fingerprint(parameters, kind), "test set": fingerprint({"bits": test})}
    if train is not None:
        fingerprints["training set"] = fingerprint({"bits": train})
    if base is not None:
        fingerprints["base"] = fingerprint({str(k): bias for k, bias in enumerate(base.biases)}, base.name)
    if betas is not None:
        fingerprints["schedule"] = fingerprint({"betas": betas})
    chosen = vars(settings)
    return Specification(
        model=repr(model),
        test_examples=len(test),
        fingerprints=fingerprints,
        settings={name: value for name, value in chosen.items() if name not in _JUDGEMENT},
        reporting_settings={name: chosen[name] for name in _JUDGEMENT},
        versions=versions(),
        parts=(part,),
    )


@contextmanager
def kept(run: str | os.PathLike[str] | None, specify: Callable[[], Specification]) -> Iterator[Store]:
    """The store of an evaluation: the folder `run`, or nowhere, where no specification is needed."""
    if run is None:
        yield NullStore()
        return
    with open_run(run, specify()) as folder:
        yield folder


def keep_report(report: Report, store: Store) -> None:
    """Write the report into the run's folder, if there is one."""
    if isinstance(store, RunFolder):
        store.finish(report.to_dict())


def check_part(part: int) -> int:
    """A part's number, or an error."""
    if isinstance(part, bool) or not isinstance(part, int | np.integer) or part < 0:
        raise InputError(
            found=f"part={part!r}",
            expected="a whole number from 0 on",
            remedy="the first part is 0, the next one 1",
        )
    return int(part)
