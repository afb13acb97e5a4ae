"""How often log_z() holds the exact value: random models of six families whose log Z elimination gives, and files.

    python benchmarks/log_z.py --models 34 --steps 1000
    python benchmarks/log_z.py --models 10 --gap 0.2 potts "ising lattice"
    python benchmarks/log_z.py --models 5 --files Grids_11.uai Segmentation_11.uai

For each family: brackets that are trusted, and among them those with the exact value outside `between`; outside in all;
intervals that are reversed or NaN; certificates from below that do not hold, and from above, with exact samples. Half
of the brackets are made without the exact value (states drawn by weight are melted), half with exact samples. For a
file, `--models` is the number of seeds. Rates come with 95 % limits (Clopper and Pearson). The exit code is 1 if the
lower limit of trusted and outside is above 1 % anywhere, or if anything is reversed.
"""

import argparse
import math
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from log_z_models import FAMILIES, SCALES
from scipy.stats import binomtest

import meltpoint as mp

_PROMISED = 0.01


@dataclass(frozen=True)
class Outcome:
    """What a bracket said, and what is so."""

    family: str
    sampled_exactly: bool
    trusted: bool
    reason: str
    exact: float
    low: float
    high: float
    certified_low: float
    certified_high: float | None

    @property
    def outside(self) -> bool:
        """Whether the exact value is outside the interval, but for rounding."""
        rounding = 1e-9 * max(1.0, abs(self.exact))
        return not self.low - rounding <= self.exact <= self.high + rounding

    @property
    def reversed(self) -> bool:
        """Whether the ends are in the wrong order, or one is NaN."""
        return not self.low <= self.high


def run(
    family: str, model: Any, exact: float, sampled_exactly: bool, seed: int, sizes: dict[str, Any]
) -> Outcome:
    found = mp.log_z(model, exact=None if sampled_exactly else False, seed=seed, **sizes)
    return Outcome(
        family,
        found.certified_upper is not None,
        found.verdict.trusted,
        found.verdict.reason,
        exact,
        *found.between,
        found.lower_certificate.bound,
        found.certified_upper,
    )


def rate(k: int, n: int) -> str:
    if n == 0:
        return "0 of 0"
    limits = binomtest(k, n).proportion_ci(0.95)
    return f"{k} of {n} ({100 * limits.low:.1f}–{100 * limits.high:.1f} %)"


def table(outcomes: list[Outcome]) -> str:
    head = [
        "family",
        "melted",
        "brackets",
        "trusted",
        "trusted, outside",
        "outside",
        "reversed",
        "false certificates",
    ]
    rows = [head, ["---"] * len(head)]
    keys = sorted({(o.family, o.sampled_exactly) for o in outcomes})
    for family, sampled in [*keys, ("all", None)]:
        own = [o for o in outcomes if family == "all" or (o.family, o.sampled_exactly) == (family, sampled)]
        trusted = [o for o in own if o.trusted]
        below = sum(o.certified_low > o.exact for o in own)
        above = [o for o in own if o.certified_high is not None]
        false = rate(below, len(own))
        if above:
            false += f"; above {rate(sum(o.certified_high < o.exact for o in above), len(above))}"
        rows.append(
            [
                family,
                "" if sampled is None else "exact samples" if sampled else "by weight",
                str(len(own)),
                str(len(trusted)),
                rate(sum(o.outside for o in trusted), len(trusted)),
                rate(sum(o.outside for o in own), len(own)),
                str(sum(o.reversed for o in own)),
                false,
            ]
        )
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def broken(outcomes: list[Outcome]) -> bool:
    """Whether a family is trusted and outside more often than promised, beyond chance, or anything is reversed."""
    for family in {o.family for o in outcomes}:
        trusted = [o for o in outcomes if o.family == family and o.trusted]
        outside = sum(o.outside for o in trusted)
        if trusted and binomtest(outside, len(trusted)).proportion_ci(0.95).low > _PROMISED:
            return True
    return any(o.reversed for o in outcomes)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("families", nargs="*", choices=[*FAMILIES, []], default=[])
    parser.add_argument("--models", type=int, default=34, help="models of each family, or seeds of each file")
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--chains", type=int, default=400)
    parser.add_argument("--gap", type=float)
    parser.add_argument("--budget", default="60s")
    parser.add_argument("--files", nargs="*", type=Path, default=[])
    arguments = parser.parse_args()
    sizes: dict[str, Any] = {"steps": arguments.steps, "chains": arguments.chains}
    if arguments.gap is not None:
        sizes = {"gap": arguments.gap, "budget": arguments.budget}
    outcomes: list[Outcome] = []
    for path in arguments.files:
        model = mp.load(path)
        exact = mp.exact_log_z(model)
        outcomes += [
            run(path.stem, model, exact, seed % 2 == 1, seed, sizes) for seed in range(arguments.models)
        ]
    names = arguments.families or ([] if arguments.files else list(FAMILIES))
    for number, family in enumerate(names):
        begun = time.perf_counter()
        for k in range(arguments.models):
            rng = np.random.default_rng([number, k])
            model = FAMILIES[family](rng, SCALES[k % len(SCALES)])
            outcomes.append(run(family, model, mp.exact_log_z(model), k % 2 == 1, k, sizes))
            if outcomes[-1].outside:
                print(f"outside: {outcomes[-1]}", flush=True)
        print(f"{family}: {time.perf_counter() - begun:.0f} s", flush=True)
    print(table(outcomes))
    reasons = {o.reason: sum(p.reason == o.reason for p in outcomes) for o in outcomes}
    print("verdicts:", ", ".join(f"{name} {count}" for name, count in sorted(reasons.items())))
    widths = [o.high - o.low for o in outcomes if math.isfinite(o.high - o.low)]
    print(f"median width of the interval: {np.median(widths):.3f} nats")
    return int(broken(outcomes))


if __name__ == "__main__":
    raise SystemExit(main())
