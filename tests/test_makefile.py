"""What the targets of the Makefile install."""

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="there is no make")


def planned(target, folder):
    """The commands of a target in a fresh clone."""
    for name in ("Makefile", "pyproject.toml"):
        shutil.copy(ROOT / name, folder)
    done = subprocess.run(["make", "-n", target], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout


def test_the_demo_installs_no_tools_of_developers(tmp_path):
    said = planned("demo", tmp_path)
    assert "'.[plot]'" in said
    assert "dev" not in said.replace("/dev/", "")
    assert said.index("echo") < said.index("pip install")  # silence would last for minutes


def test_tests_install_them(tmp_path):
    assert "'.[dev]'" in planned("test", tmp_path)
