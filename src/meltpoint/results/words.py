"""Numbers and durations as results write them."""

import math
from collections.abc import Mapping, Sequence

from meltpoint.estimators.evidence import Evidence
from meltpoint.progress import duration
from meltpoint.results.document import Fact
from meltpoint.statistics.estimate import decimals

EARLIER = "earlier calls"
"""Of seconds: those of the cores of earlier calls, which are not in the total."""
GLUE = "\N{NO-BREAK SPACE}"  # where a line must not end; text prints it as a space
_WORTH_A_WORD = 0.05  # seconds
_LARGEST = 1e12  # whose decimals can be rounded


def count(n: int, what: str) -> str:
    """A number of things: "1 model", "2,000 chains"."""
    return f"{n:,} {what}{'' if n == 1 else 's'}"


def listed(items: Sequence[str], most: int, between: str = ", ", more: str = "more") -> str:
    """The first items, and how many more there are: "a, b and 3 more"."""
    left = len(items) - most
    return between.join(items[:most]) + (f" and {left} {more}" if left > 0 else "")


def starts_text(evidence: Evidence) -> str:
    """Which starts gave weights: "2 bases and 1 group of modes gave weights"."""
    groups, bases = evidence.weighed, evidence.starts - evidence.weighed
    modes = f" and {groups:,} group{'' if groups == 1 else 's'} of modes" if groups else ""
    unknown = f"; the weight of {count(evidence.unweighed, 'mode')} out of reach is unknown"
    return f"{count(bases, 'base')}{modes} gave weights{unknown if evidence.unweighed else ''}"


def modes_text(evidence: Evidence) -> str:
    """How many modes were tried, and what was done about those out of reach."""
    if not evidence.modes:
        return "no modes (this kind of model has no search for them)"
    weighed = f"{evidence.far:,} out of reach, weighed in {count(evidence.weighed, 'group')}"
    unknown = f"; the weight of {evidence.unweighed:,} is unknown" if evidence.unweighed else ""
    return f"{count(evidence.modes, 'mode')} ({weighed + unknown if evidence.far else 'none out of reach'})"


def percent(confidence: float) -> str:
    """A confidence: "99%"."""
    return f"{100 * confidence:.12g}%"


def number(value: float, digits: int = 2) -> str:
    """A number, never -0.00, or a whole one; a dash where it is not finite: "0.00", "1,234", "–"."""
    if not math.isfinite(value):
        return "–"
    return f"{value:,.0f}" if digits == 0 else decimals(round(float(value), digits) + 0.0, digits)


def with_error(value: float, stderr: float, digits: int = 2) -> str:
    """A value with its error where that is known, which is never ± 0: "1.00 ± 0.01"."""
    known = f" ± {number(max(stderr, 10**-digits), digits)}" if math.isfinite(stderr) else ""
    return number(value, digits) + known


def bound(value: float, up: bool, digits: int = 2) -> str:
    """A bound rounded to its safe side, so that what is printed holds too."""
    if not abs(value) < _LARGEST:
        return number(value, digits)
    scale = 10**digits
    return decimals((math.ceil if up else math.floor)(value * scale) / scale + 0.0, digits)


def interval(ends: tuple[float, float] | None, digits: int = 2) -> str:
    """An interval, its ends rounded outwards: "-86.42 to -86.35", "below 1.00". Without an interval nothing."""
    if ends is None:
        return ""
    low, high = bound(ends[0], False, digits), bound(ends[1], True, digits)
    return _by_known_ends(ends, f"{low} to {high}", f"above {low}", f"below {high}", "unknown")


def between_text(ends: tuple[float, float], digits: int, sure: str, unknown: str, joint: str = "and") -> str:
    """An interval with its confidence and condition, or its only known end, or why there is none."""
    low, high = (number(end, digits) for end in ends)
    above, below = f"above {low} {sure}; no upper end is known", f"below {high} {sure}; no lower end is known"
    return _by_known_ends(ends, f"{low} {joint} {high} {sure}", above, below, unknown)


def log10_text(ends: tuple[float, float]) -> str:
    """The logarithm to base 10, as competitions of UAI files write it, of what has these natural ones."""
    low, high = (end / math.log(10) for end in ends)
    return f"{low:.4f}" if low == high else interval((low, high))


def _by_known_ends(ends: tuple[float, float], both: str, above: str, below: str, unknown: str) -> str:
    low, high = map(math.isfinite, ends)
    return (both if high else above) if low else (below if high else unknown)


def asked_text(budget: float | None, gap: float | None) -> str:
    """The budget and the target of a run in stages; nothing for other runs."""
    if budget is None:
        return ""
    return f"within {duration(budget)}" + ("" if gap is None else f", to ± {gap:g} nats")


def about(seconds: float) -> str:
    """A time that was predicted, in one unit: "40 s", "12 min", "3.5 h"."""
    if seconds < 90:
        return f"{max(1, math.ceil(seconds)):,} s"
    return f"{math.ceil(seconds / 60)} min" if seconds < 7200 else f"{math.ceil(seconds / 360) / 10:g} h"


def weights_text(ess: float, chains: int, pareto_k: float) -> str:
    """How many chains carry an estimate, and the tail of their weights."""
    tail = f", Pareto k {pareto_k:.2f}" if math.isfinite(pareto_k) else ""
    return f"effective sample size {number(ess, 0)} of {count(chains, 'chain')}{tail}"


def run_facts(seed: int | None, seconds: Mapping[str, float], versions: Mapping[str, str]) -> list[Fact]:
    """Seed, times and versions of a run."""
    parts = {name: t for name, t in seconds.items() if name not in ("total", EARLIER) and t >= _WORTH_A_WORD}
    spent = ", ".join(f"{name} {duration(t)}" for name, t in parts.items())
    earlier = f"; {EARLIER}: {duration(seconds[EARLIER])} of cores" if EARLIER in seconds else ""
    total = duration(seconds["total"]) if "total" in seconds else "unknown time"
    return [
        Fact(
            "run",
            _glued(
                f"{'' if seed is None else f'seed {seed}, '}{total}"
                + (f" ({spent})" if spent else "")
                + earlier
            ),
        ),
        Fact("with", _glued(", ".join(f"{name} {version}" for name, version in versions.items()))),
    ]


def _glued(text: str) -> str:
    """With "15 s" and "Python 3.11" kept together at the end of a line."""
    return text.replace(" ", GLUE).replace(f",{GLUE}", ", ").replace(f"{GLUE}(", " (")
