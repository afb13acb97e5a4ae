"""One cell: from a model and its data to the numbers that are kept."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from meltpoint.errors import Progress
from meltpoint.estimators.ais import LogZ, ais_log_z
from meltpoint.estimators.csl import csl_log_prob
from meltpoint.estimators.exact import exact_log_z
from meltpoint.estimators.particles import LogProb, Melted, certify_mean_log_prob
from meltpoint.estimators.raise_ import raise_log_prob
from meltpoint.models.checks import Bits
from meltpoint.models.log_f import LogF
from meltpoint.models.rbm import RBM
from meltpoint.paper.cells import Cell
from meltpoint.paper.configurations import describe_configurations
from meltpoint.paper.pictures import draw_pictures
from meltpoint.paper.shelf import Loaded
from meltpoint.randomness import Purpose, generator
from meltpoint.report.compose import optimistic_of
from meltpoint.report.duration import Clock
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
    clock = Clock()
    base = loaded.base(cell.base)
    clock.lap("base")
    running: dict[str, Any] = {"threads": threads, "progress": progress}
    annealing = {**running, "base": base, "steps": cell.steps, "chains": cell.chains, "seed": cell.seed}
    match cell.method:
        case "exact":
            result = _exact(log_f, exact_log_z(loaded.model, **running))
        case "ais":
            result = _ais(cell, log_f, ais_log_z(loaded.model, **annealing))
        case "raise":
            positions, examples = chosen_examples(cell, loaded)
            result = _raise(positions, log_f, raise_log_prob(loaded.model, examples, **annealing))
        case "csl":
            positions, examples = chosen_examples(cell, loaded)
            result = over_the_test_set(csl_log_prob(loaded.model, examples, **annealing), positions, log_f)
        case "log-f":
            result = describe_log_f(log_f)
        case "configurations":
            assert isinstance(loaded.model, RBM)
            result = describe_configurations(loaded.model, progress)
        case "samples" | "annealed" | "training":
            result = draw_pictures(cell, loaded, threads, progress)
    clock.lap(cell.method)
    return result, clock.seconds()


def describe_log_f(log_f: LogF) -> dict[str, Any]:
    """Means over the test set of log f and of its lower bound."""
    return {
        "mean": float(np.mean(log_f.values)),
        "stderr": log_f.mean_error,
        "mean_bound": float(np.mean(log_f.bound)),
        "examples": len(log_f.values),
    }


def _exact(log_f: LogF, log_z: float) -> dict[str, Any]:
    value = float(np.mean(log_f.values)) - log_z
    return {
        "estimate": Estimate(value, log_f.mean_error, "exact", "log Z by enumeration").to_dict(),
        "log_z": log_z,
    }


def _ais(cell: Cell, log_f: LogF, log_z: LogZ) -> dict[str, Any]:
    if len(log_z.log_weights) != cell.chains:
        raise KeyboardInterrupt
    return {
        "estimate": optimistic_of(log_z, log_f).to_dict(),
        "log_z": log_z.to_dict(),
        "ess": finite_or_none(log_z.ess),
        "log_f": describe_log_f(log_f),
    }


def _raise(positions: NDArray[np.integer], log_f: LogF, prob: LogProb) -> dict[str, Any]:
    if len(prob.values) != len(positions):
        raise KeyboardInterrupt
    one_particle = Melted(prob.log_weights, np.zeros_like(prob.log_weights))
    certificate, _ = certify_mean_log_prob(*one_particle, np.zeros(0), _CONFIDENCE)
    return {
        **over_the_test_set(prob, positions, log_f),
        "certificate": certificate.to_dict(),
    }


def chosen_examples(cell: Cell, loaded: Loaded) -> tuple[NDArray[np.integer], Bits]:
    """Positions and bits of the test examples that a cell's chains are run for, the same for every method."""
    test = loaded.test(cell)
    size = min(cell.examples or len(test), len(test))
    positions = generator(cell.seed, Purpose.EXAMPLES).choice(len(test), size=size, replace=False)
    return positions, test[positions]


def over_the_test_set(prob: LogProb, positions: NDArray[np.integer], log_f: LogF) -> dict[str, Any]:
    """The mean over the whole test set with the control variate, without it, and what both are made of."""
    control, population = log_f.values[positions], len(log_f.values)
    mean, error = control_variate_mean(prob.values, control, log_f.values, prob.stderrs)
    plain_error = subset_error(prob.values, prob.stderrs, population)
    covers = "the choice of examples and the noise of their chains"
    return {
        "estimate": Estimate(mean, error, "conservative", covers).to_dict(),
        "plain": Estimate(float(np.mean(prob.values)), plain_error, "conservative", covers).to_dict(),
        "control_variate_gain": finite_or_none(plain_error / error) if error > 0 else None,
        "examples": {
            "positions": positions.tolist(),
            "log_prob": [finite_or_none(value) for value in prob.values.tolist()],
            "stderr": [finite_or_none(value) for value in prob.stderrs.tolist()],
            "log_f": control.tolist(),
        },
    }
