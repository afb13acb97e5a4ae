"""The documentation names every page and every public name, its links lead somewhere, and its start page runs."""

import re
from pathlib import Path

import pytest

import meltpoint as mp

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))


def test_every_page_is_in_the_navigation():
    listed = set(re.findall(r"[\w./-]+\.md", (ROOT / "mkdocs.yml").read_text(encoding="utf-8")))
    assert {page.relative_to(DOCS).as_posix() for page in PAGES} == listed


def test_every_public_name_is_in_the_reference():
    reference = "".join(page.read_text(encoding="utf-8") for page in (DOCS / "reference").glob("*.md"))
    assert set(re.findall(r"^::: meltpoint\.(\w+)$", reference, re.MULTILINE)) == {*mp.__all__} - {
        "__version__"
    }


def test_links_lead_somewhere():
    missing = [
        f"{page.name}: {link}"
        for page in PAGES
        for link in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text(encoding="utf-8"))
        if not re.match(r"https?://", link) and not (page.parent / link).exists()
    ]
    assert missing == []


@pytest.mark.slow
def test_the_start_page_runs(capsys):
    for block in re.findall(
        r"```python\n(.*?)```", (DOCS / "index.md").read_text(encoding="utf-8"), re.DOTALL
    ):
        exec(block, {})
    assert "conservative" in capsys.readouterr().out


def test_the_page_about_data_sets_runs(capsys):
    for block in re.findall(
        r"```python\n(.*?)```", (DOCS / "datasets.md").read_text(encoding="utf-8"), re.DOTALL
    ):
        exec(block.replace('"mnist"', '"digits"'), {})  # the same, without a download
    assert "1,500 training and 297 test examples" in capsys.readouterr().out


def test_every_page_with_python_is_run_by_a_test():
    tests = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
    with_python = [page for page in PAGES if "```python" in page.read_text(encoding="utf-8")]
    assert [
        page.name for page in with_python if f'"{page.name}"' not in tests and f"/{page.name}" not in tests
    ] == []
