"""The page about log Z tells the truth: its example and its commands run."""

import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import meltpoint as mp
from meltpoint.cli.app import app

PAGE = (Path(__file__).resolve().parents[1] / "docs" / "log-z.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^    meltpoint (.*)$", PAGE, re.MULTILINE)


def test_the_example_runs(capsys) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    exec(compile(example, "docs/log-z.md", "exec"), {})
    shown = capsys.readouterr().out
    for line in re.findall(r"^\| `([\w ()]+)`", PAGE, re.MULTILINE):
        assert line in shown


@pytest.mark.slow
def test_commands_run(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    mp.save(mp.RBM(rng.normal(size=(9, 4)), np.zeros(9), np.zeros(4)), "model.npz")
    Path("graph.uai").write_text("MARKOV\n2\n2 3\n1\n2 0 1\n6\n1 2 3 4 5 6\n")
    Path("graph.uai.evid").write_text("1 0 1")
    ended = {command: CliRunner().invoke(app, shlex.split(command)) for command in COMMANDS}
    assert len(ended) == 4
    assert {command: result.output for command, result in ended.items() if result.exit_code} == {}
