"""`meltpoint convert`: foreign model files become ours."""

import numpy as np
import pytest
from typer.testing import CliRunner

import meltpoint as mp
from meltpoint.cli.app import app
from meltpoint.formats.models import read_note


def convert(*arguments):
    return CliRunner().invoke(app, ["convert", *map(str, arguments)])


def test_what_is_converted_is_the_model(tmp_path):
    (tmp_path / "a.uai").write_text("MARKOV 2  2 3  1  2 0 1  6  1 2 3 4 5 6e-1")
    ended = convert(tmp_path / "a.uai", tmp_path / "a.npz")
    assert ended.exit_code == 0
    assert ended.stdout == f"{tmp_path / 'a.npz'}\n"
    states = [[0, 1], [1, 2]]
    np.testing.assert_array_equal(
        mp.load(tmp_path / "a.npz").log_f(states), mp.load(tmp_path / "a.uai").log_f(states)
    )
    assert read_note(tmp_path / "a.npz") == "converted from a.uai"


@pytest.mark.parametrize(
    ("content", "options"),
    [
        ("# vartype=SPIN\n0 0 1\n0 1 2\n", ["--temperature", "2"]),
        ("0 0 1\n0 1 2\n", ["--beta", "0.5", "--units", "bernoulli"]),
        ("J 0 1 0.5\nh 0 1\n", ["--units", "spin"]),
        ("J 3 4 1 2 0.5\n", ["--base", "1", "--gauge", "zero-sum"]),
        ("h 0 - 0.5\nh 0 A 1\n", ["--alphabet", "-A"]),
        ("0 0 1 0\n0 0 0 1\n1 0 0 0\n0 1 0 0\n1 1 1 1\n", ["--states", "2"]),
    ],
)
def test_options(tmp_path, content, options):
    (tmp_path / "a.txt").write_text(content)
    asks = convert(tmp_path / "a.txt", tmp_path / "a.npz")
    assert asks.exit_code == 2
    assert options[0].removeprefix("--") in asks.stderr or "temperature" in asks.stderr
    assert not (tmp_path / "a.npz").exists()
    ended = convert(tmp_path / "a.txt", tmp_path / "a.npz", *options)
    assert ended.exit_code == 0, ended.output
    mp.load(tmp_path / "a.npz")


def test_names_of_arrays(tmp_path):
    np.savez(tmp_path / "a.npz", P=np.ones((2, 2)), q=np.ones(2), r=np.ones(2))
    names = [
        "--weights",
        "P",
        "--visible-bias",
        "q",
        "--hidden-bias",
        "r",
        "--visible",
        "spin",
        "--hidden",
        "spin",
    ]
    ended = convert(tmp_path / "a.npz", tmp_path / "b.npz", *names, "--orientation", "hidden-visible")
    assert ended.exit_code == 0
    assert [unit.name for unit in mp.load(tmp_path / "b.npz").units] == ["spin", "spin"]


def test_only_npz_files_are_written(tmp_path):
    assert convert(tmp_path / "a.uai", tmp_path / "b.uai").exit_code == 2
