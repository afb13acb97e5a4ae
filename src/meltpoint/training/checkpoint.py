"""Checkpoints: a run that was stopped at any moment ends with the same bits as one that was not.

The file is a sealed record that is replaced whole. It holds a fingerprint of data and settings, so that a run is
never continued with others, and the states of the finished stages and of the present one.

While a run is open a file `.NAME.lock` beside it is locked. The run removes it at its end.
"""

import math
import os
import time
import warnings
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meltpoint.errors import InputError, RunWarning, SystemFailure
from meltpoint.fingerprint import fingerprint
from meltpoint.formats.atomic import remove_abandoned
from meltpoint.formats.npz import entry_names
from meltpoint.layers import Unit, kind_of_layer
from meltpoint.models.dbm import DBM
from meltpoint.models.rbm import RBM
from meltpoint.runs.files import locked, read_sealed, write_sealed
from meltpoint.runs.records import from_arrays, to_arrays
from meltpoint.training.phases import trainable_dbm
from meltpoint.training.stage import StagePlan, TrainingState

_CONTEXT = "meltpoint training checkpoint"
_LARGEST_SHARE = 0.05  # largest fraction of the training time for writing checkpoints
_GROUPS: tuple[str, ...] = "parameters", "velocity", "average", "offsets", "chains"
_MARGIN = 1024  # bytes: more than the header of an array takes


@dataclass(frozen=True)
class CheckpointRecord:
    """What a file holds: the fingerprint of a run, its visible units, and the stages that have begun."""

    run: str
    visible: str
    kept: tuple[NDArray[Any], ...]
    stages: tuple[TrainingState, ...]


@dataclass
class Checkpoint:
    """The open file of one run, and the states of its stages as last read or written."""

    path: Path
    run: str
    visible: Unit
    stages: list[TrainingState] = field(default_factory=list)
    due: float = 0.0
    failing: bool = False

    def save(self, stage: int, state: TrainingState) -> None:
        """Write the state of the present stage, after the last states of the stages before it.

        Training goes on when the disk does not take the file. It is tried again later; one warning says so.
        """
        begun = time.monotonic()
        self.stages[stage:] = [state]
        record = CheckpointRecord(self.run, self.visible.name, self.visible.kept, tuple(self.stages))
        try:
            write_sealed(self.path, to_arrays(record), _CONTEXT)
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


@contextmanager
def open_checkpoint(
    path: str | os.PathLike[str], rows: NDArray[Any], plans: Sequence[StagePlan], seed: int
) -> Iterator[Checkpoint]:
    """The checkpoint at `path`, empty if there is no such file; an error if it is of another run, or in use."""
    target = Path(path).resolve()
    run = fingerprint({"rows": rows}, repr((plans, seed)))
    lock = target.with_name(f".{target.name}.lock")
    with locked(lock, f"training that writes to {path}", "choose another file for the checkpoint"):
        remove_abandoned(target.parent)
        try:
            stages = _read(target, run, plans) if target.exists() else []
            yield Checkpoint(target, run, plans[0].architecture.visible, stages)
        finally:
            # Removed while it is locked: whoever waits for the lock finds its file gone, and tries again.
            with suppress(OSError):
                lock.unlink()


def is_checkpoint(path: str | os.PathLike[str]) -> bool:
    """Whether a file is a training checkpoint, by the names of its arrays."""
    return {"run", "stages", "stages.0.parameters"} <= set(entry_names(Path(path)))


def read_checkpoint_model(path: str | os.PathLike[str]) -> RBM | DBM:
    """The model in training, as the run would return it if it ended now: an RBM, or a DBM of all layers together.

    The layers of a greedy stack make up no model that the file tells of; they are refused.
    """
    file = Path(path)
    record = from_arrays(CheckpointRecord, read_sealed(file, _CONTEXT))
    try:
        return _model(file, record)
    except (TypeError, ValueError) as problem:
        if isinstance(problem, InputError):
            raise
        raise _damaged(file, f"parameters of no model ({problem})") from problem


def _model(file: Path, record: CheckpointRecord) -> RBM | DBM:
    last = record.stages[-1]
    parameters = last.average if last.n_averaged else last.parameters
    visible = kind_of_layer(record.visible).refitted(*record.kept)
    if len(record.stages) == 1 and len(parameters) == 3 + visible.n_further:
        own = [parameters[1], *parameters[3:], *filter(np.ndim, record.kept)]
        if parameters[0].ndim != 2 or any(each.shape != parameters[0].shape[:1] for each in own):
            raise ValueError("parameters that do not fit each other")
        return RBM(**visible.rbm_arguments(*parameters))
    depth = len(parameters) // 2
    if depth < 2 or len(parameters) != 2 * depth + 1:
        raise InputError(
            found=f"{file}, a checkpoint of one layer of a stack",
            expected="the checkpoint of an RBM, or of the last stage of a DBM",
            remedy="save models along the training: meltpoint train --trace",
        )
    return DBM(parameters[:depth], parameters[depth:])


