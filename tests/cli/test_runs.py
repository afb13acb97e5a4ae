import json
import shutil
from dataclasses import replace

import numpy as np
import pytest

from meltpoint.errors import InputError, RunWarning
from meltpoint.evaluation import stages
from meltpoint.evaluation.plan import Decision, Planner
from meltpoint.evaluation.stage import Size
from meltpoint.evaluation.stored import merge_runs
from meltpoint.runs.files import locked, read_sealed, write_sealed
from meltpoint.runs.specification import read_specification

ARGUMENTS = ["model.npz", "test.npy", "--train", "train.npy", "--steps", "50"]


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """Where the first test that needs a finished run leaves a copy of it: all have the same model and data."""
    return tmp_path_factory.mktemp("finished") / "a"


@pytest.fixture
def kept(run, folder, finished):
    """A folder with a finished run `a`."""
    if finished.exists():
        shutil.copytree(finished, folder / "a")
    else:
        assert run("evaluate", *ARGUMENTS, "--run", "a").exit_code == 0
        shutil.copytree(folder / "a", finished)
    return folder


def test_a_run_is_shown_with_its_report(run, kept):
    shown = run("runs", "show", "a")
    assert (shown.exit_code, shown.stderr) == (0, "")
    head, _, report = shown.stdout.partition("\n\n")
    assert head.splitlines()[:3] == [
        "run          a, part 0",
        "state        finished",
        "chains       80 of 80 AIS chains, 20 of 20 examples",
    ]
    again = run("evaluate", *ARGUMENTS, "--run", "a")
    assert report.splitlines()[:5] == again.stdout.splitlines()[:5]


def test_an_unfinished_run_is_shown_as_such(run, kept):
    for path in sorted((kept / "a/part-0/stage-0").glob("raise-*"))[1:]:
        path.unlink()
    shown = run("runs", "show", "a").stdout
    assert "state        stopped; to continue, repeat the call that began it\n" in shown
    assert "80 of 80 AIS chains, 10 of 20 examples\n" in shown
    assert "interrupted  after 10 of 20 examples\n" in shown
    with locked(kept / "a" / "lock", "", ""):
        assert "state        being computed now\n" in run("runs", "show", "a").stdout
    for path in (kept / "a/part-0/stage-0").glob("raise-*"):
        path.unlink()
    shown = run("runs", "show", "a").stdout
    assert "So far: AIS was done, RAISE had finished no example: optimistic" in shown
    assert max(map(len, shown.splitlines())) <= 79
    shutil.rmtree(kept / "a/part-0/stage-0")
    assert run("runs", "show", "a").stdout.endswith("\n\nNothing is known so far.\n")


def test_a_run_for_machines(run, kept):
    shown = json.loads(run("runs", "show", "a", "--json").stdout)
    assert (shown["finished"], shown["running"], shown["parts"]) == (True, False, [0])
    assert shown["stages"] == [
        {"part": 0, "stage": 0, "steps": 50, "ais_chains": [80, 80], "examples": [20, 20]}
    ]
    kept_report = json.loads((kept / "a/report.json").read_text())
    assert {**shown["report"], "seconds": None} == {**kept_report, "seconds": None}
    (kept / "a/log_f.npz").unlink()
    assert json.loads(run("runs", "show", "a", "--json").stdout)["report"] is None


def test_a_damaged_piece_is_told_in_a_sentence(run, kept):
    path = kept / "a/part-0/stage-0/ais-0000000.npz"
    path.write_bytes(path.read_bytes()[:100])
    again = run("evaluate", *ARGUMENTS, "--run", "a")
    assert again.exit_code == 0
    assert again.stderr.startswith("meltpoint: a/part-0/stage-0/ais-0000000.npz, truncated or damaged")
    assert again.stderr.count("\n") == 1


@pytest.mark.slow
def test_runs_are_merged(run, kept):
    assert run("evaluate", *ARGUMENTS, "--run", "b", "--part", "1").exit_code == 0
    merged = run("runs", "merge", "a", "b", "--out", "both", "--json")
    assert (merged.exit_code, merged.stderr) == (0, "joint run: both\n")
    whole = run("evaluate", *ARGUMENTS, "--chains", "8", "--ais-chains", "160", "--json")
    together, alone = json.loads(merged.stdout), json.loads(whole.stdout)
    assert together["particles"] == 161
    assert {**together, "seconds": None} == {**alone, "seconds": None}
    stored = json.loads(run("runs", "show", "both", "--json").stdout)["report"]
    assert {**stored, "seconds": None} == {**alone, "seconds": None}
    shown = run("runs", "show", "both").stdout
    assert "run              both, parts 0, 1\n" in shown
    assert "part 1, stage 0  80 of 80 AIS chains, 20 of 20 examples\n" in shown
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


