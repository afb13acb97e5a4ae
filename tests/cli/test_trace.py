"""`meltpoint trace` and `meltpoint train --trace` from the outside."""

import json

import numpy as np
import pytest

import meltpoint as mp
from meltpoint.evaluation.training_trace import TrainingTrace

QUICK = ("--steps", "40", "--examples", "10", "--ais-chains", "60", "--threads", "1")


@pytest.fixture
def checkpoints(folder):
    """Checkpoints epoch-1, epoch-2 and epoch-10 in the folder `run`, beside test.npy and train.npy."""
    rng = np.random.default_rng(1)
    (folder / "run").mkdir()
    weights = rng.normal(0, 0.5, (9, 4))
    for number in (1, 2, 10):
        model = mp.RBM(weights * number / 10, np.zeros(9), np.zeros(4))
        mp.save(model, folder / "run" / f"epoch-{number}.npz")
    return folder


def test_a_pattern_in_natural_order(run, checkpoints):
    result = run("trace", "run/*.npz", "test.npy", "--train", "train.npy", *QUICK)
    assert result.exit_code == 0, result.stderr
    rows = [line.split()[0] for line in result.stdout.splitlines() if line.startswith("epoch")]
    assert rows == ["epoch-1", "epoch-2", "epoch-10"]
    assert max(map(len, result.stdout.splitlines())) <= 79
    lines = [line for line in result.stderr.splitlines() if line.startswith("epoch-")]
    assert len(lines) == 3
    assert "test -" in lines[0]
    assert "train -" in lines[0]


@pytest.mark.slow
def test_json_figure_and_folder(run, checkpoints):
    files = [f"run/epoch-{number}.npz" for number in (10, 1, 2)]  # as a shell may give them
    command = ("trace", *files, "test.npy", "--json", "--plot", "trace.svg", "--run", "kept", *QUICK)
    first, again = run(*command), run(*command)
    assert first.exit_code == again.exit_code == 0, first.stderr
    contents = [json.loads(result.stdout) for result in (first, again)]
    assert [point["name"] for point in contents[0]["points"]] == ["epoch-1", "epoch-2", "epoch-10"]
    one, other = ([point["between"] for point in content["points"]] for content in contents)
    assert one == other
    assert contents[0]["points"][0]["train"] is None
    assert (checkpoints / "trace.svg").stat().st_size > 1000
    assert len(list((checkpoints / "kept").iterdir())) == 3


@pytest.mark.slow
def test_processes_give_the_same_trace(run, checkpoints):
    command = ("trace", "run/*.npz", "test.npy", "--json", *QUICK)
    alone, processes = run(*command), run(*command, "--workers", "1")
    assert processes.exit_code == alone.exit_code, processes.stderr
    one, other = ([p["between"] for p in json.loads(r.stdout)["points"]] for r in (alone, processes))
    assert one == other
    assert "found workers=0" in run(*command, "--workers", "0").stderr


def test_without_evidence_it_is_exit_code_1(run, checkpoints):
    result = run("trace", "run/*.npz", "test.npy", "--evidence", "none", *QUICK)
    assert result.exit_code == 1
    assert "Not checked for missed modes." in result.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("test.npy",), "found one argument"),
        (("nowhere/*.npz", "test.npy"), "no file nowhere"),
        (("run/*.npz", "test.npy", "--evidence", "often"), "evidence='often'"),
        (("test.npy", "train.npy"), "test.npy"),
    ],
)
def test_wrong_input_is_exit_code_2(run, checkpoints, arguments, words):
    result = run("trace", *arguments, *QUICK)
    assert result.exit_code == 2
    assert words in result.stderr


