"""Posteriors that sit on one state each: importance samples without spread are no proof that log f is exact."""

import math
from dataclasses import replace

import numpy as np
import pytest

import meltpoint as mp
from meltpoint.evaluation import prerequisites
from meltpoint.evaluation.prerequisites import log_f_of
from meltpoint.evaluation.stored import merge_runs, read_run
from meltpoint.models import log_f as log_f_module
from meltpoint.models.log_f import LogF, estimate_log_f
from meltpoint.runs.run import Run
from meltpoint.runs.store import RunFolder
from meltpoint.runs.workers import Workers, processes

TRUTH = -6 * math.log(2)
"""Mean log-probability of six visible units that nothing is coupled to."""

TEST = np.random.default_rng(0).integers(0, 2, (60, 6)).astype(np.uint8)
QUICK = {"steps": 300, "examples": 20}


def two_codes(n=12, coupling=8.0, free=0):
    """A DBM whose hidden units are all off or all on, with equal weights; `free` ones are coupled to nothing."""
    within = np.concatenate([np.full((n, n), coupling), np.zeros((free, n))])
    on = np.full(n, -coupling * n / 2)
    biases = [np.zeros(6), np.concatenate([on, np.zeros(free)]), on]
    return mp.DBM([np.zeros((6, n + free)), within], biases)


def three_layers(n=12, coupling=8.0):
    within, on = np.full((n, n), coupling), np.full(n, -coupling * n / 2)
    return mp.DBM([np.zeros((6, n)), within, within], [np.zeros(6), on, 2 * on, on])


def spins(n=12, coupling=1.0):
    """The same with spins, whose hidden fields are zero."""
    return mp.DBM(
        [np.zeros((6, n)), np.full((n, n), coupling)], [np.zeros(6), np.zeros(n), np.zeros(n)], units="spin"
    )


def hidden_sites(n=16, coupling=1.0):
    """A factor graph of two codes of hidden sites."""
    agree = np.array([[coupling, 0.0], [0.0, coupling]])
    factors = [((6 + i, 6 + j), agree) for i in range(n) for j in range(i)]
    return mp.FactorGraph([2] * (6 + n), factors, hidden=range(6, 6 + n))


MODELS = {
    "two layers": two_codes(),
    "coupling 20": two_codes(coupling=20.0),
    "wide": two_codes(20),
    "free units": two_codes(free=3),
    "three layers": three_layers(),
    "spins": spins(),
    "factor graph": hidden_sites(),
}


def false_claims(report) -> list[str]:
    """Which lines of a report on such a model are wrong."""
    low, high = report.between
    claims = {
        "between": not report.verdict.trusted or low <= TRUTH <= high,
        "at most": report.upper_bound is None or report.upper_bound >= TRUTH,
        "exact": report.exact is None or not report.log_f_exact or math.isclose(report.exact.value, TRUTH),
    }
    return [name for name, holds in claims.items() if not holds]


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("steps", [300, 1000])
def test_a_saturated_posterior_is_refused_or_right(name, steps):
    model = MODELS[name]
    test = model.decode(TEST)
    report = mp.evaluate(model, test, test, steps=steps, examples=20)
    assert not report.log_f_exact
    assert report.upper_bound is None
    assert "at most" not in str(report)
    assert "\nexact " not in str(report).replace("exact log Z", "")
    assert false_claims(report) == []


def test_a_mutant_that_infers_exactness_makes_false_claims(monkeypatch):
    monkeypatch.setattr(log_f_module, "standard_errors", log_f_module.log_mean_error)

    def inferring(*arguments, **options):
        found = estimate_log_f(*arguments, **options)
        return replace(found, is_exact=not found.stderrs.any())

    monkeypatch.setattr("meltpoint.models.dbm.estimate_log_f", inferring)
    assert set(false_claims(mp.evaluate(two_codes(), TEST, TEST, **QUICK))) >= {"at most", "exact"}


def test_samples_without_spread_have_no_error():
    found = two_codes().log_f_estimate(TEST[:5])
    assert not found.is_exact
    assert np.isnan(found.stderrs).all()
    assert found.unknown == 1
    assert found.rise == math.inf
    assert found.mean_limits(0.01) == (-math.inf, math.inf)


