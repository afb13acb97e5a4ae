"""A report as plain values for JSON, and back."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from meltpoint.defaults import Settings
from meltpoint.errors import InputError
from meltpoint.estimators.ais import LogZ
from meltpoint.estimators.conventions import conventions_from_dict
from meltpoint.estimators.evidence import Evidence, Finding
from meltpoint.estimators.pilot import FrictionSchedule, Pilot
from meltpoint.models.checks import Floats
from meltpoint.results.report import PerExample, Report
from meltpoint.results.shown import ShownStates
from meltpoint.results.stages import OtherBase, StageSummary
from meltpoint.results.verdict import Verdict
from meltpoint.statistics.certificate import Certificate
from meltpoint.statistics.estimate import Estimate, plain

_ESTIMATES = ("conservative", "optimistic", "gap", "log_z", "exact")


def report_to_dict(report: Report) -> dict[str, Any]:
    """Everything as plain numbers, strings and lists."""
    per = report.per_example
    estimates = {name: getattr(report, name) for name in _ESTIMATES}
    numbers = ("ess", "pareto_k", "log_f_error", "control_variate_gain")
    friction = report.friction
    return {
        "model": report.model,
        "unit": report.unit,
        "test_examples": report.test_examples,
        "settings": vars(report.settings).copy(),
        "particles": report.particles,
        "pilot": plain(report.pilot),
        **{name: plain(estimate) for name, estimate in estimates.items()},
        "between": plain(report.between),
        "upper_bound": plain(report.upper_bound),
        "evidence": report.evidence.to_dict(report.settings.confidence) if report.evidence else None,
        "verdict": plain(report.verdict),
        **{name: plain(getattr(report, name)) for name in numbers},
        "log_f_exact": report.log_f_exact,
        "certificate": plain(report.certificate),
        "certified_estimate": plain(report.certified_estimate),
        "log_z_certificate": plain(report.log_z_certificate),
        "examples": {
            name: plain(getattr(per, name).tolist()) for name in ("positions", "log_prob", "stderr", "log_f")
        },
        "log_weights": {
            "ais": _numbers(report.ais_log_weights),
            "raise": _numbers(per.log_weights),
            "raise_reverse": _numbers(per.log_reverse_weights),
        },
        "degrees_of_freedom": {name: plain(estimate.df) for name, estimate in estimates.items() if estimate},
        "friction": friction and {"edges": _numbers(friction.edges), "friction": _numbers(friction.friction)},
        "shown": plain(report.shown),
        "stages": plain(report.stages),
        "other_base": plain(report.other_base),
        "seconds": report.seconds,
        "versions": report.versions,
        "fingerprints": report.fingerprints,
        "names": report.names,
        "interrupted": report.interrupted,
        "conventions": plain(report.conventions),
    }


def report_from_dict(content: Mapping[str, Any]) -> Report:
    """The report that `report_to_dict` described; one of an older version lacks what that did not write."""
    try:
        return _report(content)
    except (KeyError, TypeError, ValueError, AttributeError) as problem:
        raise InputError(
            found=f"a dictionary that is no report ({str(problem) or type(problem).__name__})",
            expected="what Report.to_dict() gives",
            remedy="read it with json.load from a file that report.save(path) or --json has written",
        ) from problem


def _report(content: Mapping[str, Any]) -> Report:
    weights, df = content.get("log_weights"), content.get("degrees_of_freedom", {})
    examples = content["examples"]
    n = len(examples["positions"])
    ais = _array(weights["ais"]) if weights else np.zeros(0)
    raised = [_array(weights[name]) if weights else np.zeros((n, 0)) for name in ("raise", "raise_reverse")]
    pilot = _pilot(content["pilot"])
    friction = content.get("friction")
    estimates = {name: _estimate(content[name], df.get(name)) for name in _ESTIMATES}
    log_z, ess = estimates.pop("log_z"), _number(content["ess"])
    low, high = content["between"]
    known = {field.name for field in fields(Settings)}
    shown = content.get("shown")
    return Report(
        model=str(content["model"]),
        test_examples=int(content["test_examples"]),
        settings=Settings(**{name: value for name, value in content["settings"].items() if name in known}),
        particles=int(content["particles"]),
        pilot=pilot,
        between=(-math.inf if low is None else low, math.inf if high is None else high),
        upper_bound=content["upper_bound"],
        log_z=LogZ(
            log_z.value, log_z.stderr, log_z.direction, log_z.covers, log_weights=ais, ess=ess, df=log_z.df
        ),
        ess=ess,
        pareto_k=_number(content["pareto_k"]),
        log_f_error=_number(content["log_f_error"]),
        # Not of older versions, which took samples without spread for exact.
        log_f_exact=bool(content.get("log_f_exact", False)),
        control_variate_gain=_number(content["control_variate_gain"]),
        certificate=_certificate(content["certificate"]),
        certified_estimate=_number(content["certified_estimate"]),
        log_z_certificate=_certificate(content["log_z_certificate"]),
        verdict=Verdict(**content["verdict"]),
        per_example=PerExample(
            np.array(examples["positions"], np.int64),
            *(_array(examples[name]) for name in ("log_prob", "stderr", "log_f")),
            *raised,
        ),
        ais_log_weights=ais,
        seconds=dict(content["seconds"]),
        versions=dict(content["versions"]),
        evidence=_evidence(content["evidence"]),
        stages=tuple(_stage(stage) for stage in content["stages"]),
        other_base=_other_base(content.get("other_base")),
        interrupted=bool(content["interrupted"]),
        conventions=(conventions_from_dict(content["conventions"]) if content.get("conventions") else None),
        friction=(
            FrictionSchedule(_array(friction["edges"]), _array(friction["friction"]), pilot)
            if friction and pilot
            else None
        ),
        shown=ShownStates.from_dict(shown) if shown else None,
        fingerprints=dict(content.get("fingerprints", {})),
        names=dict(content.get("names", {})),
        **estimates,
    )


def _estimate(content: Mapping[str, Any] | None, df: float | None) -> Any:  # noqa: ANN401
    if content is None:
        return None
    return Estimate(
        _number(content["value"]),
        _number(content["stderr"]),
        content["direction"],
        str(content["covers"]),
        df=math.inf if df is None else df,
    )


def _certificate(content: Mapping[str, Any]) -> Certificate:
    bound = content["bound"]
    return Certificate(-math.inf if bound is None else bound, content["confidence"], str(content["quantity"]))


def _pilot(content: Mapping[str, Any] | None) -> Pilot | None:
    if content is None:
        return None
    values: dict[str, Any] = {field.name: _number(content[field.name]) for field in fields(Pilot)}
    return Pilot(**values)


def _stage(content: Mapping[str, Any]) -> StageSummary:
    """Sizes are whole numbers, which JSON's writer has made real ones."""
    whole = {"steps", "examples", "chains", "ais_chains", "chain_steps"}
    values: dict[str, Any] = {
        name: int(value) if name in whole else _number(value) for name, value in content.items()
    }
    return StageSummary(**values)


