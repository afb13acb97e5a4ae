"""`meltpoint compare` from the outside."""

import json

import numpy as np
import pytest

import meltpoint as mp

QUICK = (
    "--steps",
    "40",
    "--schedule",
    "linear",
    "--chains",
    "1",
    "--examples",
    "10",
    "--ais-chains",
    "60",
    "--threads",
    "1",
)


@pytest.fixture
def models(folder):
    """Three models beside test.npy: one.npz, two.npz, which is much worse, and same.npz, which is the first."""
    rng = np.random.default_rng(1)
    one = mp.RBM(rng.normal(0, 0.2, (9, 4)), np.zeros(9), np.zeros(4))
    mp.save(one, folder / "one.npz")
    mp.save(one, folder / "same.npz")
    mp.save(mp.RBM(rng.normal(0, 3, (9, 4)), np.full(9, 4.0), np.zeros(4)), folder / "two.npz")
    return folder


def test_a_known_order_is_exit_code_0(run, models):
    result = run("compare", "two.npz", "one.npz", "test.npy", "--train", "train.npy", *QUICK)
    assert result.exit_code == 0, result.stderr
    assert "Order known: one > two." in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 79


@pytest.mark.slow
def test_an_order_that_is_not_known_is_exit_code_1(run, models):
    result = run("compare", "one.npz", "same.npz", "two.npz", "test.npy", *QUICK)
    assert result.exit_code == 1, result.stderr
    assert "Order partly known: these may be in either order: one and same." in result.stdout


@pytest.mark.slow
def test_json_figure_names_and_baseline(run, models):
    result = run(
        *("compare", "one.npz", "same.npz", "two.npz", "test.npy", "--baseline", "C", "--json"),
        *("--name", "A", "--name", "B", "--name", "C", "--plot", "figure.png", *QUICK),
    )
    assert result.exit_code == 0, result.stderr
    content = json.loads(result.stdout)
    assert [(pair["first"], pair["second"], pair["better"]) for pair in content["pairs"]] == [
        ("A", "C", "A"),
        ("B", "C", "B"),
    ]
    assert content["order_known"]
    assert content["trusted"]
    assert (models / "figure.png").stat().st_size > 1000


@pytest.mark.slow
def test_a_folder_keeps_every_model(run, models):
    command = ("compare", "one.npz", "two.npz", "test.npy", "--run", "night", "--json", *QUICK)
    first, again = run(*command), run(*command)
    assert sorted(path.name for path in (models / "night").iterdir()) == ["00-one", "01-two"]
    pairs = [json.loads(result.stdout)["pairs"] for result in (first, again)]
    assert pairs[0] == pairs[1]
    assert run("runs", "show", "night/00-one").exit_code == 0


@pytest.mark.slow
def test_processes_give_the_same_comparison(run, models):
    command = ("compare", "one.npz", "two.npz", "test.npy", "--json", *QUICK)
    alone, processes = run(*command), run(*command, "--workers", "1")
    assert processes.exit_code == alone.exit_code, processes.stderr
    assert json.loads(processes.stdout)["pairs"] == json.loads(alone.stdout)["pairs"]
    assert "found workers=0" in run(*command, "--workers", "0").stderr


def test_without_evidence_it_is_not_trusted_unless_values_are_exact(run, models):
    result = run("compare", "one.npz", "two.npz", "test.npy", "--no-evidence", "--json", *QUICK)
    assert result.exit_code == 0  # both log Z were enumerated
    assert json.loads(result.stdout)["untrusted"] == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("one.npz", "test.npy"), "found 2 arguments"),
        (("one.npz", "nothing.npz", "test.npy"), "nothing.npz"),
        (("one.npz", "two.npz", "test.npy", "--about", "world"), "about='world'"),
        (("one.npz", "two.npz", "test.npy", "--baseline", "three"), "baseline='three'"),
        (("one.npz", "two.npz", "test.npy", "--plot", "figure.gif"), "figure.gif"),
        (("one.npz", "two.npz", "test.npy", "--name", "a"), "the names a for 2 models"),
    ],
)
def test_wrong_input_is_exit_code_2(run, models, arguments, words):
    result = run("compare", *arguments, *QUICK)
    assert result.exit_code == 2
    assert words in result.stderr
    assert result.stdout == ""