@pytest.mark.slow
def test_training_is_traced_on_held_out_examples(run, folder):
    np.save("grey.npy", np.random.default_rng(0).random((60, 9)))
    command = ("train", "rbm", "--data", "grey.npy", "--hidden", "4", "--epochs", "7", "--validation", "20")
    result = run(*command, "--trace", "--json", "--out", "model.npz")
    assert result.exit_code == 0, result.stderr
    content = json.loads(result.stdout)
    assert [point["name"] for point in content["trace"]["points"]] == ["training-5", "training-7"]
    assert content["trace"]["test_examples"] == 20
    assert content["trace"]["train_examples"] == 40
    assert "model" not in content["last_epoch"]
    names = sorted(path.name for path in (folder / "model.trace").iterdir())
    assert names == ["runs", "trace.json", "trace.png", "training-5.npz", "training-7.npz", "training.txt"]
    assert json.loads((folder / "model.trace" / "trace.json").read_text())["best"]
    assert "Best on the test examples: training-" in result.stderr
    last, saved = (mp.load(folder / name) for name in ("model.trace/training-7.npz", "model.npz"))
    np.testing.assert_array_equal(last.weights.astype(np.float32), saved.weights.astype(np.float32))
    other = run(*command, "--seed", "1", "--trace", "--out", "model.npz")
    assert other.exit_code == 2
    assert "the trace of another training" in other.stderr
    again = run(*command, "--trace", "--json", "--out", "model.npz")  # as after a kill at the very end
    assert again.exit_code == 0, again.stderr
    points = json.loads(again.stdout)["trace"]["points"]
    assert [point["between"] for point in points] == [p["between"] for p in content["trace"]["points"]]


@pytest.mark.slow
def test_a_training_that_was_killed_before_its_first_checkpoint_goes_on(run, folder, monkeypatch):
    command = ("train", "rbm", "--data", "train.npy", "--hidden", "4", "--epochs", "7", "--validation", "10")
    shown = TrainingTrace.add

    def die(self, epoch):
        shown(self, epoch)
        if epoch.number == 5:
            raise SystemExit(137)

    with monkeypatch.context() as patch:
        patch.setattr(TrainingTrace, "add", die)
        assert run(*command, "--trace", "--out", "model.npz").exit_code == 137
    (folder / "model.checkpoint.npz").unlink(missing_ok=True)
    (folder / "model.trace" / ".meltpoint-0.tmp").touch()
    result = run(*command, "--trace", "--out", "model.npz")
    assert result.exit_code == 0, result.stderr
    assert not list((folder / "model.trace").glob(".meltpoint-*"))


def test_a_trace_needs_held_out_examples(run, folder):
    command = ("train", "rbm", "--data", "train.npy", "--hidden", "4", "--epochs", "2", "--out", "model.npz")
    result = run(*command, "--validation", "0", "--trace")
    assert result.exit_code == 2
    assert "no validation examples" in result.stderr


@pytest.mark.slow
def test_a_training_that_is_continued_continues_its_trace(run, folder, monkeypatch):
    command = ("train", "rbm", "--data", "train.npy", "--hidden", "4", "--epochs", "7", "--validation", "10")
    shown = TrainingTrace.add

    def stop(self, epoch):
        shown(self, epoch)
        if epoch.number == 6:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(TrainingTrace, "add", stop)
        stopped = run(*command, "--trace", "--out", "model.npz")
    assert stopped.exit_code == 130, stopped.stderr
    part = json.loads((folder / "model.trace" / "trace.json").read_text())
    assert [point["name"] for point in part["points"]] == ["training-5"]
    result = run(*command, "--trace", "--out", "model.npz")
    assert result.exit_code == 0, result.stderr
    whole = json.loads((folder / "model.trace" / "trace.json").read_text())
    assert [point["name"] for point in whole["points"]] == ["training-5", "training-7"]
    assert whole["points"][0]["between"] == part["points"][0]["between"]


@pytest.mark.slow
@pytest.mark.parametrize("visible", ["potts", "gaussian", "spin"])
def test_units_that_are_no_bits_are_traced_as_they_are(run, tmp_path, monkeypatch, visible):
    monkeypatch.setattr("meltpoint.evaluation.trace.TRACE_STEPS", 300)
    rng = np.random.default_rng(7)
    examples = {
        "potts": rng.integers(0, 4, (40, 5)),
        "gaussian": rng.normal(2.0, 3.0, (40, 5)),
        "spin": 2 * rng.integers(0, 2, (40, 5)) - 1,
    }[visible]
    np.save(tmp_path / "data.npy", examples)
    command = ("train", "rbm", "--data", "data.npy", "--hidden", 2, "--visible", visible, "--epochs", 5)
    result = run(*command, "--validation", 10, "--trace", "--json", "--out", "model.npz")
    low, high = json.loads(result.stdout)["trace"]["points"][-1]["between"]
    last = mp.load(next((tmp_path / "model.trace").glob("*.npz")))
    exact = np.mean(last.log_f(examples[30:])) - mp.exact_log_z(last)
    # False alarm: 1e-2 for a seed of one's choice; the interval of a fixed seed is always the same.
    assert low <= exact <= high
