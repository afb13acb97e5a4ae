"""The page about formats tells the truth: its Python runs, its formats are those that there are."""

import re
from pathlib import Path

import numpy as np

from meltpoint.formats.format import NAMES
from meltpoint.formats.load import FORMATS
from meltpoint.formats.named_arrays import HIDDEN, VISIBLE, WEIGHTS

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "formats.md").read_text(encoding="utf-8")


def test_python_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert len(blocks) == 9
    names = {}
    for block in blocks:
        exec(block, names)
        for expression, value in re.findall(r"^(model\.log_f\(.*\))  # (.*)$", block, re.MULTILINE):
            value = re.sub(r"log ([\d.]+)", r"np.log(\1)", value)
            np.testing.assert_allclose(eval(expression, names), [eval(value, {"np": np})])


def test_every_format_and_option_has_its_place():
    models = [format for format in FORMATS if format.model is not None]
    # Our own are not on the page; .npz, .mat and .h5 are one section, and so are dimod's.
    assert PAGE.count("\n## ") == len(models) - 4
    assert [name for name in NAMES if f"`{name}" not in PAGE and f"{name}=" not in PAGE] == []


def test_the_names_of_arrays_are_those_that_are_known():
    rows = {
        row[0]: set(re.findall(r"`(\w+)`", row[1]))
        for row in re.findall(r"^\| (.*?) \| (.*) \|$", PAGE, re.MULTILINE)
    }
    for row, names in (("weights", WEIGHTS), ("visible bias", VISIBLE), ("hidden bias", HIDDEN)):
        assert {name.lower() for name in rows[row]} == set(names)


def test_links_lead_somewhere():
    headings = {
        re.sub(r"[^\w\- ]", "", line.lower()).replace(" ", "-")
        for line in re.findall(r"^## (.*)$", PAGE, re.MULTILINE)
    }
    assert set(re.findall(r"\]\(#([^)]+)\)", PAGE)) <= headings
