"""Files of checkpoints: damaged, foreign and sealed by others; locks, links and full disks."""

import errno
import os
from pathlib import Path

import numpy as np
import pytest

from meltpoint.errors import InputError, RunWarning
from meltpoint.training import checkpoint as checkpoints
from meltpoint.training.checkpoint import Checkpoint, read_checkpoint_model
from meltpoint.training.train import train_rbm
from training.checkpoint_cases import (
    DATA,
    TRAININGS,
    StoppedError,
    assert_same_bits,
    entries,
)


def stored(name, folder, monkeypatch, after=9):
    """The checkpoint of a training that was stopped after a number of batches, and its arrays."""
    path = folder / "run.npz"
    left = after

    def stop(*_):
        nonlocal left
        left -= 1
        if left < 0:
            raise StoppedError

    monkeypatch.setattr(Checkpoint, "save_if_due", Checkpoint.save)
    with pytest.raises(StoppedError):
        TRAININGS[name](progress=stop, checkpoint=path)
    with np.load(path) as file:
        return path, {key: file[key] for key in file.files if key != "fingerprint"}


def seal(path, arrays):
    """Write a checkpoint whose seal is right, whatever is in it."""
    checkpoints.write_sealed(path, arrays, checkpoints._CONTEXT)


def with_value(array, value):
    changed = array.copy()
    changed.flat[0] = value
    return changed


EPOCH, BATCH, AVERAGED = "stages.0.epoch", "stages.0.batch", "stages.0.n_averaged"
WEIGHTS = "stages.0.parameters.0"
CHAIN = "stages.0.chains.0"
WRONG = {
    "epoch 99": {EPOCH: lambda e: e + 99},
    "batch 10^9": {BATCH: lambda b: b + 10**9},
    "negative epoch": {EPOCH: lambda e: e - 9},
    "end of the stage with batches": {EPOCH: lambda _: np.array(2), BATCH: lambda _: np.array(1)},
    "average of too many": {AVERAGED: lambda n: n + 1},
    "two epochs": {EPOCH: lambda e: np.array([e, e])},
    "an epoch of a float": {EPOCH: lambda e: e.astype(float)},
    "no epoch": {EPOCH: None},
    "weights transposed": {WEIGHTS: lambda w: w.T},
    "weights too small": {WEIGHTS: lambda w: w[:-1]},
    "weights flat": {WEIGHTS: lambda w: w.ravel()},
    "weights of float64": {WEIGHTS: lambda w: w.astype(float)},
    "weights not finite": {WEIGHTS: lambda w: with_value(w, np.nan)},
    "weights missing": {WEIGHTS: None},
    "velocity infinite": {"stages.0.velocity.1": lambda v: with_value(v, np.inf)},
    "average too long": {"stages.0.average.2": lambda a: np.append(a, a)},
    "offset beyond 1": {"stages.0.offsets.0": lambda o: with_value(o, 7)},
    "offset missing": {"stages.0.offsets.1": None},
    "fewer offsets": {"stages.0.offsets": lambda n: n - 1, "stages.0.offsets.1": None},
    "chains of 200s": {CHAIN: lambda c: c + np.uint8(200)},
    "too many chains": {CHAIN: lambda c: np.repeat(c, 9, axis=0)},
    "no chains": {CHAIN: lambda c: c[:0]},
    "chains of units that are not": {CHAIN: lambda c: np.tile(c, (1, 2))},
    "chains of int64": {CHAIN: lambda c: c.astype(np.int64)},
    "an array too many": {"stages.0.chains.1": lambda _: np.zeros(1)},
    "a stage too many": {"stages": lambda n: n + 1},
    "far too many chains": {CHAIN: lambda c: np.zeros((10**6, c.shape[1]), np.uint8)},
    "an array of no stage": {"anything": lambda _: np.zeros(1)},
}


@pytest.mark.parametrize("case", WRONG)
def test_a_sealed_checkpoint_with_wrong_arrays_is_refused(case, tmp_path, monkeypatch):
    path, arrays = stored("pcd, grey", tmp_path, monkeypatch)
    for name, change in WRONG[case].items():
        if change is None:
            del arrays[name]
        else:
            arrays[name] = change(arrays.get(name))
    seal(path, arrays)
    with pytest.raises(InputError, match="remove the file to start anew"):
        TRAININGS["pcd, grey"](checkpoint=path)


@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        ("potts", {"kept.0": np.array(5)}),
        ("potts", {"kept.0": np.array([2, 2])}),
        ("potts", {"kept.0": np.array(0)}),
        ("potts", {"kept": np.array(0), "kept.0": None}),
        ("gaussian", {"kept.1": np.ones(8)}),
        ("gaussian", {"kept.0": np.ones((9, 9))}),
        ("gaussian", {"stages.0.parameters.3": np.ones((9, 9), np.float32)}),
        ("gaussian", {"visible": np.array("spin")}),
        ("gaussian", {"visible": np.array("ternary")}),
    ],
)
def test_a_sealed_checkpoint_of_no_model_is_not_read_as_one(kind, changes, tmp_path):
    path = tmp_path / "run.npz"
    train_rbm(DATA, 4, visible=kind, epochs=1, checkpoint=path)
    with np.load(path) as file:
        arrays = {key: file[key] for key in file.files if key != "fingerprint"} | changes
    seal(path, {name: array for name, array in arrays.items() if array is not None})
    with pytest.raises(InputError):
        read_checkpoint_model(path)


