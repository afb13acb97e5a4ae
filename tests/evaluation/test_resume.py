"""Runs that are stopped anywhere, and damaged anyhow, end as if nothing had happened."""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import meltpoint as mp
from evaluation.kept import DEEP, MODEL, STACK, TEST, TRAIN, evaluate, plain, whole
from meltpoint.errors import RunWarning
from meltpoint.estimators import chain_batches as chains_module
from meltpoint.evaluation import prerequisites
from meltpoint.runs import run as run_module
from meltpoint.runs.files import read_sealed, write_sealed
from meltpoint.runs.specification import read_specification


@pytest.fixture(scope="module")
def _run_once(tmp_path_factory):
    folder = tmp_path_factory.mktemp("finished") / "run"
    evaluate(run=folder)
    return folder


@pytest.fixture
def finished(_run_once, tmp_path):
    """The folder of a finished run, a copy of its own for each test."""
    return shutil.copytree(_run_once, tmp_path / "finished")


@pytest.fixture
def computed(monkeypatch):
    """Names of the tasks that are computed from now on."""
    whole(MODEL)  # the tasks of what a test compares with do not count
    names = []
    compute = run_module.compute_chunks

    def noting(chunks, keep, **how):
        def also(chunk, result):
            if chunk.batch.name in ("ais", "raise"):
                names.append(chunk.name)
            keep(chunk, result)

        compute(chunks, also, **how)

    monkeypatch.setattr(run_module, "compute_chunks", noting)
    return names


@pytest.mark.parametrize("model", [MODEL, DEEP, STACK], ids=repr)
def test_a_folder_changes_nothing_and_is_not_computed_twice(tmp_path, monkeypatch, model):
    assert plain(evaluate(model, run=tmp_path)) == whole(model)
    written = json.loads((tmp_path / "report.json").read_text())
    written.pop("seconds")
    assert written == json.loads(whole(model))[0]

    def never(*arguments, **options):
        pytest.fail("it was computed again")

    for owner, name in [
        (type(model), "log_f_method"),
        (prerequisites, "exact_log_z"),
        (prerequisites, "data_rates"),
        (prerequisites, "run_pilot"),
        (chains_module.Chains, "compute"),
    ]:
        monkeypatch.setattr(owner, name, never)
    assert plain(evaluate(model, run=tmp_path)) == whole(model)


@pytest.mark.slow
def test_after_every_single_write_it_can_be_continued(tmp_path, monkeypatch):
    replace = Path.replace
    left = 0

    def stopping(self, target):
        nonlocal left
        left -= 1
        if left < 0:
            raise KeyboardInterrupt
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", stopping)
    expected, allowed, kept = whole(MODEL), 1, []
    while not (tmp_path / "report.json").exists():
        left = allowed
        with contextlib.suppress(KeyboardInterrupt):
            report = evaluate(run=tmp_path)
            assert report.interrupted or plain(report) == expected
        kept.append(len(list(tmp_path.rglob("*.npz"))))
        assert len(kept) < 100
        allowed += kept[-1:] == kept[-2:-1]  # some files are written by every call
    left = 10**6
    assert plain(evaluate(run=tmp_path)) == expected
    assert len(set(kept)) > 10


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.write_bytes(path.read_bytes()[:-20]),
        lambda path: path.write_bytes(b""),
        lambda path: path.write_bytes(b"something else entirely"),
        lambda path: path.write_bytes(path.with_name("ais-0000000.npz").read_bytes()),
    ],
    ids=["cut off", "empty", "overwritten", "mixed up"],
)
@pytest.mark.parametrize("name", ["ais-0000050", "raise-0000008"])
def test_a_damaged_piece_is_computed_again_with_a_warning(finished, computed, name, damage):
    damage(finished / "part-0/stage-0" / f"{name}.npz")
    with pytest.warns(RunWarning, match=f"{name}.npz, .*counts as missing, and is computed again"):
        assert plain(evaluate(run=finished)) == whole(MODEL)
    assert computed == [name]
    assert plain(evaluate(run=finished)) == whole(MODEL)


@pytest.mark.parametrize("name", ["base-data", "schedule-data", "log_f", "part-0/stage-0/stage"])
def test_so_is_what_all_tasks_share(finished, computed, name):
    (finished / f"{name}.npz").write_bytes(b"PK")
    with pytest.warns(RunWarning, match=f"{name}.npz"):
        assert plain(evaluate(run=finished)) == whole(MODEL)
    assert computed == []


_WRONG = {
    "a number": lambda arrays, name: {**arrays, name: np.array(1.0)},
    "no such array": lambda arrays, name: {key: arrays[key] for key in arrays if key != name},
    "longer": lambda arrays, name: {**arrays, name: np.repeat(arrays[name], 2, axis=0)},
    "text": lambda arrays, name: {**arrays, name: np.array(["a", "b"])},
}


def reseal(folder, chunk, change):
    """Write other arrays with a right seal, as anybody with the library can."""
    seal = read_specification(folder).fingerprint, chunk
    write_sealed(folder / f"{chunk}.npz", change(read_sealed(folder / f"{chunk}.npz", *seal)), *seal)


@pytest.mark.parametrize("change", _WRONG.values(), ids=list(_WRONG))
@pytest.mark.parametrize(("chunk", "name"), [("samples", "states"), ("schedule-data", "edges")])
def test_sealed_chunks_of_another_layout_are_computed_again(finished, chunk, name, change):
    reseal(finished, chunk, lambda arrays: change(arrays, name))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RunWarning)
        assert plain(evaluate(run=finished)) == whole(MODEL)


