"""What a report says of the thing that was evaluated, kept with a run: names, and samples of the model to look at."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meltpoint.errors import Progress
from meltpoint.estimators.sampling import sample
from meltpoint.models import Model
from meltpoint.models.checks import Bits
from meltpoint.report.report import Report
from meltpoint.report.shown import ShownStates, choose_shown, sample_count
from meltpoint.runs.chunks import Layout
from meltpoint.runs.fingerprint import Arrays
from meltpoint.runs.store import Store, get_or_compute

NAMES, SAMPLES = "names", "samples"
"""Names of chunks in a run's folder."""

_NAMES_LAYOUT: Layout = {"keys": (("name",), "U"), "names": (("name",), "U")}
_SAMPLES_LAYOUT: Layout = {"samples": ((None, None), "uf")}
_STEPS = 500  # whatever the evaluation had: those of a run do not change when it goes on


def shown_of(report: Report, model: Model, states: Bits) -> ShownStates | None:
    """States (example, visible unit) to look at, of those that RAISE was run for; None of very large ones."""
    differences = report.per_example_differences
    return choose_shown(model.units[0].name, report.per_example.positions, states, differences)


def samples_of(
    model: Model, seed: int, threads: int, store: Store, progress: Progress | None
) -> NDArray[Any]:
    """States (sample, visible unit) of samples of the model to look at; none of very large ones.

    They are those of `sample(model, n, steps=500, seed=seed)`.
    """
    count, unit = sample_count(model.n_visible), model.units[0]
    if not count:
        return np.zeros((0, 0), np.uint8)

    def compute() -> Arrays:
        values = sample(model, count, steps=_STEPS, seed=seed, threads=threads, progress=progress)
        return {"samples": model.encode(values, "samples")}

    layout: Layout = {"samples": ((count, model.n_visible), unit.dtype.kind)}
    return get_or_compute(store, SAMPLES, compute, layout)["samples"]


def names_to_arrays(names: Mapping[str, str]) -> Arrays:
    """Arrays from which `recall_names` makes the same names."""
    return {"keys": np.array(list(names), np.str_), "names": np.array(list(names.values()), np.str_)}


def recall_names(store: Store) -> dict[str, str]:
    """What a store has of the names of model and data."""
    kept = store.read(NAMES, _NAMES_LAYOUT)
    return dict(zip(kept["keys"].tolist(), kept["names"].tolist(), strict=True)) if kept else {}


def recall_samples(store: Store) -> NDArray[Any] | None:
    """What a store has of samples of the model."""
    kept = store.read(SAMPLES, _SAMPLES_LAYOUT)
    return kept["samples"] if kept else None
