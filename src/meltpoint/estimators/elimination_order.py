"""The order in which units are summed out one after the other, such that the tables in between stay small.

Summing out a unit joins its neighbours: they and the unit are its *cluster*, and the table over it is what the step
costs. The *width* of an order is the number of units in its largest cluster, less one; no order is below the graph's
treewidth. These orders are tried: the units' own and one along the graph from end to end, which suit chains and
lattices, and greedy ones with the fewest new edges, ties broken at random.
"""

import heapq
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

Graph: TypeAlias = list[set[int]]
"""Neighbours of each unit: those that share a factor with it."""

LOG2_HOPELESS = 40.0
"""log2 of the number of entries added up from which on an order is not pursued."""

_TRIES = 8
_EFFORT = (
    2_000_000  # visits of neighbours in one greedy order, which is given up then: some tenths of a second
)


@dataclass(frozen=True)
class Order:
    """Units in the order in which they are summed out, and what that costs.

    `width` is the number of units of the largest cluster, less one, `log2_table` the logarithm of the number of
    entries of its table, `log2_work` that of the entries of all tables together.
    """

    units: tuple[int, ...]
    width: int
    log2_table: float
    log2_work: float


def interaction_graph(n_units: int, scopes: Iterable[tuple[int, ...]]) -> Graph:
    """Neighbours of each unit."""
    graph: Graph = [set() for _ in range(n_units)]
    for scope in scopes:
        for unit in scope:
            graph[unit].update(scope)
    for unit, neighbours in enumerate(graph):
        neighbours.discard(unit)
    return graph


def least_width(graph: Graph) -> int:
    """A lower bound on the width of every order: n units that are eliminated with width k have few enough edges.

    >>> least_width(interaction_graph(4, [(0, 1), (1, 2), (2, 3), (0, 3), (0, 2), (1, 3)]))  # a clique of four
    3
    """
    n, edges = len(graph), sum(map(len, graph)) // 2
    return next((k for k in range(n) if edges <= k * n - k * (k + 1) // 2), 0)


def find_order(cardinalities: Sequence[int], graph: Graph) -> Order | None:
    """The cheapest of several orders; None if none was found that adds up fewer than 2**40 entries.

    >>> find_order([2] * 100, interaction_graph(100, [(i, i + 1) for i in range(99)])).width
    1
    """
    bits = [math.log2(n) for n in cardinalities]
    best: Order | None = None
    for greedy, units in _candidates(graph, bits):
        found = measure_order(graph, bits, units, LOG2_HOPELESS if best is None else best.log2_work)
        best = found or best
        if greedy and best is None:  # other ties seldom save as much as is needed, and wide graphs take long
            break
    return best


def measure_order(
    graph: Graph, bits: Sequence[float], units: Iterable[int], log2_most: float = math.inf
) -> Order | None:
    """What an order costs, None if that is more than `log2_most`; `bits` are log2 of the units' numbers of states."""
    left = [set(neighbours) for neighbours in graph]
    order: list[int] = []
    width, largest, work = 0, 0.0, 0.0
    for unit in units:
        size = bits[unit] + sum(bits[other] for other in left[unit])
        width, largest, work = max(width, len(left[unit])), max(largest, size), work + 2.0**size
        if math.log2(work) > log2_most:
            return None
        order.append(unit)
        _join_neighbours(left, unit)
    if len(order) < len(graph):
        return None
    return Order(tuple(order), width, largest, math.log2(work) if work else 0.0)


def _join_neighbours(graph: Graph, unit: int) -> set[int]:
    """Take a unit away and join its neighbours; the units for which the number of missing edges may change."""
    neighbours = graph[unit]
    changed = set(neighbours)
    for other in neighbours:
        if len(neighbours - graph[other]) > 1:  # itself is one of them
            # A new edge spares those next to both of its ends an edge of their own.
            changed |= graph[other]
        graph[other] |= neighbours
        graph[other] -= {unit, other}
    return changed - {unit}


def _candidates(graph: Graph, bits: Sequence[float]) -> Iterator[tuple[bool, Iterable[int]]]:
    """Orders to try, and whether they are greedy."""
    yield False, range(len(graph))
    yield False, _along(graph)
    rng = np.random.default_rng(0)
    for _ in range(_TRIES):
        yield True, _greedy(graph, bits, rng.random(len(graph)).tolist())


def _along(graph: Graph) -> list[int]:
    """Units in an order that keeps neighbours close together."""
    from scipy.sparse import csgraph, csr_array  # a tenth of a second, which only some models need to pay

    if not graph:
        return []
    pairs = np.array([(unit, other) for unit, own in enumerate(graph) for other in own] or [(0, 0)])
    adjacency = csr_array((np.ones(len(pairs), np.int8), tuple(pairs.T)), shape=(len(graph),) * 2)
    return csgraph.reverse_cuthill_mckee(adjacency, symmetric_mode=True).tolist()


def _greedy(graph: Graph, bits: Sequence[float], ties: Sequence[float]) -> Iterator[int]:
    """Always the unit next that needs the fewest new edges, each weighted by the bits of both its ends."""
    left = [set(neighbours) for neighbours in graph]
    equal = len(set(bits)) == 1
    effort = 0

    def weight(units: set[int]) -> float:
        return len(units) if equal else sum(bits[unit] for unit in units)

    def score(unit: int) -> tuple[float, float, int]:
        nonlocal effort
        neighbours = left[unit]
        effort += len(neighbours) ** 2
        new = sum(weight({other}) * weight(neighbours - left[other] - {other}) for other in neighbours)
        return new, ties[unit], unit

    scores = [score(unit) for unit in range(len(left))]
    heap = list(scores)
    heapq.heapify(heap)
    done = bytearray(len(left))
    while heap and effort < _EFFORT:
        found = heapq.heappop(heap)
        unit = found[-1]
        if done[unit] or found != scores[unit]:
            continue
        done[unit] = 1
        yield unit
        for other in _join_neighbours(left, unit):
            if not done[other]:
                scores[other] = score(other)
                heapq.heappush(heap, scores[other])
