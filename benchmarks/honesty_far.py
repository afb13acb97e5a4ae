"""Families of models with far phases: larger than can be enumerated, of parts whose sums are in closed form.

Each has a phase, or several, that examples do not come from and that chains from them do not reach: single units that
open it (`_opened`), or many units that agree (`_codes`: of these only how many are on counts, so sums over states are
sums over counts). Log Z and log f are computed here and nowhere in the library.
"""

import math
from collections.abc import Callable
from itertools import combinations

import numpy as np
from honesty_models import EXAMPLES, Subject
from scipy.linalg import block_diag
from scipy.optimize import brentq
from scipy.special import expit, gammaln, logsumexp

import meltpoint as mp

_COUNT = 300 + EXAMPLES
Part = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, float]
"""Weights (visible, hidden), visible and hidden biases, examples, and log Z of an RBM that stands beside others."""


def modular(seed: int) -> Subject:
    """Two to six modules, each with a far phase of its own."""
    rng = np.random.default_rng([301, seed])
    ratio = rng.uniform(0.2, 3.0)
    return _rbm("modular", [_opened(rng, 20, ratio) for _ in range(rng.integers(2, 7))])


def unequal(seed: int) -> Subject:
    """A large module whose far phase is small, and small modules whose far phases are large."""
    rng = np.random.default_rng([302, seed])
    parts = [_opened(rng, int(rng.integers(40, 80)), rng.uniform(0.05, 0.5))]
    parts += [
        _opened(rng, int(rng.integers(8, 16)), rng.uniform(0.5, 10.0)) for _ in range(rng.integers(1, 4))
    ]
    return _rbm("unequal", parts)


def far_pairs(seed: int) -> Subject:
    """A far phase beside independent pairs of units."""
    rng = np.random.default_rng([303, seed])
    far = _opened(rng, int(rng.integers(15, 51)), rng.uniform(0.3, 4.0))
    return _rbm("far-pairs", [far, *(_pair(rng, 5.0) for _ in range(rng.integers(5, 46)))])


def crowded(seed: int) -> Subject:
    """A far phase beside three to six groups of units that agree, half on and half off."""
    rng = np.random.default_rng([304, seed])
    far = _opened(rng, int(rng.integers(20, 41)), rng.uniform(0.3, 4.0))
    blocks = [_agreeing(rng, int(rng.integers(4, 9)), 2, 1.0, both=True) for _ in range(rng.integers(3, 7))]
    return _rbm("crowded", [far, *blocks])


def few_units(seed: int) -> Subject:
    """A far phase that differs in three to eight units, with strong weights, beside pairs."""
    rng = np.random.default_rng([305, seed])
    far = _opened(rng, int(rng.integers(3, 9)), rng.uniform(0.3, 4.0), within=4.0, weight=12.0)
    return _rbm("few-units", [far, *(_pair(rng, 3.0) for _ in range(rng.integers(5, 20)))])


def first_order(seed: int) -> Subject:
    """Visible units that agree through two to six hidden ones: on the path the phases change places abruptly."""
    rng = np.random.default_rng([306, seed])
    part = _agreeing(
        rng, int(rng.integers(16, 41)), int(rng.integers(2, 7)), rng.uniform(0.5, 4.0), both=False
    )
    return _rbm("first-order", [part, *(_pair(rng, 3.0) for _ in range(rng.integers(0, 10)))])


