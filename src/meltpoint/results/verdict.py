"""One sentence on whether the bracket can be trusted, with a reason that machines can read."""

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias

from meltpoint.estimators.evidence import MODES, Evidence, Finding
from meltpoint.layers.unit import Floats
from meltpoint.records import Record
from meltpoint.results.stages import ENOUGH_ESS
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
    """`trusted` decides the command's exit code; `sentence` says why."""

    reason: Reason
    trusted: bool
    sentence: str

    def __str__(self) -> str:
        return self.sentence


@dataclass(frozen=True)
class WeightDiagnostics:
    """Diagnostics of the weights: reasons to doubt an error bar.

    `ess` is the effective sample size of `ais_chains` chains and `pareto_k` the shape of their tail; `apart` is how
    far, in standard errors, the estimates from the two halves of the chains lie from each other, AIS's or RAISE's,
    whichever is more. NaN where there are too few chains to tell.
    """

    ess: float
    ais_chains: int
    pareto_k: float = math.nan
    apart: float = math.nan


@dataclass(frozen=True)
class StartLoss:
    """The nats of a gap that RAISE loses because few starts were drawn for each example; the rest is lost by melting.

    More chains make it smaller, more steps do not. `source` says what the starts are drawn from.
    """

    nats: float
    source: str


def judge(
    gap: Estimate,
    diagnostics: WeightDiagnostics,
    tolerance: float,
    base: str = "data",
    start_loss: StartLoss | None = None,
) -> Verdict:
    """Judge a bracket from its gap, the diagnostics its weights give, and the tolerated gap.

    `start_loss` is there where RAISE's starts are drawn; it decides what would make the gap smaller.

    What is certain comes first, whatever the noise: a gap or an inversion far beyond the tolerance. Then what
    makes the rest unknowable: weights carried by few chains, tails without a mean, chains that contradict each
    other, noise above the tolerance. Then the finer cases.

    >>> judge(Estimate(0.05, 0.02, "difference", ""), WeightDiagnostics(ess=80.0, ais_chains=400), tolerance=1.0).reason
    'agree'
    """
    if not math.isfinite(gap.value):
        return _distrust(
            "degenerate",
            f"Degenerate weights: the gap is {gap.value}, because some log weights are not finite. "
            "Are the model's parameters of a sensible size?",
        )
    known = math.isfinite(gap.stderr)
    error = gap.stderr if known else 0.0
    if gap.value > tolerance + _SIGMAS * error:
        return _wide(gap, tolerance, base, start_loss)
    if gap.value < -tolerance - _SIGMAS * error:
        return _inverted(gap)
    if not known:
        return _distrust(
            "noisy",
            "Noise unknown: a single chain or a single example has no standard error, so agreement would "
            "mean nothing. Use at least two of each.",
        )
    problem = distrust_weights(diagnostics, error, tolerance)
    if problem is not None:
        return problem
    if _SIGMAS * error > tolerance:
        return _distrust(
            "noisy",
            f"Too noisy: the gap is only known to ± {decimals(error, 2)} nats. Raise examples, chains or "
            "ais_chains.",
        )
    if gap.value > tolerance:
        return _wide(gap, tolerance, base, start_loss)
    if gap.value < -max(_SURE_SIGMAS * error, _SMALLEST_INVERSION * tolerance):
        return _inverted(gap)
    apart = "less than 0.01" if abs(gap.value) < 0.01 else f"{abs(gap.value):.2f}"
    return Verdict(
        "agree",
        True,
        f"Agree: the two estimates are {apart} nats apart (tolerance {tolerance:g}).",
    )


def distrust_weights(
    diagnostics: WeightDiagnostics, error: float, tolerance: float, chains: str = "ais_chains"
) -> Verdict | None:
    """A verdict against weights whose error bar cannot be right, None if it can; `chains` is the setting's name."""
    # Not "ess < …": an effective sample size that is NaN must not pass.
    if not diagnostics.ess >= ENOUGH_ESS * (1 - _ROUNDING):
        return _distrust(
            "degenerate",
            f"Degenerate weights: of {diagnostics.ais_chains:,} AIS chains as few as {diagnostics.ess:.1f} carry the "
            f"estimate, so its error is not known. Raise steps, or {chains}.",
        )
    heavy = diagnostics.pareto_k > _HEAVY_K and _HEAVY_FACTOR * _SIGMAS * error > tolerance
    if heavy or diagnostics.pareto_k >= _NO_MEAN_K:
        return _distrust(
            "heavy",
            f"Heavy tails: the AIS weights have a Pareto k of {diagnostics.pareto_k:.2f} ({_HEAVY_K} or less is "
            "fine), so the largest of them has not been seen yet and the errors are too small. Raise steps, or "
            f"{chains}.",
        )
    if diagnostics.apart > _APART_SIGMAS:
        return _distrust(
            "halves",
            f"Halves disagree: the two halves of the chains are {diagnostics.apart:.1f} standard errors apart, so the "
            "errors are too small. Raise steps and chains.",
        )
    return None


@dataclass(frozen=True, eq=False)
class Doubts:
    """What may be wrong with a bracket whose two sides agree.

    `evidence` is what other starts found about the path with `ais_log_weights` (chain,), None if they were not asked;
    `exact` is the exact value, if it is known, to be compared with the interval `between`. The mean of log f may
    still rise by `log_f_rise` nats, and for a share `log_f_unknown` of the examples too few samples carry it.
    """

    evidence: Evidence | None
    ais_log_weights: Floats
    between: tuple[float, float]
    exact: float | None = None
    log_f_rise: float = 0.0
    log_f_unknown: float = 0.0


