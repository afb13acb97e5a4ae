"""Exit codes, errors as sentences, and signals from the first line of the command on."""

import errno
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import typer

from meltpoint.cli.ending import report_errors
from meltpoint.cli.signals import orderly_signals
from meltpoint.errors import InputError, SystemFailure

MAIN = "from meltpoint.cli import main; main()"


@pytest.mark.parametrize(
    ("problem", "code", "text"),
    [
        (
            InputError(found="a", expected="b", remedy="c"),
            2,
            "meltpoint: found a, expected b: c\n",
        ),
        (
            SystemFailure(found="a", expected="b", remedy="c"),
            3,
            "meltpoint: found a, expected b: c\n",
        ),
        (
            OSError(errno.EIO, "Input/output error"),
            3,
            "meltpoint: found a failure of the system ([Errno 5] Input/output error), expected none: try again, or "
            "use another disk\n",
        ),
        (
            ModuleNotFoundError("No module named 'scipy'"),
            3,
            "meltpoint: found a broken installation (No module named 'scipy'), expected a complete one: pip install "
            "--force-reinstall meltpoint\n",
        ),
        (KeyboardInterrupt(), 130, "meltpoint: interrupted: nothing was finished by then\n"),
        (KeyboardInterrupt("AIS was done"), 130, "meltpoint: interrupted: AIS was done\n"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_problems_become_sentences(capsys, problem, code, text):
    with pytest.raises(typer.Exit) as stop, report_errors():
        raise problem
    assert stop.value.exit_code == code
    assert tuple(capsys.readouterr()) == ("", text)


def test_too_little_memory_is_not_the_input_s_fault(capsys):
    with pytest.raises(typer.Exit) as stop, report_errors():
        raise MemoryError
    assert stop.value.exit_code == 3
    assert "too little memory" in capsys.readouterr().err


def test_termination_counts_as_interruption_and_only_inside(capsys):
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(typer.Exit) as stop, report_errors():
        signal.raise_signal(signal.SIGTERM)
    assert stop.value.exit_code == 130
    assert signal.getsignal(signal.SIGTERM) is before


def test_termination_does_what_ctrl_c_does_at_that_moment():
    pressed = []
    with orderly_signals():
        before = signal.signal(signal.SIGINT, lambda *_: pressed.append(True))
        signal.raise_signal(signal.SIGTERM)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGTERM)
        signal.signal(signal.SIGINT, before)
    assert pressed == [True]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_interruption_that_a_callback_swallows_comes_again():
    import ctypes

    callback = ctypes.CFUNCTYPE(None)(lambda: signal.raise_signal(signal.SIGINT))

    def press_and_wait():
        callback()
        latest = time.monotonic() + 5
        while time.monotonic() < latest:  # what is raised again does not end a sleep
            time.sleep(0.01)

    with pytest.raises(KeyboardInterrupt), orderly_signals():
        press_and_wait()


def test_a_thread_that_cannot_set_signals_works_all_the_same():
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(lambda: report_errors().__enter__()).result() is None


def test_a_bug_keeps_its_traceback():
    with pytest.raises(ZeroDivisionError), report_errors():
        1 / 0  # noqa: B018


def command(*arguments, code=MAIN, **options):
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], text=True, timeout=120, check=False, **options
    )


def test_a_bug_has_the_exit_code_of_a_failure():
    broken = "import meltpoint.cli.app as a; a.app = lambda **_: 1 / 0; " + MAIN
    ended = command(code=broken, stderr=subprocess.PIPE)
    assert ended.returncode == 3
    assert "ZeroDivisionError" in ended.stderr
    assert "please report" in ended.stderr


def test_a_broken_installation_is_told_without_a_traceback():
    broken = "import sys; sys.modules['typer'] = None; " + MAIN
    ended = command(code=broken, stderr=subprocess.PIPE)
    assert ended.returncode == 3
    assert ended.stderr.startswith("meltpoint: found a broken installation (")
    assert "Traceback" not in ended.stderr


