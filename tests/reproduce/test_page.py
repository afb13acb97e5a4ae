"""The page in the documentation, and the results it is made from."""

import json
import re
from pathlib import Path

from reproduce.cells import Cell
from reproduce.results import Results, cell_fingerprint

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"


def test_the_results_are_sealed_and_belong_to_the_models_here():
    results = Results(ROOT / "results")
    paths = sorted((ROOT / "results" / "cells").iterdir())
    assert len(paths) >= 158
    for path in paths:
        cell = Cell(**json.loads(path.read_text(encoding="utf-8"))["cell"])
        record = results.read(cell)
        assert record is not None, path
        digests = record["model"]["sha256"], record["data"]["sha256"]
        assert record["fingerprint"] == cell_fingerprint(cell, *digests)


def test_its_links_lead_somewhere():
    text = (DOCS / "paper.md").read_text(encoding="utf-8")
    links = [link for link in re.findall(r"\]\(([^)]+)\)", text) if not link.startswith("https://")]
    assert "figures/raise-dbm.png" in links
    assert [link for link in links if not (DOCS / link).exists()] == []


def test_its_words_are_those_of_the_template():
    template = ROOT / "reproduce" / "page.md"
    headings = re.compile(r"^## .*$", re.MULTILINE)
    page = (DOCS / "paper.md").read_text(encoding="utf-8")
    assert headings.findall(page) == headings.findall(template.read_text(encoding="utf-8"))
