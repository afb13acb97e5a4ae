"""What an evaluation computes once besides log f and its stages: exact log Z, the base and its schedule, whether the
model is read as it was meant; and, for the report, names of model and data and samples of the model.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meltpoint.annealing.base import Base, uniform
from meltpoint.annealing.schedule import as_betas
from meltpoint.defaults import SAMPLE_MOVES
from meltpoint.errors import InputError, Progress
from meltpoint.estimators.base_rates import data_rates, rates_of_chains
from meltpoint.estimators.conventions import ConventionCheck, check_conventions
from meltpoint.estimators.exact import exact_log_z
from meltpoint.estimators.pilot import PILOT_STEPS, FrictionSchedule, Pilot
from meltpoint.estimators.sampling import sample_states
from meltpoint.models import Model
from meltpoint.models.checks import Bits
from meltpoint.records import from_plain
from meltpoint.results.report import Report
from meltpoint.results.shown import ShownStates, choose_shown, sample_count
from meltpoint.runs.chunks import ChunkLayout
from meltpoint.runs.contents import (
    CONVENTIONS,
    EXACT,
    NAMES,
    SAMPLES,
    base_name,
    pilot_steps_name,
    schedule_name,
)
from meltpoint.runs.fingerprint import Arrays
from meltpoint.runs.run import Run
from meltpoint.runs.store import Store, get_or_compute

EXACT_LAYOUT: ChunkLayout = {"log_z": ((), "f")}
CONVENTIONS_LAYOUT: ChunkLayout = {"json": ((None,), "u")}

_PILOT = tuple(field.name for field in fields(Pilot))
_SCHEDULE_LAYOUT: ChunkLayout = {
    "edges": ((None,), "f"),
    "friction": ((None,), "f"),
    **{name: ((), "iu" if name.endswith("steps") else "f") for name in _PILOT},
}
_NAMES_LAYOUT: ChunkLayout = {"keys": (("name",), "U"), "names": (("name",), "U")}
_SAMPLES_LAYOUT: ChunkLayout = {"samples": ((None, None), "uf")}
_SAMPLE_STEPS = 500  # whatever the evaluation had: the samples of a run do not change when it is continued

EXACT_UNITS = 20
"""Most units of the smaller side for which log Z is enumerated by default: it takes less than a second."""


@dataclass(frozen=True, eq=False)
class Origin:
    """Where annealing starts: a base, and the friction from there to the model, if it was measured."""

    base: Base
    friction: FrictionSchedule | None = None


def exact_log_z_of(
    model: Model, exact: bool | None, threads: int, store: Store, progress: Progress | None
) -> float | None:
    """The exact log Z if it is asked for or, with `exact` None, cheap; otherwise None."""
    wanted = model.smaller_side <= EXACT_UNITS if exact is None else exact
    if not wanted:
        return None

    def compute() -> Arrays:
        return {"log_z": np.array(exact_log_z(model, threads=threads, progress=progress))}

    return float(get_or_compute(store, EXACT, compute, EXACT_LAYOUT)["log_z"])


def conventions_of(model: Model, data: NDArray[Any], store: Store) -> ConventionCheck | None:
    """Whether the data fit another reading of the model's parameters better."""

    def compute() -> Arrays:
        check = check_conventions(model, data)
        said = json.dumps(check and check.to_dict()).encode()
        return {"json": np.frombuffer(said, np.uint8)}

    return conventions_from_arrays(get_or_compute(store, CONVENTIONS, compute, CONVENTIONS_LAYOUT))


def conventions_from_arrays(arrays: Arrays) -> ConventionCheck | None:
    """The check that was kept; None if there was none, or if it cannot be read."""
    try:
        said = json.loads(bytes(arrays["json"]))
        return None if said is None else from_plain(ConventionCheck, said)
    # RecursionError: a thousand brackets
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
        return None


def make_base(
    name: str,
    model: Model,
    train: NDArray[Any] | None,
    seed: int,
    run: Run,
) -> Base:
    """The base distribution of this name; the model's own rates come from chains of the run."""
    if name == "uniform":
        return uniform()
    if name == "model":
        return rates_of_chains(model, seed, run)
    if name != "data" or train is None:  # `base_name` refuses it; a run's folder may still ask for it
        raise InputError(
            found=f"a base named {name!r} in the run's folder",
            expected="'data' (with training data), 'model' or 'uniform'",
            remedy="restore the folder from a copy, or begin the run anew in another one",
        )
    return data_rates(train, model)


