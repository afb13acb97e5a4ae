"""One cell: from a model and its data to the numbers that are kept."""

import time
from typing import Any

import numpy as np

from meltpoint.errors import Progress
from meltpoint.estimators.ais import ais_log_z
from meltpoint.estimators.csl import csl_log_prob
from meltpoint.estimators.exact import exact_log_z
from meltpoint.estimators.reverse import raise_log_prob
from meltpoint.models.checks import Bits
from meltpoint.models.log_f import LogF
from meltpoint.models.rbm import RBM
from meltpoint.paper.cells import Cell
from meltpoint.paper.configurations import describe_configurations
from meltpoint.paper.pictures import draw_pictures
from meltpoint.paper.shelf import Loaded
from meltpoint.randomness import Purpose, generator
from meltpoint.report.compose import mean_error, optimistic_of
from meltpoint.statistics.certificate import certify_mean_log_prob
from meltpoint.statistics.control_variate import control_variate_mean, subset_error
from meltpoint.statistics.estimate import Estimate, finite_or_none

_CONFIDENCE = 0.99


def compute(
    cell: Cell, loaded: Loaded, log_f: LogF, threads: int | None, progress: Progress | None
) -> tuple[dict[str, Any], dict[str, float]]:
    """The result of a cell as plain numbers, and the seconds of its stages.

    `log_f` are the unnormalised probabilities of the cell's test examples. Ctrl-C is passed on: half a cell is
    none.
    """
    begun = time.perf_counter()
    match cell.method:
        case "exact":
            result = _exact(loaded, log_f, threads, progress)
        case "ais":
            return _ais(cell, loaded, log_f, threads, progress)
        case "raise":
            return _raise(cell, loaded, log_f, threads, progress)
        case "csl":
            result = _csl(cell, loaded, log_f, threads, progress)
        case "log-f":
            result = describe_log_f(log_f)
        case "configurations":
            assert isinstance(loaded.model, RBM)
            result = describe_configurations(loaded.model, progress)
        case "samples" | "annealed" | "training":
            result = draw_pictures(cell, loaded, threads, progress)
    return result, {cell.method: time.perf_counter() - begun}


def describe_log_f(log_f: LogF) -> dict[str, Any]:
    """Means over the test set of log f and of its lower bound."""
    return {
        "mean": float(np.mean(log_f.values)),
        "stderr": mean_error(log_f),
        "mean_bound": float(np.mean(log_f.bound)),
        "examples": len(log_f.values),
    }


def _exact(loaded: Loaded, log_f: LogF, threads: int | None, progress: Progress | None) -> dict[str, Any]:
    log_z = exact_log_z(loaded.model, threads=threads, progress=progress)
    value = float(np.mean(log_f.values)) - log_z
    return {
        "estimate": Estimate(value, mean_error(log_f), "exact", "log Z by enumeration").to_dict(),
        "log_z": log_z,
    }


def _ais(
    cell: Cell, loaded: Loaded, log_f: LogF, threads: int | None, progress: Progress | None
) -> tuple[dict[str, Any], dict[str, float]]:
    begun = time.perf_counter()
    base = loaded.base(cell.base)
    annealed_from = time.perf_counter()
    log_z = ais_log_z(
        loaded.model,
        base=base,
        steps=_set(cell.steps),
        chains=_set(cell.chains),
        seed=cell.seed,
        threads=threads,
        progress=progress,
    )
    if len(log_z.log_weights) < _set(cell.chains):
        raise KeyboardInterrupt
    result = {
        "estimate": optimistic_of(log_z, log_f).to_dict(),
        "log_z": log_z.to_dict(),
        "ess": finite_or_none(log_z.ess),
        "log_f": describe_log_f(log_f),
    }
    return result, {"base": annealed_from - begun, "AIS": time.perf_counter() - annealed_from}


def _raise(
    cell: Cell, loaded: Loaded, log_f: LogF, threads: int | None, progress: Progress | None
) -> tuple[dict[str, Any], dict[str, float]]:
    begun = time.perf_counter()
    base = loaded.base(cell.base)
    positions, examples = chosen_examples(cell, loaded)
    annealed_from = time.perf_counter()
    prob = raise_log_prob(
        loaded.model,
        examples,
        base=base,
        steps=_set(cell.steps),
        chains=_set(cell.chains),
        seed=cell.seed,
        threads=threads,
        progress=progress,
    )
    if len(prob.values) < len(positions):
        raise KeyboardInterrupt
    result = {
        **over_the_test_set(prob.values, prob.stderrs, positions, log_f),
        "certificate": certify_mean_log_prob(
            float(np.mean(prob.values)), len(positions), _CONFIDENCE
        ).to_dict(),
    }
    return result, {"base": annealed_from - begun, "RAISE": time.perf_counter() - annealed_from}


def _csl(
    cell: Cell, loaded: Loaded, log_f: LogF, threads: int | None, progress: Progress | None
) -> dict[str, Any]:
    positions, examples = chosen_examples(cell, loaded)
    prob = csl_log_prob(
        loaded.model,
        examples,
        base=loaded.base(cell.base),
        steps=_set(cell.steps),
        chains=_set(cell.chains),
        seed=cell.seed,
        threads=threads,
        progress=progress,
    )
    return over_the_test_set(prob.values, prob.stderrs, positions, log_f)


def chosen_examples(cell: Cell, loaded: Loaded) -> tuple[np.ndarray, Bits]:
    """Positions and bits of the test examples that a cell's chains are run for, the same for every method."""
    test = loaded.test(cell)
    size = min(_set(cell.examples), len(test))
    positions = generator(cell.seed, Purpose.EXAMPLES).choice(len(test), size=size, replace=False)
    return positions, test[positions]


def over_the_test_set(
    values: np.ndarray, errors: np.ndarray, positions: np.ndarray, log_f: LogF
) -> dict[str, Any]:
    """The mean over the whole test set with the control variate, without it, and what both are made of."""
    control, population = log_f.values[positions], len(log_f.values)
    mean, error = control_variate_mean(values, control, log_f.values, errors)
    plain_error = subset_error(values, errors, population)
    covers = "the choice of examples and the noise of their chains"
    return {
        "estimate": Estimate(mean, error, "conservative", covers).to_dict(),
        "plain": Estimate(float(np.mean(values)), plain_error, "conservative", covers).to_dict(),
        "control_variate_gain": finite_or_none(plain_error / error) if error > 0 else None,
        "examples": {
            "positions": positions.tolist(),
            "log_prob": [finite_or_none(value) for value in values.tolist()],
            "stderr": [finite_or_none(value) for value in errors.tolist()],
            "log_f": control.tolist(),
        },
    }


def _set(value: int | None) -> int:
    """A number that every cell of this method has."""
    assert value is not None
    return value
