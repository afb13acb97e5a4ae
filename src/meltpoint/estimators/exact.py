"""Exact log Z, the answer the estimators are checked against: the cheaper of enumeration and elimination."""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meltpoint.annealing.field import MarkovRandomField
from meltpoint.arguments import Threads, public
from meltpoint.errors import InputError, Progress
from meltpoint.estimators.elimination import Eliminated, eliminate, order_for
from meltpoint.foreign import real_array
from meltpoint.kernels.compiling import check_threads, preparing_kernels
from meltpoint.layers.unit import Floats, States
from meltpoint.models.bipartite import Bipartite
from meltpoint.models.checks import number, whole_numbers
from meltpoint.models.factors import Factors
from meltpoint.models.model import Model, ModelLike
from meltpoint.progress import silent
from meltpoint.statistics.log_space import log_sum_exp

LARGEST = 30
"""Most units on the smaller side. Each one more doubles the time; 784 x 25 takes six seconds of one core."""

LARGEST_STATE = 24
"""Most units of a model that is not two-sided, whose states NumPy enumerates."""

_AT_ONCE = 14  # units whose states are enumerated sooner than an order would be found
_ENTRY_SECONDS = 3e-8  # of elimination, for an entry of a table
_FACTOR_SECONDS = 3e-10  # of enumeration, for a unit in a state of two-sided models
_STATE_SECONDS = 2e-8  # the same without two sides
_CHEAP_UNITS = 5000
_CHEAP_SIDE = 16
_CHEAP_DEGREE = 8  # neighbours of a unit on average
_CHEAP_LOG2_WORK = 24.5
_CALL_WORK = 100_000_000  # factors per kernel call: some hundredths of a second
_STATES = 1 << 14  # that NumPy enumerates at once
_LARGEST_INPUTS = 1 << 22  # of the units of these states together


@public
def exact_log_z(
    model: ModelLike | Factors, *, threads: Threads | None = None, progress: Progress | bool | None = None
) -> float:
    """The logarithm of a model's normaliser Z (a DBN's is its top RBM's), by adding up all states.

    Either all states of the smaller side are enumerated, the other side summed out analytically (a DBM's sides are
    its layers v, h2, h4, … and h1, h3, …; models without two sides are enumerated state by state), or units are summed
    out one after the other, which is fast where the graph is a chain, a tree or a narrow lattice.
    The cheaper of the two is used. The result does not depend on the number of threads.

    Parameters
    ----------
    model
        A model with at most 30 units on the smaller side, or a graph of small width: all tables in between must have
        at most 2**27 entries, as for 26 binary units. Or a tuple (cardinalities, factors, constant) of factors (scope,
        log values), whose values may be -inf: hard constraints, which no chain can be trusted with.
    threads, progress
        As in `ais_log_z`.

    >>> from meltpoint.models.rbm import RBM
    >>> round(exact_log_z(RBM([[0.0], [0.0]], [0.0, 0.0], [0.0])), 4)  # log 8
    2.0794
    """
    assert not isinstance(progress, bool), "public() has made a callback of it"
    threads = check_threads(threads)
    progress = progress or silent
    if isinstance(model, tuple):
        return _log_z_of_factors(_checked(model), threads, progress)
    two = model.bipartite
    largest = LARGEST_STATE if two is None else LARGEST
    possible = model.smaller_side <= largest
    if not (possible and model.smaller_side <= _AT_ONCE):
        try:
            factors = model.undirected.as_factors()
            order = order_for(factors)
        except InputError as problem:
            if not possible:
                raise _refusal(model, largest, problem) from None
        else:
            own = _FACTOR_SECONDS if two is not None else _STATE_SECONDS
            per_state = own * sum(model.undirected.layer_sizes) / _ENTRY_SECONDS
            if not possible or order.log2_work < model.smaller_side + math.log2(per_state):
                return eliminate(factors, order, threads=threads, progress=progress).log_z
    if two is not None:
        return _sum_two_sided(two, threads, progress)
    if model.mrf is not None:
        return _sum_states(model.mrf.enumerated, progress)
    return _sum_visible(model, progress)


def cheap_elimination(model: Model) -> Eliminated | None:
    """Elimination of a model's units with what exact samples need, if it takes a second or less; None otherwise."""
    two, n_units = model.bipartite, sum(model.undirected.layer_sizes)
    if n_units > _CHEAP_UNITS:
        return None
    if two is not None and min(two.n_even, two.n_odd) > _CHEAP_SIDE:
        weights = sum(int(np.count_nonzero(block.weights)) for block in two.blocks)
        if weights > _CHEAP_DEGREE * n_units:  # too wide, and the list of its factors would be long
            return None
    try:
        factors = model.undirected.as_factors()
        order = order_for(factors)
        if order.log2_work > _CHEAP_LOG2_WORK:
            return None
        return eliminate(factors, order, keep=True)
    except InputError:
        return None