def find_origins(
    names: Sequence[str],
    make: Callable[[str], Base],
    pilot: Callable[[Base], FrictionSchedule] | None,
    store: Store,
) -> list[Origin]:
    """The origins of these names, that with the smallest loss in its pilot first; without a pilot only the first.

    Bases and schedules are kept, because their last bits may depend on the machine that computes them, and because a
    schedule must be frozen before the run.
    """
    if pilot is None:
        return [Origin(keep_base(names[0], make, store))]
    tried = []
    for name in names:
        base = keep_base(name, make, store)
        friction = recall_schedule(store, name)
        if friction is None:
            friction = pilot(base)
            store.write(schedule_name(name), _schedule_to_arrays(friction))
        tried.append(Origin(base, friction))
    pilots = [origin.friction.pilot for origin in tried if origin.friction]
    best = int(np.argmax(np.nan_to_num([pilot.kept for pilot in pilots], nan=-np.inf)))
    return [tried[best], *tried[:best], *tried[best + 1 :]]


def sum_pilots(origins: Sequence[Origin]) -> list[Origin]:
    """The same origins; the pilot of each has the chain-steps of all."""
    spent = sum(origin.friction.pilot.chain_steps for origin in origins if origin.friction)
    return [
        replace(
            o, friction=o.friction and replace(o.friction, pilot=replace(o.friction.pilot, chain_steps=spent))
        )
        for o in origins
    ]


def recall_schedule(store: Store, name: str) -> FrictionSchedule | None:
    """The friction schedule from the base of this name, None if there is none as it was written."""
    arrays = store.read(schedule_name(name), _SCHEDULE_LAYOUT)
    if arrays is None:
        return None
    edges, friction = arrays["edges"], arrays["friction"]
    if len(edges) != len(friction) + 1 or edges[0] != 0 or edges[-1] != 1 or not (np.diff(edges) >= 0).all():
        return None
    return FrictionSchedule(edges, friction, Pilot(**{name: arrays[name].item() for name in _PILOT}))


def _schedule_to_arrays(schedule: FrictionSchedule) -> Arrays:
    pilot = {name: np.array(getattr(schedule.pilot, name)) for name in _PILOT}
    return {"edges": schedule.edges, "friction": schedule.friction, **pilot}


def keep_base(name: str, make: Callable[[str], Base], store: Store) -> Base:
    """The base of this name, made once in a run."""

    def compute() -> Arrays:
        return {f"layer_{k}": bias for k, bias in enumerate(make(name).biases)}

    chunk = base_name(name)
    biases = tuple(get_or_compute(store, chunk, compute).values())
    if any(bias.dtype.kind != "f" or bias.ndim == 0 or np.isnan(bias).any() for bias in biases):
        raise InputError(
            found=f"the chunk {chunk} of the run with other arrays than biases",
            expected="the base as it was written",
            remedy=f"remove {chunk}.npz from the run's folder, or begin the run anew in another one",
        )
    return Base(name, biases)


def keep_pilot_steps(name: str, choose: Callable[[], int], store: Store) -> int:
    """Steps of the pilot from the base of this name, as the clock has chosen them once in a run."""
    layout: ChunkLayout = {"steps": ((), "iu")}
    kept = get_or_compute(store, pilot_steps_name(name), lambda: {"steps": np.array(choose())}, layout)
    return min(PILOT_STEPS, max(1, int(kept["steps"])))


def shown_of(report: Report, model: Model, states: Bits) -> ShownStates | None:
    """States (example, visible unit) to look at, of those that RAISE was run for; None of very large ones."""
    differences = report.per_example_differences
    return choose_shown(model.units[0].name, report.per_example.positions, states, differences)


def samples_of(model: Model, seed: int, run: Run, store: Store) -> NDArray[Any]:
    """States (sample, visible unit) of samples of the model to look at; none of very large ones.

    They are those of `sample(model, n, steps=500, seed=seed)`.
    """
    count, unit = sample_count(model.n_visible), model.units[0]
    if not count:
        return np.zeros((0, 0), np.uint8)

    def compute() -> Arrays:
        betas = as_betas(_SAMPLE_STEPS)
        return {"samples": sample_states(model, count, betas, SAMPLE_MOVES, seed, run)}

    layout: ChunkLayout = {"samples": ((count, model.n_visible), unit.dtype.kind)}
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
