"""`meltpoint convert`: a model file of another program as a model file of meltpoint."""

from pathlib import Path
from typing import Any

import typer

from meltpoint.cli import options
from meltpoint.cli.ending import NOT_TO_BE_TRUSTED, report_errors
from meltpoint.cli.inputs import check_output, read_train
from meltpoint.cli.screen import echo, echo_err, progress_bar

_LOAD = {
    "orientation": (str, "Axes of square weights: visible-hidden or hidden-visible."),
    "visible": (str, "Kind of the visible units: bernoulli or spin."),
    "hidden": (str, "Kind of the hidden units: bernoulli or spin."),
    "weights": (str, "Name of the array that holds the weights."),
    "visible_bias": (str, "Name of the array of visible biases."),
    "hidden_bias": (str, "Name of the array of hidden biases."),
    "units": (str, "Units of a graph: spin or bernoulli."),
    "temperature": (float, "T of exp(-E / T), for files that hold an energy."),
    "beta": (float, "1 / T, in place of --temperature."),
    "states": (int, "Number of states of every site."),
    "base": (int, "Number of the first site: 0 or 1."),
    "alphabet": (str, "Letters of the states in order, or protein, rna, dna."),
    "gap": (str, "Whether a gap is a state: state or masked."),
    "gauge": (str, "zero-sum, to move the couplings there."),
    "update": (str, "Which update of training: a number, first, last."),
    "member": (str, "Which file of a tar archive."),
    "unpacked": (int, "Megabytes that a packed file may be unpacked to (256)."),
}
"""Keywords of `load`: their types, and what they leave open."""


@options.takes(
    options.argument("source", Path, "IN", "A model file of any format in docs/formats.md."),
    options.argument("out", Path, "OUT.npz", "The model file to write."),
    *(options.option(name, kind, text) for name, (kind, text) in _LOAD.items()),
    options.option(
        "check", str, "Compare with other readings of the parameters on these examples.", metavar="DATA"
    ),
    options.OUTSIDE,
)
def convert(source: Path, out: Path, check: str | None, outside: str, **given: Any) -> None:
    """Write a model file of another program as one of meltpoint; its path goes to stdout.

    Exit code 0: written. 1: written, but --check finds that the data fit another reading much better. 2: wrong input.
    """
    with report_errors():
        check_output(out, ".npz")
        import meltpoint as mp

        model = mp.load(source, **given)
        mp.save(model, out, note=f"converted from {source.name}")
        echo_err(f"{model}")
        if check is not None:
            with progress_bar() as progress:
                letters = {"alphabet": given["alphabet"], "outside": outside}
                data = read_train(check, None, 0, progress, model=model, **letters)
            found = mp.check_conventions(model, data)
            echo_err(f"conventions: {found or 'there are no other readings of this kind of model'}")
            if found is not None and found.suspected is not None:
                raise typer.Exit(NOT_TO_BE_TRUSTED)
        echo(out)
