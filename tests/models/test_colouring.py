"""Colours of graphs: neighbours differ, two are enough where two suffice, no loop runs over sites."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from meltpoint.models.layout import colour_classes, colour_of_component, lay_out, two_colours


def torus(rows, columns):
    """Adjacency of a lattice with periodic boundaries."""
    site = np.arange(rows * columns).reshape(rows, columns)
    pairs = [(site, np.roll(site, 1, axis)) for axis in (0, 1)]
    first, second = (np.concatenate([pair[k].ravel() for pair in pairs]) for k in (0, 1))
    upper = sparse.coo_array((np.ones(first.size), (first, second)), (site.size, site.size)).tocsr()
    return sparse.csr_array(upper + upper.T)


def random_graph(n, density, seed):
    rng = np.random.default_rng(seed)
    upper = np.triu(rng.random((n, n)) < density, 1)
    return sparse.csr_array(upper | upper.T)


def colours(classes, n):
    colour = np.full(n, -1)
    for k, sites in enumerate(classes):
        assert (colour[sites] == -1).all()
        colour[sites] = k
    assert (colour >= 0).all()
    return colour


@given(n=st.integers(1, 30), density=st.floats(0, 1), seed=st.integers(0, 1000))
def test_neighbours_have_different_colours(n, density, seed):
    graph = random_graph(n, density, seed)
    colour = colours(colour_classes(graph), n)
    pairs = graph.tocoo()
    assert (colour[pairs.row] != colour[pairs.col]).all()


@given(n=st.integers(1, 12), m=st.integers(1, 12), density=st.floats(0, 1), seed=st.integers(0, 1000))
def test_two_colours_are_found_where_two_suffice(n, m, density, seed):
    rng = np.random.default_rng(seed)
    between = rng.random((n, m)) < density
    order = rng.permutation(n + m)
    whole = np.block([[np.zeros((n, n), bool), between], [between.T, np.zeros((m, m), bool)]])
    graph = sparse.csr_array(whole[order][:, order])
    colour, component = two_colours(graph)
    pairs = graph.tocoo()
    assert (colour[pairs.row] != colour[pairs.col]).all()
    assert (component[pairs.row] == component[pairs.col]).all()
    larger = colour_of_component(colour, component, np.ones(n + m))
    for k in np.unique(component):
        assert larger[component == k].mean() >= 0.5


def test_an_odd_cycle_needs_three():
    assert two_colours(torus(5, 4)) is None
    assert len(colour_classes(torus(5, 4))) in (3, 4, 5)


def test_a_dense_graph_is_swept_site_by_site():
    assert [sites.tolist() for sites in colour_classes(random_graph(6, 1.0, 0))] == [[k] for k in range(6)]


@pytest.mark.parametrize(("rows", "classes"), [(300, 2), (301, 5)])
def test_a_large_lattice(rows, classes):
    found = colour_classes(torus(rows, 300))
    assert len(found) <= classes
    assert sum(map(len, found)) == rows * 300


def test_what_is_summed_out():
    line = sparse.csr_array(np.diag(np.ones(4), 1) + np.diag(np.ones(4), -1))  # 0 - 1 - 2 - 3 - 4
    two = np.full(5, 2)

    def summed_out(hidden, counts=two, graph=line):
        layout = lay_out(graph, np.asarray(counts), np.isin(np.arange(graph.shape[0]), hidden))
        return sorted(layout.order[layout.n_state :].tolist()), layout

    assert summed_out([])[0] == [0, 2, 4]  # the larger colour
    assert summed_out([])[1].visible_summed_out
    assert summed_out([], [2, 3, 2, 3, 2])[0] == []  # sites of one number of states only
    assert summed_out([1, 3])[0] == [1, 3]  # hidden ones that are not coupled
    assert summed_out([1, 3], [2, 3, 2, 2, 2])[0] in ([1], [3])
    assert summed_out([1, 2])[0] == [1]  # the colour with fewer visible sites
    assert summed_out([0, 1, 2, 3])[0] == [1, 3]
    free, layout = summed_out([], graph=sparse.csr_array((5, 5)))
    assert (free, layout.n_state) == ([1, 2, 3, 4], 1)
    layout = summed_out([0, 2], graph=random_graph(4, 1.0, 0), counts=[2] * 4)[1]
    assert layout.order.tolist() in ([1, 3, 2, 0], [1, 3, 0, 2])  # visible, hidden, summed out
