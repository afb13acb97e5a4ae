"""Results of every family, made by hand, so that their views can be tested without sampling anything."""

import json
from dataclasses import fields, replace
from typing import Any

import numpy as np

from meltpoint.defaults import LogZSettings, Settings
from meltpoint.estimators.ais import LogZ
from meltpoint.estimators.evidence import Evidence, Finding, Start, Starts
from meltpoint.estimators.log_z_sides import Sides
from meltpoint.estimators.pilot import FrictionSchedule, Pilot
from meltpoint.models.log_f import LogF
from meltpoint.results.comparison import Comparison
from meltpoint.results.log_z import compose_log_z, stage_of
from meltpoint.results.pair import ComparedModel, compose_pair
from meltpoint.results.report import PerExample, Report
from meltpoint.results.shown import choose_shown
from meltpoint.results.stages import StageSummary
from meltpoint.results.trace import Trace, TracePoint
from meltpoint.results.verdict import Case, judge
from meltpoint.statistics.certificate import Certificate, certify_log_z
from meltpoint.statistics.estimate import Estimate

SETTINGS = Settings(
    base="data",
    schedule="linear",
    steps=10_000,
    examples=4,
    chains=3,
    ais_chains=50,
    seed=7,
    precision="mixed",
    tolerance=1.0,
    confidence=0.99,
)

EVIDENCE = Evidence(
    (
        Finding(
            "uniform", 451.2, 0.2, 0.99, lacking=0.01, stderr=0.01, rare=0.001, log_weights=(451.2, 451.3)
        ),
    ),
    modes=16,
    far=5,
    weighed=3,
    chain_steps=1_234_000,
    seconds=12.5,
)


# `particles` and `evidence` are fields of both: they are the report's, what was found.
MANY = 40
_SETTINGS = {field.name for field in fields(Settings)} - {field.name for field in fields(Report)}


def made(**changes: Any) -> Report:
    """A report on four of 10,000 examples; changes are its fields, or those of its settings."""
    rng = np.random.default_rng(0)
    log_weights = rng.normal(-90, 1, (4, 3))
    ais_log_weights = rng.normal(451, 1, 50)
    gap = Estimate(0.123, 0.0345, "difference", "both errors")
    report = Report(
        model="RBM 784-500",
        test_examples=10_000,
        settings=SETTINGS,
        particles=51,
        pilot=None,
        conservative=Estimate(-86.473, 0.03, "conservative", "noise"),
        optimistic=Estimate(-86.35, 0.017, "optimistic", "noise"),
        gap=gap,
        between=(-86.55, -86.306),
        upper_bound=-86.081,
        exact=None,
        log_z=LogZ(451.28, 0.017, "lower bound", "noise", ais_log_weights, 31.4),
        ess=31.4,
        pareto_k=0.31,
        log_f_error=0.0,
        log_f_exact=True,
        control_variate_gain=7.94,
        certificate=Certificate(-89.16, 0.99, "mean log p_N, N = 13, of these 4 examples"),
        certified_estimate=-88.0,
        log_z_certificate=certify_log_z(ais_log_weights, 0.99),
        verdict=judge(Case(gap, 31.4, 50, 1.0, pareto_k=0.31, evidence=Evidence())),
        per_example=PerExample(
            np.array([5, 2, 8, 1]),
            np.full(4, -88.0),
            np.full(4, 0.2),
            np.full(4, 363.1),
            log_weights,
            363.1 - log_weights,
        ),
        ais_log_weights=ais_log_weights,
        seconds={"AIS": 61.2, "RAISE": 71.0, "total": 132.9},
        evidence=EVIDENCE,
        versions={"meltpoint": "0.1.0", "numpy": "2.0.0", "numba": "0.61.0", "Python": "3.11.0"},
    )
    asked = {name: changes.pop(name) for name in list(changes) if name in _SETTINGS}
    return replace(report, settings=replace(SETTINGS, **asked), **changes)


def full(**changes) -> Report:
    """A report with everything a page can show."""
    rng = np.random.default_rng(1)
    log_weights = rng.normal(-90, 1, (MANY, 3))
    per = PerExample(
        np.arange(MANY) * 3,
        rng.normal(-88, 5, MANY),
        np.full(MANY, 0.2),
        rng.normal(363.1, 5, MANY),
        log_weights,
        363.1 - log_weights,
    )
    pilot = Pilot(500, 128_000, -100.0, 3.0, 0.1)
    friction = FrictionSchedule(np.linspace(0, 1, 11), np.linspace(1, 4, 10) ** 2, pilot)
    states = rng.integers(0, 2, (MANY, 784)).astype(np.uint8)
    report = made(
        per_example=per,
        pilot=pilot,
        friction=friction,
        exact=Estimate(-86.4, 0.0, "exact", "nothing"),
        stages=(
            StageSummary(601, 50, 2, 128, 137_028, -87.1, -86.2, 1.2, 0.6, 70.0),
            StageSummary(3000, 50, 1, 1000, 3_150_000, -86.5, -86.3, 0.3, 0.15, 300.0),
        ),
        budget=40.0,
        gap=Estimate(0.123, 0.0345, "difference", "both errors"),
        schedule="friction",
        fingerprints={"model": "0123", "test set": "4567", "training set": "89ab"},
        names={"model": "zoo/m.npz", "test": "mnist"},
    )
    shown = choose_shown("bernoulli", per.positions, states, report.per_example_differences)
    return replace(report, shown=replace(shown, samples=states[:16]), **changes)