def judge_doubts(verdict: Verdict, doubts: Doubts, tolerance: float, base: str) -> Verdict:
    """The verdict after everything that agreement of the two sides does not show: they may be wrong together."""
    if verdict.reason != "agree":
        return verdict
    low, high = doubts.between
    if doubts.exact is not None:
        rounding = _ROUNDING * max(1.0, abs(doubts.exact))
        if not low - rounding <= doubts.exact <= high + rounding:
            return _distrust(
                "exact",
                f"Exact value outside: it is {decimals(doubts.exact, 4)}, and the interval says {decimals(low, 4)} to "
                f"{decimals(high, 4)}. The chains missed something: raise steps, or use another base. The exact value "
                "is right.",
            )
    evidence = doubts.evidence
    if evidence is not None:
        missed = evidence.missed(doubts.ais_log_weights)
        larger = evidence.larger(doubts.ais_log_weights)
        if missed is not None:
            return _modes_missed(missed, larger, base)
        if larger is not None:
            return _bases_disagree(larger, float(log_mean_exp(doubts.ais_log_weights)), base)
        if evidence.unweighed:
            return modes_not_weighed(evidence.unweighed)
    if 2 * doubts.log_f_rise > _UNKNOWN_RISE * tolerance or doubts.log_f_unknown > _UNKNOWN_EXAMPLES:
        if doubts.log_f_unknown > _UNKNOWN_EXAMPLES:
            share = f"{100 * doubts.log_f_unknown:.0f}%"
            why = f"for {share} of the examples its samples are all the same, or fewer than five carry it"
        elif math.isfinite(doubts.log_f_rise):
            why = f"with more samples its mean may rise by {decimals(2 * doubts.log_f_rise, 2)} nats"
        else:
            why = "for some examples the samples are too few, or all the same, to show an error"
        return _distrust(
            "log_f",
            f"log f not known: it is estimated, and {why}, so that AIS's end may be too low. More "
            "steps and chains make it better known for a DBM, whose hidden units RAISE anneals; not for a DBN.",
        )
    if evidence is None:
        apart = verdict.sentence.removeprefix("Agree: ").removesuffix(".")
        return _distrust(
            "unchecked",
            f"Agree, not checked for missed modes: {apart}, but both sides miss what no chain has found, and other "
            "starts were not asked (evidence).",
        )
    return verdict


def _modes_missed(missed: Finding, larger: Finding | None, base: str) -> Verdict:
    where = "modes of the model" if missed.name == MODES else f"base {missed.name}"
    remedy = f"use base {larger.name}" if larger else "raise steps, or use another base"
    return _distrust(
        "modes",
        f"Modes missed: states found from {where} are out of reach of the chains from base {base}, which lack "
        f"{decimals(missed.nats, 2)} ± {decimals(max(missed.nats_error, 0.01), 2)} nats of log Z. Both sides are too "
        f"high by about as much; the interval allows for it. To close it, {remedy}.",
    )


def modes_not_weighed(modes: int) -> Verdict:
    """A verdict against a path that does not reach some modes, of which no chain says what they hold."""
    were = f"{modes:,} mode{' was' if modes == 1 else 's were'}"
    return _distrust(
        "unweighed",
        f"Modes not weighed: {were} out of reach and not weighed, so that nothing is known of the share of Z that they "
        "hold. Raise steps, or use another base.",
    )


def _bases_disagree(larger: Finding, log_z: float, base: str) -> Verdict:
    return _distrust(
        "bases",
        f"Bases disagree: log Z is {decimals(larger.log_z, 2)} ± {decimals(larger.log_z_stderr, 2)} from base "
        f"{larger.name} and {decimals(log_z, 2)} from base {base}. Each is a lower bound, so the larger one is nearer "
        f"to the truth: use base {larger.name}.",
    )


def judge_target(verdict: Verdict, half_width: float, target: float) -> Verdict:
    """The verdict of a run that was asked for a gap: agreement is not enough if its interval is wider."""
    if verdict.reason not in ("agree", "unchecked") or half_width <= target:
        return verdict
    return _distrust(
        "target",
        f"Target missed: the value is only known to ± {decimals(half_width, 2)} nats, and ± {target:g} were asked "
        "for. Give more time (budget): a run with a folder goes on from here.",
    )


def _distrust(reason: Reason, sentence: str) -> Verdict:
    return Verdict(reason, False, sentence)


def _wide(gap: Estimate, tolerance: float, base: str, start_loss: StartLoss | None) -> Verdict:
    found = (
        f"Gap too large: the two estimates are {decimals(gap.value, 2)} nats apart, and the truth may lie "
        "anywhere between them."
    )
    other = "" if base == "data" else ", or anneal from data base rates (train)"
    lost = start_loss.nats if start_loss else 0.0
    melting = gap.value - lost
    # Not "lost <= …": a loss that is NaN must not change the usual remedy.
    if start_loss is None or not lost > min(tolerance, melting):
        return _distrust("gap", f"{found} Raise steps{other}.")
    besides = f", and steps for the other {decimals(melting, 2)}{other}" if melting > tolerance else ""
    return _distrust(
        "gap",
        f"{found} RAISE loses {decimals(lost, 2)} of them at its starts, of which it draws one for each chain from "
        f"{start_loss.source}: more steps do not mend that. Raise chains{besides}.",
    )


def _inverted(gap: Estimate) -> Verdict:
    return _distrust(
        "inverted",
        f"Inverted: RAISE lies {decimals(-gap.value, 2)} nats above AIS. RAISE bounds the annealing model's "
        "likelihood, and with these steps that seems to be a better model than the one evaluated (or AIS is "
        "off by noise). Raise steps: the annealing model turns into the model.",
    )
