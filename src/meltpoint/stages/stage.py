"""A stage: AIS and RAISE once each along one schedule. What it is made of, its tasks, and its log weights."""

import platform
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from meltpoint.annealing.base import Base
from meltpoint.backends.numba.precision import Precision
from meltpoint.errors import InputError
from meltpoint.estimators.ais import LogZ, log_z_of
from meltpoint.estimators.particles import Melted
from meltpoint.formats.parameters import from_arrays, to_arrays
from meltpoint.models import Model
from meltpoint.models.checks import Bits, Floats
from meltpoint.randomness import Purpose, generator
from meltpoint.runs.chunks import ChunkLayout
from meltpoint.runs.contents import stage_folder, task_name
from meltpoint.runs.fingerprint import Arrays
from meltpoint.runs.specification import METHOD
from meltpoint.runs.store import Store

_MOST_CHAINS = 20_000_000
_CHAINS = 64  # of a task: more make the kernels no faster, half as many make them slower
_PART_STRIDE = 1 << 25  # numbers of added chains that a part has for itself, more than there may be


@dataclass(frozen=True)
class Size:
    """Steps, examples, chains per example and AIS chains of a stage."""

    steps: int
    examples: int
    chains: int
    ais_chains: int

    def work(self, passes: int) -> int:
        """Chain-steps, where RAISE goes through the betas `passes` times."""
        return self.steps * (self.examples * self.chains * passes + self.ais_chains)


@dataclass(frozen=True, eq=False)
class Stage:
    """Everything that determines the log weights of one stage.

    `examples` (example, visible unit) are those RAISE is run for, at these `positions` (example,) of the test set,
    with `chains` chains each; AIS has `ais_chains`. Stages of one evaluation are numbered by `index`, and each has a
    seed of its own. Another `part` has the same number of other chains. A stage may have grown: `earlier` are its
    numbers of examples and of AIS chains before each time that it did, and `grown_at` is the stage, by its number,
    that was left out for the last of them.
    """

    model: Model
    examples: Bits
    positions: NDArray[np.integer]
    base: Base
    betas: Floats
    chains: int
    ais_chains: int
    seed: int
    precision: Precision
    index: int = 0
    part: int = 0
    earlier: tuple[tuple[int, int], ...] = ()
    grown_at: int | None = None

    @property
    def look(self) -> int:
        """Its number among all looks at weights that an evaluation has taken, of stages and of grown ones."""
        return self.index if self.grown_at is None else self.grown_at

    @property
    def begun_with(self) -> tuple[int, int]:
        """Numbers of examples and of AIS chains before it has grown."""
        return self.earlier[0] if self.earlier else (len(self.examples), self.ais_chains)

    @property
    def size(self) -> Size:
        """Its size."""
        return Size(self.betas.size - 1, len(self.examples), self.chains, self.ais_chains)

    @property
    def folder(self) -> str:
        """Where its chunks lie in a run's folder."""
        return stage_folder(self.part, self.index)


def grow_stage(
    stage: Stage, ais_chains: int, examples: Bits, positions: NDArray[np.integer], look: int
) -> Stage:
    """The same stage with `ais_chains` chains in all, and these examples besides its own: a superset of its weights.

    Chains and examples that are there keep their numbers, and with them their random numbers.
    """
    return replace(
        stage,
        examples=np.concatenate([stage.examples, examples]),
        positions=np.concatenate([stage.positions, positions]),
        ais_chains=ais_chains,
        earlier=(*stage.earlier, (len(stage.examples), stage.ais_chains)),
        grown_at=look,
    )


def choose_examples(available: int, n: int, seed: int) -> NDArray[np.integer]:
    """Positions (example,), in the test set, of the examples RAISE is run for."""
    return generator(seed, Purpose.EXAMPLES).choice(available, size=n, replace=False)


