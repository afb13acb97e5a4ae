"""Checkpoints: a run that was stopped at any moment ends with the same bits as one that was not.

The file is a sealed .npz that is replaced whole. It holds a fingerprint of data and settings, so that a run is
never continued with others, and the states of the finished stages and of the present one:

run                     fingerprint of the data, the architecture, the settings and the seed
stage0_position         (3,): finished epochs, finished batches of the present epoch, iterates averaged
stage0_parameter_0 …    weights, lowest first, then biases, visible first; `velocity` and `average` alike
stage0_offset_0 …       mean activities of every layer, if units are centred
stage0_chain_0 …        states of the odd layers of persistent chains

While a run is open a folder `.NAME.lock` beside the file holds the lock and what is being written. The run removes
it at its end; what a killed run left there the next one removes.
"""

import math
import os
import shutil
import time
import warnings
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meltpoint.errors import InputError, RunWarning, SystemFailure
from meltpoint.formats.npz import entry_names
from meltpoint.models.dbm import DBM
from meltpoint.models.rbm import RBM
from meltpoint.runs.chunks import read_sealed, write_sealed
from meltpoint.runs.fingerprint import fingerprint
from meltpoint.runs.lock import is_locked, locked
from meltpoint.training.optimiser import OptimiserState, TrainingState, n_averaged_before
from meltpoint.training.phases import Architecture, trainable_dbm
from meltpoint.training.settings import TrainingSettings

_CONTEXT = "meltpoint training checkpoint"
_RUN = "run"
_LARGEST_SHARE = 0.05  # largest fraction of the training time for writing checkpoints


