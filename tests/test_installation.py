"""The wheel works in a clean environment, with nothing but what it asks for."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.slow
def test_the_wheel_and_the_sdist_are_built_and_used(tmp_path):
    build = [sys.executable, "-m", "build", "--outdir", tmp_path, ROOT]
    built = subprocess.run(build, capture_output=True, text=True, check=False)
    if built.returncode and "No matching distribution found for hatchling" in built.stdout + built.stderr:
        pytest.skip("needs a package index for the build backend")
    assert built.returncode == 0, built.stdout + built.stderr
    check = [sys.executable, ROOT / "benchmarks" / "installation.py", tmp_path, "--only", "wheel"]
    done = subprocess.run(check, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "evaluates, and its digits have shape (1500, 64)" in done.stdout
