"""What the oracle says about a model of the library."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meltpoint.annealing.base import Base, uniform
from meltpoint.layers.unit import Floats
from meltpoint.models import Model
from meltpoint.models.dbn import DBN
from meltpoint.models.rbm import RBM
from oracle import chains
from oracle.directed import generative, recognition
from oracle.driving.dictated import product
from oracle.tables import BITS, SPINS, Layers, all_states, marginal


def oracle_path(model: Model, base: Base) -> chains.Path:
    """The oracle's path from a base, uniform in the layers it lacks, to a model (a DBN's top RBM)."""
    own = getattr(model, "oracle_path", None)
    if own is not None:
        return own(base)
    mrf: Any = model.undirected
    weights = (mrf.weights,) if isinstance(mrf, RBM) else mrf.weights
    biases = (mrf.visible_bias, mrf.hidden_bias) if isinstance(mrf, RBM) else mrf.biases
    missing = tuple(np.zeros(bias.size) for bias in biases[len(base.biases) :])
    return chains.path((*base.biases, *missing), Layers(weights, biases, layer_values(mrf)))


def layer_values(model: Model) -> tuple[tuple[float, float], ...]:
    """The values of the two states of each layer's units."""
    by_name = {"bernoulli": BITS, "spin": SPINS}
    return tuple(by_name[unit.name] for unit in model.units)


def p_ann(model: Model, base: Base, betas: Floats) -> Floats:
    """The annealing model (visible state,)."""
    return generated(model, chains.p_ann(oracle_path(model, base), betas))


def f_visible(model: Model) -> Floats:
    """f (visible state,); for a DBN unnormalised by its top RBM's Z."""
    path = oracle_path(model, uniform())
    return generated(model, marginal(np.exp(path.log_f(1.0)), path.visible))


def generated(model: Model, distribution: Floats) -> Floats:
    """A distribution of the annealed model's visible side, pushed down through the directed layers of a DBN."""
    for k, layer in reversed(list(enumerate(directed(model)))):
        values = layer_values(model)[k : k + 2]
        distribution = distribution @ generative(layer.weights, layer.visible_bias, *values)
    return distribution


def directed(model: Model) -> Sequence[Any]:
    """The directed layers of a DBN; other models have none."""
    return model.directed if isinstance(model, DBN) else ()


def recognition_sizes(model: Model) -> list[int]:
    """Units drawn by recognition, directed layer by directed layer."""
    return [layer.weights.shape[1] for layer in directed(model)]


def recognition_probability(model: Model) -> Floats:
    """q (visible state, outcome) of every outcome of recognition, in the order of `recognition_outcomes`."""
    probability = np.ones(
        (2**model.n_visible, 1, 1)
    )  # (v, outcome of the layers below, state of the last one)
    for k, layer in enumerate(directed(model)):
        given_lower = recognition(layer.weights, layer.recognition_bias, *layer_values(model)[k : k + 2])
        rows = given_lower[:, np.newaxis] if k == 0 else probability[..., np.newaxis] * given_lower
        probability = rows.reshape(len(probability), -1, given_lower.shape[1])
    return probability.reshape(len(probability), -1)


def recognition_outcomes(model: Model) -> Any:
    """A stand-in for `draw_given`: called layer after layer, it gives every outcome once for every example."""
    sizes = recognition_sizes(model)
    layers = iter(zip(product([2**size for size in sizes]), sizes, strict=True))

    def draw_given(_generators: object, rates: Floats) -> NDArray[np.bool_]:
        outcome, size = next(layers)
        bits = all_states(size)[outcome].astype(np.bool_)  # (outcome, unit)
        return np.broadcast_to(bits, (rates.size // bits.size, *bits.shape)).reshape(rates.shape)

    return draw_given