def _other_base(content: Mapping[str, Any] | None) -> OtherBase | None:
    if content is None:
        return None
    numbers = {name: _number(value) for name, value in content.items() if name != "base"}
    return OtherBase(str(content["base"]), **numbers)


def _evidence(content: Mapping[str, Any] | None) -> Evidence | None:
    if content is None:
        return None
    findings = tuple(_finding(finding) for finding in content["findings"])
    ceiling = content.get("log_z_ceiling")
    return Evidence(
        findings,
        int(content["modes"]),
        int(content["chain_steps"]),
        log_z_ceiling=math.inf if ceiling is None else float(ceiling),
    )


def _finding(content: Mapping[str, Any]) -> Finding:
    """What one start said; older versions wrote the mass that is lacking as nats only."""
    lacking = _number(content.get("lacking", math.expm1(_number(content["missing_nats"]))))
    return Finding(
        name=str(content["name"]),
        log_z=-math.inf if content["log_z"] is None else content["log_z"],
        log_z_stderr=_number(content["log_z_stderr"]),
        reach=_number(content["reach"]),
        lacking=lacking,
        stderr=_number(content.get("stderr", _number(content["missing_nats_stderr"]) * (1 + lacking))),
        rare=_number(content["rare"]),
        log_weights=tuple(_array(content.get("log_weights", [])).tolist()),
    )


def _numbers(values: Floats) -> list[Any]:
    """Nested lists; what JSON has no number for is a text: "nan", "-inf"."""
    if values.ndim > 1:
        return [_numbers(row) for row in values]
    return [value if math.isfinite(value) else str(value) for value in values.tolist()]


def _array(values: Any) -> Floats:  # noqa: ANN401
    return np.array(values, np.float64)  # None becomes NaN, a text the number it spells


def _number(value: float | None) -> float:
    return math.nan if value is None else value
