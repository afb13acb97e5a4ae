"""Compute the cells that are missing, one after the other, and keep each as soon as it is finished."""

import math
import os
import platform
import shutil
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

import meltpoint as mp
from reproduce.cells import Cell
from reproduce.models import DEEP, MODELS, Bits, Inputs, LoadedModel
from reproduce.results import Record, Results, cell_fingerprint

Floats: TypeAlias = NDArray[np.floating]
Progress: TypeAlias = Callable[[str, float, float], object]

# Seconds for one step of one chain and one pair of units, on two cores; only their ratios matter.
_AIS, _RAISE, _HEAT, _LOG_F, _CSL = 1.7e-11, 2.9e-11, 1.7e-11, 4e-11, 4e-11
_CONFIGURATIONS = 1.5e-8
_LOG_F_SAMPLES = 500
_AT_LEAST = 0.5
_SHORT = 5.0  # seconds, below which a cell's chains are not kept while it is under way

_BLOCK = 1024  # configurations whose probabilities are computed at once
_SHARE = 0.9
_COVERS = (
    "the choice of examples, the noise of their chains and of the forward chains; not the bias of few steps"
)


def missing(groups: Iterable[Sequence[Cell]], inputs: Inputs, results: Results) -> list[Cell]:
    """The cells that are not there yet, each once: group after group, in each the cheapest first."""

    def order(cell: Cell) -> tuple[bool, float]:
        return cell.method != "log-f", work(cell, inputs[cell.model])

    found: dict[Cell, None] = {}
    for group in groups:
        absent = [cell for cell in dict.fromkeys(group) if not results.has(cell, inputs[cell.model])]
        found |= dict.fromkeys(sorted(absent, key=order))
    return list(found)


def work(cell: Cell, loaded: LoadedModel) -> float:
    """About how many seconds a cell takes on two cores."""
    steps, chains, forward, seconds = cell.steps or 0, cell.chains or 0, cell.forward or 0, _AIS
    match cell.method:
        case "log-f":
            steps, chains, seconds = _LOG_F_SAMPLES, cell.test_examples or len(loaded.data.test), _LOG_F
        case "configurations":
            return 2.0**loaded.model.n_hidden * loaded.model.n_visible * _CONFIGURATIONS
        case "csl":
            seconds = _CSL
        case "raise" | "raise-n":
            chains *= cell.examples or 0
            seconds = _RAISE + (_HEAT if isinstance(loaded.model, mp.DBM) else 0.0)
    return _AT_LEAST + steps * loaded.work * (chains * seconds + forward * _AIS)


def run(
    cells: Sequence[Cell],
    inputs: Inputs,
    results: Results,
    *,
    threads: int | None = None,
    progress: Progress | None = None,
    finished: Callable[[Cell, Record], None] | None = None,
) -> None:
    """Compute cells and keep them; `progress` counts all cells, `finished` gets each one. Ctrl-C is passed on."""
    costs = [work(cell, inputs[cell.model]) for cell in cells]
    for k, cell in enumerate(cells):
        loaded = inputs[cell.model]
        # Another process may have computed cells in the same folder.
        if results.has(cell, loaded):
            continue
        begun = time.perf_counter()
        kept = results.read(Cell(cell.model, "log-f", seed=cell.seed, test_examples=cell.test_examples))
        part = _portion(progress, cell.method, sum(costs[:k]), costs[k], sum(costs))
        folder = results.run_folder(cell, loaded) if costs[k] > _SHORT else None
        task = Task(cell, loaded, threads, part, folder, kept["result"] if kept else None)
        record = {
            "fingerprint": cell_fingerprint(cell, loaded.model_digest, loaded.data_digest),
            "cell": asdict(cell),
            "model": {"what": repr(loaded.model), "sha256": loaded.model_digest},
            "data": {"name": MODELS[cell.model].data, "sha256": loaded.data_digest},
            "result": task.compute(),
            "seconds": {"total": time.perf_counter() - begun},
            "threads": threads or os.cpu_count(),
            "versions": {
                "meltpoint": mp.__version__,
                **{name: version(name) for name in ("numpy", "numba")},
                "Python": platform.python_version(),
            },
        }
        results.write(cell, record)
        if folder:
            shutil.rmtree(folder, ignore_errors=True)
        if finished:
            finished(cell, record)


def _portion(
    progress: Progress | None, method: str, start: float, share: float, whole: float
) -> Progress | None:
    """Progress of a cell as progress of all: `share` of the `whole`, from `start` on. Preparations do not count."""
    if progress is None:
        return None
    furthest = start

    def tell(task: str, done: float, total: float) -> None:
        nonlocal furthest
        if task == "AIS and RAISE" or method not in ("ais", "raise", "raise-n"):
            furthest = max(furthest, start + share * done / total)
        progress("all cells", furthest, whole)

    return tell


