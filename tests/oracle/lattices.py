"""Closed forms of log Z, and factor graphs enumerated: what elimination and the bounds on log Z are compared with.

These import nothing of the library.
"""

import math
from itertools import product

import numpy as np
from scipy.special import gammaln, logsumexp

Tables = list[tuple[tuple[int, ...], np.ndarray]]


def kaufman(n: int, m: int, coupling: float) -> float:
    """log Z of the Ising model without fields on an n x m torus, n and m >= 3 (Kaufman 1949)."""
    k = coupling
    # cosh γ_r = cosh 2K coth 2K - cos(πr/n), and γ_0 = 2K + log tanh K with its sign.
    gamma = [
        math.acosh(math.cosh(2 * k) / math.tanh(2 * k) - math.cos(math.pi * r / n)) for r in range(2 * n)
    ]
    gamma[0] = 2 * k + math.log(math.tanh(k))
    odd, even = m * np.array(gamma[1::2]) / 2, m * np.array(gamma[0::2]) / 2

    def log_2cosh(x: np.ndarray) -> float:
        return float(np.logaddexp(x, -x).sum())

    def log_2sinh(x: np.ndarray) -> tuple[float, float]:
        size = np.abs(x)
        return float((size + np.log1p(-np.exp(-2 * size))).sum()), float(np.prod(np.sign(x)))

    logs = [(log_2cosh(odd), 1.0), log_2sinh(odd), (log_2cosh(even), 1.0), log_2sinh(even)]
    total = logsumexp([log for log, _ in logs], b=[sign for _, sign in logs])
    return float(n * m / 2 * math.log(2 * math.sinh(2 * k)) - math.log(2) + total)


def chain(couplings: np.ndarray, fields: np.ndarray) -> float:
    """log Z of an open chain of spins with n - 1 couplings and n fields, by products of 2 x 2 matrices."""
    spins = np.array([-1.0, 1.0])
    row, log_scale = np.exp(fields[0] * spins), 0.0
    for coupling, field in zip(couplings, fields[1:], strict=True):
        row = row @ np.exp(coupling * np.outer(spins, spins) + field * spins)
        log_scale += math.log(row.sum())
        row /= row.sum()
    return log_scale + math.log(row.sum())


def curie_weiss(n: int, coupling: float, field: float) -> float:
    """log Z of n spins with the same coupling between any two and the same field: a sum over magnetisations."""
    up = np.arange(n + 1)
    total = 2 * up - n
    log_count = gammaln(n + 1) - gammaln(up + 1) - gammaln(n - up + 1)
    return float(logsumexp(log_count + coupling * (total**2 - n) / 2 + field * total))


def spin_pair(coupling: float) -> np.ndarray:
    """The table of log f = coupling · s · t for two spins, states 0 and 1 being -1 and +1."""
    return coupling * np.array([[1.0, -1.0], [-1.0, 1.0]])


def lattice_pairs(rows: int, columns: int, periodic: bool) -> list[tuple[int, int]]:
    """Neighbours on a square lattice; site (i, j) is i · columns + j. Periodic ones need 3 or more each way."""
    pairs = []
    for i, j in product(range(rows), range(columns)):
        for k, m in ((i + 1, j), (i, j + 1)):
            if periodic or (k < rows and m < columns):
                pairs.append((i * columns + j, k % rows * columns + m % columns))
    return pairs


def lattice(
    rows: int, columns: int, coupling: float, periodic: bool
) -> tuple[tuple[int, ...], Tables, float]:
    """The Ising model without fields as factors."""
    pairs = lattice_pairs(rows, columns, periodic)
    return (2,) * (rows * columns), [(pair, spin_pair(coupling)) for pair in pairs], 0.0


def log_f_of_all(
    cardinalities: tuple[int, ...], tables: Tables, constant: float
) -> tuple[np.ndarray, np.ndarray]:
    """All states (state, unit), the last unit fastest, and their log f (state,)."""
    states = np.array(list(product(*(range(n) for n in cardinalities))), np.int64).reshape(
        -1, len(cardinalities)
    )
    log_f = np.full(len(states), constant)
    for scope, table in tables:
        log_f += table[tuple(states[:, unit] for unit in scope)]
    return states, log_f


def random_factors(
    rng: np.random.Generator, n_units: int, n_factors: int, order: int, scale: float, most_states: int = 3
) -> tuple[tuple[int, ...], Tables, float]:
    """Factors over random scopes of 1 to `order` units with 1 to `most_states` states, normal log values."""
    cardinalities = tuple(int(n) for n in rng.integers(1, most_states + 1, n_units))
    tables: Tables = []
    for _ in range(n_factors):
        size = int(rng.integers(1, min(order, n_units) + 1))
        scope = tuple(int(unit) for unit in rng.permutation(n_units)[:size])
        tables.append((scope, scale * rng.standard_normal([cardinalities[unit] for unit in scope])))
    return cardinalities, tables, float(rng.standard_normal())


def read_uai(text: str) -> tuple[tuple[int, ...], Tables, float]:
    """The factors of a UAI file of the kind MARKOV, without comments."""
    tokens = iter(text.split())
    assert next(tokens) == "MARKOV"
    cardinalities = tuple(int(next(tokens)) for _ in range(int(next(tokens))))
    scopes = [tuple(int(next(tokens)) for _ in range(int(next(tokens)))) for _ in range(int(next(tokens)))]
    tables: Tables = []
    for scope in scopes:
        values = np.array([float(next(tokens)) for _ in range(int(next(tokens)))])
        tables.append((scope, np.log(values).reshape([cardinalities[unit] for unit in scope])))
    return cardinalities, tables, 0.0