def test_a_check_without_spread_does_not_make_log_f_known():
    weights = np.zeros((4, 500))
    same = estimate_log_f(TEST[:4], np.arange(4), lambda *_: (weights, weights[:, 0]), progress=None)
    checked = same.controlled_by(np.arange(4), np.zeros((4, 8)))
    assert checked.unknown == 1
    assert checked.rise == math.inf
    # One that has some counts, and corrects.
    spread = np.random.default_rng(0).normal(0.7, 0.1, (4, 8))
    checked = same.controlled_by(np.arange(4), spread)
    assert checked.is_corrected
    assert checked.unknown == 0
    assert math.isfinite(checked.rise)
    assert LogF.exact(np.zeros(4)).controlled_by(np.arange(4), spread).mean.value == 0


def test_hidden_layers_without_couplings_are_summed_exactly():
    rng = np.random.default_rng(0)
    weights = [rng.normal(size=(6, 11)), np.zeros((11, 3))]
    visible, lower, upper = (rng.normal(size=n) for n in (6, 11, 3))
    small = mp.DBM(weights, [visible, lower, upper])
    large = mp.DBM([weights[0], np.zeros((11, 12))], [visible, lower, np.concatenate([upper, np.zeros(9)])])
    found = large.log_f_estimate(TEST)
    assert found.is_exact
    np.testing.assert_allclose(found.values, small.log_f(TEST) + 9 * math.log(2), rtol=1e-12)


@pytest.mark.parametrize(
    ("model", "exact"),
    [(two_codes(), False), (two_codes(3), True), (mp.RBM(np.ones((6, 2)), *map(np.zeros, (6, 2))), True)],
)
def test_a_run_keeps_whether_log_f_is_exact(model, exact, tmp_path, monkeypatch):
    monkeypatch.setattr(prerequisites, "_LOG_F_EXAMPLES", 32)
    folder = RunFolder(tmp_path, "a run")
    found = log_f_of(model, TEST, 0, Run(1, folder=folder))
    again = log_f_of(model, TEST, 0, Run(1, folder=folder))
    assert found.is_exact is again.is_exact is exact
    kept = Run(1, folder=folder).recall("log_f", LogF)
    assert kept is not None
    assert kept.is_exact == exact


@pytest.mark.slow
def test_workers_say_whether_log_f_is_exact(monkeypatch):
    monkeypatch.setattr(prerequisites, "_LOG_F_EXAMPLES", 32)
    with processes(1) as executor:
        assert not log_f_of(two_codes(), TEST, 0, Run(1, workers=Workers(executor))).is_exact


def test_stored_and_merged_runs_claim_no_more(tmp_path):
    asked = {**QUICK, "evidence": False, "chains": 2, "ais_chains": 40}
    whole = mp.evaluate(two_codes(), TEST, TEST, run=tmp_path / "whole", **asked)
    for part in range(2):
        mp.evaluate(two_codes(), TEST, TEST, run=tmp_path / str(part), part=part, **asked)
    merge_runs([tmp_path / "0", tmp_path / "1"], tmp_path / "merged")
    for report in (whole, read_run(tmp_path / "whole").report(), read_run(tmp_path / "merged").report()):
        assert not report.log_f_exact
        assert report.upper_bound is None
        assert not mp.Report.from_dict(report.to_dict()).log_f_exact


@pytest.mark.slow
def test_compare_and_trace_do_not_take_it_for_exact():
    independent = mp.RBM(np.zeros((6, 2)), np.full(6, 0.2), np.zeros(2))
    comparison = mp.compare({"codes": two_codes(), "independent": independent}, TEST, TEST, **QUICK)
    (pair,) = comparison.pairs
    assert pair.exact is pair.at_most is pair.at_least is None
    truth = TRUTH - np.mean(independent.log_f(TEST) - mp.exact_log_z(independent))
    assert pair.between[0] <= (truth if pair.first == "codes" else -truth) <= pair.between[1]
    (point,) = mp.trace([two_codes()], TEST, **QUICK).points
    assert point.exact is None
