"""Reports on scikit-learn's BernoulliRBMs, which are fitted poorly: does the interval hold the exact value?

python benchmarks/scikit_learn.py --seeds 32     # 4 settings, 128 reports, some minutes
"""

import argparse

import numpy as np
from sklearn.neural_network import BernoulliRBM

import meltpoint as mp


def main() -> None:
    """Print a line for each setting."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=4)
    seeds = parser.parse_args().seeds
    digits = mp.datasets.load("digits")
    for rate in (0.05, 0.2):
        fitted = [
            BernoulliRBM(24, learning_rate=rate, n_iter=30, random_state=seed).fit(digits.train)
            for seed in range(seeds)
        ]
        models = [mp.RBM(m.components_.T, m.intercept_visible_, m.intercept_hidden_) for m in fitted]
        exact = [float(np.mean(model.log_f(digits.test))) - mp.exact_log_z(model) for model in models]
        for steps in (300, 1000):
            reports = [
                mp.evaluate(model, digits.test, digits.train, steps=steps, seed=seed, exact=False)
                for seed, model in enumerate(models)
            ]
            inside = sum(
                low <= value <= high
                for (low, high), value in zip((r.between for r in reports), exact, strict=True)
            )
            trusted = sum(report.verdict.trusted for report in reports)
            turned = sum(report.between[0] > report.between[1] for report in reports)
            print(
                f"learning rate {rate}, {steps:,} steps: exact inside {inside} of {seeds}, trusted {trusted}, "
                f"reversed {turned}",
                flush=True,
            )


if __name__ == "__main__":
    main()
