"""How the cost of a chain-step depends on threads, on the number of steps and on the number of chains."""

import statistics
import time

import numpy as np
from bound import DenseBound
from cases import Case, Watch
from effort import Effort, Sizes
from speed import Say, steps_of, warmed_up
from table import Row, Section, compared, quotients
from threadpoolctl import threadpool_limits

from meltpoint.annealing.blocks import Segment
from meltpoint.annealing.schedule import as_betas
from meltpoint.backends.registry import prepare_path
from meltpoint.backends.tiles import TILE, anneal
from meltpoint.kernels.streams import Streams
from meltpoint.randomness import Purpose


def threads_section(case: Case, effort: Effort, say: Say) -> Section:
    """Two threads against one, and how the matrix products do the same."""
    track = warmed_up(case, steps_of(case, effort), 2, effort)
    bound = DenseBound(case.model, effort.bound_chains)
    ours: dict[int, list[float]] = {1: [], 2: []}
    dense: dict[int, list[float]] = {1: [], 2: []}
    for k in range(effort.rounds):
        say(f"one thread and two, round {k + 1} of {effort.rounds}")
        for threads in (1, 2):
            ours[threads].append(track.run(threads).rate)
            with threadpool_limits(threads, user_api="blas"):
                dense[threads].append(bound.rate(effort.bound_seconds))
    rows = (
        compared(case.name, ours[2], quotients(ours[2], ours[1]), 1.8),
        compared("the dense bound, for comparison", dense[2], quotients(dense[2], dense[1])),
    )
    return Section("Two threads", "chain-steps/s", "x one", rows)


def constancy_section(cases: dict[str, tuple[Case, Sizes]], threads: int, rounds: int, say: Say) -> Section:
    """Cost of a chain-step for many steps against few, and for many chains against few."""
    rows = []
    for name, (case, sizes) in cases.items():
        say(f"steps and chains, {name}")
        case.run(1, 1, threads)
        costs = [_by_steps(case, sizes, threads) for _ in range(rounds)]
        rows.append(_constant(f"{name}, {sizes.steps[1]:,} steps to {sizes.steps[0]:,}", costs))
        costs = [_by_chains(case, sizes, threads) for _ in range(rounds)]
        rows.append(_constant(f"{name}, {sizes.chains[1]:,} chains to {sizes.chains[0]:,}", costs))
    return Section("Cost of a chain-step, many to few", "microseconds", "ratio", tuple(rows))


def _by_steps(case: Case, sizes: Sizes, threads: int) -> tuple[float, float]:
    """Both runs have the same number of chain-steps in tiles of the same size, so that only steps differ."""
    few, many = sizes.steps
    chains = sizes.tile * threads
    cheap = _seconds(case, chains * many // few, few, threads, sizes.tile) / (chains * many)
    return cheap, _seconds(case, chains, many, threads, sizes.tile) / (chains * many)


def _by_chains(case: Case, sizes: Sizes, threads: int) -> tuple[float, float]:
    """The same schedule for few chains, again and again, before and after that for many at once."""
    few, many = sizes.chains
    steps = sizes.chains_steps
    repeats = max(1, many // few // 10)

    def cost_of_few() -> float:
        seconds = sum(_seconds(case, few, steps, threads, TILE) for _ in range(repeats))
        return seconds / (few * steps * repeats)

    before = cost_of_few()
    cost = _seconds(case, many, steps, threads, TILE) / (many * steps)
    return (before + cost_of_few()) / 2, cost


def _seconds(case: Case, chains: int, steps: int, threads: int, tile: int) -> float:
    """Seconds of one AIS run, not counting its preparations, nor what it takes to give them up."""
    prepared = prepare_path(case.model.path(case.base), "mixed")
    segments = [Segment(as_betas(steps))]
    start = np.zeros((chains, prepared.path.target.n_state), np.uint8)
    streams = Streams(0, Purpose.AIS, np.arange(chains))
    watch = Watch("AIS", time.perf_counter())
    with watch.noting_kernels():
        anneal(prepared, segments, start, streams, tile=tile, progress=watch, task="AIS")
    return time.perf_counter() - watch.prepared


def _constant(name: str, costs: list[tuple[float, float]]) -> Row:
    ratio = statistics.median(many / few for few, many in costs)
    figure = f"{statistics.median(many for _, many in costs) * 1e6:.2f}"
    return Row(name, figure, ratio, "0.9 to 1.1", 0.9 <= ratio <= 1.1, {"few, many": costs})
