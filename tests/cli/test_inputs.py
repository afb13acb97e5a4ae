"""The command reads the files that people have, and says what it left out."""

import json
import tarfile

import numpy as np
import pytest

import meltpoint as mp
from meltpoint.cli.inputs import Reading
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
    return Reading(silent, **options).pair(str(path), model)[0]


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


@pytest.fixture
def energies(tmp_path):
    """A dimod file of two spins, whose format leaves the temperature open."""
    path = tmp_path / "pair.json"
    path.write_text(
        '{"type": "BinaryQuadraticModel", "version": {"bqm_schema": "3.0.0"}, "variable_type": "SPIN", "offset": 0.0, '
        '"use_bytes": false, "linear_biases": [1.0, 0.0], "quadratic_biases": [1.0], "quadratic_head": [0], '
        '"quadratic_tail": [1], "variable_labels": [0, 1], "num_variables": 2, "num_interactions": 1}'
    )
    return path


def test_every_command_takes_what_a_format_leaves_open(run, energies) -> None:
    np.save("spins.npy", [[1, -1], [-1, 1], [-1, -1]])
    cold = ("pair.json", "--option", "temperature=0.5")
    energy = np.array([[2.0, 0.0], [-2.0, 0.0]])  # of (s, t): s + s t
    found = json.loads(run("log-z", *cold, "--json", "--steps", 30, "--chains", 40).stdout)
    log_z = np.log(np.exp(-energy / 0.5).sum())
    assert found["exact"] == pytest.approx(log_z, abs=1e-12)
    report = json.loads(run("evaluate", *cold, "spins.npy", "--json", "--steps", 30).stdout)
    assert report["exact"]["value"] == pytest.approx(-np.mean([0.0, -2.0, 0.0]) / 0.5 - log_z, abs=1e-9)
    assert run("sample", *cold, "--out", "drawn.npy", "--count", 3).exit_code == 0


def test_an_option_that_is_missing_is_asked_for_as_it_is_typed(run, energies) -> None:
    result = run("log-z", "pair.json")
    assert result.exit_code == 2
    assert "expected --option temperature=T" in result.stderr


@pytest.mark.parametrize(
    "option", ["temperature", "temperature=", "temperature=warm", "colour=1", "states=2.5"]
)
def test_options_that_make_no_sense_are_refused(run, energies, option) -> None:
    result = run("log-z", "pair.json", "--option", option)
    assert result.exit_code == 2
    assert "expected" in result.stderr


def test_model_and_alignment_of_one_archive(run, tmp_path) -> None:
    (tmp_path / "parameters.txt").write_text(
        "J 0 1 0 0 1.0\nJ 0 1 1 1 0.5\nh 0 0 0.2\nh 0 1 0\nh 1 0 0\nh 1 1 0\n"
    )
    (tmp_path / "alignment.txt").write_text("3 2 2\n0 0\n1 1\n0 1\n")
    with tarfile.open(tmp_path / "family.tar.gz", "w:gz") as archive:
        for name in ("parameters.txt", "alignment.txt"):
            archive.add(tmp_path / name, f"family/{name}")
    log_f = np.array([[1.2, 0.2], [0.0, 0.5]])
    exact = np.mean([1.2, 0.5, 0.2]) - np.log(np.exp(log_f).sum())
    for name in ("alignment.txt", "family/alignment.txt"):
        result = run("evaluate", "family.tar.gz", f"family.tar.gz:{name}", "--json", "--steps", 30)
        assert json.loads(result.stdout)["exact"]["value"] == pytest.approx(exact, abs=1e-9)
    result = run("evaluate", "family.tar.gz", "family.tar.gz")
    assert result.exit_code == 2
    assert "alignment.txt" in result.stderr
    assert "family.tar.gz:NAME" in result.stderr


@pytest.mark.slow
def test_sequences_of_several_models(run, tmp_path) -> None:
    rng = np.random.default_rng(5)
    (tmp_path / "family.fasta").write_text(">a\nAC-\n>b\nCCG\n>c\nA-U\n")
    for name in "fg":
        mp.save(
            mp.Potts({(0, 1): rng.normal(size=(5, 5))}, rng.normal(size=(3, 5))), tmp_path / f"{name}.npz"
        )
    small = ("--alphabet", "rna", "--steps", 20, "--chains", 1, "--ais-chains", 20, "--json")
    found = json.loads(run("compare", "f.npz", "g.npz", "family.fasta", *small).stdout)
    assert [model["exact"] is not None for model in found["models"]] == [True, True]
    assert run("trace", "f.npz", "g.npz", "family.fasta", *small).exit_code in (0, 1)


def test_compare_takes_foreign_files_beside_our_own(run, tmp_path, energies) -> None:
    mp.save(mp.Ising([[0.0, 0.5], [0.5, 0.0]], [0.0, 0.1]), tmp_path / "own.npz")
    np.save("spins.npy", [[1, -1], [-1, 1], [-1, -1]])
    small = ("--steps", 20, "--chains", 1, "--ais-chains", 20, "--json")
    ended = run("compare", "own.npz", "pair.json", "spins.npy", "--option", "beta=1", *small)
    assert [model["name"] for model in json.loads(ended.stdout)["models"]] == ["own", "pair"]
    asked = run("compare", "own.npz", "pair.json", "spins.npy", *small)
    assert asked.exit_code == 2
    assert "--option temperature=T" in asked.stderr
