"""The page about the report tells the truth: its commands and its Python run, one after the other."""

import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import meltpoint as mp
from meltpoint.cli.app import app
from meltpoint.results.report import PlotKind

DOCS = Path(__file__).resolve().parents[1] / "docs"
PAGE = (DOCS / "report.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_commands_and_code_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    model = mp.RBM(rng.normal(size=(9, 4)), np.zeros(9), np.zeros(4))
    test, train = rng.integers(0, 2, (2, 9, 9))
    mp.save(model, "model.npz")
    np.save("test.npy", test)
    np.save("train.npy", train)
    mp.evaluate(model, test, train, run="night")
    for command in re.findall(r"^    meltpoint (.*)$", PAGE, re.MULTILINE):
        assert CliRunner().invoke(app, shlex.split(command)).exit_code == 0
    names = {"mp": mp, "model": model, "test": test, "train": train}
    for block in re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL):
        exec(block, names)
    assert {"report.html", "report.json", "bracket.pdf"} <= {path.name for path in tmp_path.iterdir()}


def test_every_kind_of_figure_is_named():
    assert set(re.findall(r"^\| `(\w+)`", PAGE, re.MULTILINE)) == set(PlotKind.__args__)


def test_the_picture_is_small():
    assert (DOCS / "figures" / "report.png").stat().st_size < 200_000
