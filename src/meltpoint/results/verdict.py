"""Whether a result can be trusted: rules in the order in which they count, each with its sentence and its remedy.

What is certain comes first, whatever the noise: a gap or an inversion far beyond the tolerance. Then what makes the
rest unknowable: weights carried by few chains, tails without a mean, chains that contradict each other, noise above the
tolerance. Then the finer cases, and last what agreement does not show: both sides may be wrong together. For log Z,
missed modes come first, because they explain a distance that more steps would not close.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from meltpoint.estimators.evidence import MODES, Evidence, Finding
from meltpoint.estimators.log_z_sides import EXACT_SAMPLES
from meltpoint.layers.unit import Floats
from meltpoint.records import NOT_WRITTEN, Record
from meltpoint.results.stages import ENOUGH_ESS
from meltpoint.results.words import about, count, with_error
from meltpoint.statistics.estimate import Estimate, decimals
from meltpoint.statistics.log_space import log_mean_exp

Reason: TypeAlias = Literal[
    "agree",
    "gap",
    "inverted",
    "degenerate",
    "heavy",
    "halves",
    "noisy",
    "exact",
    "modes",
    "bases",
    "unweighed",
    "log_f",
    "wide",
    "unchecked",
    "target",
]

_SIGMAS = 2.0  # standard errors that are attributed to noise
_SURE_SIGMAS = 3.0  # standard errors that noise exceeds in one run of a thousand
_SMALLEST_INVERSION = 0.1  # fraction of the tolerance: a smaller inversion is not reported
_HEAVY_K = 0.7  # with a larger k the mean converges too slowly for its standard error to be right
_NO_MEAN_K = 1.0
_HEAVY_FACTOR = 3.0  # by which errors from heavy tails may be too small
_APART_SIGMAS = 5.0  # standard errors between two equal halves that chance exceeds in one run of a million
_ROUNDING = 1e-9  # relative distance by which an exact value may miss an interval
_UNKNOWN_RISE = 0.25  # fraction of the tolerance by which log f may still rise
_UNKNOWN_EXAMPLES = 0.5  # largest fraction of examples with too few effective samples of log f


@dataclass(frozen=True)
class Verdict(Record):
    """Whether two estimates can be trusted; `sentence` says why, and ends with the `remedy` if there is one."""

    reason: Reason
    trusted: bool
    sentence: str
    remedy: str = field(default="", metadata=NOT_WRITTEN)

    def __str__(self) -> str:
        return self.sentence

    def beside_exact(self, exact: str) -> str:
        """The verdict where the exact value is known, as it says: it is the answer, and needs no remedy."""
        return f"Exact: {exact}. The estimates alone: {self.sentence.removesuffix(self.remedy).rstrip()}"


@dataclass(frozen=True, eq=False)
class Case:
    """What a verdict is based on: the gap between two sides, of a likelihood or of `log_z`, and the diagnostics.

    `ess` is the effective sample size of `ais_chains` chains and `pareto_k` the shape of the tail of their weights;
    `apart` is how far, in standard errors, the estimates from the two halves of the chains lie from each other, AIS's
    or RAISE's, whichever is more. NaN where there are too few chains to tell.

    `evidence` is what other starts found about the path with `log_weights` (chain,), None if there were none; `exact`
    is the exact value, if it is known, to be compared with the interval `between`. Where RAISE's starts are drawn,
    `starts_from` says what from, and `start_loss` are the nats of the gap that it loses because few are drawn for each
    example: more chains make it smaller, more steps do not. The mean of log f may still rise by `log_f_rise` nats, and
    for a share `log_f_unknown` of the examples too few samples carry it.
    """

    gap: Estimate
    ess: float
    ais_chains: int
    tolerance: float
    base: str = "data"
    pareto_k: float = math.nan
    apart: float = math.nan
    log_z: bool = False
    evidence: Evidence | None = None
    log_weights: Floats = field(default_factory=lambda: np.zeros(2))
    between: tuple[float, float] | None = None
    exact: float | None = None
    start_loss: float = 0.0
    starts_from: str | None = None
    log_f_rise: float = 0.0
    log_f_unknown: float = 0.0

    @property
    def error(self) -> float:
        """Standard error of the gap, 0 where it is unknown."""
        return self.gap.stderr if math.isfinite(self.gap.stderr) else 0.0

    @cached_property
    def missed(self) -> Finding | None:
        return self.evidence.missed(self.log_weights) if self.evidence else None

    @cached_property
    def larger(self) -> Finding | None:
        return self.evidence.larger(self.log_weights) if self.evidence else None

    @property
    def half_width(self) -> float:
        """Half the width of the interval, 0 where there is none and where the exact value is known."""
        low, high = self.between if self.between and self.exact is None else (0.0, 0.0)
        return (high - low) / 2

    @property
    def unweighed(self) -> int:
        return self.evidence.unweighed if self.evidence else 0

    @property
    def words(self) -> dict[str, str]:
        """Values of the placeholders in the sentences of the rules."""
        distance = decimals(abs(self.gap.value), 2)
        words = {
            "distance": distance,
            "noise": decimals(self.gap.stderr, 2),
            "apart": f"{'less than 0.01' if abs(self.gap.value) < 0.01 else distance} nats apart",
            "modes": f"{count(self.unweighed, 'mode')} {'is' if self.unweighed == 1 else 'are'}",
            "half_width": decimals(self.half_width, 2),
            "own_log_z": decimals(float(log_mean_exp(self.log_weights)), 2),
        }
        if self.missed:
            named = {MODES: "modes of the model", EXACT_SAMPLES: "exact samples"}
            words["missed"] = with_error(self.missed.nats, self.missed.nats_error)
            words["found_from"] = named.get(self.missed.name, f"base {self.missed.name}")
        if self.exact is not None and self.between is not None:
            values = {"exact": self.exact, "low": self.between[0], "high": self.between[1]}
            words |= {name: decimals(value, 4) for name, value in values.items()}
        if self.larger:
            words["larger_log_z"] = with_error(self.larger.log_z, self.larger.log_z_stderr)
        if self.log_z:
            return words | {"sides": "sides", "truth": "log Z", "what": "log Z", "chains": "chains"}
        return words | {"sides": "estimates", "truth": "the truth", "what": "the gap", "chains": "ais_chains"}


class Rule(NamedTuple):
    """A reason not to trust a result: when it applies, what is wrong, and what to do, which words of the case fill."""

    reason: Reason
    applies: Callable[[Case], bool]
    sentence: str | Callable[[Case], str]
    remedy: str | Callable[[Case], str] = ""

    def verdict(self, case: Case) -> Verdict:
        parts = [part if isinstance(part, str) else part(case) for part in (self.sentence, self.remedy)]
        said, remedy = (part.format(case=case, **case.words) for part in parts)
        return Verdict(self.reason, False, f"{said} {remedy}".rstrip(), remedy)


def judge(case: Case) -> Verdict:
    """The verdict of the first rule that applies, or agreement.

    >>> judge(Case(Estimate(0.05, 0.02, "difference", ""), ess=2.0, ais_chains=400, tolerance=1.0)).reason
    'degenerate'
    """
    for rule in _LOG_Z if case.log_z else _LIKELIHOOD:
        if rule.applies(case):
            return rule.verdict(case)
    agree = "Agree: the two {sides} are {apart} (tolerance {case.tolerance:g})."
    return Verdict("agree", True, agree.format(case=case, **case.words))


@dataclass(frozen=True)
class Needed:
    """Seconds until a plan would reach its target, infinite if it never does, and those that were spent before."""

    more: float
    spent: float

    def remedy(self, later: str) -> str:
        if not math.isfinite(self.more):
            return "No stage of any size is predicted to reach it."
        total = about(self.spent + self.more)
        return f"It would take about {about(self.more)} more: give a `budget` of {total} in all{later}."


def judge_target(
    verdict: Verdict, half_width: float, target: float, log_z: bool = False, needed: Needed | None = None
) -> Verdict:
    """The verdict of a run with a target: agreement is not enough if its interval is wider."""
    # Other defects stay the verdict. The width of log Z's interval covers both its noise and its gap.
    replaced = ("agree", "wide", "noisy", "gap") if log_z else ("agree", "wide", "unchecked")
    if half_width <= target or verdict.reason not in replaced:
        return verdict
    known = f"known to ± {decimals(half_width, 2)} nats"
    if log_z and not math.isfinite(half_width):
        known = "unknown from above"
    what, later = ("log Z", "") if log_z else ("the value", "; with a folder (`run`) it continues from here")
    sentence = f"Target missed: ± {target:g} nats were asked for, and {what} is {known}."
    remedy = needed.remedy(later) if needed else f"Give more time (`budget`){later}."
    return Verdict("target", False, f"{sentence} {remedy}", remedy)


def _close_gap(case: Case) -> str:
    if case.log_z:
        return "Raise `steps`, or give a `gap` and a `budget`."
    other = "" if case.base == "data" else ", or anneal from data base rates (`train`)"
    lost, melting = case.start_loss, case.gap.value - case.start_loss
    # Not "lost <= …": a loss that is NaN must not change the usual remedy.
    if case.starts_from is None or not lost > min(case.tolerance, melting):
        return f"Raise `steps`{other}."
    besides = f", and `steps` for the other {decimals(melting, 2)}{other}" if melting > case.tolerance else ""
    return (
        f"RAISE loses {decimals(lost, 2)} of them at its starts, of which it draws one for each chain from "
        f"{{case.starts_from}}: more steps do not mend that. Raise `chains`{besides}."
    )


def _is_outside(case: Case) -> bool:
    if case.exact is None or case.between is None:
        return False
    rounding = _ROUNDING * max(1.0, abs(case.exact))
    return not case.between[0] - rounding <= case.exact <= case.between[1] + rounding


def _is_heavy(case: Case) -> bool:
    k = case.pareto_k
    return k >= _NO_MEAN_K or (k > _HEAVY_K and _HEAVY_FACTOR * _SIGMAS * case.error > case.tolerance)


def _modes_missed(case: Case) -> str:
    both = "The" if case.log_z else "Both sides are too high by about as much; the"
    return (
        "Modes missed: states found from {found_from} are out of reach of the chains from base {case.base}, which lack "
        f"{{missed}} nats of log Z. {both} interval allows for it."
    )


def _reach_modes(case: Case) -> str:
    better = case.larger is not None and case.larger.name != case.base
    return (
        f"To close it, {'use base {case.larger.name}' if better else 'raise `steps`, or use another `base`'}."
    )


def _log_f_unknown(case: Case) -> str:
    if case.log_f_unknown > _UNKNOWN_EXAMPLES:
        share = f"{100 * case.log_f_unknown:.0f}%"
        why = f"for {share} of the examples its samples are all the same, or fewer than five carry it"
    elif math.isfinite(case.log_f_rise):
        why = f"with more samples its mean may rise by {decimals(2 * case.log_f_rise, 2)} nats"
    else:
        why = "for some examples the samples are too few, or all the same, to show an error"
    return f"log f uncertain: it is estimated, and {why}, so that AIS's end may be too low."


_INFINITE = Rule(
    "degenerate",
    lambda case: not math.isfinite(log_mean_exp(case.log_weights) if case.log_z else case.gap.value),
    lambda case: (
        f"Degenerate weights: {'' if case.log_z else 'the gap is {case.gap.value}, because '}some log weights are not "
        "finite."
    ),
    "Are the model's parameters of a sensible size?",
)
_WIDE = (
    "Gap too large: the two {sides} are {distance} nats apart, and {truth} may lie anywhere between them.",
    _close_gap,
)
_INVERTED = (
    "Inverted: RAISE lies {distance} nats above AIS. RAISE bounds the annealing model's likelihood, and with these "
    "steps that seems to be a better model than the one evaluated (or AIS is off by noise).",
    "Raise `steps`: the annealing model turns into the model.",
)
_SURELY_WIDE = Rule("gap", lambda case: case.gap.value > case.tolerance + _SIGMAS * case.error, *_WIDE)
_WEIGHTS = (
    Rule(
        "degenerate",
        # Not "ess < …": an effective sample size that is NaN must not pass.
        lambda case: not case.ess >= ENOUGH_ESS * (1 - _ROUNDING),
        "Degenerate weights: of {case.ais_chains:,} AIS chains as few as {case.ess:.1f} carry "
        "the estimate, so its error is unknown.",
        "Raise `steps`, or `{chains}`.",
    ),
    Rule(
        "heavy",
        _is_heavy,
        "Heavy tails: the AIS weights have a Pareto k of {case.pareto_k:.2f} "
        f"({_HEAVY_K} or less is fine), so the largest of them has not been seen yet and the errors are too small.",
        "Raise `steps`, or `{chains}`.",
    ),
    Rule(
        "halves",
        lambda case: case.apart > _APART_SIGMAS,
        "Halves disagree: the two halves of the chains are {case.apart:.1f} standard errors apart, so the "
        "errors are too small.",
        "Raise `steps` and `chains`.",
    ),
    Rule(
        "noisy",
        lambda case: not _SIGMAS * case.gap.stderr <= case.tolerance,
        "Too noisy: {what} is only known to ± {noise} nats.",
        lambda case: (
            "Raise `chains`, or `steps`." if case.log_z else "Raise `examples`, `chains` or `ais_chains`."
        ),
    ),
    Rule("gap", lambda case: case.gap.value > case.tolerance, *_WIDE),
)
_EXACT_OUTSIDE = Rule(
    "exact",
    _is_outside,
    "Exact value outside: it is {exact}, and the interval says {low} to {high}.",
    "The chains missed something: raise `steps`, or use another `base`. The exact value is right.",
)
_MISSED = (
    Rule("modes", lambda case: case.missed is not None, _modes_missed, _reach_modes),
    Rule(
        "bases",
        lambda case: case.larger is not None,
        "Bases disagree: log Z is {larger_log_z} from base {case.larger.name} and {own_log_z} from base {case.base}. "
        "Each is a lower bound, so the larger one is nearer to the truth:",
        lambda case: f"{'raise `steps`, or ' if case.log_z else ''}use base {{case.larger.name}}.",
    ),
    Rule(
        "unweighed",
        lambda case: case.unweighed > 0,
        "Weight of modes unknown: {modes} out of reach of the chains, and weights of chains from there are too uneven "
        "to tell how much of Z they hold.",
        "Raise `steps`, or use another `base`.",
    ),
)
_TOO_WIDE = Rule(
    "wide",
    lambda case: case.evidence is not None and not case.half_width <= case.tolerance,
    "Interval too wide: the two {sides} are {apart}, but {truth} is known to ± {half_width} nats only (tolerance "
    "{case.tolerance:g}).",
    "Raise `steps`, or `{chains}`.",
)
_LIKELIHOOD = (
    _INFINITE,
    _SURELY_WIDE,
    Rule("inverted", lambda case: case.gap.value < -case.tolerance - _SIGMAS * case.error, *_INVERTED),
    Rule(
        "noisy",
        lambda case: not math.isfinite(case.gap.stderr),
        "Noise unknown: a single chain or a single example has no standard error, so agreement would mean nothing.",
        "Use at least two of each.",
    ),
    *_WEIGHTS,
    Rule(
        "inverted",
        lambda case: case.gap.value < -max(_SURE_SIGMAS * case.error, _SMALLEST_INVERSION * case.tolerance),
        *_INVERTED,
    ),
    _EXACT_OUTSIDE,
    *_MISSED,
    Rule(
        "log_f",
        lambda case: (
            2 * case.log_f_rise > _UNKNOWN_RISE * case.tolerance or case.log_f_unknown > _UNKNOWN_EXAMPLES
        ),
        _log_f_unknown,
        "More `steps` and `chains` make it better known for a DBM, whose hidden units RAISE anneals; not for a DBN.",
    ),
    _TOO_WIDE,
    Rule(
        "unchecked",
        lambda case: case.evidence is None,
        "Agree, not checked for missed modes: the two {sides} are {apart} (tolerance {case.tolerance:g}), but both "
        "sides miss what no chain has found, and no other starts were tried (`evidence`).",
    ),
)
_LOG_Z = (
    _INFINITE,
    _EXACT_OUTSIDE,
    Rule(
        "unchecked",
        lambda case: not (math.isfinite(case.gap.value) or (case.evidence and case.evidence.asked)),
        "One side only: no states were melted back, so there is no upper side.",
    ),
    Rule(
        "gap",
        lambda case: not math.isfinite(case.gap.value),
        "Gap too large: no melted state is in reach of the chains, so there is no upper side.",
        "Raise `steps`.",
    ),
    *_MISSED,
    _SURELY_WIDE,
    *_WEIGHTS,
    _TOO_WIDE,
)