def far_gaussian(seed: int) -> Subject:
    """One to four modules of Gaussian units, each with a far phase."""
    rng = np.random.default_rng([307, seed])
    blocks, centres, biases, log_z = [], [], [], 0.0
    for _ in range(rng.integers(1, 5)):
        n, ratio = int(rng.integers(2, 11)), rng.uniform(0.3, 4.0)
        sign = rng.choice([-1.0, 1.0], n)
        centre, weights = rng.uniform(1.0, 4.0) * -sign, rng.uniform(4.0, 8.0) * sign
        blocks.append(weights[:, np.newaxis])
        centres.append(centre)
        biases.append(-(np.square(centre + weights).sum() - np.square(centre).sum()) / 2 + math.log(ratio))
        log_z += n / 2 * math.log(2 * math.pi) + math.log1p(ratio)
    weights, centre, bias = block_diag(*blocks), np.concatenate(centres), np.array(biases)
    x = rng.normal(centre, 1.0, (_COUNT, len(centre)))
    model = mp.RBM(weights, centre, bias, visible="gaussian", visible_scale=np.ones(len(centre)))
    log_f = np.logaddexp(0, x @ weights + bias).sum(axis=1) - np.square(x - centre).sum(axis=1) / 2
    return Subject("far-gaussian", model, x[:300], x[300:], log_z, log_f[300:])


def modular_dbm(seed: int) -> Subject:
    """Two to six modules of a DBM with a far phase each; the top units lean on the middle ones."""
    rng = np.random.default_rng([308, seed])
    ratio, lean = rng.uniform(0.2, 3.0), rng.uniform(1.0, 3.0)
    parts = [_opened(rng, 20, ratio) for _ in range(rng.integers(2, 7))]
    weights, below, middle, x, log_z = _beside(parts)
    n = len(parts)
    # A top unit adds log(2) where its middle unit is off and less or more where that is on, but for this bias.
    middle = middle + math.log(2) - np.logaddexp(0, lean)
    model = mp.DBM([weights, lean * np.eye(n)], [below, middle, np.zeros(n)])
    on = x @ weights + middle + np.logaddexp(0, lean)
    log_f = x @ below + np.logaddexp(math.log(2), on).sum(axis=1)
    return Subject("modular-dbm", model, x[:300], x[300:], log_z + n * math.log(2), log_f[300:])


def two_codes_dbm(seed: int) -> Subject:
    """A DBM whose hidden layers are nearly all off or nearly all on; examples say little or much of which."""
    rng = np.random.default_rng([309, seed])
    return _deep("two-codes-dbm", rng, rng.uniform(0.5, 2.0), rng.uniform(0.0, 0.3), directed=False)


def saturated_dbm(seed: int) -> Subject:
    """The same with weights of 4 to 10 between hidden layers: samples of a posterior are all the same."""
    rng = np.random.default_rng([310, seed])
    return _deep("saturated-dbm", rng, rng.uniform(4.0, 10.0), rng.choice([0.0, 0.3]), directed=False)


def two_codes_dbn(seed: int) -> Subject:
    """A DBN with two codes, of which its recognition knows one."""
    rng = np.random.default_rng([311, seed])
    return _deep("two-codes-dbn", rng, rng.uniform(0.5, 8.0), rng.uniform(0.0, 0.3), directed=True)


def far_ising(seed: int) -> Subject:
    """One to five groups of spins, all of a group coupled; examples from one phase of each."""
    rng = np.random.default_rng([312, seed])
    couplings, fields, drawn, log_z, log_f = [], [], [], 0.0, np.zeros(_COUNT)
    for _ in range(rng.integers(1, 6)):
        n, strength, field = int(rng.integers(10, 25)), rng.uniform(1.3, 3.0), rng.normal(0, 0.05)
        on = np.arange(n + 1)
        spins = 2.0 * on - n
        mass = strength / n * (spins**2 - n) / 2 + field * spins
        counted = mass + _log_choose(n)
        log_z += float(logsumexp(counted))
        k = _choose(rng, np.where(spins < 0, counted, -np.inf))
        sign = rng.choice([-1, 1], n)
        couplings.append(strength / n * np.outer(sign, sign) * (1 - np.eye(n)))
        fields.append(field * sign)
        drawn.append((2 * _with_counts(rng, n, k) - 1) * sign)
        log_f += mass[k]
    x = np.concatenate(drawn, axis=1)
    model = mp.Ising(block_diag(*couplings), np.concatenate(fields))
    return Subject("far-ising", model, x[:300], x[300:], log_z, log_f[300:])


