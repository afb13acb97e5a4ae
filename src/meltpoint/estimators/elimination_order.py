"""The order in which units are summed out one after the other, such that the tables in between stay small.

Summing out a unit joins its neighbours: they and the unit are its *cluster*, and the table over it is what the step
costs. The *width* of an order is the number of units in its largest cluster, less one; no order is below the graph's
treewidth. These orders are tried: the units' own and one along the graph from end to end, which suit chains and
lattices, and greedy ones (fewest new edges, smallest table, and between them) with ties broken at random; where
cotengra is installed, also its contraction paths.
"""

import heapq
import importlib.util
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

Graph: TypeAlias = list[set[int]]
"""Neighbours of each unit: those that share a factor with it."""

Scopes: TypeAlias = Sequence[tuple[int, ...]]

_Rule: TypeAlias = Literal["fill", "table", "weighted fill"]

_RULES: tuple[_Rule, ...] = ("fill", "table", "weighted fill")
_TRIES = 12
_EFFORT = 3_000_000  # visits of neighbours, for all tries: some seconds
_LARGE_GRAPH = 20_000  # units, from which on only one order is sought
_COTENGRA_SECONDS = 5.0
_WORTH_COTENGRA = 28.0  # log2 of the entries added up: below, the search takes longer than the sums


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
    """A lower bound on the width of every order: the largest of the smallest degrees met while units are taken away.

    >>> least_width(interaction_graph(4, [(0, 1), (1, 2), (2, 3), (0, 3), (0, 2), (1, 3)]))  # a clique of four
    3
    """
    degrees = [len(neighbours) for neighbours in graph]
    heap = [(degree, unit) for unit, degree in enumerate(degrees)]
    heapq.heapify(heap)
    taken = bytearray(len(graph))
    largest = 0
    while heap:
        degree, unit = heapq.heappop(heap)
        if taken[unit] or degree != degrees[unit]:
            continue
        taken[unit] = 1
        largest = max(largest, degree)
        for other in graph[unit]:
            if not taken[other]:
                degrees[other] -= 1
                heapq.heappush(heap, (degrees[other], other))
    return largest


