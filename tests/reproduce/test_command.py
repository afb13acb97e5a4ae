"""`meltpoint paper` from models to tables, figures and page, as small as can be."""

import csv
import json
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import meltpoint as mp
from meltpoint.cli.app import app
from reproduce.cells import PROFILES, Profile

ROOT = Path(__file__).resolve().parents[2]
TINY = Profile("tiny", 4, (2, 4), 8, examples=3, chains=2, ais_chains=5, test_examples=20)
pytestmark = pytest.mark.slow
FIGURES = ("log-likelihood-rbms", "cd1-500", "cd1-20-dbr", "omni-pcd-1000", "dbn")


@pytest.fixture(scope="module")
def place(models, data, tmp_path_factory):
    """A folder of results of everything, and what the command said when it made it."""
    folder = tmp_path_factory.mktemp("paper")
    parameters = folder / "mnistvh_CD25.npz"
    mp.save(mp.load(models / "mnistCD25-500.npz"), parameters)

    def run(*arguments):
        with pytest.MonkeyPatch.context() as patch:
            patch.setitem(PROFILES, "quick", TINY)
            options = ["--profile", "quick", "--models", models, "--parameters", parameters]
            options += ["--out", folder / "results", "--docs", folder / "docs"]
            return CliRunner().invoke(app, ["paper", *map(str, [*arguments, *options])])

    first = run("all")
    assert first.exit_code == 0, first.stderr
    return folder, run, first


def test_everything_is_written(place):
    folder, _, first = place
    made = folder / "results" / "tiny"
    written = [made / f"{t}.{s}" for t in ("table1", "table2") for s in ("md", "tex", "csv", "json")]
    written += [made / f"{f}.{s}" for f in FIGURES for s in ("csv", "json", "pdf", "png")]
    assert sorted(first.stdout.split()) == sorted(map(str, written))
    assert all(path.stat().st_size > 0 for path in written)


def test_nothing_is_computed_twice(place):
    folder, run, _ = place
    cells = folder / "results" / "cells"
    before = {path: path.stat().st_mtime_ns for path in cells.iterdir()}
    again = run("table1")
    assert again.exit_code == 0
    assert "59 cells, 59 of them are there" in again.stderr
    assert {path: path.stat().st_mtime_ns for path in cells.iterdir()} == before


def test_a_dry_run_lists_what_is_missing(place):
    folder, run, _ = place
    listed = run("all", "--dry-run")
    assert (listed.exit_code, listed.stdout) == (0, "")
    other = run("figure", "dbn", "--steps", "3", "--dry-run")
    assert "mnistDBM-500-1000.ais.uniform.steps3.chains5.seed0.of20" in other.stdout
    assert not list((folder / "results" / "cells").glob("*steps3.*"))


def test_only_some_models_may_be_asked_for(place):
    _, run, _ = place
    listed = run("all", "--steps", "3", "--only", "mnistPCD-20,omniPCD-1000", "--dry-run")
    assert {line.split(".")[0] for line in listed.stdout.splitlines()} == {"mnistPCD-20", "omniPCD-1000"}
    unknown = run("all", "--only", "mnistPCD-2O", "--dry-run")
    assert unknown.exit_code == 2
    assert "mnistPCD-2O" in unknown.stderr


def test_tables_hold_the_numbers_of_the_cells(place):
    folder, _, _ = place
    made = folder / "results" / "tiny"
    cell = folder / "results" / "cells" / "mnistPCD-20.raise.data.steps4.examples3.chains2.seed0.of20.json"
    value = json.loads(cell.read_text())["result"]["estimate"]["value"]
    rows = {(row["model"], row["steps"]): row for row in _read(made / "table1.csv")}
    assert float(rows["mnistPCD-20", "4"]["data RAISE"]) == value
    assert len(rows) == 8
    of_json = {row["model"]: row for row in json.loads((made / "table1.json").read_text())}
    assert of_json["mnistPCD-20"]["data RAISE"]["value"] == value
    assert of_json["mnistPCD-20"]["paper"]["data RAISE"] == -150.17
    assert f"{value:.2f} ±" in (made / "table1.md").read_text()
    assert f"${value:.2f} \\pm" in (made / "table1.tex").read_text()
    deep = {row["model"]: row for row in json.loads((made / "table2.json").read_text())}
    gap = deep["MNIST DBN"]
    assert gap["uniform gap"]["value"] == pytest.approx(
        gap["uniform AIS"]["value"] - gap["uniform RAISE"]["value"]
    )
    assert gap["data gap"] is None


