"""The model phase by sampling: chains that start in equilibrium must stay there."""

import numpy as np
import pytest
from scipy import stats

from meltpoint.training.draws import stream
from meltpoint.training.machine import machine_of
from meltpoint.training.phases import begin, dream, infer
from oracle.derivatives import joint_states, random_parameters

N_CHAINS = 40_000
FALSE_ALARM = 1e-6


def equilibrium(sizes):
    """A machine, its visible distribution, and odd layers drawn from it exactly."""
    parameters = random_parameters(sizes, seed=11)
    layers, probabilities = joint_states(parameters)
    chosen = np.random.default_rng(0).choice(len(probabilities), N_CHAINS, p=probabilities)
    machine = machine_of([p.astype(np.float32) for p in parameters], (1,) * len(sizes))
    return machine, layers, probabilities, [layer[chosen] for layer in layers[1::2]]


def p_value(machine, layers, probabilities, odd, k):
    """Of the hypothesis that visible units after k steps have the distribution they should have."""
    states, _ = dream(machine, odd, k, stream(0, 1))
    codes = states[0].astype(int) @ (1 << np.arange(states[0].shape[1]))
    exact = np.bincount(layers[0].astype(int) @ (1 << np.arange(layers[0].shape[1])), weights=probabilities)
    return stats.chisquare(np.bincount(codes, minlength=exact.size), N_CHAINS * exact).pvalue


@pytest.mark.parametrize("sizes", [[4, 3], [4, 3, 2], [3, 2, 2, 2]])
@pytest.mark.parametrize("k", [1, 3])
def test_chains_in_equilibrium_stay_there(sizes, k):
    assert p_value(*equilibrium(sizes), k) > FALSE_ALARM / 6


@pytest.mark.parametrize("sizes", [[4, 3], [4, 3, 2]])
def test_a_slightly_wrong_machine_would_be_noticed(sizes):
    machine, *rest = equilibrium(sizes)
    machine.biases[0][0] += 0.1
    assert p_value(machine, *rest, 1) < FALSE_ALARM


def test_chains_begin_at_the_data_and_examples_serve_in_turn():
    parameters = random_parameters([4, 3], seed=12)
    machine = machine_of([p.astype(np.float32) for p in parameters], (1, 1))
    data = infer(machine, np.eye(4, dtype=np.uint8), 0)
    data[1][:] = [[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 1]]
    (odd,) = begin(machine, data, 6, stream(0))
    np.testing.assert_array_equal(odd, data[1][[0, 1, 2, 3, 0, 1]])
