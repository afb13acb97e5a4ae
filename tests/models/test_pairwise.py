"""The pairwise form refuses what the kernels could not run, and its list of factors is the same field."""

from dataclasses import replace

import numpy as np
import pytest

from annealing.graph_fields import bit_field, grid, potts_field
from meltpoint import InputError
from meltpoint.models.factor_tables import factors_of_pairs
from oracle.tables import all_states

BITS = bit_field(grid(2, 3), "spin", 1, sums_out=True).pairwise
POTTS = potts_field(grid(2, 2), 3, 2).pairwise


def changed(array, place, value):
    copy = array.copy()
    copy[place] = value
    return copy


@pytest.mark.parametrize(
    ("graph", "change", "words"),
    [
        (BITS, {"states": 3}, "3 states"),
        (POTTS, {"fields": POTTS.fields[:, :2]}, "fields"),
        (POTTS, {"couplings": POTTS.couplings[:-1]}, "couplings"),
        (BITS, {"fields": changed(BITS.fields, 0, np.nan)}, "NaN"),
        (BITS, {"indptr": changed(BITS.indptr, 0, 1)}, "out of range"),
        (BITS, {"indices": changed(BITS.indices, 0, 99)}, "out of range"),
        (BITS, {"indices": changed(BITS.indices, 0, 0)}, "coupled to itself"),
        (BITS, {"indices": changed(BITS.indices, [0, 1], BITS.indices[[1, 0]])}, "ascending"),
        (BITS, {"couplings": changed(BITS.couplings, 0, 9.0)}, "two directions"),
        (POTTS, {"couplings": changed(POTTS.couplings, (0, 0, 1), 9.0)}, "two directions"),
        (BITS, {"blocks": (*BITS.blocks, BITS.blocks[0])}, "two blocks"),
        (POTTS, {"blocks": POTTS.blocks[:1]}, "in no block"),
        (POTTS, {"blocks": (np.arange(4),)}, "two coupled sites"),
        (BITS, {"blocks": (BITS.summed_out,), "summed_out": BITS.blocks[0]}, "summed out before"),
    ],
)
def test_what_is_refused(graph, change, words) -> None:
    with pytest.raises(InputError, match=words):
        replace(graph, **change)


def test_sizes() -> None:
    assert (BITS.n_sites, BITS.n_state) == (6, 3)
    assert (POTTS.n_sites, POTTS.n_state) == (4, 4)


def test_the_list_of_factors_is_the_same_field() -> None:
    field = potts_field(grid(2, 2), 3, 2)
    factors = factors_of_pairs(field.pairwise)
    states = np.random.default_rng(0).integers(0, 3, (20, 4))
    places = factors.offsets + (factors.strides * states[:, factors.scopes]).sum(axis=2)
    np.testing.assert_allclose(factors.values[places].sum(axis=1), field.log_f(states), rtol=1e-12)
    assert (factors.n_state, factors.largest) == (4, 3)


def test_the_bits_of_spins_are_the_same_field_but_for_a_constant() -> None:
    field = bit_field(grid(2, 2), "spin", 3)
    graph, x = field.pairwise, all_states(4).astype(float)
    matrix = np.zeros((4, 4))
    matrix[graph.rows, graph.indices] = graph.couplings
    of_bits = x @ graph.fields + np.einsum("ci,ij,cj->c", x, matrix, x) / 2
    difference = field.log_f(all_states(4)) - of_bits
    np.testing.assert_allclose(difference, difference[0], rtol=1e-12)
