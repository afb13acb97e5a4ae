"""Compute the cells that are missing, one after the other, and keep each as soon as it is finished."""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from meltpoint.annealing.schedule import as_betas
from meltpoint.datasets.binarize import stochastic
from meltpoint.datasets.dataset import TEST
from meltpoint.errors import Progress
from meltpoint.estimators.ais import LogZ
from meltpoint.estimators.csl import csl_log_prob
from meltpoint.estimators.exact import exact_log_z
from meltpoint.estimators.particles import LogProb, Melted, certify_mean_log_prob, particle_log_prob
from meltpoint.estimators.sampling import sample, sample_annealing_model
from meltpoint.kernels.announcing import PREPARING
from meltpoint.kernels.threads import check_threads
from meltpoint.models.checks import Bits, Floats
from meltpoint.models.log_f import LogF
from meltpoint.models.rbm import RBM
from meltpoint.paper.cells import Cell
from meltpoint.paper.models import DEEP, MODELS, Inputs, LoadedModel
from meltpoint.paper.results import Record, Results, record_of
from meltpoint.randomness import Purpose, generator
from meltpoint.results.compose import conservative_of, exact_of, gap_of, optimistic_of
from meltpoint.results.duration import Clock
from meltpoint.runs.store import NullStore, Store
from meltpoint.stages.execute import Execution, run_stage
from meltpoint.stages.log_f import log_f_of
from meltpoint.stages.stage import Stage
from meltpoint.statistics.control_variate import subset_error
from meltpoint.statistics.estimate import Estimate, finite_or_none, plain
from meltpoint.statistics.log_space import log_mean_exp

# Seconds for one step of one chain and one pair of units, on two cores; only their ratios matter.
_AIS, _RAISE, _HEAT, _LOG_F, _CSL = 1.7e-11, 2.9e-11, 1.7e-11, 4e-11, 4e-11
_CONFIGURATIONS = 1.5e-8
_LOG_F_SAMPLES = 500
_AT_LEAST = 0.5

_CONFIDENCE = 0.99
_BLOCK = 1024  # configurations whose probabilities are computed at once
_SHOWN = 10
_SHARE = 0.9


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
    pair_steps = (cell.steps or 0) * loaded.work
    melting = _RAISE + (_HEAT if loaded.heated else 0.0)
    melted = (cell.examples or 0) * (cell.chains or 0)
    match cell.method:
        case "log-f":
            seconds = len(cell_test_set(cell, loaded)) * _LOG_F_SAMPLES * loaded.work * _LOG_F
        case "configurations":
            seconds = 2.0 ** loaded.model.layer_sizes[-1] * loaded.model.n_visible * _CONFIGURATIONS
        case "csl":
            seconds = pair_steps * (cell.chains or 0) * _CSL
        case "ais":
            seconds = pair_steps * (cell.chains or 0) * _AIS
        case "raise" | "raise-n":
            seconds = pair_steps * (melted * melting + (cell.forward or 0) * _AIS)
        case _:
            seconds = 0.0
    return _AT_LEAST + seconds


def run(
    cells: Sequence[Cell],
    inputs: Inputs,
    results: Results,
    *,
    threads: int | None = None,
    progress: Progress | None = None,
    finished: Callable[[Cell, Record], None] | None = None,
) -> None:
    """Compute cells and keep them; `progress` counts all cells, `finished` gets each one."""
    costs = [work(cell, inputs[cell.model]) for cell in cells]
    known: dict[Cell, LogF] = {}
    for k, cell in enumerate(cells):
        loaded = inputs[cell.model]
        # Another process may have computed cells in the same folder.
        if results.has(cell, loaded):
            continue
        start, whole = sum(costs[:k]), sum(costs)
        part = portion(progress, start, costs[k], whole)
        clock = Clock()
        # The same for all cells of a model. That of a deep model takes minutes: it is kept on disk too.
        key = Cell(cell.model, "log-f", seed=cell.seed, test_examples=cell.test_examples)
        if key not in known:
            store = results.log_f_store(key, loaded) if MODELS[cell.model] in DEEP else NullStore()
            states = loaded.model.encode(cell_test_set(key, loaded))
            # Of other cells it is not what takes their time.
            reported = part if cell.method == "log-f" else portion(progress, start, 0.0, whole)
            execution = Execution(check_threads(threads), reported, store=store)
            known[key] = log_f_of(loaded.model, states, key.seed, execution)
        clock.lap("log f")
        begun = results.chunk_store(cell, loaded)
        result = compute(cell, loaded, known[key], threads, part, begun)
        clock.lap(cell.method)
        record = record_of(cell, loaded, result, clock.seconds(), threads)
        results.write(cell, record)
        results.discard_chunks(cell)
        if finished:
            finished(cell, record)


