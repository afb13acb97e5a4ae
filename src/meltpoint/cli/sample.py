"""`meltpoint sample`: samples of a model, or of its annealing model, as a picture or an array."""

import math
from pathlib import Path
from typing import Any

from meltpoint.cli import options
from meltpoint.cli.inputs import Reading, check_output, load_model
from meltpoint.cli.screen import echo, progress_bar
from meltpoint.defaults import SAMPLE_COUNT, SAMPLE_STEPS
from meltpoint.errors import InputError


@options.takes(
    options.MODEL,
    options.FORMAT_OPTIONS,
    options.option("out", Path, "A .png picture, or .npy zeros and ones.", default=Path("samples.png")),
    options.option("n", int, "How many samples.", default=SAMPLE_COUNT, flags=("-n", "--count")),
    options.option("steps", int, "Annealing steps.", default=SAMPLE_STEPS),
    options.option(
        "annealing_model", bool, "Sample the annealing model, whose likelihood RAISE bounds.", default=False
    ),
    options.option("train", str, "Training examples, whose base rates the annealing model starts from."),
    options.BINARIZE,
    options.SEED,
    options.option("width", int, "Pixels per row of a picture.", "square"),
)
def sample(
    model: Path,
    option: list[str] | None,
    out: Path,
    n: int,
    annealing_model: bool,
    train: str | None,
    binarize: str | None,
    width: int | None,
    **given: Any,
) -> None:
    """Draw samples; the path of the file goes to stdout."""
    check_output(out, ".png", ".npy")
    if train is not None and not annealing_model:
        raise InputError(
            found="--train without --annealing-model",
            expected="both or neither",
            remedy="a model's own samples need no base rates",
        )
    import numpy as np

    import meltpoint as mp
    from meltpoint.data.picture import mosaic, write_png
    from meltpoint.formats.atomic import atomic_write

    loaded = load_model(model, option)
    shape = _image_shape(loaded.n_visible, width) if out.suffix.lower() == ".png" else (1, loaded.n_visible)
    with progress_bar() as progress:
        if train is not None:
            examples = Reading(progress, given["seed"], binarize).read(train, "train", loaded)
            given["base"] = mp.data_rates(examples, loaded)
        draw = mp.sample_annealing_model if annealing_model else mp.sample
        drawn = draw(loaded, n, **given, progress=progress)
    if out.suffix.lower() == ".png":
        write_png(mosaic(drawn, shape), out)
    else:
        with atomic_write(out) as file:
            np.save(file, drawn, allow_pickle=False)
    echo(out)


def _image_shape(pixels: int, width: int | None) -> tuple[int, int]:
    across = math.isqrt(pixels) if width is None else width
    if across < 1 or pixels % across or (width is None and across * across != pixels):
        raise InputError(
            found=f"{pixels} visible units and {'no width' if width is None else f'width {width}'}",
            expected="units that fill a rectangle",
            remedy="say how many pixels a row has with --width, or write an array with --out samples.npy",
        )
    return pixels // across, across
