"""`meltpoint train`: data or a recipe in, a model file out."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from meltpoint.cli import options
from meltpoint.cli.ending import INTERRUPTED, report_errors
from meltpoint.cli.screen import echo, echo_err, progress_bar
from meltpoint.cli.trace import TraceScreen, TrainingTrace, trace_screen
from meltpoint.errors import InputError, Progress
from meltpoint.training.settings import SEED, Recipe, default_text, n_held_out, read_recipe

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from meltpoint.training.monitor import Epoch

_EACH = "One value, or one for each stage: 40,20."

_LISTS = {
    "method": f"pcd or cd. {_EACH}",
    "k": f"Gibbs steps of each update. {_EACH}",
    "epochs": f"How often every example is shown. {_EACH}",
    "batch": f"Examples of one update. {_EACH}",
    "learning_rate": f"Step size of the first update. {_EACH}",
    "schedule": f"linear (to zero) or constant. {_EACH}",
    "momentum": f"0 to 0.999. {_EACH}",
    "weight_decay": f"Decay rate of the weights. {_EACH}",
    "averaged": f"Fraction of the last updates whose parameters are averaged. {_EACH}",
    "centred": f"true or false: centre the units. {_EACH}",
}
"""Keywords of the training functions that may differ between stages, whose defaults are theirs."""

_NUMBERS = {"chains": "Persistent chains.", "sweeps": "Mean-field sweeps of a dbm."}


@options.takes(
    options.argument("model", str, None, "rbm, dbn or dbm.", default=None),
    options.option("recipe", Path, "Take everything from this TOML file instead."),
    options.option(
        "data",
        str,
        "Training examples: .csv, .npy, .npz, .mat, FASTA, parquet or idx file, or a data set's name.",
    ),
    options.option("hidden", str, "Hidden units; for a deep model 500,1000."),
    options.option("out", Path, "The trained model, a .npz file.", shown="RECIPE.npz"),
    options.option(
        "visible",
        str,
        "Visible units of an rbm: bernoulli, spin, potts or gaussian.",
        shown="bernoulli",
    ),
    *(options.option(name, str, text, shown=default_text(name)) for name, text in _LISTS.items()),
    *(options.option(name, int, text, shown=default_text(name)) for name, text in _NUMBERS.items()),
    options.option(
        "validation",
        int,
        "Examples held out to watch the training.",
        shown=default_text("validation"),
    ),
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
        flags=("--trace",),
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
    with report_errors():
        given = {
            name: _values(value) if isinstance(value, str) else value
            for name, value in keywords.items()
            if value is not None
        }
        given |= {"seed": seed} if seed != SEED else {}
        path = out or (Path(f"{recipe.stem}.npz") if recipe else None)
        if path is None:
            raise InputError(found="no --out", expected="a file for the model", remedy="add --out model.npz")
        chosen = _recipe(recipe, model, data, validation, given)
        with trace_screen() if trace else progress_bar() as screen:
            progress = screen.progress if isinstance(screen, TraceScreen) else screen
            _run(chosen, path, precision, json, progress, screen if isinstance(screen, TraceScreen) else None)


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


def _run(
    recipe: Recipe, path: Path, precision: str, json: bool, progress: Progress, screen: TraceScreen | None
) -> None:
    """Train by the recipe, save the model with the recipe as its note, and tell where it is."""
    from time import monotonic

    import meltpoint as mp
    from meltpoint.runs.fingerprint import fingerprint

    grey = recipe.options.get("visible", "bernoulli") == "bernoulli"
    examples = _read(recipe.data, progress, grey)
    held_out = n_held_out(len(examples)) if recipe.validation is None else recipe.validation
    if not 0 <= held_out < len(examples):
        raise InputError(
            found=f"{held_out} validation examples of {len(examples)}",
            expected="fewer than there are",
            remedy="lower --validation",
        )
    train, validation = examples[: len(examples) - held_out], examples[len(examples) - held_out :]
    checkpoint = path.with_suffix(".checkpoint.npz")
    if checkpoint.exists():
        echo_err(f"Going on from {checkpoint}")
    traced = None
    if screen is not None:
        if not held_out:
            raise InputError(
                found="--trace and no validation examples",
                expected="examples that are held out of the training",
                remedy="leave out --validation 0",
            )
        training = f"{recipe}{fingerprint({'examples': examples})}\n"
        seed = recipe.options.get("seed", SEED)
        traced = TrainingTrace(path, training, train, validation, seed, screen, grey)
    trainers = {"rbm": mp.train_rbm, "dbn": mp.train_dbn, "dbm": mp.train_dbm}
    last: list[Epoch] = []
    begun = monotonic()
    try:
        model = trainers[recipe.model](
            train,
            **recipe.options,
            validation=validation if held_out else None,
            progress=progress,
            on_epoch=lambda epoch: (last.append(epoch), traced(epoch) if traced else _tell(epoch)),
            checkpoint=checkpoint,
        )
    except KeyboardInterrupt:
        if traced is not None:
            traced.write()
        saved = f"saved in {checkpoint}: the same command goes on from there"
        echo_err(f"meltpoint: interrupted; {saved if checkpoint.exists() else 'nothing was saved'}")
        raise typer.Exit(INTERRUPTED) from None
    mp.save(model, path, dtype=precision, note=str(recipe))
    if traced is not None:  # while there is a checkpoint to go on from
        traced.write()
    checkpoint.unlink(missing_ok=True)
    seconds = monotonic() - begun
    if json:
        from json import dumps

        described = {"model": repr(model), "path": str(path), "seconds": seconds, "recipe": str(recipe)}
        described |= {} if traced is None else {"trace": traced.to_dict()}
        echo(dumps(described | {"last_epoch": last[-1].to_dict() if last else None}, indent=2))
        return
    echo_err(f"{model!r} in {seconds:.0f} s. Next: meltpoint evaluate {path} {recipe.data}")
    echo(path)


def _read(data: str, progress: Progress, grey: bool) -> "NDArray[np.generic]":
    """Training examples: zeros and ones, or grey values from 0 to 1 that are drawn anew in every epoch.

    Units that are not Bernoulli (not `grey`) have other values, which are taken as they are.
    """
    import numpy as np

    from meltpoint.data.catalogue import load, names
    from meltpoint.data.read import read

    if data in names() and not Path(data).exists():
        dataset = load(data, progress=progress)
        return dataset.train if dataset.images.binary else dataset.grey_train
    array = read(data)
    high = array.max(initial=0)
    if not (grey and np.issubdtype(array.dtype, np.integer) and high > 1):
        return array
    if not 128 <= high <= 255:
        raise InputError(
            found=f"{data} with whole numbers up to {high}",
            expected="zeros and ones, or grey values up to 255",
            remedy="for numbered states add --visible potts; grey values of another scale divide by that of white",
        )
    return array.astype(np.float32) / np.float32(255)


def _tell(epoch: "Epoch") -> None:
    if epoch.bracket is None:
        return
    gap = "" if epoch.gap is None else f", free-energy gap {epoch.gap:+.2f}"
    between = f"between {epoch.bracket.conservative:.2f} and {epoch.bracket.optimistic:.2f} nats"
    echo_err(f"{epoch.stage}, epoch {epoch.number} of {epoch.of}, {epoch.seconds:.0f} s: {between}{gap}")


def _values(text: str) -> Any:
    """A value, or a list of values between commas: whole and real numbers, true and false, words."""
    parts = [_value(part.strip()) for part in text.split(",")]
    return parts[0] if len(parts) == 1 else parts


def _value(text: str) -> int | float | bool | str:
    if text in ("true", "false"):
        return text == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
