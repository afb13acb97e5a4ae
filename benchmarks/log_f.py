"""log f of the deep models in zoo/: compiled code against dense products, in one interleaved run.

    python benchmarks/log_f.py [--examples 128] [--samples 500]

The dense estimator draws from the same proposals and takes all units of every draw through matrix products, as
NumPy users would. Both run on one thread. Needs the data sets (MELTPOINT_DATA).
"""

import argparse
import time
from pathlib import Path

import numpy as np
from scipy.special import logit
from threadpoolctl import threadpool_limits

import meltpoint as mp
from meltpoint.kernels.sigmoid import sum_softplus
from meltpoint.models.log_f import log_bernoulli
from meltpoint.models.posterior import Mixture
from meltpoint.statistics.log_space import log_mean_exp

ZOO = Path(__file__).parents[1] / "zoo"
MODELS = {
    "mnistDBM-500-1000": "mnist",
    "mnistDBN-500-2000": "mnist",
    "omniDBM-1000-1000": "omniglot",
    "omniDBN-1000-1000": "omniglot",
}


def dense(model, x, samples):
    """Estimates (example,): proposals of all examples together, then products for the draws of one after the other."""
    weigh = dense_dbm if model.kind == "DBM" else dense_dbn
    return log_mean_exp(weigh(model, x, samples, np.random.default_rng(0)))


def dense_dbm(model, x, samples, rng):
    even, _ = model.mean_field(x)
    rates = np.clip(even[:, model.n_visible :], 1e-6, 1 - 1e-6)
    log_weights = np.empty((len(x), samples))
    for k, visible in enumerate(x):
        hidden = rng.random((samples, rates.shape[1])) < rates[k]
        state = np.concatenate([np.broadcast_to(visible, (samples, visible.size)), hidden], axis=1)
        log_q = log_bernoulli(hidden, logit(rates[k]))
        log_weights[k] = model.mrf.log_f(state.astype(np.float32)) - log_q
    return log_weights


def dense_dbn(model, x, samples, rng):
    (layer,), top = model._bit_layers, model.mrf
    recognition = x @ layer.weights + layer.recognition_bias
    refined = model._posterior.mean_field(x, recognition)
    mixture = Mixture.of(recognition, refined, samples)
    down, up = layer.weights.T.astype(np.float32), top.blocks[0].weights.astype(np.float32)
    log_weights, sums = np.empty((len(x), samples)), np.empty((len(x), samples, 2))
    for k, visible in enumerate(x):
        hidden = rng.random((samples, refined.shape[1])) < mixture.rates[mixture.proposals, k]
        below = hidden.astype(np.float32) @ down + layer.visible_bias.astype(np.float32)
        above = hidden.astype(np.float32) @ up + top.odd_bias.astype(np.float32)
        log_weights[k] = below @ visible - sum_softplus(below) + hidden @ top.even_bias + sum_softplus(above)
        sums[k] = hidden @ mixture.inputs[k]
    return log_weights + top.log_constant - mixture.log_prob(sums)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--examples", type=int, default=128)
    parser.add_argument("--samples", type=int, default=500)
    arguments = parser.parse_args()
    print(f"{'model':20} {'dense':>10} {'compiled':>10} {'ratio':>6}   log f, dense and compiled")
    for name, data in MODELS.items():
        model = mp.load(next(ZOO.glob(f"{name.split('-')[0]}*.npz")))
        x = mp.datasets.load(data).test[: arguments.examples]
        model.log_f_estimate(x[:1], threads=1)
        seconds, means = {"dense": 0.0, "compiled": 0.0}, {"dense": 0.0, "compiled": 0.0}
        with threadpool_limits(1):
            for part in np.split(x, range(64, len(x), 64)):
                for kind in seconds:
                    start = time.perf_counter()
                    if kind == "dense":
                        values = dense(model, part, arguments.samples)
                    else:
                        values = model.log_f_estimate(part, samples=arguments.samples, threads=1).values
                    seconds[kind] += time.perf_counter() - start
                    means[kind] += values.sum() / len(x)
        per = {kind: 1e3 * value / len(x) for kind, value in seconds.items()}
        ratio = per["dense"] / per["compiled"]
        print(
            f"{name:20} {per['dense']:7.1f} ms {per['compiled']:7.1f} ms {ratio:5.1f}x   "
            f"{means['dense']:.3f} {means['compiled']:.3f}"
        )


if __name__ == "__main__":
    main()
