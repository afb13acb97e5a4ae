"""Stochastic gradient ascent: momentum, weight decay and an average of the last iterates."""

from dataclasses import dataclass

import numpy as np

from meltpoint.annealing.kernels.compiling import compiled
from meltpoint.training.machine import Array, Machine
from meltpoint.training.phases import Gradient


@dataclass
class Ascent:
    """Velocity and running average of every parameter, weights first, and how many were averaged."""

    velocity: tuple[Array, ...]
    average: tuple[Array, ...]
    n_averaged: int = 0


def at_rest(machine: Machine) -> Ascent:
    """No velocity, nothing averaged yet."""
    return Ascent(
        tuple(map(np.zeros_like, machine.parameters)), tuple(map(np.zeros_like, machine.parameters))
    )


def climb(
    machine: Machine, ascent: Ascent, gradient: Gradient, rate: float, momentum: float, weight_decay: float
) -> None:
    """Move every parameter of the machine one step, in place. Biases do not decay."""
    decays = [weight_decay] * len(machine.couplings) + [0.0] * len(machine.biases)
    for value, velocity, slope, decay in zip(
        machine.parameters, ascent.velocity, (*gradient.pairs, *gradient.units), decays, strict=True
    ):
        factors = np.array([rate, momentum, decay], value.dtype)
        _step(value.ravel(), velocity.ravel(), slope.ravel(), factors)
    for coupling in machine.couplings:
        coupling.changed()


def average(machine: Machine, ascent: Ascent) -> None:
    """Take the machine's present parameters into the average."""
    ascent.n_averaged += 1
    for value, mean in zip(machine.parameters, ascent.average, strict=True):
        _approach(mean.ravel(), value.ravel(), np.array([1.0 / ascent.n_averaged], value.dtype))


@compiled
def _step(value: np.ndarray, velocity: np.ndarray, slope: np.ndarray, factors: np.ndarray) -> None:
    rate, momentum, decay = factors
    for i in range(value.size):
        velocity[i] = momentum * velocity[i] + rate * (slope[i] - decay * value[i])
        value[i] += velocity[i]


@compiled
def _approach(mean: np.ndarray, value: np.ndarray, factors: np.ndarray) -> None:
    share = factors[0]
    for i in range(mean.size):
        mean[i] += share * (value[i] - mean[i])