def _checked(factors: tuple[Any, ...]) -> Factors:
    """Factors as arrays, each of the shape that its scope says; the values may be -inf."""
    try:
        cardinalities, tables, constant = factors
        counts = whole_numbers(cardinalities, "cardinalities").tolist()
        checked = [
            (tuple(whole_numbers(scope, "a scope").tolist()), real_array(values, "factor"))
            for scope, values in tables
        ]
        if any(values.shape != tuple(counts[unit] for unit in scope) for scope, values in checked):
            raise ValueError("a table of another shape than its scope")
        return tuple(counts), checked, number(constant, "constant")
    except (TypeError, LookupError, ValueError) as problem:
        if isinstance(problem, InputError):
            raise
        raise InputError(
            found=f"a model that is a tuple, but no factors ({problem})",
            expected="(cardinalities, factors, constant), each factor (scope, log values)",
            remedy="for example ((2, 2), [((0, 1), [[0.5, 0.0], [0.0, 0.5]])], 0.0)",
        ) from problem


def _log_z_of_factors(factors: Factors, threads: int, progress: Progress) -> float:
    log_z = eliminate(factors, threads=threads, progress=progress).log_z
    if log_z == -math.inf:
        raise InputError(
            found="factors that forbid every state: Z is 0",
            expected="at least one state that all factors permit",
            remedy="look for factors, or evidence, that contradict each other",
        )
    return log_z


def _refusal(model: Model, largest: int, problem: InputError) -> InputError:
    n = model.smaller_side
    side = "of" if model.bipartite is None else "on the smaller side of"
    return InputError(
        found=f"{n} units {side} {model!r}, that is 2**{n} states to add up, and {problem.found}"
        if n < math.inf
        else f"{model!r}, whose states are real numbers, and {problem.found}",
        expected=f"at most {largest} units, or {problem.expected}",
        remedy="use log_z(model) for log Z from both sides, ais_log_z(model) for an estimate, or "
        "evaluate(model, test) for a likelihood",
    )


def _sum_states(mrf: MarkovRandomField, progress: Progress) -> float:
    """log Z by log f of every state of a field."""
    n_states = np.zeros(mrf.n_state, np.int64)
    for block in mrf.state_blocks:
        n_states[block.columns] = block.unit.n_states or 0
    inputs = max(1, sum(block.size * int(np.prod(block.unit.input_shape)) for block in mrf.unit_blocks))
    return _enumerate(mrf.log_f, n_states, mrf.dtype, _LARGEST_INPUTS // inputs, progress)


def _sum_visible(model: Model, progress: Progress) -> float:
    """The same by log f of every visible state."""
    support = model.support
    n_states = np.full(model.n_visible, support.n_states or 0)
    return _enumerate(lambda x: model.log_f(support.decode(x)), n_states, support.dtype, _STATES, progress)


def _enumerate(
    log_f: Callable[[States], Floats],
    n_states: NDArray[np.int64],
    dtype: np.dtype[Any],
    most: int,
    progress: Progress,
) -> float:
    """Log of the sum of f over all states of units with these numbers of states (unit,), at most so many at once."""
    total = math.prod(n_states.tolist())
    places = np.cumprod([1, *n_states[:-1]])
    log_sums = []
    at_once = max(1, min(_STATES, most))
    for low in range(0, total, at_once):
        numbers = np.arange(low, min(low + at_once, total))[:, np.newaxis]
        log_sums.append(log_sum_exp(log_f((numbers // places % n_states).astype(dtype))))
        progress("enumeration", float(low + len(numbers)), float(total))
    return float(log_sum_exp(np.asarray(log_sums)))


def _sum_two_sided(two: Bipartite, threads: int, progress: Progress) -> float:
    """log Z by all states of the smaller side, in compiled code on all threads."""
    with preparing_kernels(progress):
        # Numba takes most of a second to import, so it waits until there is something to run.
        from meltpoint.estimators.enumeration import cut_into_blocks, sum_blocks

        if two.n_even < two.n_odd:
            blocks = cut_into_blocks(two.odd_field(np.eye(two.n_even)), two.even_bias, two.odd_bias)
        else:
            blocks = cut_into_blocks(two.even_field(np.eye(two.n_odd)), two.odd_bias, two.even_bias)
        log_sums = np.empty(blocks.n_blocks)
        sum_blocks(blocks, 0, log_sums[:0])
    size = max(1, _CALL_WORK // blocks.work)
    parts = [slice(first, first + size) for first in range(0, blocks.n_blocks, size)]
    with ThreadPoolExecutor(threads) as pool:
        try:
            calls = [pool.submit(sum_blocks, blocks, part.start, log_sums[part]) for part in parts]
            for done, call in enumerate(as_completed(calls), start=1):
                call.result()
                progress("enumeration", float(done), float(len(calls)))
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    return float(log_sum_exp(log_sums)) + two.log_constant