def choose_more_examples(
    available: int, chosen: NDArray[np.integer], n: int, seed: int
) -> NDArray[np.integer]:
    """Positions (example,) of n further examples, at random among those that are not `chosen`."""
    rest = np.setdiff1d(np.arange(available), chosen)
    return generator(seed, Purpose.EXAMPLES, len(chosen)).choice(rest, size=n, replace=False)


@dataclass(frozen=True)
class Task:
    """AIS chains or RAISE examples of a stage: `count` of them, from `first` on."""

    estimator: Literal["ais", "raise"]
    first: int
    count: int

    @property
    def part(self) -> slice:
        """Where its results lie among those of all tasks of its estimator."""
        return slice(self.first, self.first + self.count)

    @property
    def name(self) -> str:
        """Name of the chunk with its results, in the stage's folder."""
        return task_name(self.estimator, self.first)

    def layout(self, chains: int) -> ChunkLayout:
        """What the chunk with its results must hold, with so many chains per example."""
        if self.estimator == "ais":
            return {"log_weights": ((self.count,), "f"), "seconds": ((), "f")}
        weights = ((self.count, chains), "f")
        return {"log_weights": weights, "log_reverse_weights": weights, "seconds": ((), "f")}

    def ais_numbers(self, stage: Stage) -> NDArray[np.integer]:
        """Numbers (chain,) of its AIS chains, which name their random numbers; parts of one size share none."""
        begun = stage.begun_with[1]
        offset = stage.part * (begun if self.first < begun else _PART_STRIDE)
        return np.arange(self.first, self.first + self.count) + offset

    def work(self, stage: Stage) -> int:
        """Its chain-steps."""
        chains = 1 if self.estimator == "ais" else stage.chains * stage.model.raise_passes
        return self.count * chains * stage.size.steps


