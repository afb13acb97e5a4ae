"""Ctrl-C as it comes from a keyboard, and SIGTERM as it comes from schedulers, sent to the command's process."""

import json
import re
import shlex
import signal
import subprocess
import sys

import numpy as np
import pytest

import meltpoint as mp
from meltpoint.evaluation.stored import read_run

# A line for every look at the progress, so that the test knows when to press.
TALKATIVE = """
from meltpoint import progress
from meltpoint.cli import main
progress._LINE_SECONDS = progress._WARM_SECONDS = 0.0
main()
"""

ADVICE = "to be able to continue, add --run FOLDER\n"


@pytest.fixture
def evaluate(tmp_path):
    """Starts an evaluation of some seconds in a process of its own, with its stderr to be read line by line."""
    rng = np.random.default_rng(0)
    mp.save(mp.RBM(rng.normal(0, 0.1, (40, 30)), np.zeros(40), np.zeros(30)), tmp_path / "model.npz")
    np.save(tmp_path / "test.npy", rng.integers(0, 2, (100, 40)))
    started = []

    def start(*options):
        arguments = ["evaluate", "model.npz", "test.npy", "--train", "test.npy", "--threads", "1", *options]
        process = subprocess.Popen(
            [sys.executable, "-c", TALKATIVE, *arguments],
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            # A suite that was started in the background ignores Ctrl-C, and its children would too.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def press_at(process, share, number=signal.SIGINT):
    """Send a signal when that share, in percent, of both stages is done; give the rest of stderr and all of stdout."""
    for line in process.stderr:
        match = re.match(r"AIS and RAISE: (\d+)%", line)
        if match and int(match[1]) >= share:
            break
    else:
        pytest.fail(f"it ended by itself: {process.communicate()}")
    process.send_signal(number)
    stdout, stderr = process.communicate(timeout=60)
    return stdout, "".join(line for line in stderr.splitlines(True) if not line.startswith("AIS and RAISE:"))


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_in_raise_a_partial_report_is_printed(evaluate, number):
    process = evaluate("--steps", "4000", "--ais-chains", "64", "--json", "--plot", "a.png")
    stdout, stderr = press_at(process, 60, number)
    report = json.loads(stdout)
    done = len(report["examples"]["log_prob"])
    assert 0 < done < 100
    assert report["interrupted"] is True
    assert report["verdict"]["reason"] == "unchecked"  # other starts are asked when all chains are finished
    assert report["settings"]["examples"] == 100
    assert stderr == (
        f"figure: a.png\nmeltpoint: interrupted: a partial report, from {done} of 100 examples\n{ADVICE}"
    )
    assert process.returncode == 1


@pytest.mark.slow
def test_in_ais_the_answer_so_far_is_told(evaluate):
    process = evaluate("--steps", "4000", "--examples", "16", "--ais-chains", "400")
    stdout, stderr = press_at(process, 40)
    assert stdout == ""
    assert re.fullmatch(
        r"meltpoint: interrupted: of 400 AIS chains, \d+ were finished, RAISE had finished no example: "
        r"optimistic -\S+ ± \S+, conservative unknown \(log Z \S+ ± \S+\)\n" + ADVICE,
        stderr,
    )
    assert process.returncode == 130


@pytest.mark.slow
def test_before_anything_is_known_it_says_so(evaluate):
    process = evaluate("--steps", "200000", "--ais-chains", "64")
    stdout, stderr = press_at(process, 0)
    assert (stdout, stderr) == ("", f"meltpoint: interrupted: nothing was finished by then\n{ADVICE}")
    assert process.returncode == 130


@pytest.mark.slow
@pytest.mark.parametrize("workers", [[], ["--workers", "2"]], ids=["threads", "processes"])
def test_with_a_folder_it_says_how_to_continue_and_does(evaluate, tmp_path, workers):
    options = ["--steps", "4000", "--ais-chains", "200", "--run", "my run"]
    process = evaluate(*options, *workers)
    _, stderr = press_at(process, 30)
    line = next(line for line in stderr.splitlines() if line.startswith("to continue: "))
    command = shlex.split(line.removeprefix("to continue: "))
    assert command[:2] == ["meltpoint", "evaluate"]
    assert command[-len(options + workers) :] == options + workers
    assert process.returncode in (1, 130)
    stopped = read_run(tmp_path / "my run")
    assert stopped.stages[0].ais.finished.any()
    assert not stopped.complete
    again = evaluate(*options)
    assert "after" not in again.communicate()[0]
    assert again.returncode == 0
    assert read_run(tmp_path / "my run").complete