@dataclass(frozen=True)
class StagePlan:
    """What determines the arrays of one stage's state."""

    architecture: Architecture
    settings: TrainingSettings
    n_examples: int

    @property
    def n_epochs(self) -> int:
        """Number of epochs of the stage."""
        return self.settings.n_epochs(self.n_examples)

    @property
    def n_batches(self) -> int:
        """Number of updates in an epoch."""
        return self.settings.n_batches(self.n_examples)

    @property
    def n_chains(self) -> int:
        """Number of persistent chains: as many as the first, largest batch has examples, unless given."""
        return self.settings.chains or -(-self.n_examples // self.n_batches)

    @property
    def parameter_shapes(self) -> list[tuple[int, ...]]:
        """Shapes of all weights, then of all biases, then of what the visible units have besides."""
        sizes = self.architecture.sizes
        further = [(sizes[0],)] * self.architecture.visible.n_further
        return [*pairwise(sizes), *((size,) for size in sizes), *further]

    @property
    def most_bytes(self) -> int:
        """Bytes that the arrays of the stage's state never exceed, their headers included."""
        units = sum(self.architecture.sizes)
        n_arrays = 5 * len(self.parameter_shapes) + 1
        parameters = sum(map(math.prod, self.parameter_shapes))
        return 12 * parameters + (4 + self.n_chains) * units + 1024 * n_arrays


@dataclass
class Checkpoint:
    """The open file of one run, and the states of its stages as last read or written."""

    path: Path
    run: str
    folder: Path
    states: list[TrainingState] = field(default_factory=list)
    due: float = 0.0
    failing: bool = False

    def state_at(self, stage: int) -> TrainingState | None:
        """The state of a stage, None if it has not begun."""
        return self.states[stage] if stage < len(self.states) else None

    def save(self, stage: int, state: TrainingState) -> None:
        """Write the state of the present stage, after the last states of the stages before it.

        Training goes on when the disk does not take the file. It is tried again later; one warning says so.
        """
        begun = time.monotonic()
        self.states[stage:] = [state]
        arrays: dict[str, NDArray[Any]] = {_RUN: np.array(self.run)}
        for i, one in enumerate(self.states):
            arrays |= {f"stage{i}_{name}": array for name, array in _to_arrays(one).items()}
        try:
            _replace(self.path, self.folder, arrays)
        except (InputError, SystemFailure) as problem:
            if not self.failing:
                warnings.warn(
                    f"{problem.found}: {problem.remedy}. The training goes on, and its checkpoint is written "
                    "as soon as that is possible",
                    RunWarning,
                    stacklevel=2,
                )
            self.failing = True
        else:
            self.failing = False
        ended = time.monotonic()
        self.due = ended + (ended - begun) / _LARGEST_SHARE

    def save_if_due(self, stage: int, state: TrainingState) -> None:
        """Write now, unless writing would take more than its share of the time."""
        if time.monotonic() >= self.due:
            self.save(stage, state)


def run_fingerprint(rows: NDArray[Any], *choices: object) -> str:
    """A fingerprint of the training data and of everything that was chosen."""
    return fingerprint({"rows": rows}, repr(choices))


@contextmanager
def open_checkpoint(
    path: str | os.PathLike[str], run: str, plans: Sequence[StagePlan]
) -> Iterator[Checkpoint]:
    """The checkpoint at `path`, empty if there is no such file; an error if it is of another run, or in use."""
    target = Path(path).resolve()
    folder = target.with_name(f".{target.name}.lock")
    _make_lock_folder(folder, target)
    if is_locked(folder):
        raise InputError(
            found=f"another training that writes to {path}",
            expected="one at a time",
            remedy="wait for it to end, or choose another file for the checkpoint",
        )
    with locked(folder):
        try:
            for left in folder.glob(".meltpoint-*.tmp"):
                left.unlink(missing_ok=True)
            states = _read(target, run, plans) if target.exists() else []
            yield Checkpoint(target, run, folder, states)
        finally:
            # Removed while it is locked: whoever waits for the lock finds its file gone, and tries again.
            shutil.rmtree(folder, ignore_errors=True)


def is_checkpoint(path: str | os.PathLike[str]) -> bool:
    """Whether a file is a training checkpoint, by the names of its arrays."""
    return {_RUN, "stage0_position"} <= set(entry_names(Path(path)))


def read_checkpoint_model(path: str | os.PathLike[str]) -> RBM | DBM:
    """The model in training, as the run would return it if it ended now: an RBM, or a DBM of all layers together.

    The layers of a greedy stack make up no model that the file tells of; they are refused.
    """
    file = Path(path)
    arrays = read_sealed(file, _CONTEXT)
    last = f"stage{sum(name.endswith('_position') for name in arrays) - 1}_"
    position = arrays.get(f"{last}position", np.zeros(0))
    averaged = position.shape == (3,) and position[2] > 0
    prefix = f"{last}{'average' if averaged else 'parameter'}_"
    parameters = [
        arrays[f"{prefix}{i}"]
        for i in range(sum(name.startswith(prefix) for name in arrays))
        if f"{prefix}{i}" in arrays
    ]
    if len(parameters) == 3 and last == "stage0_":
        return RBM(*parameters)
    depth = len(parameters) // 2
    if len(parameters) < 5 or len(parameters) != 2 * depth + 1:
        raise InputError(
            found=f"{file}, a checkpoint of one layer of a stack",
            expected="the checkpoint of an RBM, or of the last stage of a DBM",
            remedy="save models along the training: meltpoint train --trace",
        )
    return DBM(parameters[:depth], parameters[depth:])


def _make_lock_folder(folder: Path, target: Path) -> None:
    try:
        folder.mkdir(exist_ok=True)
    except OSError as problem:
        raise InputError(
            found=f"{target}, beside which no lock can be taken ({problem.strerror})",
            expected="a file in a folder that exists and can be written to",
            remedy="create the folder first, or choose another one",
        ) from problem
    if folder.is_symlink():
        raise InputError(
            found=f"{folder}, which is a link",
            expected="a folder of the training's own",
            remedy="remove the link, or choose another file for the checkpoint",
        )


def _replace(path: Path, folder: Path, arrays: dict[str, NDArray[Any]]) -> None:
    # What a killed process leaves half written lies in the folder that only the holder of the lock uses.
    written = folder / "checkpoint.npz"
    write_sealed(written, arrays, _CONTEXT)
    try:
        written.replace(path)
    except OSError as problem:
        raise InputError(
            found=f"{path}, which cannot be replaced ({problem.strerror})",
            expected="a file that can be written to",
            remedy="change the permissions",
        ) from problem


def _read(path: Path, run: str, plans: Sequence[StagePlan]) -> list[TrainingState]:
    if not path.is_file() or _RUN not in entry_names(path):
        raise InputError(
            found=f"{path}, which is not a checkpoint",
            expected="a checkpoint, or a file that does not exist yet",
            remedy="choose another name for the checkpoint; the trained model goes to a file of its own",
        )
    with zipfile.ZipFile(path) as archive:
        n_bytes = sum(entry.file_size for entry in archive.infolist())
    if n_bytes > sum(plan.most_bytes for plan in plans) + 1024:
        raise _damaged(path, f"{n_bytes:,} bytes, more than this run can have,")
    arrays = read_sealed(path, _CONTEXT)
    if str(arrays.pop(_RUN)) != run:
        raise InputError(
            found=f"a checkpoint of another run in {path}",
            expected="the same data, seed and settings",
            remedy="repeat the call that wrote it, or remove the file to start anew",
        )
    n_stages = sum(name.endswith("_position") for name in arrays)
    stages = [
        {name.removeprefix(prefix): arrays.pop(name) for name in list(arrays) if name.startswith(prefix)}
        for prefix in (f"stage{stage}_" for stage in range(n_stages))
    ]
    if arrays or n_stages > len(plans):
        raise _damaged(path, "arrays of no stage of this run")
    try:
        states = [_from_arrays(stage, plan) for stage, plan in zip(stages, plans, strict=False)]
    except ValueError as problem:
        raise _damaged(path, str(problem)) from problem
    if any(state.epoch < plan.n_epochs for state, plan in zip(states[:-1], plans, strict=False)):
        raise _damaged(path, "a stage that began before the last one had ended")
    return states


def _damaged(path: Path, what: str) -> InputError:
    return InputError(
        found=f"{what} in {path}",
        expected="a checkpoint as it was written",
        remedy="remove the file to start anew",
    )


def _to_arrays(state: TrainingState) -> dict[str, NDArray[Any]]:
    """Arrays by name, from which `_from_arrays` makes the same state to the bit."""
    groups: dict[str, Any] = {
        "parameter": state.dbm.parameters,
        "velocity": state.optimiser.velocity,
        "average": state.optimiser.average,
        "offset": state.offsets,
        "chain": state.chains,
    }
    arrays = {f"{name}_{i}": array for name, group in groups.items() for i, array in enumerate(group)}
    position = [state.epoch, state.batch, state.optimiser.n_averaged]
    return {"position": np.array(position, np.int64), **arrays}


def _from_arrays(arrays: dict[str, NDArray[Any]], plan: StagePlan) -> TrainingState:
    """The state that `_to_arrays` described, or a ValueError that says which array cannot belong to it.

    Compiled code trusts every shape and every count, so all of them are checked here.
    """
    architecture, settings = plan.architecture, plan.settings
    epoch, batch, n_averaged = _checked_position(arrays.pop("position"), plan)
    begun = epoch > 0 or batch > 0
    shapes = plan.parameter_shapes

    def group(
        name: str, shapes: Sequence[tuple[int, ...]], dtype: type, largest: Sequence[float]
    ) -> list[Any]:
        return [
            _checked(f"{name}_{i}", arrays.pop(f"{name}_{i}", None), shape, dtype, high)
            for i, (shape, high) in enumerate(zip(shapes, largest, strict=True))
        ]

    anything = [np.inf] * len(shapes)
    parameters, velocity, average = (
        group(name, shapes, np.float32, anything) for name in ("parameter", "velocity", "average")
    )
    offsets, chains = [], []
    if begun and settings.centred:
        sizes = [(size,) for size in architecture.sizes]
        largest = [architecture.copies[0] * architecture.visible.largest, *architecture.copies[1:]]
        offsets = group("offset", sizes, np.float32, largest)
    if begun and settings.method == "pcd":
        sizes = [(plan.n_chains, size) for size in architecture.sizes[1::2]]
        chains = group("chain", sizes, np.uint8, architecture.copies[1::2])
    if arrays:
        raise ValueError(f"an array {sorted(arrays)[0]!r} too many")
    optimiser = OptimiserState(tuple(velocity), tuple(average), n_averaged)
    return TrainingState(
        trainable_dbm(parameters, architecture.copies, architecture.visible),
        optimiser,
        offsets,
        chains,
        epoch,
        batch,
    )


def _checked_position(position: NDArray[Any], plan: StagePlan) -> tuple[int, int, int]:
    """Finished epochs and batches within the plan, and as many averaged iterates as belong to them."""
    if position.shape != (3,) or position.dtype != np.int64:
        raise ValueError("a position that is not three whole numbers")
    epoch, batch, n_averaged = (int(number) for number in position)
    n_epochs, n_batches = plan.n_epochs, plan.n_batches
    most = n_batches if epoch < n_epochs else 0
    if not (0 <= epoch <= n_epochs and 0 <= batch <= most):
        raise ValueError(f"epoch {epoch}, batch {batch} of {n_epochs} epochs of {n_batches} batches")
    averaged = n_averaged_before(epoch, batch, n_batches, n_epochs, plan.settings.averaged)
    if n_averaged != averaged:
        raise ValueError(f"an average of {n_averaged} iterates where {averaged} belong")
    return epoch, batch, n_averaged


def _checked(
    name: str, array: NDArray[Any] | None, shape: tuple[int, ...], dtype: type, largest: float
) -> NDArray[Any]:
    """A C-ordered array of this shape and type, finite, and from 0 to `largest` unless that is infinite."""
    if array is None:
        raise ValueError(f"no array {name}")
    if array.shape != shape or array.dtype != dtype:
        raise ValueError(f"{name} {array.shape} of {array.dtype}, not {shape} of {np.dtype(dtype)},")
    if not np.isfinite(array).all():
        raise ValueError(f"{name} with values that are not finite")
    slack = 1e-3 if array.dtype.kind == "f" else 0  # means are rounded
    if np.isfinite(largest) and not (array.min() >= -slack and array.max() <= largest + slack):
        raise ValueError(f"{name} with values outside 0 to {largest:g}")
    return np.array(array, dtype, order="C")
