"""`meltpoint demo`: the whole job on data that is always there, with the exact answer to compare."""

from pathlib import Path
from typing import Annotated

import typer

from meltpoint.cli.screen import progress_bar, say, sentences

_HIDDEN = 20
_EPOCHS = 100
_STEPS = (1, 3, 10, 30, 100, 300, 1000)


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the model and the figure.")] = Path("demo"),
    seed: Annotated[int, typer.Option(help="Seed: the same seed gives the same answer.")] = 0,
) -> None:
    """Train a small RBM on handwritten digits and bracket its likelihood between AIS and RAISE."""
    with sentences():
        import meltpoint as mp
        from meltpoint.files.folder import make_folder
        from meltpoint.report.figures import plot_closing_in, save_figure

        make_folder(out)
        with progress_bar() as progress:
            digits = mp.datasets.load("digits", seed=seed)
            say(
                f"Training an RBM with {_HIDDEN} hidden units on {len(digits.train):,} handwritten digits (8 x 8) …"
            )
            model = mp.train_rbm(digits.train, hidden=_HIDDEN, epochs=_EPOCHS, seed=seed, progress=progress)
            mp.save(model, out / "model.npz")
            say(f"Evaluating it on {len(digits.test)} others, with few annealing steps and with many …")
            reports = []
            for number, steps in enumerate(_STEPS):
                progress("evaluations", number, len(_STEPS))
                reports.append(
                    mp.evaluate(
                        model,
                        digits.test,
                        digits.train,
                        steps=steps,
                        chains=5,
                        examples=len(digits.test),
                        ais_chains=1000,
                        seed=seed,
                    )
                )
        figure = out / "closing-in.png"
        save_figure(plot_closing_in(reports), figure)
        say("")
        typer.echo(reports[-1])
        say("")
        say(f"The figure of both estimates closing in on the exact value: {figure}")
        say(f"The model: {out / 'model.npz'}. Next: meltpoint evaluate {out / 'model.npz'} digits")
