"""Does the convention check name what is wrong? Trained models, each saved with one wrong convention.

    python benchmarks/conventions.py [--models 200] [--seed 0]

Every model is trained on data of one of several kinds, by this library or by scikit-learn, with random sizes. It is
checked as it is (the check must be silent) and after one mistake, drawn at random, which the check must name:
weights transposed (square), biases exchanged (square), all signs flipped, spins taken for bits or bits for spins.
The target is 195 of 200 named and no alarm on a right one. The last lines say what it was.
"""

import argparse
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import meltpoint as mp
from meltpoint.estimators.conventions import check_conventions

MISTAKES = ("sign", "transposed", "biases swapped", "spin", "bernoulli")


@dataclass(frozen=True)
class Case:
    """A right model and its training data, and the same parameters with one mistake."""

    about: str
    right: mp.RBM
    data: NDArray[np.integer]
    mistake: str
    wrong: mp.RBM
    wrong_data: NDArray[np.integer]


def cases(count: int, seed: int) -> Iterator[Case]:
    """Random models, each with a random mistake."""
    rng = np.random.default_rng(seed)
    sources = {name: make(rng) for name, make in SOURCES.items()}
    for number in range(count):
        mistake = MISTAKES[number % len(MISTAKES)]
        name = str(rng.choice(list(sources)))
        train = sources[name]
        square = mistake in ("transposed", "biases swapped")
        hidden = train.shape[1] if square else int(rng.integers(8, 65))
        how, model = trained(train, hidden, rng)
        as_spins = mistake == "spin" or (mistake != "bernoulli" and rng.random() < 0.3)
        right, data = (spins_of(model), 2 * train.astype(np.int8) - 1) if as_spins else (model, train)
        wrong, wrong_data = with_mistake(right, data, mistake)
        yield Case(f"{name}, {how}, {right!r}", right, data, mistake, wrong, wrong_data)


def with_mistake(
    right: mp.RBM, data: NDArray[np.integer], mistake: str
) -> tuple[mp.RBM, NDArray[np.integer]]:
    """The parameters as they come out of a wrong conversion, and the data as that model takes them."""
    w, a, b = right.weights, right.visible_bias, right.hidden_bias
    units = {"visible": right.visible, "hidden": right.hidden}
    if mistake == "sign":
        return mp.RBM(-w, -a, -b, **units), data
    if mistake == "transposed":
        return mp.RBM(w.T, a, b, **units), data
    if mistake == "biases swapped":
        return mp.RBM(w, b, a, **units), data
    if mistake == "spin":  # parameters of spins, data and model of bits
        return mp.RBM(w, a, b), (data + 1) // 2
    return mp.RBM(w, a, b, visible="spin", hidden="spin"), 2 * data.astype(np.int8) - 1


def spins_of(model: mp.RBM) -> mp.RBM:
    """The same distribution with parameters for spins."""
    w = model.weights
    a, b = model.visible_bias / 2 + w.sum(axis=1) / 4, model.hidden_bias / 2 + w.sum(axis=0) / 4
    return mp.RBM(w / 4, a, b, visible="spin", hidden="spin")


