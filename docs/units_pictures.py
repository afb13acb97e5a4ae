"""The pictures of docs/units.md: a Potts RBM and a Gaussian RBM, trained and evaluated.

    python docs/units_pictures.py docs/figures

It prints the reports that the page shows.
"""

import sys
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib import pyplot as plt

import meltpoint as mp

mpl.use("Agg")


def motifs_with_mutations(n: int, rng: np.random.Generator) -> np.ndarray:
    """Sequences (example, 12 sites) of four letters: two families of motifs, with mutations."""
    motifs = np.array([[0, 1, 2, 3] * 3, [3, 3, 0, 0] * 3])
    chosen = motifs[rng.integers(0, 2, n)]
    shifted = np.where(rng.random((n, 1)) < 0.5, chosen, np.roll(chosen, 1, axis=1))
    return np.where(rng.random(shifted.shape) < 0.15, rng.integers(0, 4, shifted.shape), shifted).astype(
        np.uint8
    )


def ring(n: int, rng: np.random.Generator) -> np.ndarray:
    """Points (example, 2) on five clusters of a circle."""
    angle = rng.integers(0, 5, n) * 2 * np.pi / 5
    return 2 * np.stack([np.cos(angle), np.sin(angle)], axis=1) + rng.normal(0, 0.35, (n, 2))


def potts(folder: Path) -> None:
    """Train, evaluate, and draw the weights and the states' frequencies."""
    rng = np.random.default_rng(0)
    train, test = motifs_with_mutations(2000, rng), motifs_with_mutations(500, rng)
    model = mp.train_rbm(train, hidden=8, visible="potts")
    report = mp.evaluate(model, test, train, steps=1000)
    print(report, end="\n\n")
    drawn = mp.sample(model, 2000)
    figure, axes = plt.subplots(1, 3, figsize=(9, 2.8), layout="constrained")
    for axis, states, title in ((axes[0], train, "training data"), (axes[1], drawn, "samples of the RBM")):
        frequency = np.stack([(states == state).mean(axis=0) for state in range(4)])
        image = axis.imshow(frequency, aspect="auto", vmin=0, vmax=0.6, cmap="Blues")
        axis.set(title=title, xlabel="site", ylabel="state", yticks=range(4), xticks=range(0, 12, 3))
    figure.colorbar(image, ax=axes[1], label="frequency")
    pairs = []
    for states in (train, drawn):
        one_hot = np.eye(4)[states].reshape(len(states), -1)
        covariance = np.cov(one_hot, rowvar=False)
        sites = np.arange(one_hot.shape[1]) // 4
        pairs.append(covariance[sites[:, np.newaxis] < sites])
    axes[2].plot([-0.2, 0.2], [-0.2, 0.2], color="0.7", lw=1)
    axes[2].plot(*pairs, ".", ms=2, alpha=0.5)
    axes[2].set(title="covariances of states", xlabel="training data", ylabel="samples")
    figure.savefig(folder / "units-potts.png", dpi=100)


def gaussian(folder: Path) -> None:
    """Train, evaluate, and draw the density beside the data."""
    rng = np.random.default_rng(0)
    train, test = ring(2000, rng), ring(500, rng)
    model = mp.train_rbm(train, hidden=16, visible="gaussian", epochs=1000)
    report = mp.evaluate(model, test, train, steps=1000)
    print(report, end="\n\n")
    axis = np.linspace(-4, 4, 161)
    points = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    density = np.exp(model.log_f(points) - mp.exact_log_z(model)).reshape(len(axis), -1)
    print(f"integral of the density over the picture: {density.sum() * (axis[1] - axis[0]) ** 2:.4f}")
    figure, (left, right) = plt.subplots(
        1, 2, figsize=(7.5, 3.4), layout="constrained", sharex=True, sharey=True
    )
    left.plot(*train[:1000].T, ".", ms=2, alpha=0.5)
    left.set(title="training data", xlabel="$v_1$", ylabel="$v_2$", aspect="equal")
    image = right.pcolormesh(axis, axis, density, cmap="Blues", shading="auto")
    right.set(title="density of the RBM", xlabel="$v_1$", aspect="equal")
    figure.colorbar(image, ax=right, label="density")
    figure.savefig(folder / "units-gaussian.png", dpi=100)


def main() -> None:
    """Write both pictures to the folder that is given."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "docs/figures")
    potts(folder)
    gaussian(folder)


if __name__ == "__main__":
    main()
