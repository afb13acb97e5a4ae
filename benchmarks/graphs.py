"""Nanoseconds of a single-site update on graphs: annealing steps of ours, weights included, against others' sweeps.

Everything runs on one thread in turn, and processor time is compared: a machine that does something else besides
disturbs it less than the time on the wall.
"""

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from competitors import Competitor
from effort import Effort
from numpy.typing import NDArray
from probe import peak_megabytes
from scipy import sparse
from table import Row, Section, compared, quotients

import meltpoint as mp
from meltpoint.annealing.base import uniform
from meltpoint.annealing.blocks import Segment
from meltpoint.backends.backend import PreparedPath
from meltpoint.backends.registry import prepare_path
from meltpoint.backends.tiles import anneal
from meltpoint.kernels.streams import Streams
from meltpoint.randomness import Purpose

Say = Callable[[str], None]
_CHAINS = 256
_LARGEST_COST = 2.5  # nanoseconds of an update of the lattice, on a quiet core
_MEMORY_CHAINS = 32


@dataclass(frozen=True, eq=False)
class GraphCase:
    """A model, its parameters for others, its updates' cost in those of a lattice, and who is asked to be slower."""

    name: str
    model: Any
    problem: dict[str, NDArray[Any]]
    cost: float
    rivals: dict[str, float | None]
    their_chains: int

    @property
    def n_sites(self) -> int:
        """Sites."""
        return self.model.mrf.n_units

    def steps(self, work: float, chains: int) -> int:
        """Steps of so many chains that are about so much work."""
        return max(1, round(work / self.cost / self.n_sites / chains))


def torus(side: int, coupling: float) -> mp.Ising:
    """The Ising model on a square lattice with periodic boundaries."""
    matrix = _torus_couplings(side, coupling)
    return mp.Ising((matrix + matrix.T).tocsr(), np.zeros(side**2))


def _torus_couplings(side: int, coupling: float) -> sparse.coo_array:
    """Couplings (site, site), every pair once."""
    sites = np.arange(side**2).reshape(side, side)
    neighbours = np.concatenate([np.roll(sites, -1, axis).ravel() for axis in (0, 1)])
    places = (np.tile(sites.ravel(), 2), neighbours)
    return sparse.coo_array((np.full(neighbours.size, coupling), places), shape=(side**2, side**2))


def graph_cases() -> list[GraphCase]:
    """The 64 x 64 lattice, 200 spins that are all coupled, and Potts models of the sizes of proteins."""
    lattice = _torus_couplings(64, 0.44)
    rng = np.random.default_rng(0)
    dense = sparse.coo_array(np.triu(rng.normal(0, 200**-0.5, (200, 200)), 1))
    both = {"dwave": 5.0, "ferrotherm": 5.0}
    return [
        GraphCase("Ising 64 x 64", torus(64, 0.44), _pairs(lattice), 1.0, both, 8),
        GraphCase(
            "Ising 200, dense",
            mp.Ising((dense + dense.T).tocsr(), np.zeros(200)),
            _pairs(dense),
            6.0,
            {"dwave": 5.0, "ferrotherm": None},
            32,
        ),
        *(_potts(sites, cost) for sites, cost in ((50, 100.0), (200, 500.0))),
    ]


def _pairs(couplings: sparse.coo_array) -> dict[str, NDArray[Any]]:
    rows, columns = couplings.coords
    return {
        "sites": np.array(couplings.shape[0]),
        "rows": rows,
        "columns": columns,
        "couplings": couplings.data,
    }


def _potts(n_sites: int, cost: float) -> GraphCase:
    rng = np.random.default_rng(n_sites)
    upper = np.triu(np.ones((n_sites, n_sites)), 1)[:, :, np.newaxis, np.newaxis]
    tables = rng.normal(0, n_sites**-0.5, (n_sites, n_sites, 21, 21)) * upper
    tables += tables.transpose(1, 0, 3, 2)
    fields = rng.normal(0, 0.5, (n_sites, 21))
    problem = {"fields": fields, "tables": tables}
    name = f"Potts {n_sites}, 21 states"
    return GraphCase(name, mp.Potts(tables, fields), problem, cost, {"adabmdca": 6.0}, 1000)


