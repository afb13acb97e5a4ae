"""Arguments and options of the commands in one table: type, help text, and the default that the help shows.

A command takes rows of the table by `@takes`, and gets their values by name:

    @takes(MODEL, *SIZES, JSON)
    def evaluate(model: Path, json: bool, **sizes: Any) -> None: ...
"""

from collections.abc import Callable
from inspect import Parameter, Signature
from pathlib import Path
from types import NoneType
from typing import Any, TypeVar, get_args

import typer

from meltpoint.arguments import Positive, Threads, field_hints, read, rule_of
from meltpoint.defaults import BUDGET_OF_GAP, DEFAULTS, PATIENCE, LogZSettings, Settings

_Command = TypeVar("_Command", bound=Callable[..., None])


def takes(*rows: Parameter) -> Callable[[_Command], _Command]:
    """Give a command the arguments and options of these rows; Typer reads them from its signature."""

    def decorate(command: _Command) -> _Command:
        command.__signature__ = Signature(rows)  # pyright: ignore[reportFunctionMemberAccess]
        return command

    return decorate


def argument(name: str, kind: Any, metavar: str | None, text: str, default: Any = ...) -> Parameter:
    """A row for an argument, which must be given unless there is a default."""
    info = typer.Argument(default, metavar=metavar, help=text)
    return Parameter(
        name, Parameter.KEYWORD_ONLY, default=info, annotation=kind if default is ... else kind | None
    )


def option(
    name: str,
    kind: Any,
    text: str,
    shown: str | bool = True,
    *,
    default: Any = None,
    flags: tuple[str, ...] = (),
    metavar: str | None = None,
) -> Parameter:
    """A row for an option; `shown` is what the help says of a default that is None, or whether it says anything."""
    hint, kind = kind, get_args(kind)[0] if rule_of(kind) and kind not in (int, float) else kind
    if kind is bool:
        flag = f"--{name.replace('_', '-')}"
        flags = (flag,) if default is False else (f"{flag}/--no-{flag[2:]}",)
    check = None if hint is kind else lambda value: None if value is None else read(hint, value, name)
    info = typer.Option(default, *flags, metavar=metavar, help=text, show_default=shown, callback=check)
    return Parameter(
        name, Parameter.KEYWORD_ONLY, default=info, annotation=kind if default is not None else kind | None
    )


def setting(
    name: str, text: str, shown: str | None = None, settings: Settings | LogZSettings = DEFAULTS
) -> Parameter:
    """A row for a keyword that settings have; with `shown` the function it is passed to knows the default."""
    hint = field_hints(type(settings))[name]
    kind = (
        next((each for each in get_args(hint) if each is not NoneType), hint) if not rule_of(hint) else hint
    )
    if shown is None:
        return option(name, kind, text, default=getattr(settings, name))
    return option(name, kind, text, shown)


DATA_HELP = (
    "Test examples: a .csv, .npy, .npz, .mat, FASTA, a2m, parquet or idx file (FILE:NAME for one array of several, or "
    "one file of a .tar.gz), or the name of a data set, such as digits."
)

MODEL = argument(
    "model", Path, "MODEL", "The model: .npz of this library, or a file of another format (docs/formats.md)."
)
DATA = argument("data", str, "DATA", DATA_HELP)
FORMAT_OPTIONS = option(
    "option",
    list[str],
    "What the model's format leaves open, such as temperature=1 or update=last; once for each (docs/formats.md).",
    metavar="NAME=VALUE",
    shown=False,
)
"""The arguments of `load` besides the path."""

# Examples

TRAIN = option(
    "train",
    str,
    "Training examples, for base rates and the pilot; never the test set.",
    "those of the data set, if DATA is one",
)
BINARIZE = option("binarize", str, "For grey values in a file: stochastic or threshold.")
ALPHABET = option(
    "alphabet",
    str,
    "Alphabet of sequences: protein, rna, dna, or the letters in the order of the model's states.",
    "protein, or rna or dna by the letters",
)
OUTSIDE = option(
    "outside", str, "Sequences with letters outside the alphabet: refuse or drop.", default="refuse"
)
READING = (BINARIZE, ALPHABET, OUTSIDE)

# Sizes and settings: keywords of `evaluate` and its like

BASE = setting("base", "auto, data, model or uniform.", "auto: data with --train, else model")
PARTICLES = setting("particles", "N of RAISE; 1 is the paper's estimator.", "one more than AIS chains")
GAP = setting(
    "gap", "Run until the value is known to plus or minus this many nats; sizes are chosen for you.", "none"
)
BUDGET = option(
    "budget",
    str,
    "Time to spend, such as 30m, 2h or 90s; sizes are chosen for you.",
    f"{BUDGET_OF_GAP} with --gap",
)
STEPS = setting("steps", "Annealing steps. More steps, smaller gap.", str(DEFAULTS.steps))
SEED = setting("seed", "The same seed gives the same answer.")
SIZES = (
    STEPS,
    setting("schedule", "friction: spaced by a short pilot run. linear: equal steps."),
    setting("chains", "RAISE chains per example.", str(DEFAULTS.chains)),
    setting("examples", "Test examples RAISE is run for.", f"{DEFAULTS.examples}, or all if fewer"),
    setting("ais_chains", "AIS chains.", "as many as all RAISE chains"),
    SEED,
)
TOLERANCE = setting(
    "tolerance", "Largest gap, in nats, that counts as agreement.", f"--gap, or {DEFAULTS.tolerance:g}"
)
EVIDENCE = setting("evidence", "Ask other starts for missed modes. Without it no report is trusted.")

# How it is computed, and what is written

RUN = option(
    "run", Path, "Keep what is finished in this folder; the same command continues there.", metavar="FOLDER"
)
THREADS = option("threads", Threads, "Threads.", "all cores")
COMPUTING = (
    THREADS,
    option("workers", Threads, "Processes, in place of threads.", "none"),
    option("cluster", str, "Use the Dask cluster with this scheduler.", metavar="ADDRESS"),
    option(
        "patience",
        Positive,
        "Seconds to wait for a worker of the cluster when there is none.",
        default=PATIENCE,
    ),
    option("tls_ca_file", Path, "TLS: the authority's certificate, for tls:// clusters.", metavar="FILE"),
    option("tls_cert", Path, "TLS: our certificate.", metavar="FILE"),
    option("tls_key", Path, "TLS: its private key.", metavar="FILE"),
)
JSON = option("json", bool, "Write JSON to stdout.", default=False)
OUTPUT = (JSON, option("plot", Path, "Write a figure: .png, .pdf or .svg."))