def test_tables_have_a_column_for_n_particles(place):
    folder, _, _ = place
    made = folder / "results" / "tiny"
    name = "MNIST DBM", "mnistDBM-500-1000.raise-n.data.steps4.examples3.chains1.forward3.seed0.of20.json"
    found = json.loads((folder / "results" / "cells" / name[1]).read_text())["result"]["estimate"]
    row = next(row for row in _read(made / "table2.csv") if row["model"] == name[0])
    assert row["particles"] == "4"
    assert (float(row["data RAISE N"]), float(row["data RAISE N stderr"])) == (
        found["value"],
        found["stderr"],
    )
    of_json = next(row for row in json.loads((made / "table2.json").read_text()) if row["model"] == name[0])
    assert of_json["data RAISE N"] == found
    assert of_json["paper"]["data RAISE N"] is None
    head, _, ours, paper, *_ = (made / "table2.md").read_text().splitlines()
    columns = [text.strip() for text in head.split("|")]
    assert columns.count("RAISE, N = 4, data") == 1
    place_of = columns.index("RAISE, N = 4, data")
    assert f"{found['value']:.2f} ±" in ours.split("|")[place_of]
    assert paper.split("|")[place_of].strip() == "—"
    assert "RAISE, $N$ = 4" in (made / "table2.tex").read_text()


def test_latex_rows_are_whole(place):
    folder, _, _ = place
    for name, columns in (("table1", 12), ("table2", 10)):
        text = (folder / "results" / "tiny" / f"{name}.tex").read_text()
        rows = [
            line for line in text.splitlines() if line.startswith(("mnist", "omni", "MNIST", "Omni", "Model"))
        ]
        assert {line.count("&") for line in rows} == {columns - 1}
        assert "±" not in text
        assert "mnistvh_" not in text


def test_curves_have_a_point_for_each_number_of_steps(place):
    folder, _, _ = place
    points = _read(folder / "results" / "tiny" / "cd1-500.csv")
    assert [(p["base"], p["method"], p["steps"]) for p in points] == [
        (base, method, steps)
        for base in ("uniform", "data")
        for method in ("AIS", "RAISE")
        for steps in ("2", "4")
    ]


def test_the_page_is_made_of_results(place):
    folder, run, _ = place
    (folder / "docs").mkdir(exist_ok=True)
    done = run("page")
    assert done.exit_code == 0, done.stderr
    text = (folder / "docs" / "paper.md").read_text(encoding="utf-8")
    assert "All cells of both tables and of all figures are computed." in text
    assert "$" not in text
    assert "not computed yet" not in text
    assert "With N = 4 the gap is the smaller one in" in text
    assert "of 22 cases" in text
    for name in FIGURES:
        assert f"](figures/{name}.png)" in text
        assert (folder / "docs" / "figures" / f"{name}.png").exists()


def test_the_page_says_what_is_missing(place):
    folder, run, _ = place
    done = run("page", "--steps", "3")
    assert done.exit_code == 0, done.stderr
    text = (folder / "docs" / "paper.md").read_text(encoding="utf-8")
    assert re.search(r"\*\*\d+ of \d+ cells are not computed yet\*\*", text)
    assert "`meltpoint paper all --dry-run` lists them" in text
    assert "| not computed yet |" in text
    assert "*Not computed yet.*" in text


