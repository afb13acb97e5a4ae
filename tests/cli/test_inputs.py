"""The command reads the files that people have, and says what it left out."""

import numpy as np

import meltpoint as mp

SMALL = ("--steps", "5", "--examples", "2", "--chains", "1", "--no-evidence")


def test_a_table_with_an_index(run, tmp_path):
    bits = np.random.default_rng(3).integers(0, 2, (12, 4))
    mp.save(mp.RBM(np.zeros((4, 2)), np.zeros(4), np.zeros(2)), tmp_path / "model.npz")
    lines = [f"{k},{','.join(map(str, row))}" for k, row in enumerate(bits)]
    (tmp_path / "test.csv").write_text("\n".join([",a,b,c,d", *lines]))
    ended = run("evaluate", "model.npz", "test.csv", *SMALL)
    assert "left out column 0 (an index)" in ended.stderr
    assert "12 test examples" in ended.stdout


def test_sequences(run, tmp_path):
    rng = np.random.default_rng(0)
    mp.save(mp.Potts({(0, 1): rng.normal(size=(5, 5))}, rng.normal(size=(3, 5))), tmp_path / "model.npz")
    (tmp_path / "test.fasta").write_text(">a\nAC-\n>b\nGGT\n>c\nANT\n")
    refused = run("evaluate", "model.npz", "test.fasta", "--alphabet", "dna", *SMALL)
    assert refused.exit_code == 2
    assert "1 of 3 sequences" in refused.stderr
    ended = run("evaluate", "model.npz", "test.fasta", "--alphabet", "dna", "--outside", "drop", *SMALL)
    assert "1 of 3 sequences have letters outside -ACGT: left out" in ended.stderr
    assert "2 test examples" in ended.stdout


def test_numbers_of_states_are_not_grey_values(run, tmp_path):
    rng = np.random.default_rng(0)
    mp.save(mp.Potts({(0, 1): rng.normal(size=(5, 5))}, rng.normal(size=(2, 5))), tmp_path / "model.npz")
    np.save(tmp_path / "test.npy", rng.integers(0, 5, (6, 2)))
    assert "6 test examples" in run("evaluate", "model.npz", "test.npy", *SMALL).stdout
