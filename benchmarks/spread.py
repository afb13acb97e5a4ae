"""How uneven AIS's weights are by number of steps, how well 256 chains tell it, and what limits of log Z are worth.

    python benchmarks/spread.py --model mnistDBM-500-1000 --steps 1000 2000 4000 --chains 2000
    python benchmarks/spread.py --lognormal 1.25 2 2.5 4 --chains 500

With `--model`: the variance of log weights by those above their median, and log(chains / effective chains), of all
chains and as ranges over 20 draws of 256 of them. With `--lognormal`: how often log Z lies outside the limits, for
weights whose logarithm has this variance.
"""

import argparse
from pathlib import Path

import numpy as np

import meltpoint as mp
from meltpoint.estimators.ais import log_z_of
from meltpoint.estimators.evidence import Evidence
from meltpoint.estimators.limits import log_z_limits
from meltpoint.evaluation.stage_sizes import upper_variance

ZOO = Path(__file__).resolve().parents[1] / "zoo"
_DRAWS = 20
_FEW = 256


def main() -> None:
    """The table that was asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", help="of the zoo, or a file")
    parser.add_argument("--data", default="mnist")
    parser.add_argument("--steps", type=int, nargs="+", default=[1000, 2000, 4000])
    parser.add_argument("--chains", type=int, default=2000)
    parser.add_argument("--lognormal", type=float, nargs="+", default=[], help="variances of log weights")
    parser.add_argument("--alpha", type=float, default=0.1)
    parser.add_argument("--repeats", type=int, default=1500)
    asked = parser.parse_args()
    if asked.model:
        _show_model(asked)
    for variance in asked.lognormal:
        _show_limits(variance, asked)


def _show_model(asked: argparse.Namespace) -> None:
    """Both measures of spread for every number of steps, from data base rates along the schedule of a pilot."""
    model = mp.load(asked.model if Path(asked.model).suffix else ZOO / f"{asked.model}.npz")
    train = mp.datasets.load(asked.data).train
    base = mp.data_rates(train)
    schedule = mp.friction_schedule(model, train, base=base)
    rng = np.random.default_rng(0)
    print(f"{asked.model}, {asked.chains:,} chains: of all, and of {_FEW} of them")
    print(" steps  upper variance          log(chains / effective)")
    for steps in asked.steps:
        log_weights = mp.ais_log_z(
            model, base=base, steps=schedule.betas(steps), chains=asked.chains
        ).log_weights
        draws = [rng.permutation(log_weights)[:_FEW] for _ in range(_DRAWS)]
        cells = [
            f"{measure(log_weights):5.2f} ({min(map(measure, draws)):5.2f} to {max(map(measure, draws)):5.2f})"
            for measure in (upper_variance, _lost)
        ]
        print(f"{steps:6,}  {'  '.join(cells)}", flush=True)


def _lost(log_weights: np.ndarray) -> float:
    return float(np.log(len(log_weights) / log_z_of(log_weights).ess))


def _show_limits(variance: float, asked: argparse.Namespace) -> None:
    """How often log Z = 0 lies below the lower and above the upper limit."""
    rng, below, above = np.random.default_rng(5), 0, 0
    for _ in range(asked.repeats):
        log_weights = rng.normal(-variance / 2, np.sqrt(variance), asked.chains)
        low, high = log_z_limits(log_weights, Evidence(), asked.alpha)
        below, above = below + (low > 0), above + (high < 0)
    rates = [100 * count / asked.repeats for count in (below, above, below + above)]
    print(
        f"variance {variance:g}, {asked.chains:,} chains: {rates[0]:.1f} % below, {rates[1]:.1f} % above, "
        f"{rates[2]:.1f} % outside of limits that {100 * asked.alpha:g} % may miss",
        flush=True,
    )


if __name__ == "__main__":
    main()