def tasks_of(size: Size, earlier: Sequence[tuple[int, int]] = ()) -> list[Task]:
    """All tasks of a stage, the same for any executor; AIS first, so that one side is known early.

    One that has grown from `earlier` numbers of examples and of AIS chains has the tasks that it had, and others.

    >>> [(task.name, task.count) for task in tasks_of(Size(9, examples=20, chains=4, ais_chains=100))]
    [('ais-0000000', 50), ('ais-0000050', 50), ('raise-0000000', 10), ('raise-0000010', 10)]
    >>> [task.name for task in tasks_of(Size(9, examples=20, chains=4, ais_chains=120), [(20, 100)])]
    ['ais-0000000', 'ais-0000050', 'ais-0000100', 'ais-0000110', 'raise-0000000', 'raise-0000010']
    """
    ends = [*earlier, (size.examples, size.ais_chains)]
    examples, ais_chains = ([0, *(end[k] for end in ends)] for k in (0, 1))
    per_task = max(1, _CHAINS // size.chains)
    return [
        *(Task("ais", low, high - low) for low, high in _all_ranges(ais_chains, _CHAINS)),
        *(Task("raise", low, high - low) for low, high in _all_ranges(examples, per_task)),
    ]


def new_tasks_of(stage: Stage) -> list[Task]:
    """The tasks of a stage, of one that has grown only those that it did not have before."""
    examples, ais_chains = stage.earlier[-1] if stage.earlier else (0, 0)
    return [
        task
        for task in tasks_of(stage.size, stage.earlier)
        if task.first >= (ais_chains if task.estimator == "ais" else examples)
    ]


def _all_ranges(ends: Sequence[int], largest: int) -> list[tuple[int, int]]:
    """Ranges between each end and the next."""
    return [
        (begin + low, begin + high)
        for begin, end in pairwise(ends)
        for low, high in ranges(end - begin, largest)
    ]


def ranges(n: int, largest: int) -> list[tuple[int, int]]:
    """Cut n things into an even number of ranges of almost the same size: two cores end together."""
    count = min(n, 2 * -(-n // (2 * largest)))
    if count == 0:
        return []
    return list(pairwise(np.linspace(0, n, count + 1).astype(int).tolist()))


class StageWeights:
    """Log weights of a stage, filled in task by task: (chain,) of AIS, (example, chain) twice of RAISE.

    A task's arrays are `log_weights`, and for RAISE `log_reverse_weights` too; `seconds` are what they took.

    >>> weights = StageWeights(Size(9, examples=2, chains=3, ais_chains=4))
    >>> weights.put(Task("ais", 0, 2), {"log_weights": np.zeros(2), "seconds": np.array(0.1)})
    >>> print(weights.log_z().value, weights.melted(), weights.complete)
    0.0 None False
    """

    def __init__(self, size: Size) -> None:
        self._forward = np.zeros(size.ais_chains)
        self._melted = Melted(*np.zeros((2, size.examples, size.chains)))
        self._known = {"ais": np.zeros(size.ais_chains, np.bool_), "raise": np.zeros(size.examples, np.bool_)}
        self.seconds = 0.0

    def put(self, task: Task, result: Arrays) -> None:
        """Store the result of a task, and add its seconds."""
        if task.estimator == "ais":
            self._forward[task.part] = result["log_weights"]
        else:
            self._melted.log_weights[task.part] = result["log_weights"]
            self._melted.log_reverse_weights[task.part] = result["log_reverse_weights"]
        self._known[task.estimator][task.part] = True
        self.seconds += float(result["seconds"])

    def recall(self, store: Store, folder: str, task: Task) -> bool:
        """Read the result of a task from a store; False if it is not there."""
        chains = self._melted.log_weights.shape[1]
        kept = store.read(f"{folder}/{task.name}", task.layout(chains))
        if kept is None:
            return False
        self.put(task, kept)
        return True

    def grown(self, size: Size) -> "StageWeights":
        """The same weights as the first of a larger size; the seconds are those of what is still to come."""
        larger = StageWeights(size)
        n, examples = len(self._forward), len(self._melted.log_weights)
        larger._forward[:n] = self._forward
        for mine, theirs in zip(self._melted, larger._melted, strict=True):
            theirs[:examples] = mine
        larger._known["ais"][:n] = self._known["ais"]
        larger._known["raise"][:examples] = self._known["raise"]
        return larger

    def knows(self, task: Task) -> bool:
        """Whether the results of a task are there."""
        return bool(self._known[task.estimator][task.part].all())

    @property
    def ais_chains(self) -> int:
        """Number of AIS chains that are known."""
        return int(self._known["ais"].sum())

    @property
    def examples(self) -> NDArray[np.integer]:
        """Positions (example,), among the stage's examples, of those whose chains are all known."""
        return np.flatnonzero(self._known["raise"])

    @property
    def ais_complete(self) -> bool:
        """Whether all chains of AIS are known."""
        return bool(self._known["ais"].all())

    @property
    def complete(self) -> bool:
        """Whether all chains are known."""
        return self.ais_complete and bool(self._known["raise"].all())

    def log_z(self) -> LogZ | None:
        """The estimate from the known chains of AIS, None without any."""
        known = self._known["ais"]
        return log_z_of(self._forward[known]) if known.any() else None

    def melted(self) -> Melted | None:
        """RAISE's log weights of the known examples, None without any."""
        known = self._known["raise"]
        return Melted(*(array[known] for array in self._melted)) if known.any() else None


def join_weights(parts: Sequence[StageWeights]) -> StageWeights:
    """The weights of several parts as those of one: the same examples, with the chains of all parts."""
    joined = StageWeights(Size(0, 0, 0, 0))
    joined._forward = np.concatenate([part._forward for part in parts])
    joined._melted = Melted(
        *(np.concatenate(arrays, axis=1) for arrays in zip(*(part._melted for part in parts), strict=True))
    )
    joined._known = {
        "ais": np.concatenate([part._known["ais"] for part in parts]),
        "raise": np.logical_and.reduce([part._known["raise"] for part in parts]),
    }
    joined.seconds = sum(part.seconds for part in parts)
    return joined


_MODEL, _BASE = "model_", "base_"
_NUMBERS = ("chains", "ais_chains", "index", "part")
_TEXTS = ("kind", "base", "seed", "precision")  # a seed may have more than 64 bits


def stage_to_arrays(stage: Stage) -> dict[str, NDArray[Any]]:
    """Arrays by name, from which `stage_from_arrays` makes the same stage: for run folders and for workers."""
    kind = stage.model.kind_and_units
    # A model without arrays on disk is told apart by its fingerprint.
    parameters = stage.model.arrays() or {"fingerprint": np.array(stage.model.fingerprint())}
    texts = zip(_TEXTS, (kind, stage.base.name, str(stage.seed), stage.precision), strict=True)
    # A stage that has not grown has the arrays that it had before stages could grow.
    growth = {"earlier": np.array(stage.earlier, np.int64)} if stage.earlier else {}
    return {
        "method": np.array(METHOD),
        **{name: np.array(text) for name, text in texts},
        **{name: np.array(getattr(stage, name)) for name in _NUMBERS},
        **growth,
        "betas": stage.betas,
        "examples": stage.examples,
        "positions": stage.positions,
        **{f"{_MODEL}{name}": array for name, array in parameters.items()},
        **{f"{_BASE}{layer}": bias for layer, bias in enumerate(stage.base.biases)},
    }


def model_to_arrays(model: Model) -> dict[str, NDArray[Any]]:
    """Arrays by name, from which `model_from_arrays` makes the same model on a worker of this version."""
    kind, parameters = to_arrays(model)
    named = {f"{_MODEL}{name}": array for name, array in parameters.items()}
    return {"method": np.array(METHOD), "kind": np.array(kind), **named}


def model_from_arrays(arrays: Arrays) -> Model:
    """The model among the arrays of `model_to_arrays` or `stage_to_arrays`."""
    if int(arrays["method"]) != METHOD:
        raise InputError(
            found=f"version {int(arrays['method'])} of the method",
            expected=f"version {METHOD}, that of the meltpoint on {platform.node() or 'this machine'}",
            remedy="install the same meltpoint on all machines",
        )
    parameters = [array for name, array in arrays.items() if name.startswith(_MODEL)]
    return from_arrays(str(arrays["kind"]), parameters)


def stage_from_arrays(arrays: Arrays) -> Stage:
    """The stage that `stage_to_arrays` described."""
    model = model_from_arrays(arrays)
    _, base, seed, precision = (str(arrays[name]) for name in _TEXTS)
    check_counts(int(arrays["chains"]), int(arrays["ais_chains"]), len(arrays["examples"]))
    biases = [array for name, array in arrays.items() if name.startswith(_BASE)]
    return Stage(
        model=model,
        examples=arrays["examples"],
        positions=arrays["positions"],
        base=Base(base, tuple(biases)),
        betas=arrays["betas"],
        seed=int(seed),
        precision=precision,  # pyright: ignore[reportArgumentType]
        **{name: int(arrays[name]) for name in _NUMBERS},
        earlier=tuple((int(n), int(m)) for n, m in arrays["earlier"]) if "earlier" in arrays else (),
    )


def check_counts(chains: int, ais_chains: int, examples: int) -> None:
    """Refuse numbers of chains that no run has, before memory is allocated for them."""
    if not (chains > 0 and ais_chains > 0 and max(examples * chains, ais_chains) <= _MOST_CHAINS):
        raise InputError(
            found=f"a stage of {examples:,} examples with {chains:,} chains each and {ais_chains:,} AIS chains",
            expected=f"from 1 to {_MOST_CHAINS:,} chains",
            remedy="restore the run's folder from a copy, or begin the run anew in another folder",
        )