def far_potts(seed: int) -> Subject:
    """All sites coupled, three to five states: phases with one state ahead, and one without; examples from one."""
    rng = np.random.default_rng([313, seed])
    q, n = int(rng.integers(3, 6)), int(rng.integers(10, 17))
    strength = rng.uniform(0.95, 1.5) * 2 * (q - 1) / (q - 2) * math.log(q - 1)
    field = rng.normal(0, 0.1, q)
    bars = np.array(list(combinations(range(n + q - 1), q - 1)))
    counts = np.diff(np.c_[np.full(len(bars), -1), bars, np.full(len(bars), n + q - 1)], axis=1) - 1
    mass = strength / n * (counts * (counts - 1) / 2).sum(axis=1) + counts @ field
    counted = mass + gammaln(n + 1) - gammaln(counts + 1).sum(axis=1)
    ahead = counts[:, 0] > n / 2 if seed % 3 else counts.max(axis=1) <= n / 2
    chosen = _choose(rng, np.where(ahead, counted, -np.inf))
    x = np.array([rng.permutation(np.repeat(np.arange(q), counts[k])) for k in chosen])
    same = strength / n * np.eye(q)
    model = mp.Potts(dict.fromkeys(combinations(range(n), 2), same), [field] * n)
    return Subject("far-potts", model, x[:300], x[300:], float(logsumexp(counted)), mass[chosen][300:])


FAMILIES: dict[str, Callable[[int], Subject]] = {
    "modular": modular,
    "unequal": unequal,
    "far-pairs": far_pairs,
    "crowded": crowded,
    "few-units": few_units,
    "first-order": first_order,
    "far-gaussian": far_gaussian,
    "modular-dbm": modular_dbm,
    "two-codes-dbm": two_codes_dbm,
    "saturated-dbm": saturated_dbm,
    "two-codes-dbn": two_codes_dbn,
    "far-ising": far_ising,
    "far-potts": far_potts,
}


def _opened(rng: np.random.Generator, n: int, ratio: float, within: float = 1.5, weight: float = 7.0) -> Part:
    """A hidden unit that turns n visible ones over: that phase has `ratio` times the mass of the one with examples."""
    sign = rng.choice([-1.0, 1.0], n)
    fields, column = -within * sign, weight * sign
    near, far = (np.logaddexp(0, fields + shift).sum() for shift in (0.0, column))
    x = rng.random((_COUNT, n)) < expit(fields)
    return (
        column[:, np.newaxis],
        fields,
        np.array([near - far + math.log(ratio)]),
        x,
        near + math.log1p(ratio),
    )


def _pair(rng: np.random.Generator, weight: float) -> Part:
    """Two visible units and a hidden one, mostly all on or all off; examples are of both."""
    return _agreeing(rng, 2, 1, 1.0, both=True, weight=weight)


def _agreeing(
    rng: np.random.Generator, n: int, m: int, ratio: float, *, both: bool, weight: float | None = None
) -> Part:
    """n visible and m hidden units, all coupled alike; examples of both phases or from that with less than half on."""
    if weight is None:
        weight = rng.uniform(8.0, 14.0) / min(n, 2 * m)
    visible, hidden = _balanced(n, m, weight, ratio)
    counted = logsumexp(_codes(n, m, weight, visible, hidden), axis=1)
    k = _choose(rng, counted if both else np.where(np.arange(n + 1) < n / 2, counted, -np.inf))
    flipped = rng.random(n) < 0.5
    x = _with_counts(rng, n, k) != flipped
    sign = np.where(flipped, -1.0, 1.0)
    weights = np.repeat(weight * sign[:, np.newaxis], m, axis=1)
    # With v = 1 - u for a flipped unit: u (visible + weight h) = (visible + weight h) - v (visible + weight h).
    log_z = float(logsumexp(counted)) - flipped.sum() * visible
    return weights, visible * sign, np.full(m, hidden + weight * flipped.sum()), x, log_z


