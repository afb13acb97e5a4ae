"""The paper's findings compared with our numbers: each with yes or no, and the numbers behind it."""

import math
import statistics
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias, TypeVar

from meltpoint.paper.cells import BASES, TABLES, Plan
from meltpoint.paper.figures import curves_of
from meltpoint.paper.models import DBMS, DBNS, PAPER_VALUES, PARAMETERS, RBMS, SMALL
from meltpoint.paper.results import Results
from meltpoint.paper.tables import BaseEstimates, TableRow, all_rows, base_estimates, table_rows

SIGMAS = 3.0  # beyond which a difference is not put down to noise
_MARKOV = math.log(100)  # nats by which log Z is overestimated in one run of a hundred at most
_MANY = 5.0  # nats
_TENS = 10.0  # nats
T = TypeVar("T")


@dataclass(frozen=True)
class CheckedClaim:
    """A claim, whether it holds for our models (None: its cells are not all finished), and why."""

    claim: str
    holds: bool | None
    evidence: str


class _UnfinishedError(Exception):
    """A cell that is needed is not there."""


Check: TypeAlias = Callable[[Plan, Results], tuple[bool, str]]
"""Whether a claim holds, and the numbers that say so."""


def findings(plan: Plan, results: Results) -> list[CheckedClaim]:
    """All findings, in the order of the paper."""
    checks = dict(_CHECKS)
    if plan.parameters:
        checks[_OWN] = _own_parameters
    return [_held(claim, check, plan, results) for claim, check in checks.items()]


def _held(claim: str, check: Check, plan: Plan, results: Results) -> CheckedClaim:
    try:
        return CheckedClaim(claim, *check(plan, results))
    except _UnfinishedError:
        return CheckedClaim(claim, None, "not all of its cells are finished")


def _need(value: T | None) -> T:
    if value is None:
        raise _UnfinishedError
    return value


def _rises(plan: Plan, results: Results) -> tuple[bool, str]:
    curves = curves_of("log-likelihood-rbms", plan, results)
    if any(len(curve.points) < len(plan.profile.curve) for curve in curves):
        raise _UnfinishedError
    falls = [
        f"{curve.model.label} falls from {low.value:.2f} to {high.value:.2f}"
        for curve in curves
        for low, high in pairwise(estimate for _, estimate in curve.points)
        if low.value - high.value > SIGMAS * math.hypot(low.stderr, high.stderr)
    ]
    ends = [f"{c.model.label} {c.points[0][1].value:.1f} to {c.points[-1][1].value:.1f}" for c in curves]
    first, last = plan.profile.curve[0], plan.profile.curve[-1]
    return not falls, f"from {first:,} to {last:,} steps: {_joined([*ends, *falls])}"


def _smaller_gap(plan: Plan, results: Results) -> tuple[bool, str]:
    evidence, against = [], []
    for row in all_rows(plan, results):
        if "data" in row.bases:
            uniform, data = (_need(row.bases[base].gap) for base in BASES)
            evidence.append(f"{row_label(row)} {data.value:.2f} instead of {uniform.value:.2f}")
            noise = SIGMAS * math.hypot(uniform.stderr, data.stderr)
            if abs(data.value) - abs(uniform.value) > noise:
                against.append(f"not so for {row_label(row)}")
    return not against, _joined([*evidence, *against])


def _many_nats(plan: Plan, results: Results) -> tuple[bool, str]:
    uniform, data = (
        _need(base_estimates(RBMS[2], base, plan.profile.steps, plan, results).gap) for base in BASES
    )
    holds = uniform.value - SIGMAS * uniform.stderr > _MANY
    return holds, f"a gap of {uniform} nats, against {data} from data base rates"


def _csl_low(plan: Plan, results: Results) -> tuple[bool, str]:
    below = {
        row.model.label: _need(row.bases["data"].conservative).value - _need(row.csl).value
        for row in table_rows("table1", plan, results)
        if row.steps == plan.profile.steps
    }
    evidence = [f"{label} {distance:.1f}" for label, distance in below.items()]
    low = sum(distance > _TENS for distance in below.values())
    return low >= len(below) - 1, f"nats below RAISE from data base rates: {_joined(evidence)}"


def _inverted(plan: Plan, results: Results) -> tuple[bool, str]:
    first, last = plan.profile.curve[0], plan.profile.steps
    few, many = (base_estimates(SMALL[0], "data", steps, plan, results) for steps in (first, last))
    gap = _need(few.gap)
    return (
        gap.value < -SIGMAS * gap.stderr,
        f"with {first:,} steps RAISE {few.conservative} and AIS {few.optimistic}, a gap of {gap}; with "
        f"{last:,} steps a gap of {_need(many.gap)}",
    )


def _few_configurations(plan: Plan, results: Results) -> tuple[bool, str]:
    result = _need(results.read(plan.configurations()))["result"]
    largest = result["largest"]
    return (
        result["carry_the_share"] <= len(largest),
        f"{largest[0]:.1%} on one of {result['configurations']:,}, {sum(largest[:2]):.1%} on two; perplexity "
        f"{result['perplexity']:.2f}",
    )


