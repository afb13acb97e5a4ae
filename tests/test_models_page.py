"""The page about models tells the truth: its examples run one after the other, and its links lead somewhere."""

import re
from contextlib import chdir
from pathlib import Path

import pytest

import meltpoint as mp

DOCS = Path(__file__).resolve().parents[1] / "docs"
PAGE = (DOCS / "models.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def names(tmp_path_factory):
    """What the examples have made, one after the other."""
    folder = tmp_path_factory.mktemp("models")
    blocks = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    made: dict = {}
    with chdir(folder):
        for block in blocks:
            exec(block, made)
    assert len(blocks) == 3
    return made, folder


@pytest.mark.slow
def test_the_lattice(names):
    made, _ = names
    exact = mp.exact_log_z(made["lattice"], threads=1)
    assert abs(made["log_z"].value - exact) < 0.5
    assert set(made["spins"].ravel().tolist()) == {-1, 1}


@pytest.mark.slow
def test_the_family(names):
    made, _ = names
    report = made["report"]
    assert report.verdict.trusted
    assert "base data" in str(report)


@pytest.mark.slow
def test_the_factor_graph_is_kept(names):
    made, folder = names
    back = mp.load(folder / "weather.npz")
    assert back.hidden.tolist() == [1]
    data = made["data"]
    assert (back.log_f(data) == made["weather"].log_f(data)).all()


def test_links_lead_somewhere():
    links = [link for link in re.findall(r"\]\(([^)]+)\)", PAGE) if not link.startswith("https://")]
    assert links
    assert [link for link in links if not (DOCS / link).exists()] == []