def _read(path: Path, run: str, plans: Sequence[StagePlan]) -> list[TrainingState]:
    if not path.is_file() or not is_checkpoint(path):
        raise InputError(
            found=f"{path}, which is not a checkpoint of this version",
            expected="a checkpoint, or a file that does not exist yet",
            remedy="choose another name for the checkpoint; the trained model goes to a file of its own",
        )
    with zipfile.ZipFile(path) as archive:
        n_bytes = sum(entry.file_size for entry in archive.infolist())
    if n_bytes > _MARGIN + sum(map(_most_bytes, plans)):
        raise _damaged(path, f"{n_bytes:,} bytes, more than this run can have,")
    arrays = read_sealed(path, _CONTEXT)
    try:
        record = from_arrays(CheckpointRecord, arrays)
    except InputError as problem:
        raise _damaged(path, problem.found) from problem
    if record.run != run:
        raise InputError(
            found=f"a checkpoint of another run in {path}",
            expected="the same data, seed and settings",
            remedy="repeat the call that wrote it, or remove the file to start anew",
        )
    stages = list(record.stages)
    begun = list(zip(stages, plans, strict=False))
    try:
        for stage, plan in begun:
            check_stage(stage, plan)
            for name in _GROUPS:
                setattr(stage, name, tuple(np.array(each, order="C") for each in getattr(stage, name)))
            stage.dbm = trainable_dbm(stage.parameters, plan.architecture.copies, plan.architecture.visible)
    except ValueError as problem:
        raise _damaged(path, str(problem)) from problem
    if not 1 <= len(stages) <= len(plans) or any(stage.epoch < plan.n_epochs for stage, plan in begun[:-1]):
        raise _damaged(path, "a stage that began before the last one had ended")
    return stages


def _damaged(path: Path, what: str) -> InputError:
    return InputError(
        found=f"{what} in {path}",
        expected="a checkpoint as it was written",
        remedy="remove the file to start anew",
    )


_Expected = tuple[tuple[int, ...], type, float]
"""Shape and type of an array, and its largest value if its values are from 0 to that."""


def _expected(plan: StagePlan, begun: bool) -> dict[str, list[_Expected]]:
    """The arrays of a stage's state, before its first batch or after it."""
    sizes, copies = plan.architecture.sizes, plan.architecture.copies
    largest = [copies[0] * plan.architecture.visible.largest, *copies[1:]]
    parameters: list[_Expected] = [(shape, np.float32, math.inf) for shape in plan.parameter_shapes]
    offsets: list[_Expected] = []
    chains: list[_Expected] = []
    if begun and plan.settings.centred:
        offsets = [((size,), np.float32, high) for size, high in zip(sizes, largest, strict=True)]
    if begun and plan.settings.method == "pcd":
        odd = zip(sizes[1::2], copies[1::2], strict=True)
        chains = [((plan.n_chains, size), np.uint8, high) for size, high in odd]
    return dict(zip(_GROUPS, (parameters, parameters, parameters, offsets, chains), strict=True))


def _most_bytes(plan: StagePlan) -> int:
    """Bytes that the arrays of a stage's state never exceed, with their headers and what data said of the units."""
    arrays = [array for group in _expected(plan, begun=True).values() for array in group]
    kept = plan.architecture.visible.kept
    n_bytes = sum(math.prod(shape) * np.dtype(kind).itemsize for shape, kind, _ in arrays)
    n_arrays = len(arrays) + len(kept) + len(fields(TrainingState))
    return n_bytes + sum(each.nbytes for each in kept) + _MARGIN * n_arrays


def check_stage(stage: TrainingState, plan: StagePlan) -> None:
    """A ValueError that says what cannot belong to this stage.

    Compiled code trusts every shape and every count, so all of them are checked here.
    """
    epoch, batch, n_epochs, n_batches = stage.epoch, stage.batch, plan.n_epochs, plan.n_batches
    if not (0 <= epoch <= n_epochs and 0 <= batch <= (n_batches if epoch < n_epochs else 0)):
        raise ValueError(f"epoch {epoch}, batch {batch} of {n_epochs} epochs of {n_batches} batches")
    averaged = sum(
        plan.averages(e, b) for e in range(epoch + 1) for b in range(n_batches if e < epoch else batch)
    )
    if stage.n_averaged != averaged:
        raise ValueError(f"an average of {stage.n_averaged} iterates where {averaged} belong")
    for name, expected in _expected(plan, begun=epoch > 0 or batch > 0).items():
        group = getattr(stage, name)
        if len(group) != len(expected):
            raise ValueError(f"{len(group)} arrays of {name}, not {len(expected)},")
        for array, (shape, dtype, largest) in zip(group, expected, strict=True):
            if array.shape != shape or array.dtype != dtype:
                found = f"{name} {array.shape} of {array.dtype}"
                raise ValueError(f"{found}, not {shape} of {np.dtype(dtype)},")
            if not np.isfinite(array).all():
                raise ValueError(f"{name} with values that are not finite")
            slack = 1e-3 if array.dtype.kind == "f" else 0  # means are rounded
            if largest < math.inf and not (array.min() >= -slack and array.max() <= largest + slack):
                raise ValueError(f"{name} with values outside 0 to {largest:g}")