def trained(train: NDArray[np.integer], hidden: int, rng: np.random.Generator) -> tuple[str, mp.RBM]:
    """A model as users have it: trained by this library or by scikit-learn for as long as it needs."""
    seed = int(rng.integers(2**31))
    updates = 3000
    if rng.random() < 0.5:
        epochs = max(1, updates * 100 // len(train))
        return "train_rbm", mp.train_rbm(train, hidden, epochs=epochs, seed=seed)
    from sklearn.neural_network import BernoulliRBM

    rate = float(rng.choice([0.03, 0.1]))
    fitted = BernoulliRBM(
        hidden, learning_rate=rate, n_iter=max(1, updates * 10 // len(train)), random_state=seed
    ).fit(train)
    model = mp.from_object(fitted)
    assert isinstance(model, mp.RBM)
    return f"scikit-learn, rate {rate}", model


def _digits(rng: np.random.Generator) -> NDArray[np.integer]:
    del rng
    return mp.datasets.load("digits").train


def _digit_middles(rng: np.random.Generator) -> NDArray[np.integer]:
    del rng
    return mp.datasets.load("digits").train.reshape(-1, 8, 8)[:, 1:7, 1:7].reshape(-1, 36)


def _bars_and_stripes(rng: np.random.Generator) -> NDArray[np.integer]:
    """Rows or columns of 5 x 5 images, each on with probability 0.3: unlike their negatives."""
    lines = rng.random((1000, 5, 1)) < 0.3
    images = np.broadcast_to(lines, (1000, 5, 5)).copy()
    images[::2] = images[::2].transpose(0, 2, 1)
    return images.reshape(-1, 25).astype(np.uint8)


def _lattice(rng: np.random.Generator) -> NDArray[np.integer]:
    """Bits of an Ising model on a 5 x 5 lattice with random fields, by Gibbs sweeps."""
    side, coupling = 5, 0.45
    fields = rng.normal(0.1, 0.3, (side, side))
    spins = rng.choice([-1, 1], (1000, side, side))
    padded = np.zeros((1000, side + 2, side + 2), int)
    for _ in range(300):
        for colour in (0, 1):
            padded[:, 1:-1, 1:-1] = spins
            near = padded[:, :-2, 1:-1] + padded[:, 2:, 1:-1] + padded[:, 1:-1, :-2] + padded[:, 1:-1, 2:]
            up = rng.random(spins.shape) < 1 / (1 + np.exp(-2 * (coupling * near + fields)))
            mask = np.add.outer(np.arange(side), np.arange(side)) % 2 == colour
            spins[:, mask] = np.where(up, 1, -1)[:, mask]
    return ((spins.reshape(1000, -1) + 1) // 2).astype(np.uint8)


def _neurons(rng: np.random.Generator) -> NDArray[np.integer]:
    """Sparse activity of 40 units in three assemblies."""
    on = rng.random((1500, 3)) < 0.15
    member = rng.random((3, 40)) < 0.3
    rates = np.clip(0.04 + 0.6 * (on.astype(float) @ member), 0, 0.9)
    return (rng.random(rates.shape) < rates).astype(np.uint8)


SOURCES = {
    "digits": _digits,
    "middles of digits": _digit_middles,
    "bars and stripes": _bars_and_stripes,
    "lattice": _lattice,
    "neurons": _neurons,
}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--models", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")  # scikit-learn's, on its own options
    named, alarms, slowest = 0, 0, 0.0
    missed: Counter[str] = Counter()
    for case in cases(arguments.models, arguments.seed):
        begun = time.process_time()
        silent = check_conventions(case.right, case.data)
        slowest = max(slowest, time.process_time() - begun)
        found = check_conventions(case.wrong, case.wrong_data)
        assert silent is not None
        assert found is not None
        named += found.suspected == case.mistake
        alarms += silent.suspected is not None
        if found.suspected != case.mistake:
            missed[f"{case.mistake} as {found.suspected}"] += 1
            print(
                f"missed: {case.about}: {case.mistake}, found {found.suspected}; {_gains(found)}", flush=True
            )
        if silent.suspected is not None:
            print(f"alarm: {case.about}: {silent.suspected}; {_gains(silent)}", flush=True)
    for kind, count in missed.most_common():
        print(f"{count:4} {kind}")
    print(f"{named} of {arguments.models} mistakes named, {alarms} alarms on right models")
    print(f"slowest check: {slowest:.2f} s of processor time")


def _gains(found: mp.ConventionCheck) -> str:
    return f"own {found.own:.2f}, " + ", ".join(f"{name} {gain:+.2f}" for name, gain in found.gains.items())


if __name__ == "__main__":
    main()
