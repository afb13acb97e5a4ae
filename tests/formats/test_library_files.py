"""Files that other libraries wrote have the log f that those libraries compute, to 1e-6."""

import json
import subprocess
from pathlib import Path

import numpy as np
import pytest

import meltpoint as mp
from formats.conftest import FILES

ROOT = Path(__file__).resolve().parents[2]
OTHER_PYTHON = ROOT / ".venv-bench" / "bin" / "python"


def cases(folder):
    return json.loads((folder / "expected.json").read_text())


def check(folder, case):
    if case["file"].endswith(".h5"):
        pytest.importorskip("h5py")
    model = mp.load(folder / case["file"], **case["options"])
    np.testing.assert_allclose(model.log_f(np.array(case["states"])), case["log_f"], rtol=0, atol=1e-6)


@pytest.mark.parametrize("case", cases(FILES), ids=lambda case: f"{case['file']} {case['options']}")
def test_log_f_is_that_of_the_library(case):
    check(FILES, case)


def test_every_library_is_there():
    assert {Path(case["file"]).suffix for case in cases(FILES)} == {
        ".pt", ".safetensors", ".skops", ".h5", ".bqm", ".json", ".coo", ".uai", ".dat",
    }  # fmt: skip


@pytest.mark.slow
def test_files_written_now(tmp_path):
    if not OTHER_PYTHON.exists():
        pytest.skip(
            "needs the environment of `make bench`, or one with the libraries that make_files.py names"
        )
    program = Path(__file__).with_name("make_files.py")
    subprocess.run([OTHER_PYTHON, program, tmp_path], check=True, timeout=200)
    written = cases(tmp_path)
    assert written
    for case in written:
        check(tmp_path, case)
