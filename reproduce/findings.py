"""The paper's findings compared with our numbers: each with yes or no, and the numbers behind it."""

import math
import statistics
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple, TypeVar

import meltpoint as mp
from reproduce.cells import TABLES, Cell, Plan
from reproduce.figures import curves_of
from reproduce.models import BASES, DBMS, DBNS, PARAMETERS, RBMS, SMALL, PaperModel
from reproduce.results import Results
from reproduce.tables import Row, all_rows, table_rows

SIGMAS = 3.0  # beyond which a difference is not put down to noise
_MARKOV = math.log(100)  # nats by which log Z is overestimated in one run of a hundred at most
T = TypeVar("T")


class CheckedClaim(NamedTuple):
    """A claim, whether it holds for our models (None: its cells are not all finished), and why."""

    claim: str
    holds: bool | None
    evidence: str


class _UnfinishedError(Exception):
    pass


def findings(plan: Plan, results: Results) -> list[CheckedClaim]:
    """All findings, in the order of the paper."""
    found = []
    for claim, check in _CLAIMS.items():
        if check is not _Numbers.own_parameters or plan.parameters:
            try:
                found.append(CheckedClaim(claim, *check(_Numbers(plan, results))))
            except _UnfinishedError:
                found.append(CheckedClaim(claim, None, "not all of its cells are finished"))
    return found


@dataclass(frozen=True)
class _Numbers:
    """The numbers of a plan, all of which must be there; each method says whether a claim holds, and the evidence."""

    plan: Plan
    results: Results

    def rises(self) -> tuple[bool, str]:
        curves = curves_of("log-likelihood-rbms", self.plan, self.results)
        first, last = self.plan.profile.curve[0], self.plan.profile.curve[-1]
        if any(len(curve.points) < len(self.plan.profile.curve) for curve in curves):
            raise _UnfinishedError
        falls = [
            f"{curve.model.label} falls from {low.value:.2f} to {high.value:.2f}"
            for curve in curves
            for low, high in pairwise(estimate for _, estimate in curve.points)
            if low.value - high.value > SIGMAS * math.hypot(low.stderr, high.stderr)
        ]
        ends = [(c.model.label, c.points[0][1].value, c.points[-1][1].value) for c in curves]
        shown = [f"{label} {low:.1f} to {high:.1f}" for label, low, high in ends]
        return not falls, f"from {first:,} to {last:,} steps: {_joined([*shown, *falls])}"

    def smaller_gap(self) -> tuple[bool, str]:
        evidence, against = [], []
        for row in all_rows(self.plan, self.results):
            if "data" in row.model.bases:
                uniform, data = (self._of(row, f"{base} gap") for base in BASES)
                evidence.append(f"{row} {data.value:.2f} instead of {uniform.value:.2f}")
                if abs(data.value) - abs(uniform.value) > SIGMAS * math.hypot(uniform.stderr, data.stderr):
                    against.append(f"not so for {row}")
        return not against, _joined([*evidence, *against])

    def many_nats(self) -> tuple[bool, str]:
        uniform, data = (self._of(self._row(RBMS[2]), f"{base} gap") for base in BASES)
        holds = uniform.value - SIGMAS * uniform.stderr > 5
        return holds, f"a gap of {uniform} nats, against {data} from data base rates"

    def csl_low(self) -> tuple[bool, str]:
        rows = [row for row in table_rows("table1", *self._both) if row.steps == self.plan.profile.steps]
        below = [self._of(row, "data RAISE").value - self._of(row, "CSL").value for row in rows]
        shown = _joined(f"{row.model.label} {each:.1f}" for row, each in zip(rows, below, strict=True))
        low = sum(each > 10 for each in below)
        return low >= len(below) - 1, f"nats below RAISE from data base rates: {shown}"

    def inverted(self) -> tuple[bool, str]:
        few, many = self._row(SMALL[0], self.plan.profile.curve[0]), self._row(SMALL[0])
        low, high, gap = (self._of(few, f"data {name}") for name in ("RAISE", "AIS", "gap"))
        return (
            gap.value < -SIGMAS * gap.stderr,
            f"with {few.steps:,} steps RAISE {low} and AIS {high}, a gap of {gap}; with {many.steps:,} steps a gap of "
            f"{self._of(many, 'data gap')}",
        )

    def few_configurations(self) -> tuple[bool, str]:
        found = self._result(self.plan.cell(SMALL[0], "configurations"))
        largest = found["largest"]
        return (
            found["carry_the_share"] <= len(largest),
            f"{largest[0]:.1%} on one of {found['configurations']:,}, {sum(largest[:2]):.1%} on two; perplexity "
            f"{found['perplexity']:.2f}",
        )

    def exact_inside(self) -> tuple[bool, str]:
        evidence, outside = [], []
        for row, base in ((self._row(model), base) for model in SMALL for base in BASES):
            exact, low, high = (self._of(row, name) for name in ("exact", f"{base} RAISE", f"{base} AIS"))
            where = f"{row.model.label}, {base}"
            # Few chains have no error of use; Markov's inequality bounds how far log Z can be too high.
            above = max(SIGMAS * high.stderr, _MARKOV if row.columns[f"{base} AIS"].few else 0.0)
            evidence.append(f"{where}: {low}, exact {exact.value:.2f}, {high}{_few(row, base)}")
            if not low.value - SIGMAS * low.stderr <= exact.value <= high.value + above:
                outside.append(f"outside for {where}")
        return not outside, _joined([*evidence, *outside])

    def control_variate(self) -> tuple[bool, str]:
        cells = [cell for table in TABLES for cell in self.plan.table(table) if cell.method == "raise"]
        gains = [_need(self._result(cell)["control_variate_gain"]) for cell in cells]
        return (
            min(gains) > 1,
            f"by a factor of {statistics.median(gains):.1f} (median over the {len(gains)} RAISE estimates of both "
            f"tables; {min(gains):.1f} to {max(gains):.1f})",
        )

    def dbns_agree(self) -> tuple[bool, str]:
        gaps = {model.label: (self._row(model), "uniform") for model in DBNS}
        found = [self._of(row, f"{base} gap") for row, base in gaps.values()]
        return all(-SIGMAS * e.stderr < e.value < 1 + SIGMAS * e.stderr for e in found), self._gaps(gaps)

    def omniglot_dbm(self) -> tuple[bool, str]:
        gaps = {base: (self._row(DBMS[1]), base) for base in BASES}
        found = [self._of(row, f"{base} gap") for row, base in gaps.values()]
        return any(e.value < -SIGMAS * e.stderr for e in found), self._gaps(gaps)

    def own_parameters(self) -> tuple[bool, str]:
        spread = self._result(self.plan.cell(PARAMETERS, "draws"))["spread"]
        row = self._row(PARAMETERS, self.plan.profile.long_steps)
        evidence, apart = [], []
        for base in reversed(BASES):
            shown = []
            for name in ("RAISE", "AIS"):
                ours, paper = self._of(row, f"{base} {name}"), PARAMETERS.values[f"{base} {name}"]
                shown.append(f"{name} {ours} (paper {paper:.2f})")
                # The paper gives no errors. It has as many chains as ours or more, so that they should not be larger.
                error = math.sqrt(2) * math.hypot(ours.stderr, spread)
                few = row.columns[f"{base} {name}"].few
                if abs(ours.value - paper) > max(SIGMAS * error, _MARKOV if few else 0.0):
                    apart.append(
                        f"{name}, {base}, is {(ours.value - paper) / error:+.1f} standard errors off"
                    )
            evidence.append(f"{base}: {', '.join(shown)}{_few(row, base)}")
        drawn = f"another draw of the test set's pixels moves log f by {spread:.3f} (standard deviation)"
        return not apart, f"with {row.steps:,} steps, {_joined([*evidence, drawn, *apart])}"

    @property
    def _both(self) -> tuple[Plan, Results]:
        return self.plan, self.results

    def _row(self, model: PaperModel, steps: int | None = None) -> Row:
        return Row(model, steps or self.plan.profile.steps, *self._both)

    def _of(self, row: Row, column: str) -> mp.Estimate:
        return _need(row.columns[column].estimate)

    def _result(self, cell: Cell) -> dict:
        return _need(self.results.read(cell))["result"]

    def _gaps(self, gaps: dict[str, tuple[Row, str]]) -> str:
        shown = (
            f"{name} {self._of(row, f'{base} gap')}{_few(row, base)}" for name, (row, base) in gaps.items()
        )
        return f"gaps: {_joined(shown)}"


