"""The page about runs tells the truth: its commands do, one after the other, what it says they do."""

import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import meltpoint as mp
from meltpoint.cli.app import app

PAGE = (Path(__file__).resolve().parents[1] / "docs" / "runs.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^    meltpoint (.*)$", PAGE, re.MULTILINE)


@pytest.mark.slow
def test_commands_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    mp.save(mp.RBM(rng.normal(size=(9, 4)), np.zeros(9), np.zeros(4)), "model.npz")
    for name in ("test", "train"):
        np.save(f"{name}.npy", rng.integers(0, 2, (9, 9)))
    # Processes are tested elsewhere; here they would cost as much as all the rest.
    ended = {
        command: CliRunner().invoke(app, shlex.split(command))
        for command in COMMANDS
        if "--workers" not in command
    }
    assert {command: result.output for command, result in ended.items() if result.exit_code} == {}
    assert len(ended) == 4
    assert {path.name for path in tmp_path.iterdir()} >= {"night", "more", "both"}
    assert "× 8 chains" in ended["runs merge night more --out both"].stdout
