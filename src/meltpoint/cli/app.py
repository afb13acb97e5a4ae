"""The list of commands. Heavy imports happen inside them, so that --help answers at once."""

from typing import Annotated

import typer

from meltpoint.cli import data, runs
from meltpoint.cli.compare import compare
from meltpoint.cli.convert import convert
from meltpoint.cli.demo import demo
from meltpoint.cli.evaluate import evaluate
from meltpoint.cli.log_z import log_z
from meltpoint.cli.paper import paper
from meltpoint.cli.sample import sample
from meltpoint.cli.screen import echo
from meltpoint.cli.trace import trace
from meltpoint.cli.train import train
from meltpoint.version import __version__

app = typer.Typer(
    help="How probable a Markov random field makes a test set, from both sides.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain help: it takes half the time, and can be pasted anywhere
)


def _version(wanted: bool) -> None:
    if wanted:
        echo(f"meltpoint {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Options of the command itself."""


app.command()(convert)
app.command()(compare)
app.command()(demo)
app.command()(evaluate)
app.command("log-z")(log_z)
app.command()(paper)
app.command()(sample)
app.command()(trace)
app.command()(train)
app.add_typer(data.app, name="data")
app.add_typer(runs.app, name="runs")
