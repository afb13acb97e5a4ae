import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.stats import binom

from meltpoint.data import dataset
from meltpoint.data.dataset import stochastic, threshold

whites = st.sampled_from([1, 16, 255])
seeds = st.integers(0, 2**64)
streams = st.tuples(st.integers(0, 2), st.integers(0, 1000))


@st.composite
def grey(draw, kind=None):
    """Levels (example, pixel) with their white, as whole numbers or as fractions."""
    white = draw(whites)
    shape = draw(hnp.array_shapes(min_dims=2, max_dims=2, max_side=12))
    if draw(st.booleans()):
        return draw(hnp.arrays(np.uint8, shape, elements=st.integers(0, white))), white
    return draw(hnp.arrays(np.float32, shape, elements=st.floats(0, white, width=32))), white


@given(grey(), seeds, streams)
def test_off_stays_off_and_white_is_always_on(images, seed, stream):
    levels, white = images
    bits = stochastic(levels, white, seed, stream)
    assert bits.dtype == np.uint8
    assert bits.shape == levels.shape
    assert set(np.unique(bits)) <= {0, 1}
    assert not bits[levels == 0].any()
    assert bits[levels == white].all()


@given(grey(), seeds, streams)
def test_a_draw_belongs_to_its_seed_and_stream(images, seed, stream):
    levels, white = images
    np.testing.assert_array_equal(
        stochastic(levels, white, seed, stream), stochastic(levels, white, seed, stream)
    )


@given(grey(), seeds, streams, st.integers(1, 12))
def test_examples_that_follow_do_not_change_those_before(images, seed, stream, n_rows):
    levels, white = images
    whole = stochastic(levels, white, seed, stream)
    np.testing.assert_array_equal(stochastic(levels[:n_rows], white, seed, stream), whole[:n_rows])


@given(grey(), seeds, streams)
def test_brighter_levels_switch_on_no_fewer_pixels(images, seed, stream):
    levels, white = images
    brighter = (
        levels + (white - levels) // 2 if levels.dtype == np.uint8 else (levels + np.float32(white)) / 2
    )
    assert (stochastic(brighter, white, seed, stream) >= stochastic(levels, white, seed, stream)).all()


def test_the_draw_does_not_depend_on_how_many_rows_are_handled_at_once(monkeypatch):
    levels = np.random.default_rng(0).integers(0, 256, (2501, 7))
    whole = stochastic(levels, 255, 3, (0, 0))
    monkeypatch.setattr(dataset, "ROWS", 2)
    np.testing.assert_array_equal(stochastic(levels, 255, 3, (0, 0)), whole)


@pytest.mark.parametrize("other", [(1, (0, 0)), (0, (1, 0)), (0, (0, 1)), (0, (2, 0))])
def test_another_seed_or_stream_is_an_independent_draw(other):
    half = np.full((1000, 100), 0.5, np.float32)
    agree = (stochastic(half, 1, 0, (0, 0)) == stochastic(half, 1, *other)).sum()
    # Fair coins agree half of the time: two-sided, a false alarm with probability 1e-6.
    assert 5e-7 < binom.cdf(agree, half.size, 0.5) < 1 - 5e-7


def most_surprising(white: int, drawn_with: int) -> float:
    """The smallest tail probability that any level's draws have under level / white."""
    n = 20_000
    levels = np.tile(np.arange(white + 1, dtype=np.uint8), (n, 1))
    n_on = stochastic(levels, drawn_with, 0, (0, 0)).sum(axis=0, dtype=np.int64)
    chances = np.arange(white + 1) / white
    return min(binom.cdf(n_on, n, chances).min(), binom.sf(n_on - 1, n, chances).min())


@pytest.mark.parametrize("white", [16, 255])
def test_a_pixel_is_on_with_the_probability_of_its_grey_value(white):
    false_alarm = 1e-6 / (2 * (white + 1))
    assert most_surprising(white, drawn_with=white) > false_alarm
    # The classic slip, dividing by the number of levels, must not pass.
    assert most_surprising(white, drawn_with=white + 1) < false_alarm


@given(grey())
def test_the_threshold_is_one_half(images):
    levels, white = images
    bits = threshold(levels, white)
    assert bits.dtype == np.uint8
    np.testing.assert_array_equal(bits == 1, 2 * levels.astype(np.float64) > white)