def test_counts_of_two_are_right_for_doubled_layers_only(tmp_path, monkeypatch):
    path, arrays = stored("dbm", tmp_path, monkeypatch, after=15)
    arrays["stages.1.chains.0"][:] = 2  # the upper layer of the second pair counts double
    seal(path, arrays)
    TRAININGS["dbm"](checkpoint=path)
    path.unlink()
    path, arrays = stored("dbm", tmp_path, monkeypatch, after=9)
    arrays["stages.0.chains.0"][:] = 2
    seal(path, arrays)
    with pytest.raises(InputError, match="outside 0 to 1"):
        TRAININGS["dbm"](checkpoint=path)


def test_a_stage_that_has_not_ended_is_not_followed_by_another(tmp_path, monkeypatch):
    path, arrays = stored("dbn", tmp_path, monkeypatch, after=15)
    arrays |= {EPOCH: np.array(1), BATCH: np.array(0), AVERAGED: np.array(0)}
    seal(path, arrays)
    with pytest.raises(InputError, match="before the last one had ended"):
        TRAININGS["dbn"](checkpoint=path)


def test_a_sealed_checkpoint_in_another_memory_order_gives_the_same_bits(tmp_path, monkeypatch):
    path, arrays = stored("pcd, grey", tmp_path, monkeypatch)
    seal(path, {name: np.asarray(array, order="F") for name, array in arrays.items()})
    assert_same_bits(TRAININGS["pcd, grey"](), TRAININGS["pcd, grey"](checkpoint=path))


def test_changed_bytes_break_the_seal(tmp_path, monkeypatch):
    path, arrays = stored("pcd, grey", tmp_path, monkeypatch)
    arrays[WEIGHTS] += np.float32(1)
    with np.load(path) as file:
        np.savez(path, **arrays, fingerprint=file["fingerprint"])
    with pytest.raises(InputError, match="was changed"):
        TRAININGS["pcd, grey"](checkpoint=path)


@pytest.mark.slow
def test_a_checkpoint_cut_off_or_damaged_anywhere_is_refused(tmp_path, monkeypatch):
    path, _ = stored("pcd, grey", tmp_path, monkeypatch)
    whole = path.read_bytes()
    rng = np.random.default_rng(0)
    undisturbed = TRAININGS["pcd, grey"]()
    refused = 0
    for trial in range(60):
        damaged = bytearray(whole)
        if trial % 2:
            del damaged[rng.integers(len(whole)) :]
        else:
            damaged[rng.integers(len(whole))] ^= 1 << rng.integers(8)
        path.write_bytes(damaged)
        try:  # a bit that no reader looks at may change
            assert_same_bits(undisturbed, TRAININGS["pcd, grey"](checkpoint=path))
        except InputError:
            refused += 1
    assert refused > 40


def test_what_is_not_a_file_is_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    for name in ("pipe", "folder"):
        with pytest.raises(InputError, match="not a checkpoint"):
            train_rbm(DATA, 4, checkpoint=tmp_path / name)


def test_a_folder_that_does_not_exist_is_noticed_at_once(tmp_path):
    with pytest.raises(InputError, match="create the folder first"):
        train_rbm(DATA, 4, checkpoint=tmp_path / "none" / "run.npz", progress=lambda *_: pytest.fail("began"))


def test_two_trainings_do_not_share_a_checkpoint(tmp_path):
    path = tmp_path / "run.npz"
    refused = []

    def second(*_):
        if not refused:
            with pytest.raises(InputError, match="another training") as problem:
                TRAININGS["cd"](checkpoint=path, progress=lambda *_: pytest.fail("began"))
            refused.append(problem)

    assert_same_bits(TRAININGS["cd"](), TRAININGS["cd"](checkpoint=path, progress=second))
    assert refused
    assert entries(tmp_path) == ["run.npz"]


def test_what_a_killed_training_left_is_removed(tmp_path):
    path = tmp_path / "run.npz"
    (tmp_path / ".run.npz.lock").touch()
    (tmp_path / ".meltpoint-0123456789abcdef.tmp").write_bytes(b"half")
    TRAININGS["cd"](checkpoint=path)
    assert entries(tmp_path) == [path.name]


def test_a_link_in_place_of_the_lock_is_not_followed(tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_bytes(b"kept")
    (tmp_path / ".run.npz.lock").symlink_to(elsewhere)
    with pytest.raises(InputError, match="not a regular file"):
        TRAININGS["cd"](checkpoint=tmp_path / "run.npz")
    assert elsewhere.read_bytes() == b"kept"


def test_training_goes_on_when_the_disk_is_full(tmp_path, monkeypatch):
    path = tmp_path / "run.npz"
    monkeypatch.setattr(Checkpoint, "save_if_due", Checkpoint.save)
    write, calls = checkpoints.write_sealed, 0

    def full(*arguments):
        nonlocal calls
        calls += 1
        if calls < 10:
            raise InputError(found="no space left on the disk", expected="some", remedy="free some space")
        write(*arguments)

    monkeypatch.setattr(checkpoints, "write_sealed", full)
    with pytest.warns(RunWarning, match="The training goes on") as warned:
        model = TRAININGS["cd"](checkpoint=path)
    assert len(warned) == 1
    assert_same_bits(TRAININGS["cd"](), model)
    again = TRAININGS["cd"](checkpoint=path, progress=lambda *_: pytest.fail("trained again"))
    assert_same_bits(model, again)


@pytest.mark.parametrize(("owner", "name"), [(os, "fsync"), (Path, "replace")])
def test_a_failing_write_changes_no_bit_of_the_model(owner, name, tmp_path, monkeypatch):
    def fail(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(owner, name, fail)
    with pytest.warns(RunWarning, match="no space left"):
        model = TRAININGS["cd"](checkpoint=tmp_path / "run.npz")
    assert_same_bits(TRAININGS["cd"](), model)
    assert entries(tmp_path) == []
