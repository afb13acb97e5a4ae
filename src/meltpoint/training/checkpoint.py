"""Checkpoints: a run that was stopped at any moment ends with the same bits as one that was not.

The file is an .npz that is replaced whole. It holds the machines of finished stages, the state of the present
one, and a digest of data and settings, so that a run is never continued with others.
"""

import hashlib
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meltpoint.errors import InputError
from meltpoint.files.atomic import atomic_write
from meltpoint.files.npz import entry_names, read_entries
from meltpoint.training.state import Training, from_arrays, to_arrays

_DIGEST = "digest"
_LARGEST_SHARE = 0.05  # of the training time that may go into writing checkpoints


@dataclass
class Checkpoint:
    """The file of one run: stages (stage, array name -> array) as last read or written."""

    path: Path
    digest: NDArray[np.uint8]
    stages: list[dict[str, NDArray[Any]]] = field(default_factory=list)
    due: float = 0.0

    def training_at(self, stage: int) -> Training | None:
        """The state of a stage, None if it has not begun."""
        return from_arrays(self.stages[stage]) if stage < len(self.stages) else None

    def save(self, stage: int, training: Training) -> None:
        """Write the state of the present stage, after the last states of the stages before it."""
        begun = time.monotonic()
        self.stages[stage:] = [to_arrays(training)]
        arrays = {_DIGEST: self.digest}
        for i, named in enumerate(self.stages):
            arrays |= {f"stage{i}_{name}": array for name, array in named.items()}
        with atomic_write(self.path) as file:
            np.savez(file, allow_pickle=False, **arrays)
        ended = time.monotonic()
        self.due = ended + (ended - begun) / _LARGEST_SHARE

    def save_if_due(self, stage: int, training: Training) -> None:
        """Write now, unless writing would take more than its share of the time."""
        if time.monotonic() >= self.due:
            self.save(stage, training)


def open_checkpoint(path: str | os.PathLike[str], digest: bytes) -> Checkpoint:
    """The checkpoint at `path`, empty if there is no such file; an error if it belongs to another run."""
    checkpoint = Checkpoint(Path(path), np.frombuffer(digest, np.uint8))
    if not checkpoint.path.exists():
        return checkpoint
    names = entry_names(checkpoint.path)
    if _DIGEST not in names:
        raise InputError(
            found=f"{path}, which is not a checkpoint",
            expected="a checkpoint, or a file that does not exist yet",
            remedy="choose another name for the checkpoint; the trained model goes to a file of its own",
        )
    arrays = read_entries(checkpoint.path, names)
    if arrays[_DIGEST].tobytes() != digest:
        raise InputError(
            found=f"a checkpoint of another run in {path}",
            expected="the same data, seed and settings",
            remedy="repeat the call that wrote it, or remove the file to start anew",
        )
    n_stages = len({name.partition("_")[0] for name in names} - {_DIGEST})
    for stage in range(n_stages):
        prefix = f"stage{stage}_"
        checkpoint.stages.append(
            {name.removeprefix(prefix): arrays[name] for name in names if name.startswith(prefix)}
        )
    return checkpoint


def digest_of(rows: NDArray[Any], choices: Sequence[Any]) -> bytes:
    """A digest of the training data and of everything that was chosen."""
    digest = hashlib.blake2b(repr((rows.shape, rows.dtype.str, choices)).encode(), digest_size=16)
    digest.update(np.ascontiguousarray(rows).data)
    return digest.digest()
