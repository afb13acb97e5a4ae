"""Certificates on small models whose p_N and log Z are enumerated: how often they claim too much.

python benchmarks/certificates.py --models 3000

Every model is a random RBM with two visible and two hidden units, weak to very strong, annealed in two steps from the
uniform base with two AIS chains, so that the certificate is about p_2 (a forward chain for each of two examples) or
p_3 (both chains for both). p_N is the law of "run N AIS chains, keep one by its weight, move once more", over all
tuples of chains.
"""

import argparse
import itertools

import numpy as np
from scipy.stats import binom

import meltpoint as mp

BETAS = np.array([0.0, 0.35, 1.0])
STATES = np.array(list(itertools.product((0, 1), repeat=2)), float)


def p_n(model: mp.RBM, n: int) -> np.ndarray:
    """Probabilities (visible state,) of the annealing model with n particles."""
    log_f = np.einsum("vi,ij,hj->vh", STATES, model.weights, STATES)
    log_f += (STATES @ model.visible_bias)[:, np.newaxis] + STATES @ model.hidden_bias
    f = {beta: np.exp(beta * log_f).sum(axis=1) for beta in BETAS}
    moves = {}
    for beta in BETAS[1:]:
        joint = np.exp(beta * log_f)
        moves[beta] = (joint / joint.sum(axis=1, keepdims=True)) @ (joint / joint.sum(axis=0)).T
    first = np.repeat(np.arange(4), 4)
    last = np.tile(np.arange(4), 4)
    probability = moves[BETAS[1]][first, last] / 4
    weight = 16 * (f[BETAS[1]] / f[0.0])[first] * (f[1.0] / f[BETAS[1]])[last]
    tuples = np.array(list(itertools.product(range(16), repeat=n)))
    kept = weight[tuples] / weight[tuples].sum(axis=1, keepdims=True)
    kept *= probability[tuples].prod(axis=1, keepdims=True)
    return np.bincount(last[tuples].ravel(), kept.ravel(), 4) @ moves[1.0]


def main() -> None:
    """Count violations."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--models", type=int, default=300)
    models = parser.parse_args().models
    for confidence in (0.99, 0.9):
        wrong = {"p_N": 0, "log Z": 0}
        for seed in range(models):
            rng = np.random.default_rng(seed)
            scale = rng.choice([0.5, 2.0, 5.0])
            model = mp.RBM(rng.normal(0, scale, (2, 2)), rng.normal(0, scale, 2), rng.normal(0, scale, 2))
            laws = {n: p_n(model, n) for n in (2, 3)}
            assert all(abs(law.sum() - 1) < 1e-9 for law in laws.values())
            which = rng.choice(4, size=2, p=laws[3])
            how = {"steps": BETAS, "base": "uniform", "chains": 1, "ais_chains": 2, "precision": "float64"}
            report = mp.evaluate(
                model, STATES[which].astype(int), **how, seed=seed, confidence=confidence, evidence=False
            )
            n = 3 if "N = 3" in report.certificate.quantity else 2
            positions = which[report.per_example.positions]
            wrong["p_N"] += report.certificate.bound > np.log(laws[n][positions]).mean() + 1e-9
            log_z = mp.exact_log_z(model)
            wrong["log Z"] += report.log_z_certificate.bound > log_z + 1e-9
        limit = binom.isf(1e-3, models, 1 - confidence)
        print(
            f"{confidence:.0%} of {models:,} models: {wrong}, promised up to {limit:.0f} by chance",
            flush=True,
        )


if __name__ == "__main__":
    main()