def _need(value: T | None) -> T:
    if value is None:
        raise _UnfinishedError
    return value


def _few(row: Row, base: str) -> str:
    """A note where the error of AIS is not known."""
    ais = row.columns[f"{base} AIS"]
    return f" ({ais.ess:.1f} effective chains)" if ais.few else ""


def _joined(parts: Iterable[str]) -> str:
    return "; ".join(parts)


_CLAIMS: dict[str, Callable[[_Numbers], tuple[bool, str]]] = {
    "RAISE rises with the number of steps, from the uniform base, for every RBM.": _Numbers.rises,
    "Data base rates give the smaller gap.": _Numbers.smaller_gap,
    "mnistCD1-500 from the uniform base shows a gap of many nats.": _Numbers.many_nats,
    "CSL is tens of nats too low, for almost all models.": _Numbers.csl_low,
    "mnistCD1-20 from data base rates is inverted at few steps: RAISE lies above AIS.": _Numbers.inverted,
    "The mnistCD1-20 RBM puts nine tenths of its mass on few hidden configurations (by enumeration; the paper's "
    "model: 93% on one).": _Numbers.few_configurations,
    "The exact value of the 20-unit RBMs lies between RAISE and AIS, within errors.": _Numbers.exact_inside,
    "Control variates reduce the standard error of RAISE.": _Numbers.control_variate,
    "For the DBNs RAISE and AIS agree to within 1 nat, RAISE below AIS.": _Numbers.dbns_agree,
    "The Omniglot DBM is inverted: its annealing model is the better model.": _Numbers.omniglot_dbm,
    "The paper's own parameters (mnistvh_CD25.mat) give the paper's numbers, within three standard errors of a "
    "difference between two such runs on two draws of the test set's pixels.": _Numbers.own_parameters,
}
