"""train_rbm with all defaults against scikit-learn's BernoulliRBM at the best of three learning rates, on small data.

Mean log likelihoods of test examples in nats. A protein family has Potts visible units; scikit-learn, which has none,
is given them one-hot. Where one side of the model has at most 20 units both are exact.
Elsewhere meltpoint's is the conservative side (RAISE) and scikit-learn's the optimistic side (AIS), so the comparison
favours scikit-learn. The matrix library has one thread: with more, training of narrow models is slower where others
use the machine too, and its last bits differ.

    python benchmarks/training_defaults.py [--protein train.fasta test.fasta]
"""

import argparse
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from sklearn.neural_network import BernoulliRBM
from threadpoolctl import threadpool_limits

import meltpoint as mp

RATES = (0.01, 0.05, 0.2)
EPOCHS = 30
EXACT_UNITS = 20
STEPS, CHAINS, EXAMPLES = 10_000, 100, 300
DATA = ("bars-and-stripes", "digits", "mnist")
ALPHABET = "-ACDEFGHIKLMNPQRSTVWY"
HIDDEN = (16, 64)


def examples(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Training and test examples, zeros and ones; the first 2,000 of MNIST."""
    data = mp.datasets.load(name)
    return data.train[:2000], data.test[:2000]


def alignment(path: str) -> np.ndarray:
    """The first 2,000 sequences (sequence, column) of an alignment as states, those with other letters left out."""
    records = Path(path).read_text().split(">")[1:]
    sequences = ["".join(record.splitlines()[1:]) for record in records]
    known = [s for s in sequences if set(s) <= set(ALPHABET)][:2000]
    return np.array([[ALPHABET.index(letter) for letter in s] for s in known], np.uint8)


def one_hot(states: np.ndarray) -> np.ndarray:
    """Bits (example, site and state)."""
    return np.eye(len(ALPHABET), dtype=np.uint8)[states].reshape(len(states), -1)


def sides(model: mp.RBM, test: np.ndarray, train: np.ndarray) -> tuple[float, float]:
    """Mean log likelihood of the test examples from below and from above, twice the same where it is exact."""
    log_f = float(model.log_f(test).mean())
    if model.n_hidden <= EXACT_UNITS or model.n_visible <= EXACT_UNITS:
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


def compare(train: np.ndarray, test: np.ndarray, hidden: int, visible: str = "bernoulli") -> dict[str, float]:
    """Likelihoods and seconds of one data set and size: ours, and scikit-learn's at each learning rate."""
    ours, seconds = timed(lambda: mp.train_rbm(train, hidden=hidden, visible=visible))
    found = {"meltpoint": sides(ours, test, train)[0], "seconds": seconds}
    if visible == "potts":
        train, test = one_hot(train), one_hot(test)
    for rate in RATES:
        theirs, seconds = timed(lambda rate=rate: scikit_learn(train, hidden, rate))
        found |= {f"{rate:g}": sides(theirs, test, train)[1], f"seconds {rate:g}": seconds}
    return found


def main() -> None:
    names = [f"{rate:g}" for rate in RATES]
    print(f"{'':20} {'hidden':>6} {'meltpoint':>16} {'  '.join(f'scikit-learn {name:>4}' for name in names)}")
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--protein", nargs=2, metavar=("TRAIN", "TEST"), help="two alignments, FASTA")
    parser.add_argument("--only", choices=(*DATA, "protein"))
    given = parser.parse_args()
    for data in [given.only] if given.only else (*DATA, *(["protein"] if given.protein else [])):
        train, test = examples(data) if data in DATA else map(alignment, given.protein)
        for hidden in HIDDEN:
            found = compare(train, test, hidden, "bernoulli" if data in DATA else "potts")
            theirs = "  ".join(f"{found[name]:9.2f} {found[f'seconds {name}']:5.1f} s" for name in names)
            print(
                f"{data:20} {hidden:6} {found['meltpoint']:8.2f} {found['seconds']:5.1f} s {theirs}",
                flush=True,
            )


if __name__ == "__main__":
    main()
