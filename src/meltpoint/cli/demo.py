"""`meltpoint demo`: training and evaluation on data that come with the package, with the exact value to compare."""

from importlib.util import find_spec
from pathlib import Path

from meltpoint.cli import options
from meltpoint.cli.screen import echo_document, echo_err, progress_bar

_HIDDEN = 20
_EPOCHS = 100
_STEPS = (1, 3, 10, 30, 100, 300, 1000)


@options.takes(
    options.option("out", Path, "Folder for the model, the figure and the report.", default=Path("demo")),
    options.SEED,
)
def demo(out: Path, seed: int) -> None:
    """Train a small RBM on handwritten digits and bracket its likelihood between AIS and RAISE."""
    import meltpoint as mp
    from meltpoint.formats.atomic import make_folder
    from meltpoint.results.figures import save_figure

    figures = find_spec("matplotlib") is not None
    make_folder(out)
    model_file, figure_file, page_file = (
        out / name for name in ("model.npz", "closing-in.png", "report.html")
    )
    digits = mp.datasets.load("digits", seed=seed)
    with progress_bar() as progress:
        echo_err(f"Training an RBM with {_HIDDEN} hidden units on {len(digits.train):,} handwritten digits …")
        model = mp.train_rbm(digits.train, hidden=_HIDDEN, epochs=_EPOCHS, seed=seed, progress=progress)
        mp.save(model, model_file)
        echo_err(f"Evaluating it on {len(digits.test)} others, with {_STEPS[0]} to {_STEPS[-1]:,} steps …")
        reports = mp.sweep(
            model,
            digits.test,
            digits.train,
            base="uniform",  # from which AIS errs with few steps, as it does on large models
            steps=_STEPS,
            schedule="linear",
            chains=5,
            examples=len(digits.test),
            ais_chains=1000,
            seed=seed,
            progress=progress,
            names={"model": str(model_file), "test": "digits", "train": "digits"},
        )
    if figures:
        save_figure(reports[-1].plot("bracket", sweep=reports[:-1]), figure_file)
    reports[-1].to_html(page_file)
    echo_err("")
    echo_document(reports[-1].document())
    echo_err("")
    if figures:
        echo_err(f"Both estimates closing in on the exact value: {figure_file}")
    else:
        echo_err("For the figure of both estimates closing in: pip install 'meltpoint[plot]'")
    echo_err(f"The whole report, to be opened in a browser: {page_file.resolve().as_uri()}")
    echo_err(f"Next: meltpoint evaluate {model_file} digits")
