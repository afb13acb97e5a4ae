"""`meltpoint sample`: samples of a model, or of its annealing model, as a picture or an array."""

import math
from pathlib import Path
from typing import Annotated

import typer

from meltpoint.cli import options
from meltpoint.cli.ending import report_errors
from meltpoint.cli.inputs import check_output, load_model, read_train
from meltpoint.cli.screen import echo, progress_bar
from meltpoint.defaults import DEFAULTS, SAMPLE_COUNT, SAMPLE_STEPS
from meltpoint.errors import InputError


def sample(
    model: options.ModelFile,
    option: options.FormatOptions = None,
    out: Annotated[Path, typer.Option(help="A .png picture, or .npy zeros and ones.")] = Path("samples.png"),
    n: Annotated[int, typer.Option("-n", "--count", help="How many samples.")] = SAMPLE_COUNT,
    steps: Annotated[int, typer.Option(help="Annealing steps.")] = SAMPLE_STEPS,
    annealing_model: Annotated[
        bool,
        typer.Option("--annealing-model", help="Sample the annealing model, whose likelihood RAISE bounds."),
    ] = False,
    train: Annotated[
        str | None,
        typer.Option(help="Training examples, whose base rates the annealing model starts from."),
    ] = None,
    binarize: options.BinarizeOption = None,
    seed: options.SeedOption = DEFAULTS.seed,
    width: Annotated[
        int | None, typer.Option(help="Pixels per row of a picture.", show_default="square")
    ] = None,
) -> None:
    """Draw samples; the path of the file goes to stdout."""
    with report_errors():
        check_output(out, ".png", ".npy")
        if train is not None and not annealing_model:
            raise InputError(
                found="--train without --annealing-model",
                expected="both or neither",
                remedy="a model's own samples need no base rates",
            )
        import numpy as np

        import meltpoint as mp
        from meltpoint.datasets.picture import mosaic, write_png
        from meltpoint.formats.atomic import atomic_write

        loaded = load_model(model, option)
        shape = (
            _image_shape(loaded.n_visible, width) if out.suffix.lower() == ".png" else (1, loaded.n_visible)
        )
        with progress_bar() as progress:
            if annealing_model:
                base = mp.uniform()
                if train is not None:
                    base = mp.data_rates(read_train(train, binarize, seed, progress, model=loaded), loaded)
                drawn = mp.sample_annealing_model(
                    loaded, n, base=base, steps=steps, seed=seed, progress=progress
                )
            else:
                drawn = mp.sample(loaded, n, steps=steps, seed=seed, progress=progress)
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
