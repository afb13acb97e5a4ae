"""`meltpoint log-z`: what it prints, its exit codes, and that it is what the library computes."""

import json

import numpy as np
import pytest

import meltpoint as mp

QUICK = ("--steps", 30, "--chains", 40)


def test_it_prints_what_the_library_finds(run, folder) -> None:
    result = run("log-z", "model.npz", *QUICK)
    assert result.exit_code == 0
    found = mp.log_z(mp.load(folder / "model.npz"), steps=30, chains=40)
    for text in ("log Z of RBM 9-4", "lower (AIS)", "upper (melted back)", f"{found.exact:.4f}", "Agree"):
        assert text in result.stdout


def test_the_exact_value_is_the_answer_whatever_the_sides_say(run, folder) -> None:
    rng = np.random.default_rng(0)
    model = mp.RBM(rng.normal(0, 5, (9, 14)), np.zeros(9), np.zeros(14))
    mp.save(model, folder / "hard.npz")
    sizes = ("--steps", 2, "--chains", 20, "--base", "uniform")
    estimated, known = (run("log-z", "hard.npz", *sizes, each) for each in ("--no-exact", "--exact"))
    assert (estimated.exit_code, known.exit_code) == (1, 0)
    said = " ".join(known.stdout.split())
    assert f"Exact: log Z is {mp.exact_log_z(model):.4f}. The estimates alone:" in said
    assert "Raise" not in said
    assert f"log10 Z {mp.exact_log_z(model) / np.log(10):.4f} " in said


def test_exact_alone_runs_no_chains(run, folder, monkeypatch) -> None:
    truth = mp.exact_log_z(mp.load(folder / "model.npz"))
    monkeypatch.setattr(mp, "log_z", None)
    result = run("log-z", "model.npz", "--exact")
    assert result.exit_code == 0
    assert f"exact  {truth:.4f} (exact)" in result.stdout
    assert json.loads(run("log-z", "model.npz", "--exact", "--json").stdout)["exact"] == truth


def test_json(run, folder) -> None:
    kept = json.loads(run("log-z", "model.npz", "--json", "--seed", 2, *QUICK).stdout)
    found = mp.log_z(mp.load(folder / "model.npz"), steps=30, chains=40, seed=2).to_dict()
    assert kept.pop("seconds").keys() == found.pop("seconds").keys()
    assert kept == json.loads(json.dumps(found))


@pytest.mark.slow
@pytest.mark.parametrize("style", ["1 0 1", "1 1 0 1"], ids=["2014", "2010"])
def test_evidence_clamps_variables(run, folder, style) -> None:
    graph = mp.FactorGraph([2, 3], [((0, 1), [[0.0, 1.0, 2.0], [0.5, 0.0, 1.0]])])
    mp.save(graph, folder / "graph.npz")
    (folder / "graph.evid").write_text(style)
    result = run("log-z", "graph.npz", "--evidence", "graph.evid", "--json", *QUICK)
    assert result.exit_code == 0
    kept = json.loads(result.stdout)
    assert kept["exact"] == pytest.approx(np.log(np.exp([0.5, 0.0, 1.0]).sum()), abs=1e-12)
    assert kept["clamped"] == 1


@pytest.mark.slow
def test_a_gap_in_stages(run, folder) -> None:
    result = run("log-z", "model.npz", "--gap", 0.1, "--budget", "30s", "--no-exact", "--plot", "figure.png")
    assert result.exit_code == 0
    assert "steps" in result.stderr
    assert "figure: figure.png" in result.stderr
    assert (folder / "figure.png").read_bytes().startswith(b"\x89PNG")


def test_a_target_that_is_missed_ends_with_1(run, folder) -> None:
    result = run("log-z", "model.npz", "--gap", 1e-9, "--budget", "1s", "--no-exact")
    assert result.exit_code == 1
    said = " ".join(result.stdout.split())
    assert "Target missed: ± 1e-09 nats were asked for, and log Z is known to ± " in said
    assert ("give a --budget of " in said) or ("No stage of any size is predicted to reach it." in said)
    assert "`" not in said


@pytest.mark.parametrize(
    "arguments",
    [
        ("missing.npz",),
        ("model.npz", "--base", "nothing"),
        ("model.npz", "--evidence", "missing.evid"),
        ("model.npz", "--gap", 0.1, "--steps", 10),
        ("model.npz", "--plot", "figure.doc"),
    ],
    ids=str,
)
def test_wrong_input_ends_with_2(run, folder, arguments) -> None:
    result = run("log-z", *arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert "expected" in result.stderr


def test_lines_of_stages_fit_a_narrow_terminal(monkeypatch, capsys):
    from types import SimpleNamespace

    from meltpoint.cli import log_z, screen
    from meltpoint.results.log_z import LogZStage

    monkeypatch.setattr(screen, "_terminal", [SimpleNamespace(width=60, print=lambda *_, **__: None)])
    shown = []
    monkeypatch.setattr(screen, "echo_err", shown.append)
    log_z._show(LogZStage("model", 3000, 400, 126.6, 0.8, 127.5, 0.8, 12172.2, 2.0))
    assert max(map(len, shown[0].split("\n"))) <= 60
    assert "accuracy unknown" in shown[0]  # two chains carry it: 12172.2 means nothing
    assert "12172" not in shown[0]
    log_z._show(LogZStage("model", 3000, 400, 126.6, 0.1, 127.5, 0.1, 0.72, 70.0))
    assert "within ± 0.72" in shown[1]
