"""The way from the base to the model: where annealing starts, and how its steps are spaced."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from meltpoint.annealing.base import Base
from meltpoint.estimators.pilot import FrictionSchedule
from meltpoint.evaluation.targets import base_of, schedule_of
from meltpoint.runs.fingerprint import Arrays
from meltpoint.runs.store import Store, get_or_compute

CHOICE = "choice"
"""Name of the piece, in a run's folder, that says which base was chosen."""


@dataclass(frozen=True)
class Path:
    """A base, and the friction from it to the model, if that was measured."""

    base: Base
    friction: FrictionSchedule | None = None


def find_path(
    names: Sequence[str],
    make: Callable[[str], Base],
    pilot: Callable[[Base], FrictionSchedule] | None,
    store: Store,
) -> Path:
    """The path from the base of this name, or, of several, from that whose pilot lost least.

    Without a pilot it is the first one.
    """
    if pilot is None:
        return Path(base_of(names[0], lambda: make(names[0]), store))
    tried: dict[str, Path] = {}

    def try_all() -> Arrays:
        for name in names:
            base = make(name)
            tried[name] = Path(base, pilot(base))
        kept = [path.friction.pilot.kept for path in tried.values() if path.friction]
        return {"name": np.array(names[int(np.argmax(np.nan_to_num(kept, nan=-np.inf)))])}

    name = str(get_or_compute(store, CHOICE, try_all)["name"]) if len(names) > 1 else names[0]
    base = base_of(name, lambda: tried[name].base if name in tried else make(name), store)

    def schedule() -> FrictionSchedule:
        chosen = (tried[name].friction if name in tried else None) or pilot(base)
        # The report counts what all of them cost.
        runs = max(1, len(tried))
        return replace(chosen, pilot=replace(chosen.pilot, chain_steps=runs * chosen.pilot.chain_steps))

    return Path(base, schedule_of(schedule, store))