def find_order(
    cardinalities: Sequence[int], scopes: Scopes, *, seed: int = 0, log2_largest: float = math.inf
) -> Order | None:
    """The cheapest of several orders; None if all have a table beyond `log2_largest`, or are too long to find.

    >>> chain = [(i, i + 1) for i in range(99)]
    >>> find_order([2] * 100, chain).width
    1
    """
    bits = [math.log2(n) for n in cardinalities]
    graph = interaction_graph(len(bits), scopes)
    rng = np.random.default_rng(seed)
    tries = 1 if len(bits) > _LARGE_GRAPH else _TRIES
    best: Order | None = None
    spent = 0
    for units in (range(len(bits)), _along(graph)):
        found = measure_order(graph, bits, units, log2_largest if best is None else best.log2_work)
        best = found or best
    for k in range(tries):
        limit = math.inf if best is None else best.log2_work
        rule: _Rule = "table" if tries == 1 else _RULES[k % len(_RULES)]
        jitter = rng.random(len(bits)) if k >= len(_RULES) else np.zeros(len(bits))
        search = _Search(graph, bits, rule, jitter, _EFFORT - spent)
        found = search.run(log2_largest, limit)
        spent += search.effort
        if found is not None and (best is None or found.log2_work < best.log2_work):
            best = found
        if spent >= _EFFORT or (k + 1 == len(_RULES) and best is None and spent > _EFFORT // 2):
            break
    if (best is None or best.log2_work > _WORTH_COTENGRA) and len(bits) <= _LARGE_GRAPH:
        units = _cotengra_units(cardinalities, scopes, seed)
        if units is not None:
            found = measure_order(graph, bits, units, log2_largest if best is None else best.log2_work)
            best = found or best
    return best if best is not None and best.log2_table <= log2_largest else None


def measure_order(
    graph: Graph, bits: Sequence[float], units: Sequence[int], log2_most: float = math.inf
) -> Order | None:
    """What an order costs, None if that is more than `log2_most`; `bits` are log2 of the units' numbers of states."""
    left = [set(neighbours) for neighbours in graph]
    width, largest, work = 0, 0.0, 0.0
    for unit in units:
        neighbours = left[unit]
        size = bits[unit] + sum(bits[other] for other in neighbours)
        width, largest, work = max(width, len(neighbours)), max(largest, size), work + 2.0**size
        if math.log2(work) > log2_most:
            return None
        for other in neighbours:
            left[other] |= neighbours
            left[other] -= {unit, other}
    return Order(tuple(units), width, largest, math.log2(work) if work else 0.0)


def _along(graph: Graph) -> list[int]:
    """Units in an order that keeps neighbours close together."""
    from scipy.sparse import csgraph, csr_array  # a tenth of a second, which only some models need to pay

    sizes = [len(neighbours) for neighbours in graph]
    columns = np.fromiter(
        (other for neighbours in graph for other in sorted(neighbours)), np.int64, sum(sizes)
    )
    indptr = np.cumsum([0, *sizes])
    adjacency = csr_array((np.ones(len(columns), np.int8), columns, indptr), shape=(len(graph), len(graph)))
    return csgraph.reverse_cuthill_mckee(adjacency, symmetric_mode=True).tolist() if len(graph) else []


class _Search:
    """One greedy order: always the unit with the lowest score, scores kept up to date as edges are added."""

    def __init__(
        self, graph: Graph, bits: Sequence[float], rule: _Rule, jitter: np.ndarray, most_effort: int
    ) -> None:
        self._graph = [set(neighbours) for neighbours in graph]
        self._bits = bits
        self._rule = rule
        self._jitter = jitter.tolist()
        self._most_effort = most_effort
        self.effort = 0

    def run(self, log2_largest: float, log2_work: float) -> Order | None:
        graph, bits = self._graph, self._bits
        scores = [self._score(unit) for unit in range(len(graph))]
        heap = [(score, unit) for unit, score in enumerate(scores)]
        heapq.heapify(heap)
        done = bytearray(len(graph))
        units: list[int] = []
        width, largest, work = 0, 0.0, 0.0
        while heap:
            score, unit = heapq.heappop(heap)
            if done[unit] or score != scores[unit]:
                continue
            done[unit] = 1
            units.append(unit)
            neighbours = graph[unit]
            size = bits[unit] + sum(bits[other] for other in neighbours)
            width, largest, work = max(width, len(neighbours)), max(largest, size), work + 2.0**size
            if largest > log2_largest or math.log2(work) > log2_work or self.effort > self._most_effort:
                return None
            for other in self._eliminate(unit):
                scores[other] = self._score(other)
                heapq.heappush(heap, (scores[other], other))
        return Order(tuple(units), width, largest, math.log2(work) if work else 0.0)

    def _eliminate(self, unit: int) -> set[int]:
        """Join the neighbours of a unit; the units whose scores may have changed."""
        graph = self._graph
        neighbours = graph[unit]
        changed = set(neighbours)
        for other in neighbours:
            added = neighbours - graph[other]
            self.effort += len(neighbours)
            if self._rule != "table" and len(added) > 1:  # itself is one of them
                # A new edge spares those next to both of its ends an edge of their own.
                changed |= graph[other]
            graph[other] |= neighbours
            graph[other] -= {unit, other}
        changed.discard(unit)
        return changed

    def _score(self, unit: int) -> tuple[float, float]:
        graph, bits = self._graph, self._bits
        neighbours = graph[unit]
        if self._rule == "table":
            self.effort += len(neighbours)
            return bits[unit] + sum(bits[other] for other in neighbours), self._jitter[unit]
        fill = 0.0
        for other in neighbours:
            missing = neighbours - graph[other]
            self.effort += len(neighbours)
            if self._rule == "fill":
                fill += len(missing) - 1
            else:
                fill += bits[other] * (sum(bits[third] for third in missing) - bits[other])
        return fill, self._jitter[unit]


def _cotengra_units(cardinalities: Sequence[int], scopes: Scopes, seed: int) -> list[int] | None:
    """Units in the order in which a contraction path of cotengra sums them out; None where it is not installed."""
    if importlib.util.find_spec("cotengra") is None:
        return None
    import cotengra  # pyright: ignore[reportMissingImports]

    used = sorted({unit for scope in scopes for unit in scope})
    inputs = [tuple(scope) for scope in scopes if scope]
    if len(inputs) < 2:
        return None
    optimizer = cotengra.HyperOptimizer(
        methods=["greedy"],
        minimize="size",
        max_time=_COTENGRA_SECONDS,
        max_repeats=64,
        parallel=False,
        optlib="random",
        seed=seed,
        progbar=False,
    )
    path = cotengra.array_contract_path(
        inputs, (), size_dict={unit: cardinalities[unit] for unit in used}, optimize=optimizer, cache=False
    )
    return _units_of_path(inputs, path, len(cardinalities))


def _units_of_path(inputs: Scopes, path: Iterable[Sequence[int]], n_units: int) -> list[int]:
    """Units in the order in which a path of pairwise contractions sums them out, those without a factor first."""
    tensors = [set(scope) for scope in inputs]
    uses = [0] * n_units
    for scope in tensors:
        for unit in scope:
            uses[unit] += 1
    units = [unit for unit in range(n_units) if uses[unit] == 0]
    for step in path:
        joined: set[int] = set()
        for position in sorted(step, reverse=True):
            part = tensors.pop(position)
            for unit in part:
                uses[unit] -= 1
            joined |= part
        finished = sorted(unit for unit in joined if uses[unit] == 0)
        units += finished
        joined -= set(finished)
        for unit in joined:
            uses[unit] += 1
        tensors.append(joined)
    return units
