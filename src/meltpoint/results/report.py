"""The report of an evaluation: both estimates, their gap, a verdict, and everything needed to repeat it."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from meltpoint.annealing.base import Base
from meltpoint.defaults import Settings
from meltpoint.errors import InputError
from meltpoint.estimators.ais import LogZ
from meltpoint.estimators.conventions import ConventionCheck
from meltpoint.estimators.evidence import Evidence
from meltpoint.estimators.pilot import FrictionSchedule, Pilot
from meltpoint.extras import require
from meltpoint.formats.atomic import atomic_write
from meltpoint.layers.unit import Floats
from meltpoint.models.log_f import LogF
from meltpoint.records import NOT_WRITTEN, from_plain, plain, plain_fields, short_repr
from meltpoint.results.document import Document, Readable
from meltpoint.results.shown import ShownStates
from meltpoint.results.stages import OtherBase, StageSummary
from meltpoint.results.verdict import Verdict
from meltpoint.statistics.certificate import Certificate
from meltpoint.statistics.estimate import Estimate

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from xarray import DataTree  # pyright: ignore[reportMissingImports]

PlotKind: TypeAlias = Literal[
    "overview", "bracket", "differences", "weights", "evidence", "friction", "samples"
]

_ESTIMATES = ("conservative", "optimistic", "gap", "log_z", "exact")
_WEIGHTS = ("ais", "raise", "raise_reverse")


@dataclass(frozen=True, eq=False, repr=False)
class PerExample:
    """RAISE per example: position in the test set, log p_N, its own error, log f, and what they were made of.

    `log_weights` and `log_reverse_weights` (example, chain) are those of the paper's estimator, with one particle.
    """

    positions: NDArray[np.integer]
    log_prob: Floats
    stderr: Floats
    log_f: Floats
    log_weights: Floats = field(metadata=NOT_WRITTEN)
    log_reverse_weights: Floats = field(metadata=NOT_WRITTEN)

    __repr__ = short_repr


@dataclass(frozen=True, eq=False, repr=False)
class Report(Readable):
    """A likelihood from both sides, in nats per example. Print it, plot it, or call `to_dict()`.

    `conservative` (RAISE with `particles` particles) and `optimistic` (AIS) are the bracket, `gap` their difference,
    `verdict` what to make of the two; `known` is the exact value if there is one, which is then the answer. `trusted`
    says whether to trust the report, and `doubts` why not. `settings` are those of the call, `pilot` the cost of
    finding the schedule; after Ctrl-C the report is `interrupted`, and `per_example` may have fewer examples than
    requested. `between` is an interval for the model's own value with the confidence of the settings, if no start
    missed a mode; `evidence` says what other starts found, None if none were tried. The mean log-probability is at most
    `upper_bound`, with the same confidence and without any condition, where log f is exact. `densities` says whether
    log-probabilities are those of real numbers. `stages` are those of a run with a `gap` or a `budget`; `other_base` is
    the result of a second evaluation from another base, None if there was none. `conventions` says whether the data fit
    another reading of the parameters better, None if it was not checked. `friction` is what the pilot measured, `shown`
    are examples and samples to look at. `fingerprints` and `names` say what was evaluated: of the model, the test set
    and the training set. Three fields are not in JSON: `log_f` of all test examples, the `chosen_base` that annealing
    started from, and the `stage_number` of the reported stage.
    """

    also_written = ("unit", "trusted")

    model: str
    test_examples: int
    settings: Settings
    particles: int
    pilot: Pilot | None
    conservative: Estimate
    optimistic: Estimate
    gap: Estimate
    between: tuple[float, float] = field(metadata={"unknown": (-math.inf, math.inf)})
    upper_bound: float | None
    exact: Estimate | None
    log_z: Estimate
    ess: float
    pareto_k: float
    log_f_error: float
    log_f_exact: bool
    control_variate_gain: float
    certificate: Certificate
    certified_estimate: float
    log_z_certificate: Certificate
    verdict: Verdict
    per_example: PerExample = field(metadata={"key": "examples"})
    ais_log_weights: Floats = field(metadata=NOT_WRITTEN)
    seconds: dict[str, float]
    versions: dict[str, str]
    evidence: Evidence | None = field(default=None, metadata=NOT_WRITTEN)
    stages: tuple[StageSummary, ...] = ()
    other_base: OtherBase | None = None
    interrupted: bool = False
    densities: bool = False
    log_f: LogF | None = field(default=None, metadata=NOT_WRITTEN)
    conventions: ConventionCheck | None = None
    friction: FrictionSchedule | None = None
    shown: ShownStates | None = None
    fingerprints: dict[str, str] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    chosen_base: Base | None = field(default=None, metadata=NOT_WRITTEN)
    stage_number: int = field(default=0, metadata=NOT_WRITTEN)

    @property
    def misreading(self) -> str | None:
        """A warning if the data fit another reading of the parameters much better."""
        check = self.conventions
        if check is None or check.suspected is None:
            return None
        return f"Is the model read as it was meant? {str(check)[0].upper()}{str(check)[1:]}."

    @property
    def doubts(self) -> list[str]:
        """Why the report is not to be trusted, in sentences; empty if it is."""
        said = [] if self.verdict.trusted or self.known else [str(self.verdict)]
        if self.interrupted:
            said.append("It was interrupted: it is made of what was finished by then.")
        return said if self.misreading is None else [*said, self.misreading]

    @property
    def trusted(self) -> bool:
        """Whether nothing speaks against the exact value, or, where it is unknown, the estimates: the exit code."""
        return not self.doubts

    @property
    def known(self) -> Estimate | None:
        """The exact value where nothing of it is estimated: then it is the answer, whatever the estimates say."""
        return self.exact if self.log_f_exact else None

    @property
    def conclusion(self) -> str:
        """The verdict, and the exact value where that is known; that a model seems misread comes before both."""
        if self.misreading is not None:
            return (
                self.misreading if self.verdict.trusted or self.known else f"{self.misreading} {self.verdict}"
            )
        if self.known is None:
            return str(self.verdict)
        value = self.known.value_text(self.known.digits)
        return self.verdict.beside_exact(f"log Z was computed exactly, and the mean of log p is {value}")

    @property
    def unit(self) -> str:
        return f"nats per example{' (log density relative to Lebesgue measure)' if self.densities else ''}"

    @property
    def most_log_prob(self) -> float:
        """Upper limit of any log-probability: 0, infinite for densities."""
        return math.inf if self.densities else 0.0

    @property
    def exact_name(self) -> str:
        """Label of the exact value: where log f is estimated, only log Z is exact."""
        return "exact" if self.log_f_exact else "exact log Z"

    def __repr__(self) -> str:
        reason = "misread" if self.misreading else self.verdict.reason
        return f"Report({self.model}: {self.conservative} to {self.optimistic}, {reason})"

    def document(self) -> Document:
        from meltpoint.results.report_document import report_document

        return report_document(self)

    @property
    def per_example_differences(self) -> Floats:
        """AIS's log-probability minus RAISE's (example,), in nats; NaN if both are infinite."""
        per = self.per_example
        with np.errstate(invalid="ignore", over="ignore"):
            return per.log_f - self.log_z.value - per.log_prob

    def plot(self, kind: PlotKind = "overview", *, sweep: Sequence[Report] = ()) -> Figure:
        """A figure, which a notebook shows by itself; save it with savefig.

        Parameters
        ----------
        kind
            "overview": estimates per example and the spread of the log weights. "bracket": both sides closing in, over
            a sweep or over stages, or the interval of a single stage. "differences": AIS minus RAISE per example.
            "weights": their spread and their tail. "evidence": log Z from every start. "friction": along the path, and
            the schedule. "samples": of the model, beside data.
        sweep
            For the bracket: reports of the same model with other numbers of steps, as `mp.sweep` gives.
        """
        from meltpoint.results.figures import draw
        from meltpoint.results.report_charts import panels

        return draw(panels(self, kind, sweep))

    def to_dict(self) -> dict[str, Any]:
        per, estimates = self.per_example, {name: getattr(self, name) for name in _ESTIMATES}
        weights = (self.ais_log_weights, per.log_weights, per.log_reverse_weights)
        return {
            **plain_fields(self),
            "evidence": self.evidence and self.evidence.to_dict(self.settings.confidence),
            "log_weights": dict(zip(_WEIGHTS, map(_numbers, weights), strict=True)),
            "degrees_of_freedom": {name: plain(each.df) for name, each in estimates.items() if each},
        }

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the report to a file whose name ends in .json (for `from_dict`) or .html.

        Parameters
        ----------
        path
            The file, which is written whole or not at all.
        """
        suffix = Path(path).suffix.lower()
        if suffix in (".html", ".htm"):
            self.to_html(path)
        elif suffix == ".json":
            with atomic_write(path) as file:
                file.write(json.dumps(self.to_dict(), indent=2, allow_nan=False).encode() + b"\n")
        else:
            raise InputError(
                found=f"{os.fspath(path)} for a report",
                expected="a name that ends in .json or .html",
                remedy="rename it; for a figure use report.plot().savefig(path)",
            )

    def to_arviz(self) -> DataTree:
        """The weights and the examples as ArviZ's DataTree; needs `pip install 'meltpoint[arviz]'`.

        Group `log_likelihood` has RAISE's `log_prob` (chain, draw, example) with one draw, `sample_stats` its
        `log_weight` and `log_reverse_weight` with a draw for each of its chains, and `constant_data` AIS's
        `ais_log_weight` (ais_chain) and `log_f` (example).
        """
        per = self.per_example
        # RAISE's chains are independent draws: (example, chain) becomes (chain, draw, example), with one chain.
        weights = {"log_weight": per.log_weights, "log_reverse_weight": per.log_reverse_weights}
        groups = {
            "log_likelihood": {"log_prob": per.log_prob[np.newaxis, np.newaxis]},
            "sample_stats": {name: each.T[np.newaxis] for name, each in weights.items()},
            "constant_data": {"ais_log_weight": self.ais_log_weights, "log_f": per.log_f},
        }
        if not per.log_weights.size:
            del groups["sample_stats"]
        return require("arviz_base", "report.to_arviz()").from_dict(
            groups,
            coords={"example": per.positions},
            dims={name: ["example"] for name in ("log_prob", *weights, "log_f")}
            | {"ais_log_weight": ["ais_chain"]},
            attrs={
                "/": {"model": self.model, "inference_library": "meltpoint", "verdict": str(self.verdict)}
            },
        )

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Report:
        """The report whose `to_dict()` this is, or what `json.load` has read from a file of it."""
        try:
            return from_plain(cls, _fields_of(content))
        except (KeyError, TypeError, ValueError, AttributeError) as problem:
            raise InputError(
                found=f"a dictionary that is no report ({str(problem) or type(problem).__name__})",
                expected="what Report.to_dict() gives",
                remedy="read it with json.load from a file that report.save(path) or --json has written",
            ) from problem


