"""train_rbm with all defaults against scikit-learn's BernoulliRBM at the best of three learning rates, on small data.

Mean log likelihoods of test examples in nats. Where one side of the model has at most 20 units both are exact.
Elsewhere meltpoint's is the conservative side (RAISE) and scikit-learn's the optimistic side (AIS), so the comparison
favours scikit-learn. The matrix library has one thread: with more, training of narrow models is slower where others
use the machine too, and its last bits differ.

    python benchmarks/training_defaults.py
"""

import time
from collections.abc import Callable

import numpy as np
from sklearn.neural_network import BernoulliRBM
from threadpoolctl import threadpool_limits

import meltpoint as mp

RATES = (0.01, 0.05, 0.2)
EPOCHS = 30
EXACT_UNITS = 20
STEPS, CHAINS, EXAMPLES = 10_000, 100, 300
DATA = ("bars-and-stripes", "digits", "mnist")
HIDDEN = (16, 64)


def examples(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Training and test examples, zeros and ones; the first 2,000 of MNIST."""
    data = mp.datasets.load(name)
    return data.train[:2000], data.test[:2000]


def sides(model: mp.RBM, test: np.ndarray, train: np.ndarray) -> tuple[float, float]:
    """Mean log likelihood of the test examples from below and from above, twice the same where it is exact."""
    log_f = float(model.log_f(test).mean())
    if min(model.weights.shape) <= EXACT_UNITS:
        return (log_f - mp.exact_log_z(model),) * 2
    base = mp.data_rates(train, model)
    log_z = mp.ais_log_z(model, base=base, steps=STEPS, chains=CHAINS).value
    below = mp.raise_log_prob(model, test[:EXAMPLES], base=base, steps=STEPS, chains=1).values
    # The mean of RAISE over some examples, carried to all of them by the mean of log f.
    return float(below.mean() - model.log_f(test[:EXAMPLES]).mean()) + log_f, log_f - log_z


def timed(train: Callable[[], mp.RBM]) -> tuple[mp.RBM, float]:
    with threadpool_limits(1, user_api="blas"):
        begun = time.perf_counter()
        return train(), time.perf_counter() - begun


def scikit_learn(bits: np.ndarray, hidden: int, rate: float) -> mp.RBM:
    rbm = BernoulliRBM(hidden, learning_rate=rate, n_iter=EPOCHS, random_state=0).fit(bits.astype(float))
    return mp.RBM(rbm.components_.T, rbm.intercept_visible_, rbm.intercept_hidden_)


def compare(name: str, hidden: int) -> dict[str, float]:
    """Likelihoods and seconds of one data set and size: ours, and scikit-learn's at each learning rate."""
    train, test = examples(name)
    ours, seconds = timed(lambda: mp.train_rbm(train, hidden=hidden))
    found = {"meltpoint": sides(ours, test, train)[0], "seconds": seconds}
    for rate in RATES:
        theirs, seconds = timed(lambda rate=rate: scikit_learn(train, hidden, rate))
        found |= {f"{rate:g}": sides(theirs, test, train)[1], f"seconds {rate:g}": seconds}
    return found


def main() -> None:
    names = [f"{rate:g}" for rate in RATES]
    print(f"{'':20} {'hidden':>6} {'meltpoint':>16} {'  '.join(f'scikit-learn {name:>4}' for name in names)}")
    for data in DATA:
        for hidden in HIDDEN:
            found = compare(data, hidden)
            theirs = "  ".join(f"{found[name]:9.2f} {found[f'seconds {name}']:5.1f} s" for name in names)
            print(
                f"{data:20} {hidden:6} {found['meltpoint']:8.2f} {found['seconds']:5.1f} s {theirs}",
                flush=True,
            )


if __name__ == "__main__":
    main()
