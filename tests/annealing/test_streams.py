"""Randomness owned by chains: the published generator, bit for bit, and streams that do not meet."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from meltpoint.errors import InputError
from meltpoint.kernels.streams import LANES, Streams, chain_generators, fill_uniforms, next_uniforms
from meltpoint.randomness import Purpose, generator, sequence

# First outputs of the reference implementation of xoshiro128++ (Blackman and Vigna) from the state 1, 2, 3, 4.
PUBLISHED = [
    641,
    1573767,
    3222811527,
    3517856514,
    836907274,
    4247214768,
    3867114732,
    1355841295,
    495546011,
    621204420,
]


class Xoshiro:
    """xoshiro128++ in Python's own integers, from its definition."""

    def __init__(self, *state):
        self.s = [int(word) for word in state]

    def __call__(self):
        s0, s1, s2, s3 = self.s
        drawn = (_rotated((s0 + s3) % 2**32, 7) + s0) % 2**32
        s2, s3 = s2 ^ s0, s3 ^ s1
        self.s = [s0 ^ s3, s1 ^ s2, s2 ^ ((s1 << 9) % 2**32), _rotated(s3, 11)]
        return drawn


def _rotated(word, by):
    return (word << by | word >> (32 - by)) % 2**32


def by_definition(states, count, dtype):
    """Uniforms (chain, count): a chain's generators in turn, the upper 31 bits in the middle of their interval."""
    rows = -(-count // LANES)
    out = np.empty((len(states), rows * LANES), dtype)
    for chain, state in enumerate(states):
        lanes = [Xoshiro(*state[:, lane]) for lane in range(LANES)]
        words = [lane() for _ in range(rows) for lane in lanes]
        bits = np.array([word >> 1 for word in words], np.uint32).astype(dtype)
        out[chain] = (bits + dtype(0.5)) * dtype(2.0**-31)
    return out[:, :count]


def test_published_outputs() -> None:
    draw = Xoshiro(1, 2, 3, 4)
    assert [draw() for _ in PUBLISHED] == PUBLISHED
    states = np.broadcast_to(np.array([1, 2, 3, 4], np.uint32)[:, np.newaxis], (1, 4, LANES)).copy()
    found = next_uniforms(states, LANES * len(PUBLISHED))[0, ::LANES]
    np.testing.assert_array_equal(found, [((word >> 1) + 0.5) / 2**31 for word in PUBLISHED])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@given(st.integers(0, 2**63), st.integers(1, 70), st.integers(1, 3))
@settings(max_examples=15, deadline=None)
def test_numpy_and_kernel_give_the_defined_stream(dtype, seed, count, n_chains) -> None:
    states = chain_generators(seed, Purpose.AIS, np.arange(n_chains))
    expected = by_definition(states, count, dtype)
    for_kernel = states.copy()
    np.testing.assert_array_equal(next_uniforms(states, count, dtype), expected)
    padded = -(-count // LANES) * LANES
    for chain in range(n_chains):
        out = np.empty(padded, dtype)
        fill_uniforms(for_kernel, chain, out, padded)
        np.testing.assert_array_equal(out[:count], expected[chain])
    np.testing.assert_array_equal(for_kernel, states)  # both have advanced alike


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("word", "uniform"), [(0, 2.0**-32), (2**32 - 1, 1 - 2.0**-32)])
def test_uniforms_are_above_0_and_at_most_1(dtype, word, uniform) -> None:
    state = np.zeros((1, 4, LANES), np.uint32)  # rotated(s0 + s3, 7) + s0 with s0 = 0 is s3 rotated
    state[:, 3] = word
    found = next_uniforms(state, 1, dtype)[0, 0]
    assert 0 < found <= 1
    assert found == dtype(uniform)


def test_uniforms_are_uniform() -> None:
    n = 200_000
    drawn = np.sort(next_uniforms(chain_generators(0, Purpose.AIS, np.arange(20)), n // 20).ravel())
    distance = np.abs(drawn - (np.arange(n) + 0.5) / n).max()
    assert distance < np.sqrt(np.log(2 / 1e-6) / (2 * n)) + 1 / n  # Dvoretzky, Kiefer, Wolfowitz and Massart


def test_a_chains_stream_depends_on_seed_purpose_and_number_alone() -> None:
    whole = chain_generators(7, Purpose.RAISE, np.arange(10))
    np.testing.assert_array_equal(chain_generators(7, Purpose.RAISE, np.array([8, 3])), whole[[8, 3]])
    keys = np.array([[0, 1], [2, 3]])
    np.testing.assert_array_equal(
        chain_generators(7, Purpose.RAISE, keys[1:]), chain_generators(7, Purpose.RAISE, keys)[1:]
    )


def test_no_two_streams_are_the_same() -> None:
    seeds, numbers = (0, 1, 2**64), np.arange(20)
    streams = [chain_generators(seed, purpose, numbers) for seed in seeds for purpose in Purpose]
    words = np.concatenate(streams).reshape(len(streams) * len(numbers), -1)
    assert len(np.unique(words, axis=0)) == len(words)
    assert not (words.reshape(-1, 4, LANES) == 0).all(axis=1).any()  # the one state xoshiro never leaves
    firsts = [
        generator(seed, purpose, key).integers(2**63)
        for seed in seeds
        for purpose in Purpose
        for key in range(5)
    ]
    assert len(set(firsts)) == len(firsts)


def test_a_key_of_two_numbers_is_not_a_chain_of_another() -> None:
    one = chain_generators(0, Purpose.RAISE, np.arange(3))
    two = chain_generators(0, Purpose.RAISE, np.array([[0, 0], [1, 0], [2, 0]]))
    assert (one != two).any(axis=(1, 2)).all()


@pytest.mark.parametrize("seed", [-1, 1.5, True, None, "zero"])
def test_bad_seeds(seed) -> None:
    with pytest.raises(InputError, match=f"found seed={seed!r}, expected a whole number from 0 on"):
        chain_generators(seed, Purpose.AIS, np.arange(1))


@given(
    seed=st.integers(0, 2**140),
    purpose=st.sampled_from(Purpose),
    keys=hnp.arrays(
        np.int64, st.tuples(st.integers(1, 3), st.integers(1, 4)), elements=st.integers(0, 2**33)
    ),
)
def test_generators_are_seeded_as_numpy_does(seed, purpose, keys) -> None:
    expected = [sequence(seed, purpose, *key).generate_state(4 * LANES) for key in keys.tolist()]
    found = chain_generators(seed, purpose, keys)
    np.testing.assert_array_equal(found.reshape(len(keys), -1), np.array(expected, np.uint32))
    part = Streams(seed, purpose, keys).part(slice(1, None))
    np.testing.assert_array_equal(part.generators(), found[1:])
