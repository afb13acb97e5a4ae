"""A small model, its data, and a way to run the command without leaving the process."""

import numpy as np
import pytest
from typer.testing import CliRunner

import meltpoint as mp


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Runs the command in an empty folder: run("evaluate", "model.npz", …) has exit_code, stdout and stderr."""
    from meltpoint.cli.app import app

    monkeypatch.chdir(tmp_path)
    return lambda *arguments: CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture
def folder(tmp_path):
    """A folder with model.npz (RBM 9-4), test.npy and train.npy of zeros and ones."""
    rng = np.random.default_rng(0)
    mp.save(mp.RBM(rng.normal(size=(9, 4)), rng.normal(size=9), rng.normal(size=4)), tmp_path / "model.npz")
    np.save(tmp_path / "test.npy", rng.integers(0, 2, (20, 9)))
    np.save(tmp_path / "train.npy", rng.integers(0, 2, (30, 9)))
    return tmp_path