@dataclass(frozen=True, eq=False)
class Task:
    """A cell with what it is computed from; `kept_log_f` is the result of the model's cell of log f, if any."""

    cell: Cell
    loaded: LoadedModel
    threads: int | None = None
    progress: Progress | None = None
    folder: Path | None = None
    kept_log_f: dict[str, float] | None = None

    def compute(self) -> dict[str, Any]:
        cell, loaded, model, shape = self.cell, self.loaded, self.loaded.model, self.loaded.data.image_shape
        running: dict[str, Any] = {"threads": self.threads, "progress": self.progress}
        annealing = {"base": loaded.base(cell.base), "steps": cell.steps, "seed": cell.seed, **running}
        match cell.method:
            case "exact":
                log_z = mp.exact_log_z(model, **running)
                covers = "nothing to cover: log Z by enumeration"
                exact = mp.Estimate(self.log_f["mean"] - log_z, 0.0, "exact", covers)
                return {"estimate": exact.to_dict(), "log_z": log_z}
            case "log-f":
                found = model.log_f_estimate(self.test, seed=cell.seed, **running)
                corrected = {"corrected": found.mean.value, "corrected_stderr": found.mean.error}
                return {"mean": float(np.mean(found.values)), "stderr": found.values_error, **corrected}
            case "ais":
                report = self._evaluate(annealing, self.test[:1], ais_chains=cell.chains)
                return self._optimistic(report, "estimate")
            case "raise" | "raise-n":
                return self._raise(annealing)
            case "csl":
                examples = self.test[self.positions]
                prob = mp.csl_log_prob(model, examples, chains=cell.chains or 0, **annealing)
                if len(prob.values) < len(examples):
                    raise KeyboardInterrupt
                return self._conservative(prob.values, prob.stderrs, model.log_f(examples))
            case "configurations":
                return describe_configurations(model, self.progress)
            case "draws":
                return self._draws()
            case "samples":
                del annealing["base"]
                return picture_result(mp.sample(model, cell.chains or 0, **annealing), shape)
            case "annealed":
                drawn = mp.sample_annealing_model(model, cell.chains or 0, **annealing)
                return picture_result(drawn, shape)
            case _:
                train = loaded.data.train
                return picture_result(train[_chosen(cell.seed, len(train), cell.chains)], shape)

    @cached_property
    def test(self) -> Bits:
        """The test examples the cell is about: all, or a random choice of as many as it says."""
        return self._some_of(self.loaded.data.test)

    @cached_property
    def positions(self) -> NDArray[np.integer]:
        """Positions of the test examples that chains are run for, the same for every method."""
        return _chosen(self.cell.seed, len(self.test), min(self.cell.examples or 0, len(self.test)))

    @cached_property
    def log_f(self) -> dict[str, float]:
        """The mean of log f over the test set; that of a deep model is estimated, and corrected by annealing."""
        if self.kept_log_f is None:
            assert MODELS[self.cell.model] not in DEEP, "cells of log f come first"
            mean = float(np.mean(self.loaded.model.log_f(self.test)))
            return {"mean": mean, "stderr": 0.0, "corrected": mean, "corrected_stderr": 0.0}
        mean, stderr = self.kept_log_f["mean"], self.kept_log_f["stderr"]
        return {"corrected": mean, "corrected_stderr": stderr, **self.kept_log_f}

    def _evaluate(self, annealing: dict[str, Any], examples: Bits, **sizes: Any) -> mp.Report:
        """AIS and RAISE of these examples, in a run folder: the chains that are finished before Ctrl-C are kept."""
        sizes = {"chains": 1, "particles": 1, "ais_chains": 1, "examples": len(examples)} | sizes
        how = {"schedule": "linear", "exact": False, "evidence": False, "run": self.folder}
        report = mp.evaluate(self.loaded.model, examples, **annealing, **sizes, **how)
        if report.interrupted:
            raise KeyboardInterrupt
        return report

    def _optimistic(self, report: mp.Report, name: str) -> dict[str, Any]:
        """AIS's mean over the test set by this name, and what it is made of."""
        log_z, log_f = report.log_z, self.log_f
        error = math.hypot(log_z.stderr, log_f["corrected_stderr"])
        mean = mp.Estimate(log_f["corrected"] - log_z.value, error, "optimistic", log_z.covers)
        return {name: mean.to_dict(), "log_z": log_z.to_dict(), "ess": _finite(report.ess), "log_f": log_f}

    def _raise(self, annealing: dict[str, Any]) -> dict[str, Any]:
        """RAISE with one particle and its certificate, or with N, AIS by its own forward chains, and the gap."""
        cell, n = self.cell, len(self.positions)
        # evaluate() takes examples in an order of its own; so they are in the order of `positions`.
        examples = self.test[self.positions[np.argsort(_chosen(cell.seed, n, n))]]
        sizes = {"particles": None, "ais_chains": cell.forward} if cell.forward else {}
        report = self._evaluate(annealing, examples, chains=cell.chains, **sizes)
        per, log_z = report.per_example, report.log_z
        found = per.log_prob, per.stderr, per.log_f
        if not cell.forward:
            return self._conservative(*found) | {"certificate": report.certificate.to_dict()}
        # An example's one chain has a share of the sum of weights. The other share, and its noise, is common to all.
        log_odds = per.log_reverse_weights - np.logaddexp.reduce(report.ais_log_weights)
        share = float(np.mean(np.exp(-np.logaddexp(0, log_odds))))
        result = self._conservative(*found, share * log_z.stderr) | self._optimistic(report, "optimistic")
        value = result["optimistic"]["value"] - result["estimate"]["value"]
        # The mean of log f is in both ends, but for its correction.
        correction = self.log_f["corrected_stderr"] * (self.log_f["corrected"] != self.log_f["mean"])
        own = _subset_error(per.log_prob - per.log_f, per.stderr, len(self.test))
        error = math.hypot(own, (1 - share) * log_z.stderr, correction)
        gap = mp.Estimate(value, error, "difference", "the errors of both ends")
        return result | {"gap": gap.to_dict(), "particles": report.particles}

    def _conservative(
        self, values: Floats, stderrs: Floats, control: Floats, noise: float = 0.0
    ) -> dict[str, Any]:
        """The mean over the whole test set with the control variate log f (paper, section 4), and without it.

        `noise` is what all examples have in common.
        """
        mean = float(np.mean(values - control)) + self.log_f["mean"]
        own = _subset_error(values - control, stderrs, len(self.test))
        error = math.hypot(own, noise, self.log_f["stderr"])
        plain = _subset_error(values, stderrs, len(self.test))
        return {
            "estimate": mp.Estimate(mean, error, "conservative", _COVERS).to_dict(),
            "plain": mp.Estimate(float(np.mean(values)), plain, "conservative", _COVERS).to_dict(),
            "control_variate_gain": _finite(plain / error) if error > 0 else None,
            "examples": {
                "positions": self.positions.tolist(),
                "log_prob": [_finite(value) for value in values],
                "stderr": [_finite(value) for value in stderrs],
                "log_f": control.tolist(),
            },
        }

    def _draws(self) -> dict[str, Any]:
        """Means of log f over the test set for other draws of its pixels, and their standard deviation."""
        grey, means = self._some_of(self.loaded.data.grey_test), []
        for k in range(1, (self.cell.chains or 0) + 1):
            drawn = np.random.default_rng((self.cell.seed, k)).random(grey.shape) < grey
            means.append(float(np.mean(self.loaded.model.log_f(drawn.astype(np.uint8)))))
        return {"means": means, "spread": float(np.std(means, ddof=1))}

    def _some_of(self, test: Bits) -> Bits:
        size = self.cell.test_examples
        if size is None or size >= len(test):
            return test
        return test[_chosen(self.cell.seed, len(test), size, size)]


