import json

import numpy as np
import pytest

from meltpoint.runs.lock import locked

ARGUMENTS = ["model.npz", "test.npy", "--train", "train.npy", "--steps", "50"]


@pytest.fixture
def kept(run, folder):
    """A folder with a finished run `a`."""
    assert run("evaluate", *ARGUMENTS, "--run", "a").exit_code == 0
    return folder


def test_a_run_is_shown_with_its_report(run, kept):
    shown = run("runs", "show", "a")
    assert (shown.exit_code, shown.stderr) == (0, "")
    head, _, report = shown.stdout.partition("\n\n")
    assert head.splitlines()[:3] == [
        "run                   a, part 0",
        "state                 finished",
        "chains                80 of 80 AIS chains, 20 of 20 examples",
    ]
    again = run("evaluate", *ARGUMENTS, "--run", "a")
    assert report.splitlines()[:5] == again.stdout.splitlines()[:5]


def test_an_unfinished_run_is_shown_as_such(run, kept):
    for path in sorted((kept / "a/part-0/stage-0").glob("raise-*"))[1:]:
        path.unlink()
    shown = run("runs", "show", "a").stdout
    assert "state                 stopped; to continue, repeat the call that began it\n" in shown
    assert "80 of 80 AIS chains, 10 of 20 examples\n" in shown
    assert "interrupted           after 10 of 20 examples\n" in shown
    with locked(kept / "a"):
        assert "state                 being computed now\n" in run("runs", "show", "a").stdout
    for path in (kept / "a/part-0/stage-0").glob("raise-*"):
        path.unlink()
    shown = run("runs", "show", "a").stdout
    assert "So far: AIS was done, RAISE had finished no example: optimistic" in shown
    assert max(map(len, shown.splitlines())) <= 79
    for path in (kept / "a/part-0/stage-0").iterdir():
        path.unlink()
    assert run("runs", "show", "a").stdout.endswith("\n\nNothing is known so far.\n")


def test_a_run_for_machines(run, kept):
    shown = json.loads(run("runs", "show", "a", "--json").stdout)
    assert (shown["finished"], shown["running"], shown["parts"]) == (True, False, [0])
    assert shown["stages"] == [
        {"part": 0, "stage": 0, "steps": 50, "ais_chains": [80, 80], "examples": [20, 20]}
    ]
    kept_report = json.loads((kept / "a/report.json").read_text())
    assert shown["report"]["gap"] == kept_report["gap"]
    (kept / "a/log_f.npz").unlink()
    assert json.loads(run("runs", "show", "a", "--json").stdout)["report"] is None


def test_a_damaged_piece_is_told_in_a_sentence(run, kept):
    path = kept / "a/part-0/stage-0/ais-0000000.npz"
    path.write_bytes(path.read_bytes()[:100])
    again = run("evaluate", *ARGUMENTS, "--run", "a")
    assert again.exit_code == 0
    assert again.stderr.startswith("meltpoint: a/part-0/stage-0/ais-0000000.npz, truncated or damaged")
    assert again.stderr.count("\n") == 1


def test_runs_are_merged(run, kept):
    assert run("evaluate", *ARGUMENTS, "--run", "b", "--part", "1").exit_code == 0
    merged = run("runs", "merge", "a", "b", "--out", "both", "--json")
    assert (merged.exit_code, merged.stderr) == (0, "joint run: both\n")
    whole = run("evaluate", *ARGUMENTS, "--chains", "8", "--ais-chains", "160", "--json")
    assert json.loads(merged.stdout)["conservative"] == json.loads(whole.stdout)["conservative"]
    shown = run("runs", "show", "both").stdout
    assert "run                   both, parts 0, 1\n" in shown
    assert "part 1, stage 0       80 of 80 AIS chains, 20 of 20 examples\n" in shown
    assert "160 chains" in run("runs", "merge", "a", "b").stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["runs", "show", "nowhere"], "found nowhere, which is not a run's folder"),
        (["runs", "merge", "a", "a"], "found part 0 both in a and in a"),
        (
            ["evaluate", *ARGUMENTS, "--run", "a", "--seed", "1"],
            "found a run with seed=0 in a, expected seed=1",
        ),
        (["evaluate", *ARGUMENTS, "--workers", "2", "--cluster", "x"], "found both --workers and --cluster"),
        (["evaluate", *ARGUMENTS, "--workers", "0"], "found workers=0"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_wrong_input_is_a_sentence(run, kept, arguments, message):
    result = run(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(f"meltpoint: {message}")
    assert result.stderr.count("\n") == 1


def test_a_merge_that_is_not_to_be_trusted(run, kept):
    rng = np.random.default_rng(0)
    np.save(kept / "far.npy", rng.integers(0, 2, (4, 9)))
    options = ["model.npz", "far.npy", "--steps", "1", "--schedule", "linear", "--base", "uniform"]
    options += ["--tolerance", "0.001"]
    for part in (0, 1):
        run("evaluate", *options, "--run", f"c{part}", "--part", part)
    merged = run("runs", "merge", "c0", "c1")
    assert merged.exit_code == 1


@pytest.mark.slow
def test_workers_give_the_same(run, kept):
    with_workers = run("evaluate", *ARGUMENTS, "--workers", "2", "--json")
    written = json.loads((kept / "a/report.json").read_text())
    assert json.loads(with_workers.stdout)["examples"] == written["examples"]
