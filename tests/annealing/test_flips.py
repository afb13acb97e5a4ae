"""Fields that are kept and corrected by the rows of flipped units have the bits of fields that are added up anew."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from meltpoint.annealing.base import uniform
from meltpoint.backends.numba.bipartite import BipartiteBackend, _call
from meltpoint.backends.numba.kernels import lists, tile
from meltpoint.backends.numba.kernels.blocks import to_bits, to_words
from meltpoint.backends.numba.kernels.packing import (
    CHEAPEST,
    FLIPS,
    OFF,
    ON,
    TABLES,
    pack,
    spread,
    without_padding,
)
from meltpoint.backends.numba.kernels.tile import Chains, Workspace
from meltpoint.kernels.bits import SLACK, list_on, lister
from meltpoint.kernels.compiling import compiled
from meltpoint.kernels.rows import GROUP, safe_group
from meltpoint.kernels.streams import chain_generators
from meltpoint.models.dbm import DBM
from meltpoint.randomness import Purpose

KINDS = (ON, OFF, TABLES, FLIPS, CHEAPEST)
# Kernels have them without what Python needs to call them.
add_up = compiled(tile.add_up.py_func)
tables_cost_less = compiled(lists.tables_cost_less.py_func)

LARGEST = np.iinfo(np.int16).max
N_CHAINS = 5


def make_packed(sizes, lists, seed=0, scale=0.3):
    """Packed for 16 bits, with lists of one kind, and the path of rounded weights."""
    rng = np.random.default_rng(seed)
    weights = [rng.normal(0, scale, shape) for shape in itertools.pairwise(sizes)]
    model = DBM(weights, [rng.normal(0, 1, size) for size in sizes])
    prepared = BipartiteBackend().prepare(model.path(uniform()), "mixed")
    assert prepared.rounded is not None
    assert prepared.rounded_packed is not None
    return pack(prepared.rounded, np.int16, prepared.rounded_packed.even.scale, lists=lists), prepared.rounded


class OddFields:
    """The odd side's fields for one state of the even side after the other, as the kernel finds them."""

    def __init__(self, packed):
        self.even, self.odd = packed.even, packed.odd
        self.work = Workspace.of(packed, N_CHAINS)
        self.lists = self.work.even.lists
        self.later = False

    def after(self, bits):
        even, odd, work = self.even, self.odd, self.work
        words = to_words(spread(bits, even.layout.sizes))
        add_up(
            odd.feed, odd.slope.size, even.layout, words, work.none_on, self.later, self.lists, work.tables, work.odd,
        )  # fmt: skip
        self.later = True
        field = work.odd.sums.reshape(N_CHAINS, -1)
        return without_padding(field[:, : odd.slope.size], odd.layout.sizes)


def expected_field(family, scale, bits):
    """The same by integer matrix products."""
    two = family.target
    field = np.zeros((len(bits), two.n_odd), np.int64)
    for block in two.blocks:
        rows, columns = two.even_slices[block.even_layer], two.odd_slices[block.odd_layer]
        field[:, columns] += bits[:, rows].astype(np.int64) @ np.rint(block.weights / scale).astype(np.int64)
    return field


def sequences(n_even):
    """States (step, chain, unit): nothing flips, everything flips, all on, one unit, a few, many."""
    rng = np.random.default_rng(1)
    random = rng.integers(0, 2, (N_CHAINS, n_even), np.uint8)
    one = np.zeros_like(random)
    one[:, -1] = 1
    few = random.copy()
    few[:, ::17] ^= 1
    zeros, ones = np.zeros_like(random), np.ones_like(random)
    return [random, random, few, 1 - few, zeros, zeros, one, zeros, ones, ones, 1 - one, random, few, random]


@pytest.mark.slow
@pytest.mark.parametrize(
    "sizes", [(100, 40), (200, 130), (96, 30, 70), (70, 40, 90, 33), (64, 20), (1, 100), (100, 1), (900, 70)]
)
@pytest.mark.parametrize("kind", KINDS, ids=["on", "off", "tables", "flips", "cheapest"])
def test_fields_are_the_matrix_product(sizes, kind):
    packed, family = make_packed(sizes, kind)
    fields = OddFields(packed)
    for bits in sequences(family.target.n_even):
        np.testing.assert_array_equal(fields.after(bits), expected_field(family, packed.odd.scale, bits))
        if kind == FLIPS and fields.lists.places[..., 3].any():
            assert (fields.lists.kinds == FLIPS).all()


def test_layers_of_one_side_are_corrected_together_or_choose_for_themselves():
    packed, family = make_packed((100, 40, 200), CHEAPEST)
    fields = OddFields(packed)
    bits = np.random.default_rng(2).integers(0, 2, (N_CHAINS, 300), np.uint8)
    bits[:, 100:] = np.arange(200) % 9 > 0
    other = bits.copy()
    other[:, [3, 50]] ^= 1
    for state, kind in ((bits, OFF), (other, FLIPS), (1 - other, ON)):
        np.testing.assert_array_equal(fields.after(state), expected_field(family, packed.odd.scale, state))
        assert (fields.lists.kinds[:, 1] == kind).all()
        assert ((fields.lists.kinds == FLIPS).all(axis=1) == (kind == FLIPS)).all()


def test_a_correction_from_the_wrong_state_would_be_seen():
    # The mutant: fields are corrected as if they had been added up for another state than they were.
    packed, family = make_packed((100, 40), FLIPS)
    fields = OddFields(packed)
    random, few = sequences(100)[1:3]
    fields.after(random)
    fields.lists.listed[:] = to_words(spread(few, packed.even.layout.sizes))
    assert (fields.after(1 - few) != expected_field(family, packed.odd.scale, 1 - few)).any()