def test_the_page_needs_no_models(place, tmp_path):
    folder, _, _ = place
    options = ["--profile", "quick", "--out", folder / "results", "--docs", tmp_path, "--models", tmp_path]
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(PROFILES, "quick", TINY)
        done = CliRunner().invoke(app, ["paper", "page", *map(str, options)])
    assert done.exit_code == 0, done.stderr
    assert "| mnistvh_CD25.mat | 8 steps |" in (tmp_path / "paper.md").read_text(encoding="utf-8")


def test_few_missing_cells_are_named(place):
    folder, run, _ = place
    cell = folder / "results" / "cells" / "mnistCD1-20.configurations.seed0.json"
    kept = cell.read_bytes()
    cell.unlink()
    run("page")
    cell.write_bytes(kept)
    text = (folder / "docs" / "paper.md").read_text(encoding="utf-8")
    assert "**1 of 101 cells are not computed yet**" in text
    assert "\n- `mnistCD1-20.configurations.seed0`\n" in text


@pytest.mark.parametrize("wrong", [("table3",), ("figure",), ("figure", "dbm"), ("table1", "dbn")])
def test_what_there_is_not_is_refused(place, wrong):
    _, run, _ = place
    result = run(*wrong)
    assert result.exit_code == 2
    assert "expected table1, table2, all, page, or figure and one of log-likelihood-rbms" in result.stderr


def test_missing_models_are_named(tmp_path, data):
    options = ["paper", "table1", "--profile", "quick", "--models", str(tmp_path), "--out", str(tmp_path)]
    result = CliRunner().invoke(app, options)
    assert result.exit_code == 2
    assert "mnistCD1-20.npz in the folder of models" in result.stderr


def test_missing_parameters_are_named(tmp_path, models, data):
    options = ["paper", "table1", "--models", str(models), "--parameters", str(tmp_path / "none.mat")]
    result = CliRunner().invoke(app, options)
    assert result.exit_code == 2
    assert "the tables have one row less" in result.stderr


def test_an_interruption_says_what_is_kept(models, data, tmp_path, monkeypatch):
    from reproduce.compute import Task

    compute = Task.compute
    left = iter(range(3))

    def compute_three(task):
        if next(left, None) is None:
            raise KeyboardInterrupt
        return compute(task)

    monkeypatch.setitem(PROFILES, "quick", TINY)
    monkeypatch.setattr(Task, "compute", compute_three)
    options = ["paper", "table1", "--profile", "quick", "--models", str(models), "--out", str(tmp_path)]
    result = CliRunner().invoke(app, options)
    assert result.exit_code == 130
    assert "3 of 45 cells are kept" in result.stderr
    assert "the same command goes on from there" in result.stderr


def test_a_package_without_its_checkout_says_where_the_program_is(monkeypatch, tmp_path):
    from meltpoint.cli import paper

    monkeypatch.setattr(paper, "_CHECKOUT", tmp_path)
    monkeypatch.setitem(sys.modules, "reproduce.command", None)
    result = CliRunner().invoke(app, ["paper", "table1"])
    assert result.exit_code == 2
    assert "git clone" in result.stderr


def reproduce(*arguments):
    command = [sys.executable, "-m", "reproduce", *map(str, arguments)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_the_program_is_the_command(place, models):
    folder, _, _ = place
    with reproduce(
        "page", "--out", folder / "results", "--docs", folder / "own", "--models", models
    ) as process:
        shown, told = process.communicate()
    assert (process.returncode, told) == (0, "")
    assert shown.split()[0] == str(folder / "own" / "paper.md")
    with reproduce("table3") as process:
        assert "expected table1, table2" in process.communicate()[1]
    assert process.returncode == 2


def test_the_end_of_a_jobs_time_keeps_what_is_finished(models, data, tmp_path):
    with reproduce("table1", "--models", models, "--out", tmp_path, "--profile", "quick") as process:
        for line in process.stderr:
            if "remain" in line:
                break
        process.send_signal(signal.SIGTERM)
        told = process.communicate()[1]
    assert process.returncode == 130, told
    assert "cells are kept" in told


def _read(path):
    return list(csv.DictReader(path.read_text().splitlines()))
