"""The model phase by sampling: chains that start in equilibrium must stay there."""

import numpy as np
import pytest
from scipy import stats

from meltpoint.training.phases import data_phase, model_phase, random_stream, start_chains, trainable_dbm
from oracle.derivatives import joint_states, random_parameters

N_CHAINS = 40_000
FALSE_ALARM = 1e-6


def equilibrium(sizes):
    """A dbm, its visible distribution, and odd layers drawn from it exactly."""
    parameters = random_parameters(sizes, seed=11)
    layers, probabilities = joint_states(parameters)
    chosen = np.random.default_rng(0).choice(len(probabilities), N_CHAINS, p=probabilities)
    dbm = trainable_dbm([p.astype(np.float32) for p in parameters], (1,) * len(sizes))
    return dbm, layers, probabilities, [layer[chosen] for layer in layers[1::2]]


def p_value(dbm, layers, probabilities, odd, k):
    """Of the hypothesis that visible units after k steps have the distribution they should have."""
    states, _ = model_phase(dbm, odd, k, random_stream(0, 1))
    codes = states[0].astype(int) @ (1 << np.arange(states[0].shape[1]))
    exact = np.bincount(layers[0].astype(int) @ (1 << np.arange(layers[0].shape[1])), weights=probabilities)
    return stats.chisquare(np.bincount(codes, minlength=exact.size), N_CHAINS * exact).pvalue


@pytest.mark.parametrize("sizes", [[4, 3], [4, 3, 2], [3, 2, 2, 2]])
@pytest.mark.parametrize("k", [1, 3])
def test_chains_in_equilibrium_stay_there(sizes, k):
    assert p_value(*equilibrium(sizes), k) > FALSE_ALARM / 6


@pytest.mark.parametrize("sizes", [[4, 3], [4, 3, 2]])
def test_a_slightly_wrong_machine_would_be_noticed(sizes):
    dbm, *rest = equilibrium(sizes)
    dbm.biases[0][0] += 0.1
    assert p_value(dbm, *rest, 1) < FALSE_ALARM


def test_chains_begin_at_the_data_and_examples_serve_in_turn():
    parameters = random_parameters([4, 3], seed=12)
    dbm = trainable_dbm([p.astype(np.float32) for p in parameters], (1, 1))
    data = data_phase(dbm, np.eye(4, dtype=np.uint8), 0)
    data[1][:] = [[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 1]]
    (odd,) = start_chains(dbm, data, 6, random_stream(0))
    np.testing.assert_array_equal(odd, data[1][[0, 1, 2, 3, 0, 1]])
