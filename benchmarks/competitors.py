"""Competitors as long-lived processes of .venv-bench that are told when to run, in turn with our own runs."""

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
from cases import Case

from meltpoint.models.rbm import RBM

HERE = Path(__file__).resolve().parent
PYTHON = HERE.parent / ".venv-bench" / "bin" / "python"
ASKED = {"torch": 7.0, "jax": 6.5, "rbms": 18.0}
"""How many times faster meltpoint is asked to be."""


@dataclass(frozen=True)
class Answer:
    """One run of a competitor."""

    seconds: float
    log_z: float
    processor_seconds: float


class Competitor:
    """A process that has imported, compiled and warmed up one competitor, and waits."""

    def __init__(self, key: str, problem: Path, chains: int, steps: int, threads: int) -> None:
        arguments = [key, problem, chains, steps, threads]
        self._process = subprocess.Popen(
            [PYTHON, HERE / "competitor_worker.py", *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"OMP_NUM_THREADS": str(threads), "MKL_NUM_THREADS": str(threads)},
        )
        self.name: str = self._read()["name"]

    def run(self) -> Answer:
        """Let it run once."""
        assert self._process.stdin is not None
        self._process.stdin.write("run\n")
        self._process.stdin.flush()
        return Answer(**self._read())

    def _read(self) -> dict:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"a competitor ended with code {self._process.wait()}; what it said is above")
        return json.loads(line)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()  # closes stdin, which ends it


def write_problem(case: Case, path: Path) -> None:
    """Write an RBM and its base to a file the competitors read, all float32."""
    model = case.model
    assert isinstance(model, RBM)
    base = case.base.biases[0] if case.base.biases else np.zeros(model.n_visible)
    parameters = {
        "weights": model.weights,
        "visible_bias": model.visible_bias,
        "hidden_bias": model.hidden_bias,
        "base": base,
    }
    np.savez(
        path, allow_pickle=False, **{name: array.astype(np.float32) for name, array in parameters.items()}
    )
