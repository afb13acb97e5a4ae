"""Reports made by hand, so that their views can be tested without sampling anything."""

from dataclasses import fields, replace
from typing import Any

import numpy as np

from meltpoint.defaults import Settings
from meltpoint.estimators.ais import LogZ
from meltpoint.estimators.evidence import Evidence, Finding
from meltpoint.results.report import PerExample, Report
from meltpoint.results.verdict import WeightDiagnostics, judge
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
    chain_steps=1_234_000,
    seconds=12.5,
)


# `particles` and `evidence` are fields of both: they are the report's, what was found.
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
        verdict=judge(gap, WeightDiagnostics(31.4, 50, 0.31), 1.0),
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
