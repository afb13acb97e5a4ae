"""`meltpoint train` from the outside."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from typer.testing import CliRunner

import meltpoint as mp
from meltpoint.cli.app import app
from meltpoint.formats.models import read_note
from meltpoint.runs.files import locked


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: CliRunner().invoke(app, ["train", *arguments])


@pytest.fixture
def ctrl_c_interrupts():
    """A test run that was started in the background ignores SIGINT, and so would its children."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_an_rbm_on_a_named_data_set(run):
    result = run("rbm", "--data", "bars-and-stripes", "--hidden", "4", "--epochs", "3", "--out", "model.npz")
    assert result.exit_code == 0, result.stderr
    assert result.stdout == "model.npz\n"
    assert "epoch 3 of 3" in result.stderr
    assert "between -" in result.stderr
    assert repr(mp.load("model.npz")) == "RBM 16-4"


def test_the_note_is_a_recipe_that_gives_the_same_model(run):
    options = [
        "--hidden",
        "5,4",
        "--epochs",
        "2,1,1",
        "--learning-rate",
        "0.1",
        "--centred",
        "true,false,true",
    ]
    first = run("dbm", "--data", "bars-and-stripes", *options, "--seed", "3", "--out", "first.npz")
    assert first.exit_code == 0, first.stderr
    with open("again.toml", "w") as file:  # noqa: PTH123
        file.write(read_note("first.npz"))
    again = run("--recipe", "again.toml")
    assert again.exit_code == 0, again.stderr
    one, other = mp.load("first.npz"), mp.load("again.npz")
    for a, b in zip(one.weights, other.weights, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("levels", ["bits", "bytes", "shares"])
def test_a_file_of_examples(run, levels):
    grey = np.random.default_rng(0).integers(0, 256, (50, 6)).astype(np.uint8)
    examples = {"bits": grey % 2, "bytes": grey, "shares": grey / 255}[levels]
    np.save("data.npy", examples)
    result = run(
        "dbn", "--data", "data.npy", "--hidden", "4,3", "--epochs", "1", "--out", "model.npz", "--json"
    )
    assert result.exit_code == 0, result.stderr
    told = json.loads(result.stdout)
    assert told["model"] == "DBN 6-4-3"
    assert told["last_epoch"]["number"] == 1
    assert told["last_epoch"]["bracket"]["conservative"] < 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["rbm", "--data", "digits", "--hidden", "4"], "add --out"),
        (["rbm", "--hidden", "4", "--out", "m.npz"], "meltpoint train rbm --data"),
        (["gan", "--data", "digits", "--hidden", "4", "--out", "m.npz"], "rbm, dbn or dbm"),
        (["rbm", "--data", "digits", "--hidden", "four", "--out", "m.npz"], "hidden='four'"),
        (["rbm", "--data", "digits", "--hidden", "4", "--sweeps", "4", "--out", "m.npz"], "sweeps"),
        (["rbm", "--data", "digits", "--hidden", "4", "--validation", "1500", "--out", "m.npz"], "fewer"),
        (["rbm", "--data", "no.npy", "--hidden", "4", "--out", "m.npz"], "no.npy"),
        (["rbm", "--recipe", "r.toml"], "one or the other"),
        (["--recipe", "r.toml"], "r.toml"),
    ],
)
def test_wrong_input_is_one_sentence_and_exit_code_2(run, arguments, message):
    result = run(*arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stdout == ""


def test_the_help_shows_the_defaults_of_the_settings(run):
    shown = " ".join(run("--help").output.replace("│", " ").split())
    for text in ("(30, or 3,000 updates)", "(0.2; dbm: 0.1)", "(5%, at most 1,000)", "(0.0001)"):
        assert text in shown


def test_a_folder_that_does_not_exist_is_noticed_before_training(run):
    result = run("rbm", "--data", "digits", "--hidden", "4", "--out", "none/model.npz")
    assert result.exit_code == 2
    assert "create the folder first" in result.stderr
    assert "epoch" not in result.stderr


def test_a_second_training_of_the_same_model_is_refused(run, tmp_path):
    arguments = ("rbm", "--data", "bars-and-stripes", "--hidden", "4", "--epochs", "2", "--out", "model.npz")
    with locked(tmp_path / ".model.checkpoint.npz.lock", "training", ""):
        result = run(*arguments)
    assert result.exit_code == 2
    assert "another training" in result.stderr
    assert run(*arguments).exit_code == 0
    assert [path.name for path in tmp_path.iterdir()] == ["model.npz"]


def test_a_full_disk_is_told_and_the_model_still_comes(run, monkeypatch):
    def full(*_):
        raise mp.InputError(found="no space left on the disk", expected="some", remedy="free some space")

    monkeypatch.setattr("meltpoint.training.checkpoint.write_sealed", full)
    result = run("rbm", "--data", "bars-and-stripes", "--hidden", "4", "--epochs", "2", "--out", "model.npz")
    assert result.exit_code == 0, result.stderr
    assert result.stderr.count("The training goes on") == 1
    assert repr(mp.load("model.npz")) == "RBM 16-4"


@pytest.mark.slow
def test_ctrl_c_saves_and_the_same_command_goes_on(tmp_path, ctrl_c_interrupts):
    command = [sys.executable, "-c", "from meltpoint.cli import main; main()", "train", "rbm"]
    command += ["--data", "digits", "--hidden", "300", "--epochs", "25", "--batch", "5"]
    out, saved = tmp_path / "model.npz", tmp_path / "model.checkpoint.npz"
    child = subprocess.Popen([*command, "--out", str(out)], stderr=subprocess.PIPE, text=True)
    while not saved.exists():
        assert child.poll() is None, child.communicate()
        time.sleep(0.05)
    child.send_signal(signal.SIGINT)
    _, talk = child.communicate(timeout=60)
    assert child.returncode == 130, talk
    assert "the same command goes on" in talk
    assert not out.exists()
    for path in (out, tmp_path / "undisturbed.npz"):
        subprocess.run([*command, "--out", str(path)], check=True, capture_output=True, env=os.environ)
    assert out.read_bytes() == (tmp_path / "undisturbed.npz").read_bytes()
    assert not saved.exists()


def test_sequences_are_read_and_numbered_states_are_no_grey_values(run, tmp_path):
    (tmp_path / "family.fasta").write_text(
        "".join(f">{k}\n{s}\n" for k, s in enumerate(["ACGU", "AC-U"] * 10))
    )
    potts = ("rbm", "--data", "family.fasta", "--visible", "potts", "--hidden", 2, "--epochs", 2)
    trained = run(*potts, "--out", "potts.npz")
    assert trained.exit_code == 0, trained.stderr
    assert mp.load(tmp_path / "potts.npz").n_visible == 4
    np.save(tmp_path / "states.npy", np.arange(40, dtype=np.uint8).reshape(10, 4) % 21)
    refused = run("rbm", "--data", "states.npy", "--hidden", 2, "--epochs", 2, "--out", "bits.npz")
    assert refused.exit_code == 2
    assert "whole numbers up to 20" in refused.stderr
    assert "--visible potts" in refused.stderr
