"""Samples and training examples for the figures, and how they are kept: as letters."""

from typing import Any

import numpy as np

from meltpoint.errors import Progress
from meltpoint.estimators.sampling import sample, sample_annealing_model
from meltpoint.models.checks import Bits
from meltpoint.paper.cells import Cell
from meltpoint.paper.shelf import Loaded
from meltpoint.randomness import Purpose, generator


def draw_pictures(
    cell: Cell, loaded: Loaded, threads: int | None, progress: Progress | None
) -> dict[str, Any]:
    """The pictures of a cell: samples of the model, of its annealing model, or training examples."""
    count, steps = cell.chains or 1, cell.steps or 1
    common: dict[str, Any] = {"seed": cell.seed, "threads": threads, "progress": progress}
    if cell.method == "samples":
        drawn = sample(loaded.model, count, steps=steps, **common)
    elif cell.method == "annealed":
        drawn = sample_annealing_model(
            loaded.model, count, base=loaded.base(cell.base), steps=steps, **common
        )
    else:
        train = loaded.data.train
        chosen = generator(cell.seed, Purpose.EXAMPLES).choice(len(train), size=count, replace=False)
        drawn = train[chosen]
    return {"image_shape": list(loaded.data.image_shape), "pictures": _to_letters(drawn)}


def pictures_of(result: dict[str, Any]) -> tuple[Bits, tuple[int, int]]:
    """The pictures (picture, pixel) that a cell's result holds, and their shape."""
    rows, columns = result["image_shape"]
    packed = np.array([list(bytes.fromhex(letters)) for letters in result["pictures"]], np.uint8)
    return np.unpackbits(packed, axis=1, count=rows * columns), (rows, columns)


def _to_letters(pictures: Bits) -> list[str]:
    return [row.tobytes().hex() for row in np.packbits(pictures, axis=1)]