def _subset_error(values: Floats, stderrs: Floats, population: int) -> float:
    """Standard error of a mean over a finite population, from noisy values of some examples, all chosen at random.

    A single chain does not tell its own noise, which the spread of the examples contains.
    """
    n, own = len(values), float(np.mean(np.square(stderrs)))
    share, own = (n / population, own) if math.isfinite(own) else (0.0, 0.0)
    return math.sqrt(((1 - share) * float(np.var(values, ddof=1)) + share * own) / n)


def _chosen(seed: int, available: int, size: int | None, *key: int) -> NDArray[np.integer]:
    """Numbers of examples, as evaluate() chooses them for this seed."""
    generator = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(6, *key)))
    return generator.choice(available, size=size, replace=False)


def picture_result(pictures: Bits, image_shape: Sequence[int]) -> dict[str, Any]:
    """Pictures (picture, pixel) as letters, for a JSON file."""
    letters = [row.tobytes().hex() for row in np.packbits(pictures, axis=1)]
    return {"image_shape": list(image_shape), "pictures": letters}


def describe_configurations(rbm: mp.RBM, progress: Progress | None = None) -> dict[str, Any]:
    """The largest probabilities of hidden configurations, how many carry nine tenths, and the perplexity."""
    upside_down = mp.RBM(rbm.weights.T, rbm.hidden_bias, rbm.visible_bias)
    log_f = np.empty(2**rbm.n_hidden)
    for low in range(0, len(log_f), _BLOCK):
        numbers = np.arange(low, min(low + _BLOCK, len(log_f)))
        log_f[numbers] = upside_down.log_f(numbers[:, np.newaxis] >> np.arange(rbm.n_hidden) & 1)
        if progress:
            progress("configurations", numbers[-1] + 1.0, float(len(log_f)))
    log_probs = np.sort(log_f - np.logaddexp.reduce(log_f))[::-1]
    probs = np.exp(log_probs)
    return {
        "configurations": len(probs),
        "largest": probs[:10].tolist(),
        "share": _SHARE,
        "carry_the_share": int(np.searchsorted(np.cumsum(probs), _SHARE)) + 1,
        "perplexity": math.exp(-float(probs @ log_probs)),
    }


def _finite(value: float) -> float | None:
    """JSON has neither NaN nor infinity: None stands for both."""
    return float(value) if math.isfinite(value) else None