@pytest.mark.parametrize("order", [["a", "b"], ["b", "a"]])
def test_a_merge_names_the_folder_that_is_broken(run, kept, order):
    shutil.copytree(kept / "a", kept / "b")
    digest, name = read_specification(kept / "b").fingerprint, "part-0/stage-0/stage"
    arrays = read_sealed(kept / f"b/{name}.npz", digest, name)
    arrays.pop("betas")
    write_sealed(kept / f"b/{name}.npz", arrays, digest, name)
    merged = run("runs", "merge", *order)
    assert merged.exit_code == 2
    assert merged.stderr.startswith(f"meltpoint: b/{name}.npz with no betas")
    assert "found an unfinished run in b" in merged.stderr
    with (
        pytest.warns(RunWarning, match="with no betas"),
        pytest.raises(InputError, match="unfinished run in b"),
    ):
        merge_runs(order)


def test_no_folder_is_nothing_to_merge():
    with pytest.raises(InputError, match="found no run, expected the folders of finished runs"):
        merge_runs([])


def test_a_merge_that_is_not_to_be_trusted(run, kept):
    rng = np.random.default_rng(0)
    np.save(kept / "far.npy", rng.integers(0, 2, (4, 9)))
    options = ["model.npz", "far.npy", "--steps", "1", "--schedule", "linear", "--base", "uniform"]
    options += ["--tolerance", "0.001", "--no-exact"]
    for part in (0, 1):
        run("evaluate", *options, "--run", f"c{part}", "--part", part)
    merged = run("runs", "merge", "c0", "c1")
    assert merged.exit_code == 1


STAGES = (30, 90, 60)
TO_A_GAP = [
    "model.npz",
    "test.npy",
    "--train",
    "train.npy",
    "--gap",
    "0.0001",
    "--budget",
    "1h",
    "--no-exact",
    "--run",
    "g",
]


@pytest.fixture
def staged(monkeypatch):
    """Stages of these steps, whatever the planner likes."""

    def decide(planner, index, _seconds):
        return Decision(Size(STAGES[index], 20, 2, 64), planner.base) if index < len(STAGES) else None

    monkeypatch.setattr(Planner, "decide", decide)


def stop_in_stage(monkeypatch, number):
    """Ctrl-C when that stage is begun."""
    run_stage = stages.run_stage

    def stopped(stage, model, precision, run, task):
        def press(*_):
            raise KeyboardInterrupt

        stops = stage.number + 1 >= number
        return run_stage(stage, model, precision, replace(run, progress=press) if stops else run, task)

    monkeypatch.setattr(stages, "run_stage", stopped)


@pytest.mark.usefixtures("staged")
def test_a_run_to_a_gap_is_shown_as_it_was_reported(run, folder):
    reported = run("evaluate", *TO_A_GAP, "--json")
    assert reported.exit_code == 1  # that gap is out of reach
    shown = json.loads(run("runs", "show", "g", "--json").stdout)
    assert (shown["finished"], len(shown["stages"])) == (True, 3)
    assert {**shown["report"], "seconds": None} == {**json.loads(reported.stdout), "seconds": None}
    assert "state            finished\n" in run("runs", "show", "g").stdout


@pytest.mark.usefixtures("staged")
def test_ctrl_c_in_a_later_stage_is_no_finished_run(run, folder, monkeypatch):
    with pytest.MonkeyPatch.context() as patch:
        stop_in_stage(patch, 3)
        reported = run("evaluate", *TO_A_GAP, "--tolerance", "50", "--json")
    assert reported.exit_code == 1
    assert "meltpoint: interrupted: the report of the best of 2 finished stages\n" in reported.stderr
    assert "to continue: " in reported.stderr
    report = json.loads(reported.stdout)
    assert report["interrupted"] is True
    assert len(report["stages"]) == 2
    assert not (folder / "g/report.json").exists()
    shown = json.loads(run("runs", "show", "g", "--json").stdout)
    assert shown["finished"] is False
    assert {**shown["report"], "seconds": None} == {**report, "seconds": None}
    text = run("runs", "show", "g").stdout
    assert "state            stopped; to continue, repeat the call that began it\n" in text
    assert "conservative unknown" not in text


@pytest.mark.slow
@pytest.mark.usefixtures("staged")
def test_an_interruption_alone_is_exit_code_1(run, folder, monkeypatch):
    arguments = ["model.npz", "test.npy", "--gap", "5", "--budget", "1h"]
    assert run("evaluate", *arguments).exit_code == 0
    # The first stage is good enough; the target is made smaller only for the run to go on.
    monkeypatch.setattr(Planner, "reached", property(lambda _: False))
    stop_in_stage(monkeypatch, 2)
    stopped = run("evaluate", *arguments, "--json")
    report = json.loads(stopped.stdout)
    assert report["verdict"]["trusted"] is True
    assert (stopped.exit_code, report["interrupted"]) == (1, True)


@pytest.mark.slow
def test_workers_give_the_same(run, kept):
    with_workers = run("evaluate", *ARGUMENTS, "--workers", "2", "--json")
    written = json.loads((kept / "a/report.json").read_text())
    assert json.loads(with_workers.stdout)["examples"] == written["examples"]
