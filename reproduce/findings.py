"""The paper's findings compared with our numbers: each with yes or no, and the numbers behind it."""

import math
import statistics
from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Any, NamedTuple

import meltpoint as mp
from reproduce.cells import TABLES, Cell, Plan
from reproduce.figures import curves_of
from reproduce.models import BASES, DBMS, DBNS, PARAMETERS, RBMS, SMALL, PaperModel
from reproduce.results import Results
from reproduce.tables import Row, all_rows, table_rows

SIGMAS = 3.0  # beyond which a difference is not put down to noise
_MARKOV = math.log(100)  # nats by which log Z is overestimated in one run of a hundred at most


class CheckedClaim(NamedTuple):
    """A claim, whether it holds for our models (None: its cells are not all finished), and why."""

    claim: str
    holds: bool | None
    evidence: str


class _UnfinishedError(Exception):
    pass


class _Numbers(NamedTuple):
    """The numbers of a plan, for claims that need all of theirs."""

    plan: Plan
    results: Results

    def row(self, model: PaperModel, steps: int | None = None) -> Row:
        return Row(model, steps or self.plan.profile.steps, *self)

    def of(self, row: Row, *columns: str) -> list[mp.Estimate]:
        found = [row.columns[name].estimate for name in columns]
        if None in found:
            raise _UnfinishedError
        return [estimate for estimate in found if estimate is not None]

    def result(self, cell: Cell) -> dict[str, Any]:
        record = self.results.read(cell)
        if record is None:
            raise _UnfinishedError
        return record["result"]

    def gaps(self, *rows: tuple[str, PaperModel, str]) -> tuple[list[mp.Estimate], str]:
        """The gaps of models from bases, each with a name, and what to say of them."""
        found = [self.of(self.row(model), f"{base} gap")[0] for _, model, base in rows]
        few = [_few(self.row(model), base) for _, model, base in rows]
        shown = (f"{name} {gap}{note}" for (name, *_), gap, note in zip(rows, found, few, strict=True))
        return found, f"gaps: {_joined(shown)}"


def findings(plan: Plan, results: Results) -> list[CheckedClaim]:
    """All findings, in the order of the paper."""
    found = []
    for claim, check in _CLAIMS.items():
        if check is not _own_parameters or plan.parameters:
            try:
                found.append(CheckedClaim(claim, *check(_Numbers(plan, results))))
            except _UnfinishedError:
                found.append(CheckedClaim(claim, None, "not all of its cells are finished"))
    return found


def _rises(numbers: _Numbers) -> tuple[bool, str]:
    steps, ends, falls = numbers.plan.profile.curve, [], []
    for curve in curves_of("log-likelihood-rbms", *numbers):
        label, found = curve.model.label, [estimate for _, estimate in curve.points]
        if len(found) < len(steps):
            raise _UnfinishedError
        ends.append(f"{label} {found[0].value:.1f} to {found[-1].value:.1f}")
        for low, high in pairwise(found):
            if low.value - high.value > SIGMAS * math.hypot(low.stderr, high.stderr):
                falls.append(f"{label} falls from {low.value:.2f} to {high.value:.2f}")
    return not falls, f"from {steps[0]:,} to {steps[-1]:,} steps: {_joined(ends + falls)}"


def _smaller_gap(numbers: _Numbers) -> tuple[bool, str]:
    evidence, against = [], []
    for row in all_rows(*numbers):
        if "data" in row.model.bases:
            uniform, data = numbers.of(row, "uniform gap", "data gap")
            evidence.append(f"{row} {data.value:.2f} instead of {uniform.value:.2f}")
            if abs(data.value) - abs(uniform.value) > SIGMAS * math.hypot(uniform.stderr, data.stderr):
                against.append(f"not so for {row}")
    return not against, _joined(evidence + against)


def _many_nats(numbers: _Numbers) -> tuple[bool, str]:
    uniform, data = numbers.of(numbers.row(RBMS[2]), "uniform gap", "data gap")
    holds = uniform.value - SIGMAS * uniform.stderr > 5
    return holds, f"a gap of {uniform} nats, against {data} from data base rates"


def _csl_low(numbers: _Numbers) -> tuple[bool, str]:
    rows = [row for row in table_rows("table1", *numbers) if row.steps == numbers.plan.profile.steps]
    pairs = [(row, *numbers.of(row, "data RAISE", "CSL")) for row in rows]
    below = [raised.value - csl.value for _, raised, csl in pairs]
    shown = _joined(f"{row.model.label} {nats:.1f}" for row, nats in zip(rows, below, strict=True))
    holds = sum(nats > 10 for nats in below) >= len(below) - 1
    return holds, f"nats below RAISE from data base rates: {shown}"


