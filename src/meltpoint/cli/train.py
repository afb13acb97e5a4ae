"""`meltpoint train`: data or a recipe in, a model file out."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from meltpoint.cli import options
from meltpoint.cli.ending import INTERRUPTED
from meltpoint.cli.inputs import read_training
from meltpoint.cli.screen import as_json, echo, echo_err, progress_bar
from meltpoint.cli.trace import show_point
from meltpoint.errors import InputError, Progress
from meltpoint.training.recipe import Recipe, default_text, read_recipe, values_in
from meltpoint.training.settings import SEED, stage_options

if TYPE_CHECKING:
    from meltpoint.results.trace import Trace

_EACH = "One value, or one for each stage: 40,20."
_STAGES = {name: f"{text} {_EACH}" for name, text in stage_options().items() if name != "chains"}
_NUMBERS = {
    "chains": stage_options()["chains"],
    "sweeps": "Mean-field sweeps of a dbm.",
    "validation": "Examples held out to watch the training.",
}


@options.takes(
    options.argument("model", str, None, "rbm, dbn or dbm.", default=None),
    options.option("recipe", Path, "Take everything from this TOML file instead."),
    options.option(
        "data", str, "A file (.csv, .npy, .npz, .mat, FASTA, parquet or idx) or a data set's name."
    ),
    options.option("hidden", str, "Hidden units; for a deep model 500,1000."),
    options.option("out", Path, "The trained model, a .npz file.", shown="RECIPE.npz"),
    options.option("visible", str, "Of an rbm: bernoulli, spin, potts or gaussian units.", shown="bernoulli"),
    *(options.option(name, str, text, shown=default_text(name)) for name, text in _STAGES.items()),
    *(options.option(name, int, text, shown=default_text(name)) for name, text in _NUMBERS.items()),
    options.option("seed", int, "Seed: the same seed gives the same model.", default=SEED),
    options.option(
        "precision", str, "Precision of the file: float16, float32 or float64.", default="float32"
    ),
    options.option(
        "trace",
        bool,
        "Bracket the likelihood of held-out and training examples during training, and keep the models of these "
        "moments in OUT.trace.",
        default=False,
    ),
    options.JSON,
)
def train(
    model: str | None,
    recipe: Path | None,
    data: str | None,
    out: Path | None,
    validation: int | None,
    seed: int,
    precision: str,
    trace: bool,
    json: bool,
    **keywords: Any,
) -> None:
    """Train an RBM, a DBN or a DBM; the path of the model goes to stdout.

    Progress is saved beside the model. After Ctrl-C or a crash the same command continues where it
    was, and ends with the same model.
    """
    given = {name: value for name, value in keywords.items() if value is not None}
    given = {name: values_in(value) if isinstance(value, str) else value for name, value in given.items()}
    if seed != SEED:
        given["seed"] = seed
    path = out or (Path(f"{recipe.stem}.npz") if recipe else None)
    if path is None:
        raise InputError(found="no --out", expected="a file for the model", remedy="add --out model.npz")
    chosen = _recipe(recipe, model, data, validation, given)
    with progress_bar() as progress:
        _run(chosen, path, precision, json, trace, progress)


def _recipe(
    file: Path | None, model: str | None, data: str | None, validation: int | None, options: dict[str, Any]
) -> Recipe:
    """The recipe in a file, or the one that the options spell."""
    if file is not None:
        if model or data or options or validation is not None:
            raise InputError(
                found="--recipe together with options of the training",
                expected="one or the other",
                remedy="change the recipe, or leave it out",
            )
        return read_recipe(file)
    if model is None or data is None or "hidden" not in options:
        raise InputError(
            found="no model, no --data or no --hidden",
            expected="all three, or --recipe",
            remedy="for example: meltpoint train rbm --data mnist --hidden 500 --out model.npz",
        )
    return Recipe(model, data, validation, options)


def _run(recipe: Recipe, path: Path, precision: str, json: bool, trace: bool, progress: Progress) -> None:
    """Train by the recipe, save the model with the recipe as its note, and say where it is."""
    from time import monotonic

    import meltpoint as mp
    from meltpoint.evaluation.training_trace import TrainingTrace
    from meltpoint.training.monitor import Epoch

    train, validation = recipe.split(read_training(recipe.data, recipe.takes_rates, progress))
    checkpoint = path.with_suffix(".checkpoint.npz")
    if checkpoint.exists():
        echo_err(f"Going on from {checkpoint}")
    traced = TrainingTrace(path, recipe, train, validation, progress, show_point) if trace else None
    last: Epoch | None = None

    def after_epoch(epoch: Epoch) -> None:
        nonlocal last
        last = epoch
        if traced:
            traced.add(epoch)
        elif epoch.bracket:
            echo_err(str(epoch))

    def write_trace() -> "Trace | None":
        found = traced.write() if traced else None
        if traced and found:
            echo_err(str(found))
            echo_err(f"models, trace.json and trace.png: {traced.folder}")
        return found

    trainers = {"rbm": mp.train_rbm, "dbn": mp.train_dbn, "dbm": mp.train_dbm}
    begun = monotonic()
    try:
        model = trainers[recipe.model](
            train,
            **recipe.options,
            validation=validation if len(validation) else None,
            progress=progress,
            on_epoch=after_epoch,
            checkpoint=checkpoint,
        )
    except KeyboardInterrupt:
        write_trace()
        saved = f"saved in {checkpoint}: the same command goes on from there"
        echo_err(f"meltpoint: interrupted; {saved if checkpoint.exists() else 'nothing was saved'}")
        raise typer.Exit(INTERRUPTED) from None
    mp.save(model, path, dtype=precision, note=str(recipe))
    found = write_trace()  # while there is a checkpoint to go on from
    checkpoint.unlink(missing_ok=True)
    seconds = monotonic() - begun
    if json:
        described = {"model": repr(model), "path": str(path), "seconds": seconds, "recipe": str(recipe)}
        described |= {"trace": found and found.to_dict()} if trace else {}
        echo(as_json({**described, "last_epoch": last and last.to_dict()}))
        return
    echo_err(f"{model!r} in {seconds:.0f} s. Next: meltpoint evaluate {path} {recipe.data}")
    echo(path)