def _codes(n: int, m: int, weight: float, first: float, second: float) -> np.ndarray:
    """Log mass (k, l) of all states with k of n units and l of m units on, every pair of them coupled."""
    of_n, of_m = np.arange(n + 1)[:, np.newaxis], np.arange(m + 1)
    return (
        weight * of_n * of_m + first * of_n + second * of_m + _log_choose(n)[:, np.newaxis] + _log_choose(m)
    )


def _balanced(
    n: int, m: int, weight: float, ratio: float, own: float | np.ndarray = 0.0
) -> tuple[float, float]:
    """Biases with which states with half of the n units on, or more, have `ratio` times the mass of the others."""
    first, upper = -weight * m / 2, np.arange(n + 1) >= n / 2

    def beyond(second: float) -> float:
        counted = logsumexp(_codes(n, m, weight, first, second), axis=1) + own
        return float(logsumexp(counted[upper]) - logsumexp(counted[~upper])) - math.log(ratio)

    return first, float(brentq(beyond, -2 * weight * n - 50, weight * n + 50))


def _deep(family: str, rng: np.random.Generator, strength: float, told: float, *, directed: bool) -> Subject:
    """A DBM or DBN of which only how many units of each hidden layer are on counts; `told` couples visible units."""
    v, n, m = int(rng.integers(4, 13)), int(rng.integers(11, 15)), int(rng.integers(8, 15))
    weight = strength if family != "two-codes-dbm" else strength * 8 / n
    below, column = rng.normal(0, 0.5, v), told * rng.normal(0, 1.0, v)
    inputs = below + np.arange(n + 1)[:, np.newaxis] * column
    below_adds = np.zeros(n + 1) if directed else np.logaddexp(0, inputs).sum(axis=1)
    first, second = _balanced(n, m, weight, rng.uniform(0.3, 3.0), below_adds)
    of_code = logsumexp(_codes(n, m, weight, first, second), axis=1)
    k = _choose(rng, of_code + below_adds)
    x = rng.random((_COUNT, v)) < expit(inputs[k])
    log_f = x @ inputs.T + of_code
    weights, upper = np.repeat(column[:, np.newaxis], n, axis=1), np.full((n, m), weight)
    top_biases = np.full(n, first), np.full(m, second)
    if directed:
        log_f -= np.logaddexp(0, inputs).sum(axis=1)
        known = np.full(n, rng.choice([-60.0, 60.0]))
        model = mp.DBN([(weights, below, known)], mp.RBM(upper, *top_biases))
    else:
        model = mp.DBM([weights, upper], [below, *top_biases])
    x, log_z = x.astype(np.uint8), float(logsumexp(of_code + below_adds))
    return Subject(family, model, x[:300], x[300:], log_z, logsumexp(log_f, axis=1)[300:])


def _rbm(family: str, parts: list[Part]) -> Subject:
    weights, visible, hidden, x, log_z = _beside(parts)
    log_f = x @ visible + np.logaddexp(0, x @ weights + hidden).sum(axis=1)
    return Subject(family, mp.RBM(weights, visible, hidden), x[:300], x[300:], log_z, log_f[300:])


def _beside(parts: list[Part]) -> Part:
    blocks, visible, hidden, x, log_z = zip(*parts, strict=True)
    examples = np.concatenate(x, axis=1).astype(np.uint8)
    return block_diag(*blocks), np.concatenate(visible), np.concatenate(hidden), examples, float(sum(log_z))


def _log_choose(n: int) -> np.ndarray:
    k = np.arange(n + 1)
    return gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)


def _choose(rng: np.random.Generator, log_mass: np.ndarray) -> np.ndarray:
    return rng.choice(len(log_mass), _COUNT, p=np.exp(log_mass - logsumexp(log_mass)))


def _with_counts(rng: np.random.Generator, n: int, on: np.ndarray) -> np.ndarray:
    """States (example, unit) with so many units on, any of them."""
    return rng.permuted(np.arange(n) < on[:, np.newaxis], axis=1).astype(np.int64)