def seconds(prepared: PreparedPath, chains: int, steps: int, threads: int) -> tuple[float, float]:
    """Seconds of all processors and on the wall that annealing takes."""
    target = prepared.path.target
    start = np.zeros((chains, target.n_state), target.dtype)
    streams = Streams(0, Purpose.AIS, np.arange(chains))
    begun, processor = time.perf_counter(), time.process_time()
    anneal(prepared, [Segment(np.linspace(0, 1, steps + 1))], start, streams, tile=_CHAINS)
    return time.process_time() - processor, time.perf_counter() - begun


def graph_sections(effort: Effort, with_rivals: bool, say: Say) -> list[Section]:
    """Each model on one thread in turn with others; on two threads; a large lattice in a process of its own."""
    sections = [_case_section(case, effort, with_rivals, say) for case in graph_cases()]
    return [*sections, _threads_section(effort, say), _memory_section(effort, say)]


def _case_section(case: GraphCase, effort: Effort, with_rivals: bool, say: Say) -> Section:
    say(case.name)
    prepared = prepare_path(case.model.path(uniform()))
    prepared.compile()
    steps = case.steps(effort.graph_work, _CHAINS)
    ours: list[float] = []
    theirs: dict[str, list[float]] = {key: [] for key in case.rivals if with_rivals}
    with ExitStack() as stack:
        problem = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "problem.npz"
        np.savez(problem, allow_pickle=False, **case.problem)
        their_steps = case.steps(effort.graph_work / 20, case.their_chains)
        started = {
            key: stack.enter_context(Competitor(key, problem, case.their_chains, their_steps, 1))
            for key in theirs
        }
        for _ in range(effort.rounds):
            ours.append(seconds(prepared, _CHAINS, steps, 1)[0] / (_CHAINS * steps * case.n_sites) * 1e9)
            for key, other in started.items():
                say(f"{case.name}: {other.name}")
                updates = case.their_chains * their_steps * case.n_sites
                theirs[key].append(other.run().processor_seconds / updates * 1e9)
    cost = statistics.median(ours)
    judged = case.cost == 1.0
    rows = [
        Row(
            "meltpoint, with weights",
            f"{cost:,.2f}",
            None,
            f"<= {_LARGEST_COST:g}" if judged else "",
            cost <= _LARGEST_COST if judged else None,
            {"costs": ours, "chains": _CHAINS, "steps": steps},
        )
    ]
    for key, costs in theirs.items():
        row = compared(started[key].name, costs, quotients(costs, ours), case.rivals[key])
        rows.append(row)
    return Section(case.name, "ns an update", "we are x", tuple(rows))


def _threads_section(effort: Effort, say: Say) -> Section:
    rows = []
    for case in (graph_cases()[0], graph_cases()[2]):
        say(f"{case.name}, one thread and two")
        prepared = prepare_path(case.model.path(uniform()))
        chains = 4 * _CHAINS
        steps = case.steps(2 * effort.graph_work, chains)
        rates = [
            [chains * steps / seconds(prepared, chains, steps, threads)[1] for threads in (1, 2)]
            for _ in range(effort.rounds)
        ]
        one, two = ([rate[k] for rate in rates] for k in (0, 1))
        rows.append(compared(case.name, two, quotients(two, one), 1.8))
    return Section("Graphs on two threads", "chain-steps/s", "x one", tuple(rows))


def _memory_section(effort: Effort, say: Say) -> Section:
    side = effort.lattice_side
    say(f"lattice of {side**2:,} sites")
    done = subprocess.run([sys.executable, __file__, str(side)], capture_output=True, text=True, check=True)
    cost, mebibytes = map(float, done.stdout.split())
    # Parameters, both layouts and the chains' states: a dense matrix of couplings would take 8 TB.
    row = Row(
        f"{side} x {side}, {_MEMORY_CHAINS} chains",
        f"{mebibytes:,.0f} MiB",
        cost,
        "<= 2,000 MiB",
        mebibytes <= 2_000,
    )
    return Section("Memory of a large lattice", "peak", "ns", (row,))


def main() -> None:
    """Argument: side. Prints nanoseconds of an update and the process's peak memory in MiB."""
    side = int(sys.argv[1])
    prepared = prepare_path(torus(side, 0.44).path(uniform()))
    prepared.compile()
    steps = 3
    cost = seconds(prepared, _MEMORY_CHAINS, steps, 1)[0] / (_MEMORY_CHAINS * steps * side**2) * 1e9
    print(cost, peak_megabytes())


if __name__ == "__main__":
    main()
