"""`meltpoint convert`: a model file of another program as a model file of meltpoint."""

from pathlib import Path
from typing import Any

import typer

from meltpoint.cli import options
from meltpoint.cli.ending import NOT_TO_BE_TRUSTED
from meltpoint.cli.inputs import LOAD_OPTIONS, Reading, check_output
from meltpoint.cli.screen import echo, echo_err, progress_bar


@options.takes(
    options.argument("source", Path, "IN", "A model file of any format in docs/formats.md."),
    options.argument("out", Path, "OUT.npz", "The model file to write."),
    *(options.option(name, kind, text) for name, (kind, text) in LOAD_OPTIONS.items()),
    options.option(
        "check", str, "Compare with other readings of the parameters on these examples.", metavar="DATA"
    ),
    options.OUTSIDE,
)
def convert(source: Path, out: Path, check: str | None, outside: str, **given: Any) -> None:
    """Write a model file of another program as one of meltpoint; its path goes to stdout.

    Exit code 0: written. 1: written, but --check finds that the data fit another reading much better. 2: wrong input.
    """
    check_output(out, ".npz")
    import meltpoint as mp

    model = mp.load(source, **given)
    mp.save(model, out, note=f"converted from {source.name}")
    echo_err(f"{model}")
    if check is not None:
        with progress_bar() as progress:
            reading = Reading(progress, alphabet=given["alphabet"], outside=outside)
            data = reading.read(check, "train", model)
        found = mp.check_conventions(model, data)
        echo_err(f"conventions: {found or 'there are no other readings of this kind of model'}")
        if found is not None and found.suspected is not None:
            raise typer.Exit(NOT_TO_BE_TRUSTED)
    echo(out)