def _exact_inside(plan: Plan, results: Results) -> tuple[bool, str]:
    evidence, outside = [], []
    for row in table_rows("table1", plan, results):
        for base, found in row.bases.items() if row.model in SMALL else ():
            exact, low, high = _need(row.exact), _need(found.conservative), _need(found.optimistic)
            where = f"{row.model.label}, {base}"
            # Few chains have no error of use; Markov's inequality bounds how far log Z can be too high.
            above = max(SIGMAS * high.stderr, _MARKOV if found.degenerate else 0.0)
            evidence.append(f"{where}: {low}, exact {exact.value:.2f}, {high}{_few(found)}")
            if not low.value - SIGMAS * low.stderr <= exact.value <= high.value + above:
                outside.append(f"outside for {where}")
    return not outside, _joined([*evidence, *outside])


def _control_variate(plan: Plan, results: Results) -> tuple[bool, str]:
    cells = [cell for table in TABLES for cell in plan.table(table) if cell.method == "raise"]
    gains = [_need(_need(results.read(cell))["result"]["control_variate_gain"]) for cell in cells]
    return (
        min(gains) > 1,
        f"by a factor of {statistics.median(gains):.1f} (median over the {len(gains)} RAISE estimates of both "
        f"tables; {min(gains):.1f} to {max(gains):.1f})",
    )


def _dbns_agree(plan: Plan, results: Results) -> tuple[bool, str]:
    found = {
        model.label: base_estimates(model, "uniform", plan.profile.steps, plan, results) for model in DBNS
    }
    gaps = [_need(each.gap) for each in found.values()]
    return all(-SIGMAS * gap.stderr < gap.value < 1 + SIGMAS * gap.stderr for gap in gaps), _gaps(found)


def _omniglot_dbm(plan: Plan, results: Results) -> tuple[bool, str]:
    found = {base: base_estimates(DBMS[1], base, plan.profile.steps, plan, results) for base in BASES}
    gaps = [_need(each.gap) for each in found.values()]
    return any(gap.value < -SIGMAS * gap.stderr for gap in gaps), _gaps(found)


def _own_parameters(plan: Plan, results: Results) -> tuple[bool, str]:
    spread = _need(results.read(plan.draws()))["result"]["spread"]
    evidence, apart = [], []
    for base in ("data", "uniform"):
        found = base_estimates(PARAMETERS, base, plan.profile.long_steps, plan, results)
        raised, ais, _ = PAPER_VALUES[PARAMETERS.label].bases[base]
        low, high = _need(found.conservative), _need(found.optimistic)
        evidence.append(
            f"{base}: RAISE {low} (paper {raised:.2f}), AIS {high} (paper {ais:.2f}){_few(found)}"
        )
        for name, ours, paper in (("RAISE", low, raised), ("AIS", high, ais)):
            # The paper gives no errors. It has as many chains as ours or more, so that they should not be larger.
            error = math.sqrt(2) * math.hypot(ours.stderr, spread)
            few = name == "AIS" and found.degenerate
            if abs(ours.value - paper) > max(SIGMAS * error, _MARKOV if few else 0.0):
                apart.append(f"{name}, {base}, is {(ours.value - paper) / error:+.1f} standard errors off")
    drawn = f"another draw of the test set's pixels moves log f by {spread:.3f} (standard deviation)"
    return not apart, f"with {plan.profile.long_steps:,} steps, {_joined([*evidence, drawn, *apart])}"


def _gaps(found: Mapping[str, BaseEstimates]) -> str:
    return "gaps: " + _joined(f"{name} {_need(each.gap)}{_few(each)}" for name, each in found.items())


def _few(found: BaseEstimates) -> str:
    """A note where the error of AIS is not known."""
    return f" ({found.ess or 0:.1f} effective chains)" if found.degenerate else ""


def row_label(row: TableRow) -> str:
    """A row's model, with the steps where it has several rows."""
    return f"{row.model.label} ({row.steps:,} steps)" if row.model == PARAMETERS else row.model.label


def _joined(parts: Iterable[str]) -> str:
    return "; ".join(parts)


_OWN = (
    "The paper's own parameters (mnistvh_CD25.mat) give the paper's numbers, within three standard errors of a "
    "difference between two such runs on two draws of the test set's pixels."
)
_CHECKS: dict[str, Check] = {
    "RAISE rises with the number of steps, from the uniform base, for every RBM.": _rises,
    "Data base rates give the smaller gap.": _smaller_gap,
    "mnistCD1-500 from the uniform base shows a gap of many nats.": _many_nats,
    "CSL is tens of nats too low, for almost all models.": _csl_low,
    "mnistCD1-20 from data base rates is inverted at few steps: RAISE lies above AIS.": _inverted,
    "The mnistCD1-20 RBM puts nine tenths of its mass on few hidden configurations (by enumeration; the paper's "
    "model: 93% on one).": _few_configurations,
    "The exact value of the 20-unit RBMs lies between RAISE and AIS, within errors.": _exact_inside,
    "Control variates reduce the standard error of RAISE.": _control_variate,
    "For the DBNs RAISE and AIS agree to within 1 nat, RAISE below AIS.": _dbns_agree,
    "The Omniglot DBM is inverted: its annealing model is the better model.": _omniglot_dbm,
}