def compute(
    cell: Cell,
    loaded: LoadedModel,
    log_f: LogF,
    threads: int | None,
    progress: Progress | None,
    store: Store,
) -> dict[str, Any]:
    """The result of a cell as plain numbers.

    `log_f` are the unnormalised probabilities of the cell's test examples. Ctrl-C is passed on; the chains of AIS and
    RAISE that are finished by then are in the store.
    """
    running: dict[str, Any] = {"threads": threads, "progress": progress}
    execution = Execution(check_threads(threads), progress, store=store)
    annealing = {**running, "steps": cell.steps, "chains": cell.chains, "seed": cell.seed}
    if cell.base is not None:
        annealing["base"] = loaded.base(cell.base)
    match cell.method:
        case "exact":
            log_z = exact_log_z(loaded.model, **running)
            return {"estimate": exact_of(log_z, log_f).to_dict(), "log_z": log_z}
        case "log-f":
            return describe_log_f(log_f)
        case "ais":
            log_z, _ = anneal(cell, loaded, execution, ais_chains=cell.chains or 0)
            assert log_z is not None, "it has chains"
            return _log_z(log_f, log_z, "estimate") | {"log_f": describe_log_f(log_f)}
        case "raise":
            positions, _ = chosen_examples(cell, loaded)
            _, prob = anneal(cell, loaded, execution, ais_chains=0)
            assert prob is not None, "it has examples"
            one_particle = Melted(prob.log_weights, np.zeros_like(prob.log_weights))
            certificate, _ = certify_mean_log_prob(*one_particle, np.zeros(0), _CONFIDENCE)
            return _log_prob(positions, log_f, prob) | {"certificate": certificate.to_dict()}
        case "raise-n":
            return _particles(cell, loaded, log_f, execution)
        case "csl":
            positions, examples = chosen_examples(cell, loaded)
            return _log_prob(positions, log_f, csl_log_prob(loaded.model, examples, **annealing))
        case "configurations":
            # Only an RBM's are asked for.
            return describe_configurations(cast(RBM, loaded.model), progress)
        case "draws":
            return describe_draws(cell, loaded)
        case "samples" | "annealed" | "training":
            return picture_result(_draw(cell, loaded, annealing), loaded.data.image_shape)


def cell_test_set(cell: Cell, loaded: LoadedModel) -> Bits:
    """The test examples a cell is about: all, or a random choice of as many as it says."""
    return _chosen(cell, loaded.data.test)


def _chosen(cell: Cell, test: Bits) -> Bits:
    if cell.test_examples is None or cell.test_examples >= len(test):
        return test
    chooser = generator(cell.seed, Purpose.EXAMPLES, cell.test_examples)
    return test[chooser.choice(len(test), size=cell.test_examples, replace=False)]


def chosen_examples(cell: Cell, loaded: LoadedModel) -> tuple[NDArray[np.integer], Bits]:
    """Positions and bits of the test examples that a cell's chains are run for, the same for every method."""
    test = cell_test_set(cell, loaded)
    size = min(cell.examples or len(test), len(test))
    positions = generator(cell.seed, Purpose.EXAMPLES).choice(len(test), size=size, replace=False)
    return positions, test[positions]


def describe_log_f(log_f: LogF) -> dict[str, Any]:
    """Means over the test set of log f and of its lower bound."""
    return {
        "mean": float(np.mean(log_f.values)),
        "stderr": log_f.values_error,
        "mean_bound": float(np.mean(log_f.bound)),
        "examples": len(log_f.values),
    }


def describe_draws(cell: Cell, loaded: LoadedModel) -> dict[str, Any]:
    """Means of log f over the test set for other draws of its pixels, and their standard deviation."""
    images, means = loaded.data.images, []
    for k in range(1, (cell.chains or 0) + 1):
        drawn = _chosen(cell, stochastic(images.test, images.white, cell.seed, (TEST, k)))
        means.append(float(np.mean(loaded.model.log_f(drawn))))
    return {"means": means, "spread": float(np.std(means, ddof=1))}


def anneal(
    cell: Cell, loaded: LoadedModel, execution: Execution, ais_chains: int
) -> tuple[LogZ | None, LogProb | None]:
    """AIS and RAISE of a cell as one stage, as evaluations run it: what is in the store is not computed again.

    RAISE has the AIS chains as particles; it is left out in a cell of AIS alone, AIS where it has no chains.
    """
    positions, examples = chosen_examples(cell, loaded)
    melted = 0 if cell.method == "ais" else len(positions)
    stage = Stage(
        model=loaded.model,
        examples=loaded.model.encode(examples)[:melted],
        positions=positions[:melted],
        base=loaded.base(cell.base),
        betas=as_betas(cell.steps or 0),
        chains=(cell.chains or 0) if melted else 1,
        ais_chains=ais_chains,
        seed=cell.seed,
        precision="mixed",
    )
    done = run_stage(stage, execution)
    if not done.complete:
        raise KeyboardInterrupt
    log_z, weights = done.weights.log_z(), done.weights.melted()
    forward = log_z.log_weights if log_z else np.zeros(0)
    return log_z, particle_log_prob(*weights, forward) if weights else None


