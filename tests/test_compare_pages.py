"""The pages about comparing and tracing tell the truth: their Python and their commands run."""

import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import meltpoint as mp
from meltpoint.cli.app import app

DOCS = Path(__file__).resolve().parents[1] / "docs"
PAGES = {name: (DOCS / f"{name}.md").read_text(encoding="utf-8") for name in ("compare", "trace")}
COMMANDS = [
    (name, command)
    for name, page in PAGES.items()
    for command in re.findall(r"^    meltpoint (.*)$", page, re.MULTILINE)
]


@pytest.mark.slow
@pytest.mark.parametrize("name", PAGES)
def test_python_runs(name, tmp_path, monkeypatch, capsys):
    pytest.importorskip("sklearn")
    monkeypatch.chdir(tmp_path)
    (block,) = re.findall(r"```python\n(.*?)```", PAGES[name], re.DOTALL)
    names: dict = {}
    exec(block, names)
    shown = capsys.readouterr().out
    assert (tmp_path / f"{name}.png").exists()
    if name == "compare":
        assert len(names["comparison"].pairs) == 3
        assert "Order" in shown
    else:
        assert names["trace"].overfits is not None
        assert "Overfits: at epoch" in shown


@pytest.mark.slow
@pytest.mark.parametrize(("name", "command"), COMMANDS)
def test_commands_run(name, command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    (tmp_path / "run").mkdir()
    for k, file in enumerate(("a.npz", "b.npz", "c.npz", "run/epoch-1.npz", "run/epoch-2.npz")):
        mp.save(mp.RBM(rng.normal(0, 0.1 + k % 3, (9, 4)), np.zeros(9), np.zeros(4)), file)
    for data in ("test", "train"):
        np.save(f"{data}.npy", rng.integers(0, 2, (30, 9)))
    quick = [] if command.startswith("train") else ["--steps", "60"]
    result = CliRunner().invoke(app, [*shlex.split(command), *quick])
    assert result.exit_code == 0, result.output


def test_there_are_commands_and_small_figures():
    assert [command.split()[0] for _, command in COMMANDS] == ["compare"] * 3 + ["trace", "train"]
    for name, page in PAGES.items():
        assert f"(figures/{name}.png)" in page
        assert (DOCS / "figures" / f"{name}.png").stat().st_size < 150_000


@pytest.mark.parametrize("name", ["compare.md", "trace.md", "decisions/trace.md"])
def test_links_lead_somewhere(name):
    page = DOCS / name
    links = re.findall(r"\]\(([^)]+)\)", page.read_text(encoding="utf-8"))
    assert [link for link in links if not (page.parent / link).exists()] == []
