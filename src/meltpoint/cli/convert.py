"""`meltpoint convert`: a model file of another program as a model file of meltpoint."""

from pathlib import Path
from typing import Annotated

import typer

from meltpoint.cli import options
from meltpoint.cli.ending import NOT_TO_BE_TRUSTED, report_errors
from meltpoint.cli.inputs import Sequences, check_output, read_train
from meltpoint.cli.screen import echo, echo_err, progress_bar


def convert(
    source: Annotated[
        Path, typer.Argument(metavar="IN", help="A model file of any format in docs/formats.md.")
    ],
    out: Annotated[Path, typer.Argument(metavar="OUT.npz", help="The model file to write.")],
    orientation: Annotated[
        str | None, typer.Option(help="Axes of square weights: visible-hidden or hidden-visible.")
    ] = None,
    visible: Annotated[str | None, typer.Option(help="Kind of the visible units: bernoulli or spin.")] = None,
    hidden: Annotated[str | None, typer.Option(help="Kind of the hidden units: bernoulli or spin.")] = None,
    weights: Annotated[str | None, typer.Option(help="Name of the array that holds the weights.")] = None,
    visible_bias: Annotated[str | None, typer.Option(help="Name of the array of visible biases.")] = None,
    hidden_bias: Annotated[str | None, typer.Option(help="Name of the array of hidden biases.")] = None,
    units: Annotated[str | None, typer.Option(help="Units of a graph: spin or bernoulli.")] = None,
    temperature: Annotated[
        float | None, typer.Option(help="T of exp(-E / T), for files that hold an energy.")
    ] = None,
    beta: Annotated[float | None, typer.Option(help="1 / T, in place of --temperature.")] = None,
    states: Annotated[int | None, typer.Option(help="Number of states of every site.")] = None,
    base: Annotated[int | None, typer.Option(help="Number of the first site: 0 or 1.")] = None,
    alphabet: Annotated[
        str | None, typer.Option(help="Letters of the states in order, or protein, rna, dna.")
    ] = None,
    gap: Annotated[str | None, typer.Option(help="Whether a gap is a state: state or masked.")] = None,
    gauge: Annotated[str | None, typer.Option(help="zero-sum, to move the couplings there.")] = None,
    update: Annotated[
        str | None, typer.Option(help="Which update of training: a number, first, last.")
    ] = None,
    member: Annotated[str | None, typer.Option(help="Which file of a tar archive.")] = None,
    check: Annotated[
        str | None,
        typer.Option(metavar="DATA", help="Compare with other readings of the parameters on these examples."),
    ] = None,
    outside: options.OutsideOption = "refuse",
) -> None:
    """Write a model file of another program as one of meltpoint; its path goes to stdout.

    Exit code 0: written. 1: written, but --check finds that the data fit another reading much better. 2: wrong input.
    """
    given = {
        "orientation": orientation,
        "visible": visible,
        "hidden": hidden,
        "weights": weights,
        "visible_bias": visible_bias,
        "hidden_bias": hidden_bias,
        "units": units,
        "temperature": temperature,
        "beta": beta,
        "states": states,
        "base": base,
        "alphabet": alphabet,
        "gap": gap,
        "gauge": gauge,
        "update": update,
        "member": member,
    }
    with report_errors():
        check_output(out, ".npz")
        import meltpoint as mp

        model = mp.load(source, **given)
        mp.save(model, out, note=f"converted from {source.name}")
        echo_err(f"{model}")
        if check is not None:
            with progress_bar() as progress:
                sequences = Sequences(alphabet, outside)
                data = read_train(check, None, 0, progress, model=model, sequences=sequences)
            found = mp.check_conventions(model, data)
            echo_err(f"conventions: {found or 'there are no other readings of this kind of model'}")
            if found is not None and found.suspected is not None:
                raise typer.Exit(NOT_TO_BE_TRUSTED)
        echo(out)
