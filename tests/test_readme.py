"""The README tells the truth: its Python and its commands run, its links lead somewhere, its report looks like one."""

import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import meltpoint as mp
from meltpoint.cli.app import app

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
HERE = (
    r"https://(?:github\.com/meltpoint/meltpoint/blob|raw\.githubusercontent\.com/meltpoint/meltpoint)/main/"
)
COMMANDS = re.findall(r"^    meltpoint (.*)$", README, re.MULTILINE)


@pytest.fixture
def names(tmp_path, monkeypatch):
    """What the README takes for granted: parameters and data, by name and as files."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    made = {
        "weights": rng.normal(size=(9, 4)),
        "visible_bias": np.zeros(9),
        "hidden_bias": np.zeros(4),
        "test": rng.integers(0, 2, (3, 9)),
        "train": rng.integers(0, 2, (9, 9)),
    }
    np.save("test.npy", made["test"])
    np.save("train.npy", made["train"])
    mp.save(mp.RBM(made["weights"], made["visible_bias"], made["hidden_bias"]), "model.npz")
    return made


def test_python_runs(names, tmp_path):
    (tmp_path / "model.npz").unlink()
    blocks = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    assert len(blocks) == 2
    for block in blocks:
        exec(block, names)
    assert {"report.pdf", "model.npz"} <= {path.name for path in tmp_path.iterdir()}


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_run(names, command):
    arguments = shlex.split(command.partition(">")[0])
    assert CliRunner().invoke(app, arguments).exit_code == 0


def test_there_are_commands():
    assert {command.split()[0] for command in COMMANDS} == {"evaluate", "log-z", "sample"}


@pytest.mark.parametrize("name", ["README.md", "CHANGELOG.md", "CONTRIBUTING.md"])
def test_links_lead_somewhere(name):
    text = (ROOT / name).read_text(encoding="utf-8")
    links = [re.sub(HERE, "", link) for link in re.findall(r"\]\(([^)]+)\)", text)]
    links = [link for link in links if not link.startswith("https://")]
    assert links or name != "README.md"
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_links_and_pictures_work_where_only_the_readme_is_shown():
    assert all(link.startswith("https://") for link in re.findall(r"\]\(([^)]+)\)", README))


def test_the_picture_is_small():
    assert (ROOT / "docs" / "figures" / "closing-in.png").stat().st_size < 100_000


def test_the_report_shown_has_the_rows_of_a_report(names):
    (shown,) = re.findall(r"```text\n(.*?)```", README, re.DOTALL)
    made = str(mp.evaluate(mp.load("model.npz"), names["test"], names["train"], exact=False, examples=2))
    assert _labels(shown) == _labels(made)
    assert max(map(len, shown.splitlines())) <= 79


def _labels(report):
    """What stands in the first column, and how the verdict begins."""
    rows = (re.match(r"\S[^\d:]*?(?=  |:)", line) for line in report.splitlines()[2:])
    return [row[0] for row in rows if row]
