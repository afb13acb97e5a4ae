"""Every way of adding up rows, forced in turn, gives what the plain loop gives; integer sums give the same bits."""

import itertools

import numpy as np
import pytest

from meltpoint.annealing.base import Base
from meltpoint.annealing.blocks import Segment
from meltpoint.backends.numba import bipartite
from meltpoint.backends.numba.kernels.packing import CHEAPEST, FLIPS, OFF, ON, TABLES, pack
from meltpoint.backends.tiles import anneal
from meltpoint.kernels.streams import Streams
from meltpoint.models.dbm import DBM
from meltpoint.randomness import Purpose
from oracle.driving.replay import replay

KINDS = {"on": ON, "off": OFF, "tables": TABLES, "flips": FLIPS, "cheapest": CHEAPEST}
SIZES = {"narrow": (70, 90), "wide": (150, 20), "deep": (40, 33, 50, 7)}


def make_path(sizes, seed=0):
    rng = np.random.default_rng(seed)
    weights = [rng.normal(0, 0.4, shape) for shape in itertools.pairwise(sizes)]
    biases = [rng.normal(0, 1, size) for size in sizes]
    return DBM(weights, biases).path(Base("test", (rng.normal(0, 1, sizes[0]),)))


def run(path, precision, kind, monkeypatch, n_chains=6):
    def forced(path, weight_type, *arguments):
        # The exact ends of a mixed path are float32 sums, whose last bits depend on the order.
        lists = CHEAPEST if precision == "mixed" and weight_type != np.int16 else KINDS[kind]
        return pack(path, weight_type, *arguments, lists=lists)

    monkeypatch.setattr(bipartite, "pack", forced)
    start = np.zeros((n_chains, path.target.n_state), np.uint8)
    streams = Streams(5, Purpose.AIS, np.arange(n_chains))
    segments = [Segment(np.linspace(0, 1, 41)), Segment(np.linspace(1, 0, 31))]
    prepared = bipartite.BipartiteBackend().prepare(path, precision)
    return anneal(prepared, segments, start, streams), replay(prepared, segments, start, streams)


@pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES)
@pytest.mark.parametrize("kind", KINDS)
def test_each_list_gives_what_the_plain_loop_gives(sizes, kind, monkeypatch):
    found, expected = run(make_path(sizes), "float64", kind, monkeypatch)
    np.testing.assert_array_equal(found.state, expected.state)
    np.testing.assert_allclose(found.log_weights, expected.log_weights, rtol=0, atol=1e-10)


@pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES)
def test_integer_sums_have_the_same_bits_from_every_list(sizes, monkeypatch):
    path = make_path(sizes)
    assert bipartite.BipartiteBackend().prepare(path, "mixed").rounded_packed is not None
    runs = [run(path, "mixed", kind, monkeypatch)[0] for kind in KINDS]
    for other in runs[1:]:
        np.testing.assert_array_equal(runs[0].state, other.state)
        np.testing.assert_array_equal(runs[0].log_weights, other.log_weights)
