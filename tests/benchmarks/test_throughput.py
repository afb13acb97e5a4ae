"""The benchmark itself: its models are what they claim, its arithmetic is right, and it runs."""

import importlib
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from meltpoint.annealing.base import uniform
from meltpoint.kernels.compiling import check_threads
from meltpoint.models.rbm import RBM

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture
def bench(monkeypatch):
    """Imports a module of the benchmarks, which are programs beside each other and not a package."""
    monkeypatch.syspath_prepend(BENCHMARKS)
    return importlib.import_module


def test_ratios_are_taken_round_by_round_and_the_median_is_judged(bench):
    table = bench("table")
    # The yardstick was disturbed in the second round: the ratio of the medians would be 6.
    ratios = table.quotients([2.0, 6.0, 6.0], [1.0, 1.0, 3.0])
    row = table.compared("case", [2e5, 6e5, 6e5], ratios, asked=2.0)
    assert (row.figure, row.ratio, row.asked, row.passed) == ("600,000", 2.0, ">= 2", True)
    assert table.compared("case", [1.0], [1.9], asked=2.0).passed is False
    assert table.compared("case", [1.0], [1.9]).passed is None


def test_table_fits_a_terminal_and_marks_what_was_missed(bench):
    table = bench("table")
    rows = (table.Row("a", "1,234,567", 2.5, "0.75 to 1.33", False), table.Row("b"))
    lines = str(table.Section("Title", "chain-steps/s", "x bound", rows)).splitlines()
    assert max(map(len, lines)) <= 100
    assert lines[-2].split() == ["a", "1,234,567", "2.50", "0.75", "to", "1.33", "FAIL"]
    assert lines[-1].split() == ["b"]


def test_names_of_all_cases_fit_their_column(bench, monkeypatch, tmp_path):
    cases = bench("cases")
    monkeypatch.setattr(cases, "PAPER_MODEL", tmp_path / "absent.mat")
    cases.paper_cases.cache_clear()
    assert all(len(case.name) <= 40 for case in [*cases.all_cases(), cases.tiny_case()])
    assert not any("mnist" in case.name for case in cases.all_cases())
    cases.paper_cases.cache_clear()


def test_half_the_units_of_symmetric_models_are_on(bench):
    cases = bench("cases")
    states = np.random.default_rng(0).integers(0, 2, (20, 30))
    rbm = cases.symmetric_rbm(30, 20)
    np.testing.assert_allclose(rbm.log_f(states), rbm.log_f(1 - states), atol=1e-10)
    two = cases.symmetric_dbm(10, 8, 20).mrf  # even side: 10 + 20 units
    np.testing.assert_allclose(two.log_f(states), two.log_f(1 - states), atol=1e-10)


@pytest.mark.slow
def test_few_units_of_the_sparse_model_are_on(bench):
    cases = bench("cases")
    rbm = cases.sparse_rbm(784, 500)
    rng = np.random.default_rng(0)
    visible = np.zeros((100, 784))
    for _ in range(50):
        hidden = rng.random((100, 500)) < rbm.hidden_given_visible(visible)
        visible = rng.random((100, 784)) < rbm.visible_given_hidden(hidden)
    assert 0.05 < visible.mean() < 0.2
    assert 0.2 < hidden.mean() < 0.5


def test_dense_bound_multiplies_every_block_both_ways(bench):
    bound = bench("bound").DenseBound(bench("cases").symmetric_dbm(7, 5, 6), chains=3)
    shapes = [(state.shape, weights.shape, out.shape) for state, weights, out in bound._products]
    assert shapes == [
        ((3, 7), (7, 5), (3, 5)),
        ((3, 5), (5, 7), (3, 7)),
        ((3, 6), (6, 5), (3, 5)),
        ((3, 5), (5, 6), (3, 6)),
    ]
    assert bound.rate(0.001) > 0
    for state, weights, out in bound._products:
        np.testing.assert_allclose(out, state @ weights, rtol=1e-5, atol=1e-6)


def test_a_call_is_timed_from_its_first_chain_step(bench):
    cases = bench("cases")
    watch = cases.Watch("AIS", start=0.0)
    watch("compiling", 1.0, 1.0)
    prepared = watch.prepared
    watch("AIS", 1.0, 2.0)
    assert watch.setup == watch.prepared == prepared > 0
    examples = np.eye(8, dtype=np.uint8)
    for case in (
        cases.Case("AIS", cases.symmetric_rbm(8, 4), uniform()),
        cases.Case("RAISE", cases.symmetric_rbm(8, 4), uniform(), None, "RAISE", examples),
    ):
        timing = case.run(chains=20, steps=10, threads=1)
        assert timing.chain_steps == 200
        assert timing.setup > 0
        assert timing.rate == 200 / timing.seconds > 0
        assert np.isfinite(timing.value)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("key", ["torch", "jax", "rbms"])
def test_competitors_find_log_z(bench, tmp_path, key):
    competitors, cases = bench("competitors"), bench("cases")
    if not competitors.PYTHON.is_file():
        pytest.skip("needs .venv-bench, which make bench makes")
    rng = np.random.default_rng(0)
    model = RBM(rng.normal(size=(8, 6)), rng.normal(size=8), rng.normal(size=6))
    states = np.array(list(np.ndindex((2,) * 8)))
    exact = np.logaddexp.reduce(model.log_f(states))
    competitors.write_problem(cases.Case("small", model, uniform()), tmp_path / "problem.npz")
    with competitors.Competitor(key, tmp_path / "problem.npz", 2000, 200, 1) as competitor:
        first, second = competitor.run(), competitor.run()
    # 200 steps leave log weights a spread below 0.2, so 2,000 chains err by less than 0.005; ten times that.
    assert abs(first.log_z - exact) < 0.05
    assert abs(second.log_z - exact) < 0.05
    assert min(first.seconds, second.seconds) > 0


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_quick_run_fills_every_table(tmp_path):
    target = tmp_path / "new" / "throughput.json"
    command = [sys.executable, BENCHMARKS / "throughput.py", "--quick", "--no-competitors"]
    command += ["--json", target, "--only", "speed", "threads", "constancy"]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=True)
    results = json.loads(target.read_text())
    assert results["quick"] is True
    assert results["machine"]["threads"] == check_threads(None)
    tables = {section["title"]: section["rows"] for section in results["sections"]}
    assert list(tables)[:2] == ["Throughput", "Throughput of tiny models"]
    (speed,) = (row for row in tables["Throughput"] if row["name"] == "random 784 x 500, half on")
    assert (speed["asked"], speed["passed"]) == (">= 0.9", None)  # a quick run judges nothing
    assert len(speed["details"]["ratios"]) == len(speed["details"]["yardstick"]) == 2
    assert all(row["name"] in done.stdout for rows in tables.values() for row in rows)
    assert max(map(len, done.stdout.splitlines()[2:-1])) <= 100
