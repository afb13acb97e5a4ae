"""How long a trace of ten checkpoints takes, in evaluations of one model with default settings.

    python benchmarks/trace.py zoo/mnistPCD-500.npz mnist

The checkpoints lead from independent units with the data's rates to the model: parameters are interpolated, with small
noise, as they would move in training. One evaluation with default settings is timed before and one after the trace.
Times are those of the processor, so that they do not depend on what else the machine does.
"""

import argparse
import sys
import time

import numpy as np

import meltpoint as mp


def checkpoints_of(model: mp.RBM, train: np.ndarray, count: int) -> dict[str, mp.RBM]:
    """So many RBMs on the way from independent units to the model, the last one the model itself."""
    rng = np.random.default_rng(0)
    rates = mp.data_rates(train).biases[0]
    start = (0.01 * rng.normal(size=model.weights.shape), rates, np.zeros(len(model.hidden_bias)))
    end = (model.weights, model.visible_bias, model.hidden_bias)
    made = {}
    for k, part in enumerate(1 - np.geomspace(1, 0.02, count)):
        whole = k == count - 1
        arrays = [
            b if whole else (1 - part) * a + part * b + 0.02 * (1 - part) * rng.normal(size=np.shape(b))
            for a, b in zip(start, end, strict=True)
        ]
        made[f"epoch-{2**k}"] = mp.RBM(*arrays)
    return made


def main() -> int:
    """Time both, and say how many evaluations the trace has cost."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model")
    parser.add_argument("data")
    parser.add_argument("--count", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--plot", help="write the figure to this file")
    asked = parser.parse_args()
    model, data = mp.load(asked.model), mp.datasets.load(asked.data)
    assert isinstance(model, mp.RBM), "checkpoints are made for RBMs"
    models = checkpoints_of(model, data.train, asked.count)
    mp.evaluate(model, data.test[:100], data.train, steps=20)  # compiles
    ratios = []
    for _ in range(asked.rounds):
        times, wall = [], time.perf_counter()
        for what in ("one", "trace", "one"):
            begun = time.process_time()
            if what == "one":
                report = mp.evaluate(model, data.test, data.train)
            else:
                found = mp.trace(models, data.test, data.train)
            times.append(time.process_time() - begun)
        ratios.append(2 * times[1] / (times[0] + times[2]))
        shown = ", ".join(f"{what} {t:.1f} s" for what, t in zip(("one", "trace", "one"), times, strict=True))
        print(f"{shown}: {ratios[-1]:.2f} times one ({time.perf_counter() - wall:.0f} s by the clock)")
    print(found)
    print("steps and effective share of each:")
    print("; ".join(f"{point.steps}, {point.ess / point.ais_chains:.2f}" for point in found.points))
    print(f"one evaluation of the last: {report.between[0]:.2f} to {report.between[1]:.2f}")
    if asked.plot:
        found.plot().savefig(asked.plot, dpi=110)
    return int(min(ratios) > 5)


if __name__ == "__main__":
    sys.exit(main())
