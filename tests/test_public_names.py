"""The package's own names: what is exported, its version, and that type checkers see misspelt ones."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import meltpoint as mp

PUBLIC = [
    "DBM",
    "DBN",
    "RBM",
    "Base",
    "Comparison",
    "ConventionCheck",
    "Estimate",
    "FactorGraph",
    "FrictionSchedule",
    "InputError",
    "Interrupted",
    "Ising",
    "LogProb",
    "LogZ",
    "LogZBracket",
    "Model",
    "Potts",
    "Report",
    "SystemFailure",
    "Trace",
    "__version__",
    "ais_log_z",
    "annealing",
    "check_conventions",
    "compare",
    "csl_log_prob",
    "data_rates",
    "datasets",
    "evaluate",
    "exact_log_z",
    "friction_schedule",
    "from_object",
    "layers",
    "load",
    "log_z",
    "merge_runs",
    "model_rates",
    "raise_log_prob",
    "read_run",
    "sample",
    "sample_annealing_model",
    "save",
    "sweep",
    "trace",
    "train_dbm",
    "train_dbn",
    "train_rbm",
    "uniform",
]
"""What other people's programs may use: none may be lost, and a new one is added here too."""


def test_every_public_name_is_there() -> None:
    assert sorted(mp.__all__) == sorted(PUBLIC)
    assert set(PUBLIC) <= set(dir(mp))
    for name in PUBLIC:
        assert getattr(mp, name) is not None


def test_a_misspelt_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'evaluat'"):
        mp.evaluat  # noqa: B018


def test_python_dash_m() -> None:
    said = subprocess.run(
        [sys.executable, "-m", "meltpoint", "--version"], capture_output=True, text=True, check=True
    )
    assert said.stdout == f"meltpoint {mp.__version__}\n"
    assert re.fullmatch(r"\d+\.\d+\.\d+", mp.__version__)


@pytest.mark.slow
def test_a_type_checker_sees_misspelt_names(tmp_path: Path) -> None:
    checker = Path(sys.executable).with_name("basedpyright")
    if not checker.exists():
        pytest.skip("needs basedpyright beside this Python")
    script = tmp_path / "script.py"
    script.write_text("import meltpoint as mp\nmp.evaluate\nmp.evaluat\n")
    command = [checker, "--pythonpath", sys.executable, script]
    said = subprocess.run(command, capture_output=True, text=True, check=False)
    assert re.findall(r'"(\w+)" is not a known attribute', said.stdout) == ["evaluat"]
