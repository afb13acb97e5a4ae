"""A training that was stopped at any moment, by Ctrl-C or killed, ends with the same bits as one that was not."""

import os
import signal
import subprocess
import sys
import threading
import time
from functools import partial

import numpy as np
import pytest

from meltpoint.errors import InputError
from meltpoint.formats.models import save
from meltpoint.models.rbm import RBM
from meltpoint.training.checkpoint import Checkpoint
from meltpoint.training.loop import postponed_interrupts
from meltpoint.training.train import train_rbm
from training.checkpoint_cases import DATA, OPTIONS, TRAININGS, StoppedError, assert_same_bits, entries


@pytest.fixture(autouse=True)
def ctrl_c_interrupts():
    """A test run that was started in the background ignores SIGINT, and so would its children."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("name", TRAININGS)
def test_stopped_after_any_batch_and_continued_it_ends_with_the_same_bits(name, tmp_path, monkeypatch):
    train = TRAININGS[name]
    undisturbed = train()
    monkeypatch.setattr(Checkpoint, "save_if_due", Checkpoint.save)  # after every batch
    n_batches = 0

    def count(*_):
        nonlocal n_batches
        n_batches += 1

    assert_same_bits(undisturbed, train(progress=count))
    assert n_batches == 12 * {"dbn": 2, "dbm": 3}.get(name, 1)
    for stop in range(1, n_batches + 1, 7):
        left = stop

        def stop_there(*_):
            nonlocal left
            left -= 1
            if left == 0:
                raise StoppedError

        path = tmp_path / f"{stop}.npz"
        with pytest.raises(StoppedError):
            train(progress=stop_there, checkpoint=path)
        assert_same_bits(undisturbed, train(checkpoint=path))


def test_a_finished_checkpoint_gives_the_model_without_training(tmp_path):
    path = tmp_path / "run.npz"
    first = TRAININGS["dbm"](checkpoint=path)
    again = TRAININGS["dbm"](checkpoint=path, progress=lambda *_: pytest.fail("trained again"))
    assert_same_bits(first, again)


@pytest.mark.parametrize(
    "change", [{"seed": 6}, {"epochs": 4}, {"learning_rate": 0.01}, {"hidden": 5}, {"data": DATA[:-1]}]
)
def test_a_checkpoint_of_another_run_is_refused(change, tmp_path):
    path = tmp_path / "run.npz"
    same = {"data": DATA, "hidden": 4, **OPTIONS, "checkpoint": path}
    train_rbm(**same)
    before = path.read_bytes()
    with pytest.raises(InputError, match="another run"):
        train_rbm(**(same | change))
    assert path.read_bytes() == before


def test_a_model_file_is_not_taken_for_a_checkpoint(tmp_path):
    path = tmp_path / "model.npz"
    save(RBM(np.zeros((9, 4)), np.zeros(9), np.zeros(4)), path)
    with pytest.raises(InputError, match="not a checkpoint"):
        train_rbm(DATA, 4, checkpoint=path)


@pytest.mark.parametrize("name", TRAININGS)
def test_ctrl_c_saves_and_the_next_call_goes_on(name, tmp_path):
    path = tmp_path / "run.npz"
    stage, at = {"dbn": (1, 19), "dbm": (2, 31)}.get(name, (0, 7))
    calls = 0

    def press_once(*_):
        nonlocal calls
        calls += 1
        if calls == at:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        TRAININGS[name](progress=press_once, checkpoint=path)
    with np.load(path) as file:
        assert [int(file[f"stages.{stage}.{name}"]) for name in ("epoch", "batch")] == [1, 1]
    assert entries(tmp_path) == ["run.npz"]
    assert_same_bits(TRAININGS[name](), TRAININGS[name](checkpoint=path))


def test_ctrl_c_without_a_checkpoint_ends_the_training_too():
    told = []

    def press(epoch):
        told.append(epoch.number)
        os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        train_rbm(DATA, 4, on_epoch=press, **OPTIONS)
    assert told == [1]


def test_pressing_ctrl_c_twice_interrupts_at_once():
    before = signal.getsignal(signal.SIGINT)
    with postponed_interrupts() as pressed:
        assert not pressed()
        os.kill(os.getpid(), signal.SIGINT)
        assert pressed()
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before


def test_other_threads_do_not_touch_signals():
    seen = []

    def inside():
        with postponed_interrupts() as pressed:
            seen.append(pressed())

    thread = threading.Thread(target=inside)
    thread.start()
    thread.join()
    assert seen == [False]


def test_sigterm_counts_where_the_program_gave_it_a_handler():
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with postponed_interrupts() as pressed:
            os.kill(os.getpid(), signal.SIGTERM)
            assert pressed()
    finally:
        signal.signal(signal.SIGTERM, before)


def test_an_ignored_signal_stays_ignored():
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with postponed_interrupts() as pressed:
        os.kill(os.getpid(), signal.SIGINT)
        assert not pressed()


_KILLED_WHILE_WRITING = """
import os, signal, sys
import numpy as np
from meltpoint.training.checkpoint import Checkpoint
from meltpoint.training.train import train_rbm
Checkpoint.save_if_due = Checkpoint.save
left = 9
fsync = os.fsync
def kill(descriptor):
    global left
    left -= 1
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    fsync(descriptor)
os.fsync = kill
data = (np.random.default_rng(0).random((60, 9)) < 0.3).astype(np.uint8)
train_rbm(data, 4, epochs=2, batch=10, seed=5, checkpoint=sys.argv[1])
"""


@pytest.mark.slow
def test_killed_while_it_writes_it_goes_on_and_leaves_nothing(tmp_path):
    path = tmp_path / "run.npz"
    child = subprocess.run([sys.executable, "-c", _KILLED_WHILE_WRITING, str(path)], check=False)
    assert child.returncode == -signal.SIGKILL
    assert any(left.suffix == ".tmp" for left in tmp_path.iterdir())
    train = partial(train_rbm, DATA, 4, epochs=2, batch=10, seed=5)
    calls = []
    assert_same_bits(train(), train(checkpoint=path, progress=lambda *_: calls.append(1)))
    assert 0 < len(calls) < 12
    assert entries(tmp_path) == ["run.npz"]


_CHILD = """
import sys
import numpy as np
from meltpoint.formats.models import save
from meltpoint.training.train import train_dbm
data = np.random.default_rng(3).random((400, 64))
model = train_dbm(data, (40, 30), epochs=8, batch=10, sweeps=3, checkpoint=sys.argv[1])
save(model, sys.argv[2])
"""


@pytest.mark.slow
def test_killed_at_random_moments_it_ends_with_the_same_bits(tmp_path):
    def start(name: str) -> subprocess.Popen:
        arguments = [
            sys.executable,
            "-c",
            _CHILD,
            str(tmp_path / f"{name}-run.npz"),
            str(tmp_path / f"{name}.npz"),
        ]
        return subprocess.Popen(arguments, env=os.environ | {"OPENBLAS_NUM_THREADS": "1"})

    begun = time.monotonic()
    assert start("undisturbed").wait() == 0
    whole = time.monotonic() - begun
    moments = np.random.default_rng(int(time.time()))
    kills = 0
    while True:
        child = start("killed")
        try:
            # Long enough to get somewhere beyond the imports, short enough to be killed several times.
            code = child.wait(timeout=whole * moments.uniform(0.4, 0.8) if kills < 4 else None)
        except subprocess.TimeoutExpired:
            child.send_signal(signal.SIGKILL)
            child.wait()
            kills += 1
            continue
        assert code == 0
        if kills:
            break
        whole /= 2  # the undisturbed one compiled, or others used the machine
        for file in tmp_path.glob("killed*"):
            file.unlink()
    assert (tmp_path / "killed.npz").read_bytes() == (tmp_path / "undisturbed.npz").read_bytes()
    assert entries(tmp_path) == [
        "killed-run.npz",
        "killed.npz",
        "undisturbed-run.npz",
        "undisturbed.npz",
    ]
