"""Chains besides those of stages, as tasks: base rates, pilots, other starts and samples.

They are cut into ranges that depend on their number alone, and each range is kept as soon as it is finished. Workers
get the model once for all of them, and what the chains of a name share once for these.
"""

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import lru_cache
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meltpoint.annealing.blocks import Segment
from meltpoint.annealing.chains import Chains, Threads, anneal_counted, chain_steps
from meltpoint.annealing.field import BlockPath
from meltpoint.annealing.loop import Annealed, compile_kernels, prepare_path
from meltpoint.annealing.path import Path
from meltpoint.backends.backend import PreparedPath
from meltpoint.errors import Progress
from meltpoint.kernels.streams import Streams
from meltpoint.models import Model
from meltpoint.randomness import Purpose
from meltpoint.runs.chunks import ChunkLayout
from meltpoint.runs.contents import chains_name
from meltpoint.runs.fingerprint import Arrays, fingerprint
from meltpoint.runs.processes import stop_if_asked
from meltpoint.runs.sending import Payload, Sender, read_payload
from meltpoint.runs.store import Store
from meltpoint.stages.execute import Execution, completed_tasks, progress_of
from meltpoint.stages.stage import model_from_arrays, model_to_arrays, ranges

_CHAINS = 32  # of a task: half as many as of a stage's, because there are few of them
_WORTH_KEEPING = 20  # steps of a chain: fewer are made sooner than they are sent or written
_BASE, _BETAS, _CLAMPED = "base_", "betas_", "clamped_"


@dataclass(frozen=True)
class ChainTask:
    """So many chains of those of one name, from `first` on; `of` is a fingerprint of all that they depend on."""

    name: str
    of: str
    first: int
    count: int
    steps: int

    @property
    def part(self) -> slice:
        """Where they are among all chains of the name."""
        return slice(self.first, self.first + self.count)

    @property
    def work(self) -> int:
        """Their chain-steps."""
        return self.count * self.steps

    @property
    def chunk(self) -> str:
        """Name of the chunk with their results, in the folder of their annealer."""
        return chains_name(self.name, self.first)

    def layout(self, chains: Chains) -> ChunkLayout:
        """What that chunk must hold."""
        return {
            "of": ((), "U"),
            "state": ((self.count, chains.state.shape[1]), chains.path.dtype.kind),
            "log_weights": ((self.count, len(chains.segments)), "f"),
        }

    def arrays(self, run: Annealed, chains: slice = slice(None)) -> Arrays:
        """The chunk, from chains that are finished."""
        kept = {"state": run.state[chains], "log_weights": run.cumulative_log_weights[chains]}
        return {"of": np.array(self.of), **kept}


@dataclass(frozen=True, eq=False)
class KeptChains:
    """Runs chains of a model as an execution says, and keeps them in a folder of its store.

    `recalled` has the names of chunks that were there before.
    """

    model: Model
    folder: str
    execution: Execution
    recalled: set[str] = field(default_factory=set)

    def __call__(self, asked: Sequence[Chains], progress: Progress | None, task: str) -> list[Annealed]:
        """What became of the chains, all of them finished; those that are kept are not run again."""
        if not asked:
            return []  # progress of nothing has no end
        if any(chains.steps < _WORTH_KEEPING for chains in asked):
            return Threads(self.execution.threads)(asked, progress, task)
        named = {chains.name: chains for chains in asked}
        assert len(named) == len(asked), "names tell chains apart"
        shared = {name: _to_arrays(chains) for name, chains in named.items()}
        tasks = [
            ChainTask(name, fingerprint(shared[name]), low, high - low, chains.steps)
            for name, chains in named.items()
            for low, high in ranges(len(chains.state), _CHAINS)
        ]
        found = {own: kept for own in tasks if (kept := self._recall(own, named[own.name])) is not None}
        self.recalled.update(own.chunk for own in found)
        missing = [own for own in tasks if own not in found]
        look = progress_of({own: own.work for own in tasks}, progress, task)
        look(set(missing))
        if self.execution.executor is None:
            total = chain_steps(asked)
            for chains in asked:
                own = [each for each in missing if each.name == chains.name]
                done = total - sum(each.work for each in missing if each not in found)
                found |= self._run_here(chains, own, progress, task, done, total)
        elif missing:
            sender = self.execution.sender
            with Sender(self.execution.executor) if sender is None else nullcontext(sender) as sender:
                model = sender.send(model_to_arrays(self.model), "model")
                sent = {own.name: sender.send(shared[own.name], "chains") for own in missing}

                def submit(own: ChainTask) -> Any:  # noqa: ANN401
                    return sender.submit(_compute_in_worker, model, sent[own.name], own)

                for own, result in completed_tasks(submit, missing, look):
                    found[own] = result
                    self._store.write(self._chunk(own), result)
        return [_join([found[own] for own in tasks if own.name == chains.name]) for chains in asked]

    @property
    def _store(self) -> Store:
        return self.execution.store

    def _chunk(self, task: ChainTask) -> str:
        return f"{self.folder}/{task.chunk}"

    def _recall(self, task: ChainTask, chains: Chains) -> Arrays | None:
        """What the store has of a task, unless it belongs to chains that were others."""
        kept = self._store.read(self._chunk(task), task.layout(chains))
        return kept if kept is not None and str(kept["of"]) == task.of else None

    def _run_here(
        self,
        chains: Chains,
        tasks: Sequence[ChainTask],
        progress: Progress | None,
        name: str,
        done: float,
        total: float,
    ) -> dict[ChainTask, Arrays]:
        """The missing chains of a name together, on all threads; Ctrl-C keeps the ranges that are finished."""
        if not tasks:
            return {}
        rows = np.concatenate([np.arange(task.first, task.first + task.count) for task in tasks])
        streams = replace(chains.streams, keys=chains.streams.keys[rows])
        some = replace(chains, state=chains.state[rows], streams=streams)
        run = anneal_counted(some, self.execution.threads, progress, name, done, total)
        found, low = {}, 0
        for task in tasks:
            part = slice(low, low + task.count)
            low += task.count
            if run.finished[part].all():
                found[task] = task.arrays(run, part)
                self._store.write(self._chunk(task), found[task])
        if run.interrupted:
            raise KeyboardInterrupt
        return found