def bare() -> Report:
    """A report that lacks all that a report can lack: one example and one chain, read from an older version's JSON."""
    report = made(
        evidence=None,
        upper_bound=None,
        per_example=PerExample(
            np.arange(1), np.zeros(1), np.full(1, np.nan), np.zeros(1), *np.zeros((2, 1, 1))
        ),
        ais_log_weights=np.zeros(1),
        between=(-np.inf, np.inf),
        pareto_k=np.nan,
        ess=np.nan,
    )
    content = report.to_dict()
    for name in ("log_weights", "degrees_of_freedom", "friction", "shown", "fingerprints", "names"):
        del content[name]
    return Report.from_dict(json.loads(json.dumps(content)))


def report_at(value, **changes):
    """A report whose AIS value is this."""
    report = made(**changes)
    shift = value - report.optimistic.value
    return replace(
        report,
        optimistic=replace(report.optimistic, value=value),
        conservative=replace(report.conservative, value=report.conservative.value + shift),
        between=(report.between[0] + shift, report.between[1] + shift),
    )


def side(name, value, **changes):
    report = report_at(value, **changes)
    rng = np.random.default_rng(5)
    log_f = rng.normal(value + report.log_z.value, 10, report.test_examples)
    log_f += value + report.log_z.value - log_f.mean()
    return ComparedModel(name, replace(report, log_f=LogF.exact(log_f)))


def comparison_of(*sides, **changes):
    pairs = tuple(
        compose_pair(one, other, 0.01 / 3) for k, one in enumerate(sides) for other in sides[k + 1 :]
    )
    given = {
        "reports": {each.name: each.report for each in sides},
        "pairs": pairs,
        "test_examples": 10_000,
        "confidence": 0.99,
        "about": "test set",
        "baseline": None,
        "seconds": 12.0,
    }
    return Comparison(**given | changes)


def three():
    """Models of which two may be in either order; the name of one is not to be interpreted."""
    return comparison_of(side("old", -90.0), side("new", -80.0), side("newer <b>", -79.9))


def bracket(**changes):
    """log Z from both sides, in two stages."""
    rng = np.random.default_rng(3)
    forward, melted = rng.normal(451, 0.4, 50), rng.normal(451.1, 0.4, 40)
    sides = Sides(forward, Starts((Start("uniform", rng.normal(451, 0.4, 50), melted),), modes=3))
    settings = LogZSettings(base="data", steps=1000, chains=50, seed=7, tolerance=1.0, confidence=0.99)
    found = compose_log_z(
        model="RBM 784-500 <b>",
        clamped=2,
        settings=settings,
        sides=sides,
        rests_on="end states of chains",
        exact=451.0,
        alpha=0.01,
    )
    found = replace(found, seconds={"total": 3.0}, versions={"numpy": "2"})
    first = replace(stage_of(found), steps=100)
    return replace(found, stages=(first, stage_of(found)), **changes)


def trace(**changes):
    """Four checkpoints, the second of which is the best; the name of one is not to be interpreted."""
    points = []
    for k, value in enumerate((-90.0, -80.0, -80.2, -85.0)):
        points.append(
            TracePoint(
                name=f"epoch <b>-{k}",
                conservative=Estimate(value - 0.1, 0.05, "conservative", "noise"),
                optimistic=Estimate(value, 0.05, "optimistic", "noise"),
                between=(value - 0.3, value + 0.1),
                exact=None,
                train=Estimate(value + k, 0.05, "optimistic", "noise"),
                train_between=(value + k - 0.3, value + k + 0.1),
                overfit=Estimate(float(k), 0.3, "difference", "examples"),
                ess=40.0,
                ais_chains=50,
                steps=1000,
                seed=7,
                new_schedule=k == 0,
                checked=k == 0,
                reason="agree" if k == 0 else "unchecked",
                seconds=2.0,
            )
        )
    given = {"points": tuple(points), "test_examples": 100, "train_examples": 200, "confidence": 0.99}
    return Trace(**given | {"seconds": 8.0} | changes)


FAMILIES = {
    "report": full,
    "report that lacks much": bare,
    "comparison": three,
    "log Z": bracket,
    "trace": trace,
}
