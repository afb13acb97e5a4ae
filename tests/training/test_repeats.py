"""The same machine and library train the same model, another processor's library one that is as good."""

import numpy as np
import pytest

import meltpoint as mp
from meltpoint.datasets import load
from training.repeats import AS_GOOD, NAMES, OTHER_PROCESSOR, parameters, trained


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_the_same_machine_trains_the_same_model(name):
    assert trained("", 1)[name] == trained("", 2)[name]


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_another_processor_trains_a_model_as_good(name):
    (_, own), (_, other) = trained("", 1)[name], trained(OTHER_PROCESSOR, 1)[name]
    assert abs(own - other) < AS_GOOD


@pytest.mark.parametrize("seed", [1, 2])
def test_another_seed_gives_another_model(seed):
    bits = load("digits").train[:100]
    first, other = (mp.train_rbm(bits, 5, epochs=1, seed=s) for s in (seed, seed + 1))
    pairs = zip(parameters(first), parameters(other), strict=True)
    assert any(not np.array_equal(a, b) for a, b in pairs)
