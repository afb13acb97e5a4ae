"""Random models whose log Z elimination gives: Ising, Potts, factors of order three, mixed numbers of states."""

from collections.abc import Callable

import numpy as np

import meltpoint as mp

Pairs = list[tuple[int, int]]


def random_pairs(rng: np.random.Generator, n: int, extra: int) -> Pairs:
    """A random tree with some edges more: connected, and of small width."""
    order = rng.permutation(n)
    pairs = {tuple(sorted((int(order[i]), int(order[rng.integers(i)])))) for i in range(1, n)}
    while len(pairs) < n - 1 + extra:
        i, j = sorted(int(k) for k in rng.choice(n, 2, replace=False))
        pairs.add((i, j))
    return sorted(pairs)  # pyright: ignore[reportReturnType]


def lattice_pairs(rows: int, columns: int) -> Pairs:
    """Neighbours on a square lattice with free boundaries."""
    sites = np.arange(rows * columns).reshape(rows, columns)
    right = zip(sites[:, :-1].ravel(), sites[:, 1:].ravel(), strict=True)
    below = zip(sites[:-1].ravel(), sites[1:].ravel(), strict=True)
    return [(int(i), int(j)) for i, j in (*right, *below)]


def ising_lattice(rng: np.random.Generator, scale: float) -> mp.Ising:
    """A spin glass on a lattice with small fields."""
    rows, columns = int(rng.integers(4, 9)), int(rng.integers(4, 9))
    return _ising(rng, rows * columns, lattice_pairs(rows, columns), scale)


def ising_graph(rng: np.random.Generator, scale: float) -> mp.Ising:
    """Spins on a random graph."""
    n = int(rng.integers(20, 60))
    return _ising(rng, n, random_pairs(rng, n, 12), scale)


def ferromagnet(rng: np.random.Generator, scale: float) -> mp.Ising:
    """A lattice of equal couplings up to beyond the transition, in a weak field: two far modes of unequal mass."""
    n = int(rng.integers(5, 9))
    matrix = np.zeros((n * n, n * n))
    for i, j in lattice_pairs(n, n):
        matrix[i, j] = matrix[j, i] = 0.5 * scale
    return mp.Ising(matrix, np.full(n * n, 0.05 * rng.standard_normal()))


def potts(rng: np.random.Generator, scale: float) -> mp.Potts:
    """Sites of one number of states, 3 to 6, on a random graph."""
    n, q = int(rng.integers(10, 25)), int(rng.integers(3, 7))
    couplings = {pair: scale * rng.standard_normal((q, q)) for pair in random_pairs(rng, n, 5)}
    return mp.Potts(couplings, 0.5 * scale * rng.standard_normal((n, q)))


def order_three(rng: np.random.Generator, scale: float) -> mp.FactorGraph:
    """Binary variables with factors of one, two and three of them."""
    return _factors(rng, scale, [2])


def mixed(rng: np.random.Generator, scale: float) -> mp.FactorGraph:
    """Variables of 2 to 5 states with factors up to order three."""
    return _factors(rng, scale, [2, 3, 4, 5])


def _ising(rng: np.random.Generator, n: int, pairs: Pairs, scale: float) -> mp.Ising:
    matrix = np.zeros((n, n))
    for i, j in pairs:
        matrix[i, j] = matrix[j, i] = scale * rng.standard_normal()
    return mp.Ising(matrix, 0.3 * scale * rng.standard_normal(n))


def _factors(rng: np.random.Generator, scale: float, states: list[int]) -> mp.FactorGraph:
    n = int(rng.integers(12, 30))
    cardinalities = rng.choice(states, n)
    scopes: list[tuple[int, ...]] = [*random_pairs(rng, n, 3), *((i,) for i in range(n))]
    for _ in range(n // 2):
        # Close together, so that the width stays small.
        i = int(rng.integers(n - 4))
        scopes.append(tuple(int(k) for k in i + rng.choice(5, 3, replace=False)))
    return mp.FactorGraph(
        cardinalities, [(s, scale * rng.standard_normal(tuple(cardinalities[list(s)]))) for s in scopes]
    )


FAMILIES: dict[str, Callable[[np.random.Generator, float], object]] = {
    "ising lattice": ising_lattice,
    "ising graph": ising_graph,
    "ferromagnet": ferromagnet,
    "potts": potts,
    "order three": order_three,
    "mixed states": mixed,
}

SCALES = (0.3, 1.0, 3.0)
