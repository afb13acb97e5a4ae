"""What all stages of one training run share."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from numpy.typing import ArrayLike

from meltpoint.errors import Progress
from meltpoint.randomness import check_seed
from meltpoint.training.checkpoint import Checkpoint, digest_of, open_checkpoint
from meltpoint.training.epoch import Epoch
from meltpoint.training.examples import Examples, checked
from meltpoint.training.settings import Settings


@dataclass(frozen=True)
class Run:
    """Data, one Settings for each stage, the seed, and who is told and what is saved on the way."""

    examples: Examples
    validation: Examples | None
    settings: tuple[Settings, ...]
    seed: int
    progress: Progress | None
    on_epoch: Callable[[Epoch], None] | None
    checkpoint: Checkpoint | None


def prepare(
    data: ArrayLike,
    validation: ArrayLike | None,
    settings: Sequence[Settings],
    choices: Sequence[object],
    seed: int,
    progress: Progress | None,
    on_epoch: Callable[[Epoch], None] | None,
    checkpoint: str | os.PathLike[str] | None,
) -> Run:
    """A run on checked data; a checkpoint must agree in data, settings, seed and `choices`."""
    examples = checked(data, "data")
    seed = check_seed(seed)
    file = None
    if checkpoint is not None:
        file = open_checkpoint(checkpoint, digest_of(examples.rows, (*choices, *settings, seed)))
    return Run(
        examples,
        None if validation is None else checked(validation, "validation", examples.width),
        tuple(settings),
        seed,
        progress,
        on_epoch,
        file,
    )
