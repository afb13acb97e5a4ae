"""What an evaluation needs before annealing, computed once in a run: the base, the schedule, log f, the exact log Z."""

from collections.abc import Callable
from dataclasses import fields

import numpy as np

from meltpoint.annealing.base import Base
from meltpoint.errors import Progress
from meltpoint.estimators.exact import exact_log_z
from meltpoint.estimators.pilot import FrictionSchedule, Pilot
from meltpoint.models import Model, mrf_of
from meltpoint.models.checks import Bits
from meltpoint.models.log_f import LogF
from meltpoint.models.rbm import RBM
from meltpoint.report.compose import mean_error
from meltpoint.runs.fingerprint import Arrays
from meltpoint.runs.store import Store, get_or_compute
from meltpoint.statistics.estimate import Estimate

BASE, SCHEDULE, LOG_F, EXACT = "base", "schedule", "log_f", "exact"
"""Names of the pieces in a run's folder."""

_PILOT = tuple(field.name for field in fields(Pilot))
_EXACT_UNITS = 20
_ROWS = 4096


def base_of(name: str, make: Callable[[], Base], store: Store) -> Base:
    """The base distribution. It is kept because its last bits may depend on the machine that computes it."""

    def compute() -> Arrays:
        return {f"layer_{k}": bias for k, bias in enumerate(make().biases)}

    return Base(name, tuple(get_or_compute(store, BASE, compute).values()))


def schedule_of(make: Callable[[], FrictionSchedule], store: Store) -> FrictionSchedule:
    """The friction schedule: from here on it is frozen."""
    return schedule_from(get_or_compute(store, SCHEDULE, lambda: _schedule_to_arrays(make())))


def schedule_from(arrays: Arrays) -> FrictionSchedule:
    """The friction schedule that was kept."""
    pilot = {name: arrays[name].item() for name in _PILOT}
    return FrictionSchedule(arrays["edges"], arrays["friction"], Pilot(**pilot))


def _schedule_to_arrays(schedule: FrictionSchedule) -> Arrays:
    pilot = {name: np.array(getattr(schedule.pilot, name)) for name in _PILOT}
    return {"edges": schedule.edges, "friction": schedule.friction, **pilot}


def log_f_of(model: Model, bits: Bits, seed: int, store: Store, progress: Progress | None) -> LogF:
    """Log f of every test example: exact for an RBM, estimated for a deep model, which takes minutes."""
    arrays = get_or_compute(store, LOG_F, lambda: vars(_log_f(model, bits, seed, progress)))
    return LogF(**arrays)


def exact_mean(
    model: Model, exact: bool | None, log_f: LogF, threads: int, store: Store, progress: Progress | None
) -> Estimate | None:
    """The exact mean log-probability, None unless it is cheap (`exact` None) or wanted."""
    two = mrf_of(model).bipartite
    wanted = min(two.n_even, two.n_odd) <= _EXACT_UNITS if exact is None else exact
    if not wanted:
        return None

    def compute() -> Arrays:
        return {"log_z": np.array(exact_log_z(model, threads=threads, progress=progress))}

    return exact_from(float(get_or_compute(store, EXACT, compute)["log_z"]), log_f)


def exact_from(log_z: float, log_f: LogF) -> Estimate:
    """The exact mean log-probability, but for the error of log f, if it has one."""
    error = mean_error(log_f)
    covers = "nothing to cover: log Z by enumeration" if error == 0 else "log f"
    return Estimate(float(np.mean(log_f.values)) - log_z, error, "exact", covers)


def _log_f(model: Model, bits: Bits, seed: int, progress: Progress | None) -> LogF:
    if isinstance(model, RBM):
        values = np.concatenate([model.log_f(bits[low : low + _ROWS]) for low in range(0, len(bits), _ROWS)])
        return LogF(values, np.zeros(len(bits)), values)
    return model.log_f_estimate(bits, seed=seed, progress=progress)
