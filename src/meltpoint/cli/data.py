"""`meltpoint data`: the data sets there are, their files, and pictures of them."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from meltpoint.arguments import Count, Seed
from meltpoint.cli import options
from meltpoint.cli.screen import as_json, echo, echo_err, progress_bar

if TYPE_CHECKING:
    from meltpoint.data.catalogue import Entry

app = typer.Typer(help="List, fetch and look at data sets.", no_args_is_help=True)

_NAME = options.argument("name", str, "NAME", "A name that `meltpoint data list` shows.")


@app.command("list")
@options.takes(options.JSON)
def list_(json: bool) -> None:
    """List the data sets, and whether their files are here."""
    from meltpoint.data.catalogue import ENTRIES

    described = [_described(entry) for entry in ENTRIES.values()]
    if json:
        echo(as_json(described))
        return
    layout = "{:<17} {:>7} {:>7}  {:<8} {:<31} {}"
    echo(layout.format("name", "train", "test", "pixels", "what", "files"))
    for entry, row in zip(ENTRIES.values(), described, strict=True):
        pixels = "{} x {}".format(*entry.image_shape)
        sizes = f"{entry.n_train:,}", f"{entry.n_test:,}"
        echo(layout.format(entry.name, *sizes, pixels, entry.about, _whereabouts(row["files"])))


@app.command()
@options.takes(_NAME)
def fetch(name: str) -> None:
    """Fetch the files of a data set, unless they are here; their paths go to stdout."""
    from meltpoint.data.catalogue import entry_of, paths_of

    entry = entry_of(name)
    with progress_bar() as progress:
        paths = paths_of(entry, progress)
        # Reading finds what no checksum can in a file that the user supplied.
        entry.read(*paths)
    if not paths:
        echo_err(f"{name} is built in: there is nothing to fetch.")
    for path in paths:
        echo(path)


@app.command()
@options.takes(
    _NAME,
    options.option("out", Path, "The picture, a .png file.", shown="NAME.png"),
    options.option("count", Count, "How many training examples to show.", default=100),
    options.option("seed", Seed, "Seed of the binarisation and of the choice.", default=0),
)
def show(name: str, out: Path | None, count: int, seed: int) -> None:
    """Write a picture of training examples; its path goes to stdout."""
    import numpy as np

    from meltpoint.data.catalogue import load
    from meltpoint.data.picture import mosaic, write_png

    with progress_bar() as progress:
        dataset = load(name, seed=seed, progress=progress)
    shown = min(count, len(dataset.train))
    chosen = np.sort(np.random.default_rng(seed).choice(len(dataset.train), shown, replace=False))
    path = Path(f"{name}.png") if out is None else out
    write_png(mosaic(dataset.train[chosen], dataset.image_shape), path)
    echo_err(str(dataset))
    echo(path)


def _described(entry: "Entry") -> dict[str, Any]:
    """One data set, for machines; the path of a file that is not here is null."""
    from meltpoint.formats.download import here

    return {
        "name": entry.name,
        "what": entry.about,
        "train": entry.n_train,
        "test": entry.n_test,
        "image_shape": entry.image_shape,
        "files": [
            {
                "name": file.name,
                "bytes": file.size,
                "checksum": file.checksum,
                "path": None if (path := here(file)) is None else str(path),
            }
            for file in entry.files
        ],
    }


def _whereabouts(files: list[dict[str, Any]]) -> str:
    """Where the files are, in a few words."""
    missing = [file for file in files if file["path"] is None]
    if not files:
        return "built in"
    if not missing:
        return "here"
    if any(file["bytes"] is None for file in missing):
        return "to be downloaded"
    return f"to be downloaded, {sum(file['bytes'] for file in missing) / 1e6:.1f} MB"