STARTING = """
import os, sys, threading
class Wait:
    def find_spec(self, name, *_):
        if name == "typer":
            print("importing", flush=True)
            import time
            time.sleep(20)
sys.meta_path.insert(0, Wait())
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_during_start_up_ends_it_in_order(number):
    process = subprocess.Popen(
        [sys.executable, "-c", STARTING + MAIN, "--help"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "importing\n"
    process.send_signal(number)
    out, err = process.communicate(timeout=15)
    assert (process.returncode, out, err) == (
        130,
        "",
        "meltpoint: interrupted: nothing was finished by then\n",
    )


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize(
    "arguments",
    [["data", "list"], ["--help"], ["evaluate", "model.npz", "test.npy", "--steps", "10"]],
    ids=str,
)
def test_an_output_without_room_is_a_failure_in_one_sentence(folder, arguments):
    with Path("/dev/full").open("w") as full:
        ended = command(*arguments, stdout=full, stderr=subprocess.PIPE, cwd=folder)
    assert ended.returncode == 3
    assert ended.stderr.splitlines()[-1].startswith("meltpoint: found ")
    assert "No space left on device" in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_log_without_room_does_not_cost_the_result(folder):
    with Path("/dev/full").open("w") as full:
        ended = command(
            "evaluate",
            "model.npz",
            "test.npy",
            "--steps",
            "10",
            stdout=subprocess.PIPE,
            stderr=full,
            cwd=folder,
        )
    assert ended.returncode in (0, 1)
    assert "conservative" in ended.stdout


def test_a_run_s_name_of_300_letters_is_wrong_input(run, folder):
    ended = run("evaluate", "model.npz", "test.npy", "--steps", 10, "--run", "n" * 300)
    assert ended.exit_code == 2
    assert "names of at most 255 bytes" in ended.stderr


@pytest.mark.skipif(os.name != "posix", reason="pipes and links as POSIX has them")
@pytest.mark.timeout(60)
def test_a_hostile_folder_is_shown_in_sentences(run, folder):
    from meltpoint.runs.files import read_sealed, write_sealed
    from meltpoint.runs.specification import read_specification

    assert run("evaluate", "model.npz", "test.npy", "--steps", 10, "--run", "r").exit_code in (0, 1)
    path, name = folder / "r/part-0/stage-0/stage.npz", "part-0/stage-0/stage"
    seal = read_specification(folder / "r").fingerprint
    good = read_sealed(path, seal, name)
    import numpy as np

    for change in (
        {"chains": np.array(10**9)},
        {"ais_chains": np.array(-1)},
        {"examples": np.zeros(3)},
        {"seed": np.array("x")},
        {"betas": np.array("x")},
        {"method": np.zeros((2, 2))},
    ):
        write_sealed(path, good | change, seal, name)
        ended = run("runs", "show", "r")
        assert ended.exit_code in (0, 2), change
        assert not ended.exception or isinstance(ended.exception, SystemExit), change
        assert len(ended.stderr) < 600
    write_sealed(path, good, seal, name)
    (weights,) = (folder / "r/part-0/stage-0").glob("raise-0000000.npz")
    found = read_sealed(weights, seal, "part-0/stage-0/raise-0000000")
    lost = found | {"log_weights": np.full(found["log_weights"].shape, np.nan)}
    write_sealed(weights, lost, seal, "part-0/stage-0/raise-0000000")
    ended = run("runs", "show", "r")
    assert ended.exit_code in (0, 2)
    assert not ended.exception or isinstance(ended.exception, SystemExit)
    write_sealed(path, {}, seal, name)
    assert run("runs", "show", "r").exit_code in (0, 2)
    path.unlink()
    os.mkfifo(path)
    assert run("runs", "show", "r").exit_code == 0


LIMITED = """
import resource, signal, sys
import meltpoint.cli.app
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100, resource.RLIM_INFINITY))
"""


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="limits as POSIX has them")
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_an_output_that_is_cut_off_is_a_failure(tmp_path, unbuffered):
    with (tmp_path / "out").open("w") as file:
        ended = command(
            "data",
            "list",
            code=LIMITED + MAIN,
            stdout=file,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
        )
    assert (tmp_path / "out").stat().st_size == 100
    assert ended.returncode == 3
    assert "an output that cannot be written (File too large)" in ended.stderr


@pytest.mark.skipif(os.name != "posix", reason="needs a POSIX shell")
@pytest.mark.parametrize(
    ("closed", "code", "said"),
    [
        (">&-", 3, "an output that cannot be written (Bad file descriptor)"),
        ("2>&-", 0, ""),
        (">&- 2>&-", 3, ""),
        ("<&-", 0, ""),
    ],
)
def test_outputs_that_the_shell_has_closed(closed, code, said):
    done = subprocess.run(
        ["sh", "-c", f'"$0" -m meltpoint data list {closed}', sys.executable], capture_output=True, text=True
    )
    assert done.returncode == code
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert ("digits" in done.stdout) == (code == 0)


def test_an_interrupt_within_exec_keeps_the_exit_code(tmp_path):
    """A KeyboardInterrupt that left an exec() ends `python -m` by SIGINT at its end, although it was handled."""
    (tmp_path / "early.py").write_text(
        "from meltpoint import cli\nfrom meltpoint.cli import ending\n\n"
        "def run():\n    try:\n        exec('raise KeyboardInterrupt')\n"
        "    except KeyboardInterrupt:\n        return 5\n\n"
        "ending.run = run\ncli.main()\n"
    )
    done = subprocess.run([sys.executable, "-m", "early"], cwd=tmp_path, capture_output=True, check=False)
    assert done.returncode == 5, done.stderr
