import numpy as np
import pytest

import meltpoint as mp

QUICK = ("--steps", 20, "--count", 12)


def test_a_picture_by_default(run, folder):
    result = run("sample", "model.npz", *QUICK)
    assert (result.exit_code, result.stdout, result.stderr) == (0, "samples.png\n", "")
    assert (folder / "samples.png").read_bytes().startswith(b"\x89PNG")


def test_an_array_is_what_the_library_draws(run, folder):
    result = run("sample", "model.npz", "--out", "drawn.npy", "--seed", 3, *QUICK)
    assert (result.exit_code, result.stdout) == (0, "drawn.npy\n")
    drawn = np.load(folder / "drawn.npy")
    assert drawn.dtype == np.uint8
    np.testing.assert_array_equal(drawn, mp.sample(mp.load(folder / "model.npz"), 12, steps=20, seed=3))


@pytest.mark.parametrize("train", [(), ("--train", "train.npy")])
def test_the_annealing_model(run, folder, train):
    assert run("sample", "model.npz", "--out", "a.npy", "--annealing-model", *train, *QUICK).exit_code == 0
    model = mp.load(folder / "model.npz")
    base = mp.data_rates(np.load(folder / "train.npy")) if train else mp.uniform()
    expected = mp.sample_annealing_model(model, 12, base=base, steps=20)
    np.testing.assert_array_equal(np.load(folder / "a.npy"), expected)


def test_a_width_makes_a_picture_of_any_model(run, folder):
    mp.save(mp.RBM(np.zeros((12, 2)), np.zeros(12), np.zeros(2)), folder / "wide.npz")
    refused = run("sample", "wide.npz", *QUICK)
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "say how many pixels a row has with --width" in refused.stderr
    assert run("sample", "wide.npz", "--width", 4, *QUICK).exit_code == 0
    assert run("sample", "wide.npz", "--out", "a.npy", *QUICK).exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        (("--out", "samples.gif"), "samples.gif as an output file"),
        (("--out", "no/samples.png"), "no folder"),
        (("--count", 0), "n=0"),
        (("--steps", 0), "steps=0"),
        (("--width", 4), "9 visible units and width 4"),
        (("--width", 0), "9 visible units and width 0"),
        (("--train", "train.npy"), "--train without --annealing-model"),
        (("--annealing-model", "--train", "missing.npy"), "no file 'missing.npy'"),
        (("--annealing-model", "--train", "mnits"), "did you mean mnist?"),
        (("--seed", -1), "seed=-1"),
    ],
    ids=str,
)
def test_bad_input(run, folder, arguments, found):
    before = set(folder.iterdir())
    result = run("sample", "model.npz", *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("meltpoint: found ")
    assert found in result.stderr
    assert set(folder.iterdir()) == before