def run(packed, betas, frozen, seed, n_chains=4):
    """Everything a call of the kernel changes."""
    even = packed.even
    start = np.random.default_rng(seed).integers(0, 2, (n_chains, even.layout.sizes.sum()), np.uint8)
    state = to_words(spread(start, even.layout.sizes))
    generators = chain_generators(seed, Purpose.AIS, np.arange(n_chains))
    chains = Chains(state, generators, np.zeros(n_chains), np.ones(n_chains))
    held = to_words(spread(frozen.astype(np.uint8), even.layout.sizes))
    _call(packed, betas, Workspace.of(packed, n_chains), held, chains)
    kept = to_bits(state)[:, to_bits(held).astype(bool)]
    np.testing.assert_array_equal(kept, start[:, frozen])
    return chains


@pytest.mark.slow
@given(
    sizes=st.lists(st.integers(1, 140), min_size=2, max_size=4),
    scale=st.sampled_from([0.02, 0.3, 1.0]),
    steps=st.integers(1, 80),
    melts=st.booleans(),
    freeze=st.sampled_from([0.0, 0.5, 1.0]),
    seed=st.integers(0, 2**32 - 1),
)
@settings(max_examples=min(40, settings().max_examples), deadline=None)
def test_chains_have_the_same_bits_whichever_lists_are_used(sizes, scale, steps, melts, freeze, seed):
    betas = np.linspace(0, 1, steps + 1)[:: -1 if melts else 1].copy()
    frozen = np.random.default_rng(seed).random(sum(sizes[::2])) < freeze
    runs = [run(make_packed(sizes, kind, seed, scale)[0], betas, frozen, seed) for kind in KINDS]
    for other in runs[1:]:
        for a, b in zip(runs[0], other, strict=True):
            np.testing.assert_array_equal(a, b)


def test_tables_are_for_states_of_which_many_units_are_on_and_flip():
    layout = make_packed((200, 130), CHEAPEST)[0].even.layout
    dense, sparse = (np.arange(200) % n == 0 for n in (2, 9))
    words = [to_words(spread(np.tile(bits, (64, 1)).astype(np.uint8), [200])) for bits in (dense, sparse)]
    none_on = np.zeros_like(layout.real)
    assert tables_cost_less(words[0], words[1], layout, 160, none_on, False)
    assert not tables_cost_less(words[0], words[0], layout, 160, none_on, True)  # nothing has flipped
    assert not tables_cost_less(words[1], words[0], layout, 160, none_on, False)
    few = [each[:4].copy() for each in words]  # chains, for which tables are not worth making
    assert not tables_cost_less(few[0], few[1], layout, 160, none_on, False)


def test_lists_go_on_where_tables_have_stopped():
    # At beta 0 half the units are on, which tables are for. At beta 1 the few units are on that were on before.
    rng = np.random.default_rng(4)
    sizes = (150, 140)
    model = DBM([rng.normal(0, 0.05, sizes)], [np.where(np.arange(size) % 9, -9.0, 9.0) for size in sizes])
    prepared = BipartiteBackend().prepare(model.path(uniform()), "mixed")
    assert prepared.rounded is not None
    assert prepared.rounded_packed is not None
    scale, betas, frozen = (
        prepared.rounded_packed.even.scale,
        np.array([1.0, 1, 1, 0, 1, 1, 0, 1, 1, 1]),
        np.zeros(150, bool),
    )
    runs = [run(pack(prepared.rounded, np.int16, scale, lists=kind), betas, frozen, 1) for kind in KINDS]
    for other in runs[1:]:
        for a, b in zip(runs[0], other, strict=True):
            np.testing.assert_array_equal(a, b)


def test_many_steps_do_not_drift():
    packed = {kind: make_packed((90, 80, 70), kind)[0] for kind in (ON, FLIPS)}
    betas, frozen = np.full(5001, 0.9), np.zeros(160, bool)
    for a, b in zip(*(run(packed[kind], betas, frozen, 3) for kind in packed), strict=True):
        np.testing.assert_array_equal(a, b)


@given(
    hnp.arrays(np.int16, st.tuples(st.integers(1, 200), st.just(3)), elements=st.integers(-2047, 2047)),
)
@settings(deadline=None)
def test_groups_are_as_large_as_sixteen_bits_allow(rows):
    wide = rows.astype(np.int64)
    for side in (wide, -wide):
        largest = np.sort(np.maximum(side, 0), axis=0)[::-1]
        assert largest[: safe_group(rows)].sum(axis=0).max() <= LARGEST
    assert safe_group(rows) >= GROUP
    if safe_group(rows) < len(rows) and safe_group(rows) > GROUP:
        n = safe_group(rows) + 1
        sums = [np.sort(np.maximum(side, 0), axis=0)[::-1][:n].sum(axis=0).max() for side in (wide, -wide)]
        assert max(sums) > LARGEST


_list_looked_up = lister(lambda _context: False)


@compiled
def _list_both(words, others, out, other_out):
    end = list_on(words, 1, others, 0, others.size, 640, 64, out, 2)
    return end, _list_looked_up(words, 1, others, 0, others.size, 640, 64, other_out, 2)


@given(hnp.arrays(np.uint32, 6), hnp.arrays(np.uint32, 5))
@settings(deadline=None)
def test_bits_are_listed_in_order_on_every_processor(words, others):
    out, other_out = np.zeros((2, 2 + 5 * 32 + SLACK), np.uint32)
    end, other_end = _list_both(words, others, out, other_out)
    expected = 640 + 64 * np.flatnonzero(to_bits(words[1:] & ~others))
    for found, stop in ((out, end), (other_out, other_end)):
        np.testing.assert_array_equal(found[2:stop], expected)