def _fields_of(content: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a report from its JSON, which groups some of them; an older version lacks what it did not write."""
    examples, pilot, evidence = content["examples"], content["pilot"], content["evidence"]
    none = [[]] * len(examples["positions"])
    ais, raised, reverse = map(content.get("log_weights", {}).get, _WEIGHTS, ([], none, none))
    df, friction = content.get("degrees_of_freedom", {}), content.get("friction")
    estimates = {name: content[name] and {**content[name], "df": df.get(name)} for name in _ESTIMATES}
    return {
        # Before this field existed densities showed in the unit, and samples without spread counted as exact.
        "densities": "density" in content.get("unit", ""),
        "log_f_exact": False,
        **content,
        **estimates,
        "examples": {**examples, "log_weights": raised, "log_reverse_weights": reverse},
        "ais_log_weights": ais,
        "friction": friction and pilot and {**friction, "pilot": pilot},
        "evidence": evidence and {**evidence, "findings": [*map(_finding, evidence["findings"])]},
    }


def _finding(content: Mapping[str, Any]) -> dict[str, Any]:
    """What one start found; older versions wrote the mass that is lacking as nats only."""
    lacking = math.expm1(content["missing_nats"] or 0.0)
    stderr = (content["missing_nats_stderr"] or math.nan) * (1 + lacking)
    return {"lacking": lacking, "stderr": stderr, **content}


def _numbers(values: Floats) -> list[Any]:
    """Nested lists; what JSON has no number for is a text: "nan", "-inf"."""
    if values.ndim > 1:
        return [_numbers(row) for row in values]
    return [value if math.isfinite(value) else str(value) for value in values.tolist()]


class Interrupted(KeyboardInterrupt):
    """Ctrl-C when AIS had an answer and RAISE had none: one side of the bracket, so no report.

    `log_z` is what AIS found with the chains that were finished, `optimistic` the likelihood that follows.
    """

    def __init__(self, optimistic: Estimate, log_z: LogZ, ais_chains: int) -> None:
        self.optimistic, self.log_z, done = optimistic, log_z, len(log_z.log_weights)
        stage = "AIS was done"
        if done < ais_chains:
            stage = f"of {ais_chains:,} AIS chains, {done:,} were finished"
        super().__init__(
            f"{stage}, RAISE had finished no example: optimistic {optimistic}, conservative unknown "
            f"(log Z {log_z})"
        )