@pytest.mark.parametrize(
    "change",
    [
        lambda arrays: arrays | {"biases.0": np.full(24, np.nan)},
        lambda arrays: arrays | {"name": np.array("x")},
    ],
)
def test_a_sealed_base_of_other_values_is_refused(finished, change):
    reseal(finished, "base-data", change)
    with pytest.raises(mp.InputError, match="base-data of the run with other arrays than biases"):
        evaluate(run=finished)


@pytest.mark.slow
def test_a_piece_of_another_run_is_not_taken(tmp_path, computed):
    evaluate(run=tmp_path / "a")
    evaluate(run=tmp_path / "b", seed=1)
    name = "part-0/stage-0/ais-0000000.npz"
    (tmp_path / "a" / name).write_bytes((tmp_path / "b" / name).read_bytes())
    computed.clear()
    with pytest.warns(RunWarning, match="belongs elsewhere"):
        assert plain(evaluate(run=tmp_path / "a")) == whole(MODEL)
    assert computed == ["ais-0000000"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"seed": 1}, "seed=0 in .*, expected seed=1"),
        ({"steps": 31}, "steps=30"),
        ({"steps": np.linspace(0, 1, 31) ** 2}, "a run with no schedule"),
        ({"chains": 6}, "chains=5"),
        ({"ais_chains": 301}, "ais_chains=300"),
        ({"examples": 49}, "examples=50"),
        ({"precision": "float64"}, "precision='mixed'"),
        ({"base": "uniform"}, "base='data'"),
        ({"base": mp.data_rates(TRAIN)}, "a run with no base"),
        ({"train": TRAIN[1:]}, "another training set"),
        ({"train": None, "base": "model"}, "a run with a training set"),
        ({"test": np.roll(TEST, 1)}, "another test set"),
        ({"test": TEST[:-1]}, "another test set"),
        ({"model": mp.RBM(MODEL.weights, MODEL.visible_bias + 1e-15, MODEL.hidden_bias)}, "another model"),
        ({"part": 1}, "a run of part 0 in .*, expected one of part 1"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_other_models_data_seeds_and_settings_are_refused(finished, changes, message):
    arguments = {"model": MODEL, "test": TEST, "train": TRAIN, "examples": 50, "chains": 5}
    arguments |= {"steps": 30, "ais_chains": 300, "run": finished}
    before = {path: path.stat().st_mtime_ns for path in finished.rglob("*")}
    with pytest.raises(mp.InputError, match=message):
        mp.evaluate(**(arguments | changes))
    assert {path: path.stat().st_mtime_ns for path in finished.rglob("*")} == before


def test_a_base_that_came_out_otherwise_is_not_mixed_with_the_first(finished, monkeypatch):
    (finished / "base-data.npz").unlink()
    monkeypatch.setattr(prerequisites, "data_rates", lambda *_: mp.Base("data", (np.zeros(24),)))
    with pytest.raises(mp.InputError, match="another schedule, base or other chains in part-0/stage-0"):
        evaluate(run=finished)


@pytest.mark.slow
def test_what_changes_no_number_may_change(tmp_path):
    first = evaluate(run=tmp_path)
    again = evaluate(run=tmp_path, tolerance=0.01, confidence=0.9, exact=True, threads=1)
    assert again.gap == first.gap
    assert again.settings.tolerance == 0.01
    assert again.exact is not None


def test_wrong_input_leaves_no_folder(tmp_path):
    with pytest.raises(mp.InputError):
        evaluate(run=tmp_path / "run", base="rates")
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_a_full_disk_costs_nothing_but_the_folder(tmp_path, monkeypatch, computed):
    import errno

    sync, left = os.fsync, 40  # enough for what comes before the stage, and for some of its chunks

    def full(descriptor):
        nonlocal left
        left -= 1
        if left < 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", full)
    with pytest.warns(RunWarning, match="no space left on the disk") as told:
        assert plain(evaluate(run=tmp_path)) == whole(MODEL)
    assert "calling again computes them again, and no others" in str(told[-1].message)
    lost = set(computed) - {path.stem for path in (tmp_path / "part-0/stage-0").iterdir()}
    assert 0 < len(lost) < len(computed)
    left = 10**6
    computed.clear()
    assert plain(evaluate(run=tmp_path)) == whole(MODEL)
    assert set(computed) == lost


KILLED = """
import os, random, signal, sys, time
from pathlib import Path
from evaluation import kept, test_adaptive

folder, sizes, runs, moments = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), random.Random(0)

def evaluate(**options):
    if sizes == "given":
        return kept.plain(kept.evaluate(steps=1500, threads=2, **options))
    settings = test_adaptive.STIFF | options
    return kept.plain(test_adaptive.mp.evaluate(test_adaptive.rbm(), test_adaptive.bits(), **settings))

whole = evaluate()
begun = time.monotonic()
assert evaluate(run=folder / "whole") == whole
length = time.monotonic() - begun
kills = 0
for number in range(runs):
    run = folder / str(number)
    for _ in range(5):
        child = os.fork()  # no thread is running now
        if child == 0:
            evaluate(run=run)
            os._exit(0)
        time.sleep(moments.uniform(0, length / 2))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        if (run / "report.json").exists():
            break
        kills += 1
    assert evaluate(run=run) == whole, number
    assert not list(run.rglob("*.tmp"))
print(kills)
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="kills processes it has forked")
@pytest.mark.parametrize(("sizes", "runs"), [("given", 6), ("chosen for a gap", 2)])
def test_killed_again_and_again_at_random_moments(tmp_path, sizes, runs):
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[1]), *sys.path])}
    ended = subprocess.run(
        [sys.executable, "-W", "error", "-c", KILLED, tmp_path, sizes, str(runs)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert int(ended.stdout) >= 2 * runs  # before the end
