"""Arguments and options that more than one command has: type, help text, and the default that the help shows.

A command writes `steps: options.StepsOption = None`; where its meaning differs, it has an option of its own.
"""

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from meltpoint.defaults import BUDGET_OF_GAP, DEFAULTS

DATA_HELP = (
    "Test examples: a .csv, .npy, .npz, .mat, FASTA, a2m, parquet or idx file (FILE:NAME for one array of several, or "
    "one file of a .tar.gz), or the name of a data set, such as digits."
)

ModelFile: TypeAlias = Annotated[
    Path,
    typer.Argument(
        metavar="MODEL",
        help="The model: .npz of this library, or a file of another format (docs/formats.md).",
    ),
]
TestData: TypeAlias = Annotated[str, typer.Argument(metavar="DATA", help=DATA_HELP)]

FormatOptions: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--option",
        metavar="NAME=VALUE",
        help="What the model's format leaves open, such as temperature=1 or update=last; once for each "
        "(docs/formats.md).",
        show_default=False,
    ),
]
"""The arguments of `load` besides the path."""

# Examples

TrainOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        help="Training examples, for base rates and the pilot; never the test set.",
        show_default="those of the data set, if DATA is one",
    ),
]
BinarizeOption: TypeAlias = Annotated[
    str | None, typer.Option(help="For grey values in a file: stochastic or threshold.")
]
AlphabetOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        help="Alphabet of sequences: protein, rna, dna, or the letters in the order of the model's states.",
        show_default="protein, or rna or dna by the letters",
    ),
]
OutsideOption: TypeAlias = Annotated[
    str, typer.Option(help="Sequences with letters outside the alphabet: refuse or drop.")
]

# What is computed

BaseOption: TypeAlias = Annotated[
    str | None,
    typer.Option(help="auto, data, model or uniform.", show_default="auto: data with --train, else model"),
]
ParticlesOption: TypeAlias = Annotated[
    int | None,
    typer.Option(help="N of RAISE; 1 is the paper's estimator.", show_default="one more than AIS chains"),
]
GapOption: TypeAlias = Annotated[
    float | None,
    typer.Option(
        help="Run until the value is known to plus or minus this many nats; sizes are chosen for you.",
        show_default="none",
    ),
]
BudgetOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        help="Time to spend, such as 30m, 2h or 90s; sizes are chosen for you.",
        show_default=f"{BUDGET_OF_GAP} with --gap",
    ),
]
StepsOption: TypeAlias = Annotated[
    int | None,
    typer.Option(help="Annealing steps. More steps, smaller gap.", show_default=str(DEFAULTS.steps)),
]
ScheduleOption: TypeAlias = Annotated[
    str, typer.Option(help="friction: spaced by a short pilot run. linear: equal steps.")
]
ChainsOption: TypeAlias = Annotated[
    int | None, typer.Option(help="RAISE chains per example.", show_default=str(DEFAULTS.chains))
]
ExamplesOption: TypeAlias = Annotated[
    int | None,
    typer.Option(
        help="Test examples RAISE is run for.", show_default=f"{DEFAULTS.examples}, or all if fewer"
    ),
]
AisChainsOption: TypeAlias = Annotated[
    int | None, typer.Option(help="AIS chains.", show_default="as many as all RAISE chains")
]
SeedOption: TypeAlias = Annotated[int, typer.Option(help="The same seed gives the same answer.")]
ToleranceOption: TypeAlias = Annotated[
    float | None,
    typer.Option(
        help="Largest gap, in nats, that counts as agreement.",
        show_default=f"--gap, or {DEFAULTS.tolerance:g}",
    ),
]
EvidenceOption: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--evidence/--no-evidence",
        help="Ask other starts for missed modes. Without it no report is trusted.",
    ),
]

# How it is computed, and what is written

RunOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        metavar="FOLDER", help="Keep what is finished in this folder; the same command continues there."
    ),
]
ThreadsOption: TypeAlias = Annotated[int | None, typer.Option(help="Threads.", show_default="all cores")]
WorkersOption: TypeAlias = Annotated[
    int | None, typer.Option(help="Processes, in place of threads.", show_default="none")
]
ClusterOption: TypeAlias = Annotated[
    str | None, typer.Option(metavar="ADDRESS", help="Use the Dask cluster with this scheduler.")
]
PatienceOption: TypeAlias = Annotated[
    float, typer.Option(help="Seconds to wait for a worker of the cluster when there is none.")
]
PATIENCE = 60.0
TlsCaFileOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="TLS: the authority's certificate, for tls:// clusters."),
]
TlsCertOption: TypeAlias = Annotated[Path | None, typer.Option(metavar="FILE", help="TLS: our certificate.")]
TlsKeyOption: TypeAlias = Annotated[Path | None, typer.Option(metavar="FILE", help="TLS: its private key.")]
JsonOption: TypeAlias = Annotated[bool, typer.Option("--json", help="Write JSON to stdout.")]
PlotOption: TypeAlias = Annotated[Path | None, typer.Option(help="Write a figure: .png, .pdf or .svg.")]