def _particles(cell: Cell, loaded: LoadedModel, log_f: LogF, execution: Execution) -> dict[str, Any]:
    """RAISE with N particles, the AIS estimate of its own forward chains, and the gap between them."""
    positions, _ = chosen_examples(cell, loaded)
    log_z, prob = anneal(cell, loaded, execution, ais_chains=cell.forward or 0)
    assert log_z is not None, "it has forward chains"
    assert prob is not None, "it has examples"
    return {
        **_log_prob(positions, log_f, prob, log_z.ess - 1),
        **_log_z(log_f, log_z, "optimistic"),
        "gap": gap_of(prob, log_z, log_f, positions, optimistic_of(log_z, log_f)).to_dict(),
        "particles": prob.particles,
    }


def _log_z(log_f: LogF, log_z: LogZ, name: str) -> dict[str, Any]:
    """AIS's mean over the test set by this name, and what it is made of."""
    return {
        name: optimistic_of(log_z, log_f).to_dict(),
        "log_z": log_z.to_dict(),
        "ess": finite_or_none(log_z.ess),
    }


def _log_prob(
    positions: NDArray[np.integer], log_f: LogF, prob: LogProb, forward_df: float = math.inf
) -> dict[str, Any]:
    """The mean over the whole test set with the control variate, without it, and what both are made of."""
    if len(prob.values) != len(positions):
        raise KeyboardInterrupt
    estimate = conservative_of(prob, log_f, positions, forward_df)
    plain_error = subset_error(prob.values, prob.stderrs, len(log_f.values))
    uncontrolled = Estimate(float(np.mean(prob.values)), plain_error, "conservative", estimate.covers)
    return {
        "estimate": estimate.to_dict(),
        "plain": uncontrolled.to_dict(),
        "control_variate_gain": finite_or_none(plain_error / estimate.stderr)
        if estimate.stderr > 0
        else None,
        "examples": {
            "positions": positions.tolist(),
            "log_prob": plain(prob.values.tolist()),
            "stderr": plain(prob.stderrs.tolist()),
            "log_f": log_f.values[positions].tolist(),
        },
    }


def _draw(cell: Cell, loaded: LoadedModel, annealing: dict[str, Any]) -> Bits:
    """The pictures (picture, pixel) of a cell: samples of the model, of its annealing model, or training examples."""
    count = annealing.pop("chains")
    if cell.method == "samples":
        return sample(loaded.model, count, **annealing)
    if cell.method == "annealed":
        return sample_annealing_model(loaded.model, count, **annealing)
    train = loaded.data.train
    return train[generator(cell.seed, Purpose.EXAMPLES).choice(len(train), size=count, replace=False)]


def picture_result(pictures: Bits, image_shape: Sequence[int]) -> dict[str, Any]:
    """Pictures (picture, pixel) as letters, for a JSON file."""
    letters = [row.tobytes().hex() for row in np.packbits(pictures, axis=1)]
    return {"image_shape": list(image_shape), "pictures": letters}


def configuration_log_probs(rbm: RBM, progress: Progress | None = None) -> Floats:
    """log p(h) (configuration,) of every hidden configuration, visible units summed out.

    >>> configuration_log_probs(RBM([[0.0]], [0.0], [0.0])).round(4)
    array([-0.6931, -0.6931])
    """
    upside_down = RBM(rbm.weights.T, rbm.hidden_bias, rbm.visible_bias)
    log_f = np.empty(2**rbm.n_hidden)
    for low in range(0, len(log_f), _BLOCK):
        numbers = np.arange(low, min(low + _BLOCK, len(log_f)))
        states = numbers[:, np.newaxis] >> np.arange(rbm.n_hidden) & 1
        log_f[numbers] = upside_down.log_f(states)
        if progress:
            progress("configurations", numbers[-1] + 1.0, float(len(log_f)))
    return log_f - log_mean_exp(log_f) - np.log(len(log_f))


def describe_configurations(rbm: RBM, progress: Progress | None = None) -> dict[str, Any]:
    """The largest probabilities, how many configurations carry nine tenths, and the perplexity."""
    log_probs = np.sort(configuration_log_probs(rbm, progress))[::-1]
    probs = np.exp(log_probs)
    return {
        "configurations": len(probs),
        "largest": probs[:_SHOWN].tolist(),
        "share": _SHARE,
        "carry_the_share": int(np.searchsorted(np.cumsum(probs), _SHARE)) + 1,
        "perplexity": math.exp(-float(probs @ log_probs)),
    }


def portion(progress: Progress | None, start: float, share: float, whole: float) -> Progress | None:
    """Progress of a part as progress of all cells: `share` of the `whole`, from `start` on."""
    if progress is None:
        return None
    furthest = start

    def tell(task: str, done: float, total: float) -> None:
        nonlocal furthest
        if task != PREPARING:
            furthest = max(furthest, start + share * done / total)
        progress("all cells", furthest, whole)

    return tell
