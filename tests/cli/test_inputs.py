"""The command reads the files that people have, and says what it left out."""

import numpy as np
import pytest

import meltpoint as mp
from meltpoint.cli.inputs import Sequences, read_test_and_train
from meltpoint.errors import DataWarning

SMALL = ("--steps", "5", "--examples", "2", "--chains", "1", "--no-evidence")


def test_a_table_with_an_index(run, tmp_path):
    bits = np.random.default_rng(3).integers(0, 2, (12, 4))
    mp.save(mp.RBM(np.zeros((4, 2)), np.zeros(4), np.zeros(2)), tmp_path / "model.npz")
    lines = [f"{k},{','.join(map(str, row))}" for k, row in enumerate(bits)]
    (tmp_path / "test.csv").write_text("\n".join([",a,b,c,d", *lines]))
    ended = run("evaluate", "model.npz", "test.csv", *SMALL)
    assert "left out column 0 (an index)" in ended.stderr
    assert "12 test examples" in ended.stdout


def read_as_the_command_does(path, model, **options):
    silent = lambda *_: None  # noqa: E731
    return read_test_and_train(str(path), None, None, 0, silent, model=model, sequences=Sequences(**options))[
        0
    ]


def test_sequences(tmp_path):
    model = mp.Potts({}, np.zeros((3, 5)))
    (tmp_path / "test.fasta").write_text(">a\nAC-\n>b\nGGT\n>c\nANT\n")
    with pytest.raises(mp.InputError, match="1 of 3 sequences"):
        read_as_the_command_does(tmp_path / "test.fasta", model, alphabet="dna")
    with pytest.warns(DataWarning, match="1 of 3 sequences have letters outside -ACGT: left out"):
        found = read_as_the_command_does(tmp_path / "test.fasta", model, alphabet="dna", outside="drop")
    assert found.tolist() == [[1, 2, 0], [3, 3, 4]]


def test_numbers_of_states_are_not_grey_values(tmp_path):
    states = np.random.default_rng(0).integers(0, 5, (6, 2))
    np.save(tmp_path / "test.npy", states)
    model = mp.Potts({}, np.zeros((2, 5)))
    np.testing.assert_array_equal(read_as_the_command_does(tmp_path / "test.npy", model), states)
    with pytest.raises(mp.InputError, match="--binarize"):
        read_as_the_command_does(tmp_path / "test.npy", mp.RBM(np.zeros((2, 1)), [0, 0], [0]))


def test_convert_checks_the_convention(run, tmp_path):
    rng = np.random.default_rng(0)
    data = (rng.random((200, 4)) < [0.9, 0.8, 0.1, 0.2]).astype(int)
    bias = np.array([2.0, 1.5, -2.0, -1.5])
    np.save(tmp_path / "data.npy", data)
    arrays = {"W": np.zeros((4, 2)), "c": np.zeros(2)}
    np.savez(tmp_path / "right.npz", b=bias, **arrays)
    np.savez(tmp_path / "wrong.npz", b=-bias, **arrays)
    right = run("convert", "right.npz", "out.npz", "--check", "data.npy")
    assert right.exit_code == 0
    assert "no other reading of the parameters fits the data better" in right.stderr
    wrong = run("convert", "wrong.npz", "out.npz", "--check", "data.npy")
    assert wrong.exit_code == 1
    assert "all parameters have the other sign" in wrong.stderr
    assert (tmp_path / "out.npz").is_file()
