"""`meltpoint compare`: several model files and a test set in, their differences and an order out."""

from typing import Annotated

import typer

from meltpoint.cli import options
from meltpoint.cli.ending import NOT_TO_BE_TRUSTED, report_errors
from meltpoint.cli.evaluate import show_stage, to_continue
from meltpoint.cli.inputs import Sequences, check_output, load_several, read_test_and_train
from meltpoint.cli.screen import PLOT_FORMATS, echo_err, progress_bar, write_result
from meltpoint.cli.workers import executor_of
from meltpoint.defaults import BUDGET_OF_GAP, DEFAULTS
from meltpoint.errors import InputError


def compare(
    arguments: Annotated[
        list[str],
        typer.Argument(metavar="MODEL MODEL... DATA", help=f"Model files, and last: {options.DATA_HELP}"),
    ],
    option: options.FormatOptions = None,
    train: options.TrainOption = None,
    name: Annotated[
        list[str] | None,
        typer.Option(help="A model's name; once for each model.", show_default="names of the files"),
    ] = None,
    baseline: Annotated[
        str | None,
        typer.Option(help="Compare all with the model of this name only.", show_default="all pairs"),
    ] = None,
    about: Annotated[
        str, typer.Option(help="test-set: these examples only. population: all that they were drawn from.")
    ] = "test-set",
    base: options.BaseOption = None,
    particles: options.ParticlesOption = None,
    gap: options.GapOption = None,
    budget: Annotated[
        str | None,
        typer.Option(
            help="Time for all models together, such as 30m, 2h or 90s.",
            show_default=f"{BUDGET_OF_GAP} each with --gap",
        ),
    ] = None,
    steps: options.StepsOption = None,
    schedule: options.ScheduleOption = DEFAULTS.schedule,
    chains: options.ChainsOption = None,
    examples: options.ExamplesOption = None,
    ais_chains: options.AisChainsOption = None,
    seed: options.SeedOption = DEFAULTS.seed,
    binarize: options.BinarizeOption = None,
    alphabet: options.AlphabetOption = None,
    outside: options.OutsideOption = "refuse",
    confidence: Annotated[
        float, typer.Option(help="Confidence of all differences together.")
    ] = DEFAULTS.confidence,
    tolerance: options.ToleranceOption = None,
    evidence: options.EvidenceOption = DEFAULTS.evidence,
    run: options.RunOption = None,
    threads: options.ThreadsOption = None,
    workers: options.WorkersOption = None,
    cluster: options.ClusterOption = None,
    patience: options.PatienceOption = options.PATIENCE,
    tls_ca_file: options.TlsCaFileOption = None,
    tls_cert: options.TlsCertOption = None,
    tls_key: options.TlsKeyOption = None,
    json: options.JsonOption = False,
    plot: options.PlotOption = None,
) -> None:
    """Compare models on the same test examples, with the errors of the differences.

    Exit code 0: the order of all pairs is known, and every report can be trusted. 1: otherwise (the text says why),
    or after Ctrl-C. 2: wrong input. 3: any other failure. 130: Ctrl-C before the first model was done.
    """
    again = to_continue(run)
    with report_errors(again):
        check_output(plot, *PLOT_FORMATS)
        if len(arguments) < 3:
            raise InputError(
                found=f"{len(arguments)} argument{'' if len(arguments) == 1 else 's'}",
                expected="two model files or more, and test examples",
                remedy="for example: meltpoint compare a.npz b.npz test.npy",
            )
        import meltpoint as mp

        *files, data = arguments
        models = load_several(files, option, name)
        tls = tls_ca_file, tls_cert, tls_key
        with executor_of(workers, cluster, patience, *tls) as executor, progress_bar() as progress:
            first = next(iter(models.values()))
            test_examples, train_examples = read_test_and_train(
                data, train, binarize, seed, progress, first, Sequences(alphabet, outside)
            )
            found = mp.compare(
                models,
                test_examples,
                train_examples,
                baseline=baseline,
                about=about.replace("-", " "),  # pyright: ignore[reportArgumentType]
                base=base,  # pyright: ignore[reportArgumentType]
                particles=particles,
                gap=gap,
                budget=budget,
                steps=steps,
                schedule=schedule,  # pyright: ignore[reportArgumentType]
                tolerance=tolerance,
                chains=chains,
                examples=examples,
                ais_chains=ais_chains,
                seed=seed,
                confidence=confidence,
                evidence=evidence,
                run=run,
                executor=executor,
                threads=threads,
                progress=progress,
                watch=show_stage,
            )
        write_result(found, json, plot)
        if found.interrupted:
            echo_err(f"meltpoint: interrupted: {len(found.reports)} models by then")
            echo_err(again)
    if not found.trusted:
        raise typer.Exit(NOT_TO_BE_TRUSTED)
