"""Wrong arguments of every public function, made from its declaration: each ends at once in an error that names it."""

import inspect
import subprocess
import sys

import numpy as np
import pytest

import meltpoint as mp
from attack.arguments import calls, complaint, usual
from meltpoint.arguments import Count, Positive, Seed, public, read, rule_of

CALLS = list(calls())
KINDS_OF_RESULTS = {"Model", "Report", "Comparison", "Trace", "LogZ", "LogProb", "LogZBracket", "Estimate"}
KINDS_OF_RESULTS |= {"ConventionCheck", "FrictionSchedule", "InputError", "Interrupted", "SystemFailure"}


def test_every_public_function_is_called_wrongly():
    taking = {name for name in mp.__all__ if callable(getattr(mp, name))} - KINDS_OF_RESULTS - {"uniform"}
    assert taking == set(usual())
    assert len(CALLS) > 9000


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("function", usual())
def test_wrong_arguments(function, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    own = [call for call in CALLS if call.function == function]
    assert {str(call): text for call in own if (text := complaint(call))} == {}


def test_what_is_right_is_taken_as_python_s_own():
    assert type(read(Count, np.int64(3), "chains")) is int
    assert type(read(Positive, np.float32(0.5), "gap")) is float
    assert read(Seed, 2**64, "seed") == 2**64
    assert read(bool, np.True_, "exact") is True


@pytest.mark.parametrize("weights", [[[1e308, 1e308], [1e308, 1e308]], [[-1e200]]])
def test_parameters_whose_sums_overflow_are_refused(weights):
    with pytest.raises(mp.InputError, match=r"in weights, expected numbers of at most 1e\+150"):
        mp.RBM(weights, [0.0] * len(weights), [0.0] * len(weights))


def test_masks_are_not_ignored():
    weights = np.ma.masked_array(np.ones((2, 2)), mask=[[True, False], [False, False]])
    with pytest.raises(
        mp.InputError, match=r"weights, a masked array, expected a plain array: weights\.filled"
    ):
        mp.RBM(weights, [0, 0], [0, 0])


def test_options_of_the_command_have_the_ranges_of_the_arguments():
    from meltpoint.cli.options import COMPUTING, SIZES

    checked = {row.name for row in (*SIZES, *COMPUTING) if row.default.callback is not None}
    declared = inspect.get_annotations(inspect.unwrap(mp.evaluate), eval_str=True)
    ranges = {
        name for name, hint in declared.items() if any(map(rule_of, getattr(hint, "__args__", (hint,))))
    }
    assert {row.name for row in SIZES if row.name in ranges} <= checked
    assert {"threads", "workers", "patience"} <= checked


def test_a_misspelt_keyword_is_a_type_error_that_knows_the_right_one():
    @public
    def train(epochs: Count = 1) -> int:
        return epochs

    with pytest.raises(TypeError, match=r"train\(\) got an unexpected keyword .*Did you mean 'epochs'"):
        train(epoch=3)  # pyright: ignore[reportCallIssue]


def test_numba_without_its_compiler_is_no_error_of_ours(tmp_path):
    program = "from meltpoint.cli import main; main()"
    np.savez(tmp_path / "x.npz", x=np.zeros((2, 3)))
    mp.save(mp.RBM(np.zeros((3, 2)), [0, 0, 0], [0, 0]), tmp_path / "model.npz")
    done = subprocess.run(
        [sys.executable, "-c", program, "evaluate", tmp_path / "model.npz", tmp_path / "x.npz"],
        env={"NUMBA_DISABLE_JIT": "1", "PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout) == (3, "")
    assert "unset NUMBA_DISABLE_JIT" in done.stderr
    assert "Traceback" not in done.stderr
