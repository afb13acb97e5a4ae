"""Arguments and options of the commands in one table: type, help text, and the default that the help shows.

A command takes rows of the table by `@takes`, and gets their values by name:

    @takes(MODEL, *EVALUATION, JSON)
    def evaluate(model: Path, json: bool, **evaluation: Any) -> None: ...
"""

from collections.abc import Callable
from inspect import Parameter, Signature
from pathlib import Path
from typing import Any, TypeVar

import typer

from meltpoint.defaults import BUDGET_OF_GAP, DEFAULTS

PATIENCE = 60.0

_Command = TypeVar("_Command", bound=Callable[..., None])


def takes(*rows: Parameter) -> Callable[[_Command], _Command]:
    """Give a command the arguments and options of these rows; Typer reads them from its signature."""

    def decorate(command: _Command) -> _Command:
        command.__signature__ = Signature(rows)  # pyright: ignore[reportFunctionMemberAccess]
        return command

    return decorate


def argument(
    name: str,
    kind: Any,
    metavar: str | None,
    text: str,
    default: Any = ...,
) -> Parameter:
    """A row for an argument, which must be given unless there is a default."""
    info = typer.Argument(default, metavar=metavar, help=text)
    return _row(name, kind if default is ... else kind | None, info)


def option(
    name: str,
    kind: Any,
    text: str,
    *,
    default: Any = None,
    shown: str | bool = True,
    flags: tuple[str, ...] = (),
    metavar: str | None = None,
    least: int | None = None,
) -> Parameter:
    """A row for an option; `shown` is what the help says of a default that is None, or whether it says anything."""
    info = typer.Option(default, *flags, metavar=metavar, help=text, show_default=shown, min=least)
    return _row(name, kind if default is not None else kind | None, info)


def _row(name: str, kind: Any, info: Any) -> Parameter:
    return Parameter(name, Parameter.KEYWORD_ONLY, default=info, annotation=kind)


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
    shown="those of the data set, if DATA is one",
)
BINARIZE = option("binarize", str, "For grey values in a file: stochastic or threshold.")
ALPHABET = option(
    "alphabet",
    str,
    "Alphabet of sequences: protein, rna, dna, or the letters in the order of the model's states.",
    shown="protein, or rna or dna by the letters",
)
OUTSIDE = option(
    "outside", str, "Sequences with letters outside the alphabet: refuse or drop.", default="refuse"
)
READING = (BINARIZE, ALPHABET, OUTSIDE)

# Sizes and settings: keywords of `evaluate` and its like

BASE = option("base", str, "auto, data, model or uniform.", shown="auto: data with --train, else model")
PARTICLES = option(
    "particles", int, "N of RAISE; 1 is the paper's estimator.", shown="one more than AIS chains"
)
GAP = option(
    "gap",
    float,
    "Run until the value is known to plus or minus this many nats; sizes are chosen for you.",
    shown="none",
)
BUDGET = option(
    "budget",
    str,
    "Time to spend, such as 30m, 2h or 90s; sizes are chosen for you.",
    shown=f"{BUDGET_OF_GAP} with --gap",
)
STEPS = option("steps", int, "Annealing steps. More steps, smaller gap.", shown=str(DEFAULTS.steps))
SCHEDULE = option(
    "schedule",
    str,
    "friction: spaced by a short pilot run. linear: equal steps.",
    default=DEFAULTS.schedule,
)
CHAINS = option("chains", int, "RAISE chains per example.", shown=str(DEFAULTS.chains))
EXAMPLES = option(
    "examples", int, "Test examples RAISE is run for.", shown=f"{DEFAULTS.examples}, or all if fewer"
)
AIS_CHAINS = option("ais_chains", int, "AIS chains.", shown="as many as all RAISE chains")
SEED = option("seed", int, "The same seed gives the same answer.", default=DEFAULTS.seed)
TOLERANCE = option(
    "tolerance",
    float,
    "Largest gap, in nats, that counts as agreement.",
    shown=f"--gap, or {DEFAULTS.tolerance:g}",
)
EVIDENCE = option(
    "evidence",
    bool,
    "Ask other starts for missed modes. Without it no report is trusted.",
    default=DEFAULTS.evidence,
    flags=("--evidence/--no-evidence",),
)
EXACT = option(
    "exact",
    bool,
    "Compute log Z exactly too.",
    shown="where that takes less than a second",
    flags=("--exact/--no-exact",),
)
CONFIDENCE = option("confidence", float, "Confidence of the interval.", default=DEFAULTS.confidence)
PRECISION = option(
    "precision", str, "Arithmetic of the chains: mixed or float64.", default=DEFAULTS.precision
)
SIZES = (STEPS, SCHEDULE, CHAINS, EXAMPLES, AIS_CHAINS, SEED)

# How it is computed, and what is written

RUN = option(
    "run",
    Path,
    "Keep what is finished in this folder; the same command continues there.",
    metavar="FOLDER",
)
THREADS = option("threads", int, "Threads.", shown="all cores")
COMPUTING = (
    THREADS,
    option("workers", int, "Processes, in place of threads.", shown="none"),
    option("cluster", str, "Use the Dask cluster with this scheduler.", metavar="ADDRESS"),
    option(
        "patience",
        float,
        "Seconds to wait for a worker of the cluster when there is none.",
        default=PATIENCE,
    ),
    option("tls_ca_file", Path, "TLS: the authority's certificate, for tls:// clusters.", metavar="FILE"),
    option("tls_cert", Path, "TLS: our certificate.", metavar="FILE"),
    option("tls_key", Path, "TLS: its private key.", metavar="FILE"),
)
JSON = option("json", bool, "Write JSON to stdout.", default=False, flags=("--json",))
PLOT = option("plot", Path, "Write a figure: .png, .pdf or .svg.")
HTML = option("html", Path, "Write the whole report as one HTML file.", metavar="FILE")
OUTPUT = (JSON, PLOT)
