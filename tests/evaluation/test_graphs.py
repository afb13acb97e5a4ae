"""evaluate() on graphs: every base, runs that go on, workers, gaps, modes that are missed, exact values inside."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import meltpoint as mp
from contract.graphs import CASES
from meltpoint.estimators.modes import climb, find_modes
from models.test_colouring import torus

NAMES = [
    "spin chain, two colours",
    "bernoulli dense, hidden coupled",
    "potts of two states",
    "potts mixed, hidden",
    "order three, mixed, hidden",
]
SMALL = {"steps": 20, "ais_chains": 40, "chains": 2, "examples": 10}


def data(model):
    return mp.sample(model, 60, steps=20, moves=10)


@pytest.mark.parametrize("base", ["auto", "data", "model", "uniform"])
@pytest.mark.parametrize("name", NAMES)
def test_every_base_holds_the_exact_value(name, base):
    """Intervals of 1 - 1e-6 for one seed each; other starts were asked."""
    model = CASES[name]
    x = data(model)
    report = mp.evaluate(model, x, x[:30], base=base, confidence=1 - 1e-6, exact=False, **SMALL)
    exact = np.mean(model.log_f(x)) - mp.exact_log_z(model)
    low, high = report.between
    assert low - 1e-9 <= exact <= high + 1e-9
    assert report.evidence.asked
    assert report.evidence.modes >= 1


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_runs_go_on_and_workers_compute_the_same(name, tmp_path):
    model = CASES[name]
    x = data(model)
    plain = mp.evaluate(model, x, x[:30], **SMALL).to_dict()
    with ThreadPoolExecutor(2) as pool:
        made = [
            mp.evaluate(model, x, x[:30], run=tmp_path / "run", **SMALL),
            mp.evaluate(model, x, x[:30], run=tmp_path / "run", **SMALL),
            mp.evaluate(model, x, x[:30], executor=pool, **SMALL),
        ]
    for report in made:
        found = report.to_dict()
        assert [found[key] for key in ("conservative", "optimistic", "between")] == [
            plain[key] for key in ("conservative", "optimistic", "between")
        ]
    assert mp.read_run(tmp_path / "run").report().to_dict()["between"] == plain["between"]


def test_a_gap_is_closed_and_drawn():
    model = CASES["potts dense"]
    report = mp.evaluate(model, data(model), gap=0.3, budget=20, exact=False)
    assert report.verdict.trusted
    low, high = report.between
    assert high - low <= 0.6 + 1e-9
    assert report.plot().axes


def test_hidden_sites_that_are_estimated_widen_the_interval(monkeypatch):
    model = CASES["bernoulli dense, hidden coupled"]
    x = data(model)
    monkeypatch.setattr("meltpoint.models.graph._ENUMERATED", 0)
    report = mp.evaluate(model, x, x[:30], confidence=1 - 1e-6, exact=False, **SMALL)
    monkeypatch.undo()
    exact = np.mean(model.log_f(x)) - mp.exact_log_z(model)
    low, high = report.between
    assert low <= exact <= high


def cold_ferromagnet(n=24, coupling=0.4, field=0.03):
    """All pairs coupled: two modes that no chain leaves. The one that fields favour holds most of the mass."""
    couplings = np.full((n, n), coupling)
    np.fill_diagonal(couplings, 0)
    return mp.Ising(couplings, np.full(n, field))


def test_a_mode_that_data_do_not_show_is_found():
    """Chains from rates of the lesser mode stay there: a report that agreed would be wrong by the other one's mass."""
    model = cold_ferromagnet()
    down = np.where(np.random.default_rng(0).random((40, 24)) < 0.02, 1, -1)
    report = mp.evaluate(model, down, down, base="data", steps=100, ais_chains=100, exact=False)
    up, low = model.log_f([np.ones(24), -np.ones(24)])
    assert up > low + 1
    assert not report.verdict.trusted
    exact = np.mean(model.log_f(down)) - np.logaddexp(up, low)
    assert report.between[0] <= exact + 0.2


def test_states_climb_to_local_optima():
    model = cold_ferromagnet(6)
    points = np.random.default_rng(1).integers(0, 2, (20, 6), np.uint8)
    tops = climb(model.mrf, points)
    assert {tuple(top) for top in tops.tolist()} <= {(0,) * 6, (1,) * 6}
    assert {tuple(state) for state in find_modes(model, count=16).tolist()} == {(0,) * 6, (1,) * 6}


@pytest.mark.slow
def test_a_lattice_of_many_sites_is_evaluated():
    """What grows with sites is bounded: starting points, modes, and what is kept of them."""
    model = mp.Ising(0.2 * torus(60, 60), np.zeros(3600))
    x = mp.sample(model, 4, steps=5, moves=5)
    report = mp.evaluate(
        model, x, base="uniform", schedule="linear", steps=20, ais_chains=4, chains=1, examples=2
    )
    # Per site: high-temperature expansion to K^4, 2 log cosh K + log 2 + K^4 = 0.7340.
    assert report.log_z.value / 3600 == pytest.approx(0.734, abs=0.005)
    assert report.evidence.asked
