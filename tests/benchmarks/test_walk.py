"""The walk of one evaluation is short, and the page has it."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
def test_the_page_has_the_walk():
    done = subprocess.run(
        [sys.executable, ROOT / "benchmarks" / "walk.py"], check=True, capture_output=True, text=True
    )
    walk = [line for line in done.stderr.splitlines() if ".py:" in line or line.endswith(":")]
    assert sum(".py:" in line for line in walk) <= 35
    assert "\n".join(walk) in (ROOT / "docs" / "architecture.md").read_text()
