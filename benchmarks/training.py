"""An epoch of MNIST: persistent contrastive divergence, 784 x 500, batches of 100, against scikit-learn.

scikit-learn's BernoulliRBM does the same: one Gibbs step of as many chains as a batch has examples, per batch.
It is timed with float64, its default, and with float32. Every contestant is a process of its own, so that its peak
memory is its own, and they take turns, so that they meet the same disturbances.

    python benchmarks/training.py [rounds]
"""

import json
import resource
import subprocess
import sys
import time

HIDDEN, BATCH, EPOCHS = 500, 100, 2
CONTESTANTS = ("meltpoint", "scikit-learn float32", "scikit-learn float64")


def measure(contestant: str) -> dict[str, float]:
    """Seconds per epoch, compilation and reading left out, and peak memory in MB."""
    import numpy as np

    from meltpoint.datasets import load

    bits = load("mnist").train
    if contestant == "meltpoint":
        from meltpoint.training.train import train_rbm

        def fit(data, epochs):
            train_rbm(data, HIDDEN, method="pcd", k=1, batch=BATCH, epochs=epochs)
    else:
        from sklearn.neural_network import BernoulliRBM

        bits = bits.astype(np.float32 if contestant.endswith("32") else np.float64)

        def fit(data, epochs):
            BernoulliRBM(HIDDEN, learning_rate=0.05, batch_size=BATCH, n_iter=epochs, random_state=0).fit(
                data
            )

    fit(bits[: 2 * BATCH], 1)
    begun = time.perf_counter()
    fit(bits, EPOCHS)
    seconds = (time.perf_counter() - begun) / EPOCHS
    return {"seconds": seconds, "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}


def main(rounds: int) -> None:
    results: dict[str, list[dict[str, float]]] = {name: [] for name in CONTESTANTS}
    for _ in range(rounds):
        for name in CONTESTANTS:
            answer = subprocess.run(
                [sys.executable, __file__, "--measure", name], check=True, capture_output=True, text=True
            )
            results[name].append(json.loads(answer.stdout))
    ours = sorted(r["seconds"] for r in results["meltpoint"])[rounds // 2]
    print(
        f"{'one epoch of PCD, 784 x 500':32} {'seconds':>8} {'ratio':>6} {'peak MB':>8}   (median of {rounds})"
    )
    for name, rows in results.items():
        seconds = sorted(r["seconds"] for r in rows)[rounds // 2]
        peak = max(r["megabytes"] for r in rows)
        print(f"{name:32} {seconds:8.2f} {seconds / ours:6.1f} {peak:8.0f}")


if __name__ == "__main__":
    if "--measure" in sys.argv:
        print(json.dumps(measure(sys.argv[-1])))
    else:
        main(int(sys.argv[1]) if len(sys.argv) > 1 else 3)
