"""The list of commands. Heavy imports happen inside them, so that --help answers at once."""

from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from meltpoint.cli import data, runs
from meltpoint.cli.compare import compare
from meltpoint.cli.convert import convert
from meltpoint.cli.demo import demo
from meltpoint.cli.ending import report_errors
from meltpoint.cli.evaluate import evaluate
from meltpoint.cli.log_z import log_z
from meltpoint.cli.paper import paper
from meltpoint.cli.sample import sample
from meltpoint.cli.screen import echo
from meltpoint.cli.trace import trace
from meltpoint.cli.train import train
from meltpoint.version import __version__


class _Commands(TyperGroup):
    def invoke(self, ctx: Any) -> Any:
        with report_errors():
            return super().invoke(ctx)


app = typer.Typer(
    cls=_Commands,
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


for command in (convert, compare, demo, evaluate, log_z, paper, sample, trace, train):
    app.command(command.__name__.replace("_", "-"))(command)
app.add_typer(data.app, name="data")
app.add_typer(runs.app, name="runs")
