"""Training data at the door, and in batches."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit

from meltpoint.errors import InputError
from meltpoint.training.examples import check_examples
from meltpoint.training.loop import shuffled_batches
from meltpoint.training.phases import random_stream
from meltpoint.training.settings import TrainingSettings


@given(st.integers(1, 300), st.integers(1, 400), st.integers(0, 5))
def test_an_epoch_shows_every_example_once(n, size, seed):
    n_batches = TrainingSettings(batch=size).n_batches(n)
    batches = shuffled_batches(n, n_batches, np.random.default_rng(seed))
    assert sorted(np.concatenate(batches)) == list(range(n))
    assert all(min(n, size) <= len(batch) < 2 * size for batch in batches)


def test_bits_pass_unchanged():
    bits = np.array([[0, 1], [1, 1]], np.uint8)
    for data in (bits, bits.astype(bool), bits.astype(float), bits.tolist()):
        np.testing.assert_array_equal(check_examples(data, "data").layer(slice(None), random_stream(0)), bits)


def test_grey_values_are_drawn_anew_with_their_probabilities():
    examples = check_examples(np.tile([0.0, 0.25, 1.0], (40_000, 1)), "data")
    first, second = (examples.layer(slice(None), random_stream(0, epoch)) for epoch in (1, 2))
    assert (first != second).any()
    assert first[:, 0].sum() == 0
    assert first[:, 2].all()
    assert abs(first[:, 1].mean() - 0.25) < 5 * np.sqrt(0.25 * 0.75 / 40_000)


def test_rates_are_smoothed():
    examples = check_examples([[0, 1], [0, 1]], "data")
    bias = examples.visible.initial_bias(examples.rows)
    np.testing.assert_allclose(expit(bias), [1 / 4, 3 / 4])


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (np.zeros((2, 3, 4)), "flatten"),
        (np.zeros((0, 3)), "neither of them 0"),
        ([[0, 7]], "binarise"),
        ([[0.0, np.nan]], "NaN"),
        ([[0.5, 1.5]], "binarise"),
        ([["a", "b"]], "zeros and ones"),
    ],
)
def test_what_cannot_be_trained_on_is_refused_with_a_remedy(data, message):
    with pytest.raises(InputError, match=message):
        check_examples(data, "data")


def test_validation_must_be_as_wide_as_the_data():
    with pytest.raises(InputError, match="label column"):
        check_examples([[0, 1]], "validation", like=check_examples([[0, 1, 1]], "data"))