def _inverted(numbers: _Numbers) -> tuple[bool, str]:
    few, many = numbers.row(SMALL[0], numbers.plan.profile.curve[0]), numbers.row(SMALL[0])
    low, high, gap = numbers.of(few, "data RAISE", "data AIS", "data gap")
    (last,) = numbers.of(many, "data gap")
    evidence = f"with {few.steps:,} steps RAISE {low} and AIS {high}, a gap of {gap}"
    return gap.value < -SIGMAS * gap.stderr, f"{evidence}; with {many.steps:,} steps a gap of {last}"


def _few_configurations(numbers: _Numbers) -> tuple[bool, str]:
    found = numbers.result(numbers.plan.cell(SMALL[0], "configurations"))
    largest = found["largest"]
    shares = f"{largest[0]:.1%} on one of {found['configurations']:,}, {sum(largest[:2]):.1%} on two"
    return found["carry_the_share"] <= len(largest), f"{shares}; perplexity {found['perplexity']:.2f}"


def _exact_inside(numbers: _Numbers) -> tuple[bool, str]:
    evidence, outside = [], []
    for row, base in ((numbers.row(model), base) for model in SMALL for base in BASES):
        exact, low, high = numbers.of(row, "exact", f"{base} RAISE", f"{base} AIS")
        where = f"{row.model.label}, {base}"
        evidence.append(f"{where}: {low}, exact {exact.value:.2f}, {high}{_few(row, base)}")
        highest = high.value + _noise(SIGMAS * high.stderr, row, base)
        if not low.value - SIGMAS * low.stderr <= exact.value <= highest:
            outside.append(f"outside for {where}")
    return not outside, _joined(evidence + outside)


def _control_variate(numbers: _Numbers) -> tuple[bool, str]:
    cells = [cell for table in TABLES for cell in numbers.plan.table(table) if cell.method == "raise"]
    gains = [numbers.result(cell)["control_variate_gain"] for cell in cells]
    if None in gains:
        raise _UnfinishedError
    median = f"by a factor of {statistics.median(gains):.1f} (median over the {len(gains)} RAISE estimates"
    return min(gains) > 1, f"{median} of both tables; {min(gains):.1f} to {max(gains):.1f})"


def _dbns_agree(numbers: _Numbers) -> tuple[bool, str]:
    gaps, shown = numbers.gaps(*((model.label, model, "uniform") for model in DBNS))
    return all(-SIGMAS * gap.stderr < gap.value < 1 + SIGMAS * gap.stderr for gap in gaps), shown


def _omniglot_dbm(numbers: _Numbers) -> tuple[bool, str]:
    gaps, shown = numbers.gaps(*((base, DBMS[1], base) for base in BASES))
    return any(gap.value < -SIGMAS * gap.stderr for gap in gaps), shown


def _own_parameters(numbers: _Numbers) -> tuple[bool, str]:
    spread = numbers.result(numbers.plan.cell(PARAMETERS, "draws"))["spread"]
    row = numbers.row(PARAMETERS, numbers.plan.profile.long_steps)
    evidence, apart = [], []
    for base in reversed(BASES):
        shown = []
        for name in ("RAISE", "AIS"):
            (ours,), paper = numbers.of(row, f"{base} {name}"), PARAMETERS.values[f"{base} {name}"]
            shown.append(f"{name} {ours} (paper {paper:.2f})")
            # The paper gives no errors. It has as many chains as ours or more, so that they should not be larger.
            error = math.sqrt(2) * math.hypot(ours.stderr, spread)
            noise = _noise(SIGMAS * error, row, base) if name == "AIS" else SIGMAS * error
            if abs(ours.value - paper) > noise:
                apart.append(f"{name}, {base}, is {(ours.value - paper) / error:+.1f} standard errors off")
        evidence.append(f"{base}: {', '.join(shown)}{_few(row, base)}")
    evidence.append(f"another draw of the test set's pixels moves log f by {spread:.3f} (standard deviation)")
    return not apart, f"with {row.steps:,} steps, {_joined(evidence + apart)}"


def _noise(noise: float, row: Row, base: str) -> float:
    """What AIS may be too high by. Few chains have no error of use: Markov's inequality bounds it."""
    return max(noise, _MARKOV) if row.columns[f"{base} AIS"].few else noise


def _few(row: Row, base: str) -> str:
    """A note where the error of AIS is not known."""
    ais = row.columns[f"{base} AIS"]
    return f" ({ais.ess:.1f} effective chains)" if ais.few else ""


def _joined(parts: Iterable[str]) -> str:
    return "; ".join(parts)


_CLAIMS: dict[str, Callable[[_Numbers], tuple[bool, str]]] = {
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
    "The paper's own parameters (mnistvh_CD25.mat) give the paper's numbers, within three standard errors of a "
    "difference between two such runs on two draws of the test set's pixels.": _own_parameters,
}
