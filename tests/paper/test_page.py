"""The page in the documentation."""

import re
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"


def test_its_links_lead_somewhere():
    text = (DOCS / "paper.md").read_text(encoding="utf-8")
    links = [link for link in re.findall(r"\]\(([^)]+)\)", text) if not link.startswith("https://")]
    assert "figures/raise-dbm.png" in links
    assert [link for link in links if not (DOCS / link).exists()] == []


def test_its_words_are_those_of_the_template():
    template = DOCS.parent / "src" / "meltpoint" / "paper" / "page.md"
    headings = re.compile(r"^## .*$", re.MULTILINE)
    page = (DOCS / "paper.md").read_text(encoding="utf-8")
    assert headings.findall(page) == headings.findall(template.read_text(encoding="utf-8"))
