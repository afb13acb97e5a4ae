"""Draw the first picture of the README anew: python docs/figures/closing_in.py

Both estimates of an RBM whose exact value is known over the number of annealing steps, from a base that makes AIS fail.
"""

from pathlib import Path

import meltpoint as mp

HERE = Path(__file__).parent
STEPS = (10, 30, 100, 300, 1000, 3000, 10_000)


def main() -> None:
    """Evaluate mnistPCD-20 with more and more steps, print both sides, and draw them."""
    model = mp.load(HERE.parents[1] / "zoo" / "mnistPCD-20.npz")
    mnist = mp.datasets.load("mnist")
    reports = mp.sweep(
        model,
        mnist.test,
        mnist.train,
        base="uniform",
        schedule="linear",
        steps=STEPS,
        exact=True,
        evidence=False,
        progress=True,
    )
    for report in reports:
        print(report.settings.steps, report.conservative, report.optimistic, report.exact, report.verdict)
    reports[-1].plot("bracket", sweep=reports[:-1]).savefig(HERE / "closing-in.png", dpi=150)


if __name__ == "__main__":
    main()