def _join(parts: Sequence[Arrays]) -> Annealed:
    state, log_weights = (np.concatenate([part[name] for part in parts]) for name in ("state", "log_weights"))
    return Annealed(state, log_weights, np.ones(len(state), np.bool_))


def _to_arrays(chains: Chains) -> dict[str, NDArray[Any]]:
    """Arrays by name, from which `_load` makes the same chains of a model."""
    segments, streams = chains.segments, chains.streams
    base = chains.path.base if isinstance(chains.path, BlockPath) else ()
    return {
        "precision": np.array(chains.precision),
        "seed": np.array(str(streams.seed)),  # it may have more than 64 bits
        "purpose": np.array(int(streams.purpose)),
        "keys": streams.keys,
        "state": chains.state,
        "reversed": np.array([segment.reversed_sweeps for segment in segments]),
        **{f"{_BASE}{k}": inputs for k, inputs in enumerate(base)},
        **{f"{_BETAS}{k}": segment.betas for k, segment in enumerate(segments)},
        **{f"{_CLAMPED}{k}": s.clamped for k, s in enumerate(segments) if s.clamped is not None},
    }


_loading = Lock()


@lru_cache(maxsize=1)
def _load_model(payload: Payload) -> Model:
    return model_from_arrays(read_payload(payload))


@lru_cache(maxsize=2)
def _load(model: Payload, shared: Payload) -> Chains:
    arrays = read_payload(shared)
    base = tuple(arrays[f"{_BASE}{k}"] for k in range(sum(name.startswith(_BASE) for name in arrays)))
    path = _load_model(model).undirected.mrf.path_from(base)  # pyright: ignore[reportOptionalMemberAccess]
    streams = Streams(int(str(arrays["seed"])), Purpose(int(arrays["purpose"])), arrays["keys"])
    segments = [
        Segment(arrays[f"{_BETAS}{k}"], arrays.get(f"{_CLAMPED}{k}"), bool(reversed_sweeps))
        for k, reversed_sweeps in enumerate(arrays["reversed"])
    ]
    precision: Any = str(arrays["precision"])
    prepared = _prepared(path, precision)
    return Chains("", path, precision, segments, arrays["state"], streams, lambda: prepared)


def _prepared(path: Path, precision: Any) -> PreparedPath:  # noqa: ANN401
    prepared = prepare_path(path, precision)
    compile_kernels(prepared)  # before two threads can begin to
    return prepared


def _compute_in_worker(model: Payload, shared: Payload, task: ChainTask) -> Arrays:
    with _loading:  # one for all threads of a worker
        chains = _load(model, shared)
    own = replace(chains, state=chains.state[task.part], streams=chains.streams.part(task.part))
    (run,) = Threads(1)([own], stop_if_asked, "chains")
    return task.arrays(run)
