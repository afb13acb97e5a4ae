"""Exact log Z and exact samples by summing out units one after the other, for graphs of small width.

A model is its factors: log f(x) = constant + sum of tables over scopes of units. Summing out a unit adds up the tables
that contain it and leaves one over its neighbours, its *message*; what is left after the last unit is Z. Everything
stays in logarithms, so nothing overflows, and a table entry that is 500 nats below the others keeps its digits. Going
back through the messages in the opposite order draws each unit given those after it, which gives independent exact
samples.
"""

import math
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from meltpoint.errors import InputError, Progress
from meltpoint.estimators.elimination_order import Order, find_order, interaction_graph, least_width
from meltpoint.layers.unit import Floats
from meltpoint.models.factors import Factors
from meltpoint.records import short_repr

LOG2_LARGEST = 27.0
"""Largest log2 of the number of entries that are added up for one unit: its message has half of them or fewer."""

LOG2_MOST_WORK = 33.0
"""Largest log2 of the number of entries that are added up in all: a few minutes of one core."""

LOG2_MOST_KEPT = 27.0
"""Largest log2 of the number of entries of all messages, which sampling keeps: 1 GiB."""

_CALL_ENTRIES = 1 << 20  # of a message, for one kernel call
_SAMPLE_ROWS = 1 << 14
TASK = "elimination"


@dataclass(frozen=True, eq=False, repr=False)
class Bucket:
    """A unit, the units its message is over (`rest`, the next one to be summed out last), and the tables with it.

    Tables are flat, the unit's own states fastest; `strides` (table, unit of rest) say where a state of the rest is.
    """

    unit: int
    rest: tuple[int, ...]
    tables: tuple[Floats, ...]
    strides: NDArray[np.int64]

    __repr__ = short_repr

    def log_weights(self, states: NDArray[np.integer], n_states: int) -> Floats:
        """Log unnormalised probability (row, state of the unit) given the rest of states (row, unit)."""
        total = np.zeros((len(states), n_states))
        rest = states[:, self.rest].astype(np.int64)
        for table, strides in zip(self.tables, self.strides, strict=True):
            total += table.reshape(-1, n_states)[rest @ strides // n_states]
        return total


@dataclass(frozen=True, eq=False, repr=False)
class Eliminated:
    """log Z, the order that gave it, and, if they were kept, the buckets in that order."""

    log_z: float
    order: Order
    cardinalities: tuple[int, ...]
    buckets: tuple[Bucket, ...] = ()

    __repr__ = short_repr

    def sample(self, n: int, rng: np.random.Generator) -> NDArray[np.uint8]:
        """Independent exact samples (n, unit) of all units."""
        states = np.zeros((n, len(self.cardinalities)), np.uint8)
        for low in range(0, n, _SAMPLE_ROWS):
            part = states[low : low + _SAMPLE_ROWS]
            for bucket in reversed(self.buckets):
                log_weights = bucket.log_weights(part, self.cardinalities[bucket.unit])
                # The largest of log weight + Gumbel noise is a draw in proportion to the weights.
                part[:, bucket.unit] = np.argmax(log_weights + rng.gumbel(size=log_weights.shape), axis=1)
        return states


def order_for(factors: Factors) -> Order:
    """An order in which elimination is possible within this file's limits, or an error with the width that was found.

    >>> order_for(((2, 2, 2), [((0, 1), np.zeros((2, 2))), ((1, 2), np.zeros((2, 2)))], 0.0)).width
    1
    """
    cardinalities, tables, _ = factors
    scopes = [scope for scope, _ in tables]
    graph = interaction_graph(len(cardinalities), scopes)
    least = least_width(graph)
    smallest = min((math.log2(n) for n in cardinalities if n > 1), default=0.0)
    if (least + 1) * smallest > LOG2_LARGEST and min(cardinalities, default=2) > 1:
        raise _too_wide(f"a graph of width {least} at least", (least + 1) * smallest)
    order = find_order(cardinalities, scopes, log2_largest=max(60.0, LOG2_LARGEST))
    if order is None:
        raise _too_wide(f"a graph of {len(cardinalities):,} units in which no order of small width was found")
    if order.log2_table > LOG2_LARGEST or order.log2_work > LOG2_MOST_WORK:
        raise _too_wide(f"a graph of width {order.width}", order.log2_table, order.log2_work)
    return order


def eliminate(
    factors: Factors,
    order: Order | None = None,
    *,
    keep: bool = False,
    threads: int = 1,
    progress: Progress | None = None,
) -> Eliminated:
    """log Z by elimination, with the buckets for exact samples if they are to be kept.

    >>> coupled = ((0, 1), np.array([[0.5, -0.5], [-0.5, 0.5]]))
    >>> round(eliminate(((2, 2), [coupled], 0.0)).log_z, 6)  # log(2 exp(0.5) + 2 exp(-0.5))
    1.506409
    """
    cardinalities, tables, constant = factors
    if order is None:
        order = order_for(factors)
    place = {unit: k for k, unit in enumerate(order.units)}
    waiting: list[dict[tuple[int, ...], Floats]] = [{} for _ in cardinalities]
    total = float(constant)
    for scope, table in tables:
        if scope:
            _put(waiting, place, *_canonical(scope, table, place))
        else:
            total += float(table)
    buckets: list[Bucket] = []
    kept = 0.0
    with ThreadPoolExecutor(threads) as pool:
        for k, unit in enumerate(order.units):
            own = waiting[k]
            waiting[k] = {}
            bucket = _bucket(unit, own, cardinalities, place)
            message = _sum_out(bucket, cardinalities, pool, progress)
            if keep:
                buckets.append(bucket)
                kept += sum(table.size for table in bucket.tables)
                if kept > 2.0**LOG2_MOST_KEPT:
                    raise _too_wide("messages of exact samples", math.log2(kept))
            if bucket.rest:
                _put(waiting, place, bucket.rest, message)
            else:
                total += float(message)
            if progress:
                progress(TASK, float(k + 1), float(len(order.units)))
    if math.isnan(total) or total == math.inf:
        raise InputError(
            found="factors with NaN or infinite values",
            expected="finite log values, or -inf for what is impossible",
            remedy="look at the factors' tables",
        )
    return Eliminated(total, order, tuple(cardinalities), tuple(buckets))


def _too_wide(found: str, log2_table: float | None = None, log2_work: float | None = None) -> InputError:
    size = "" if log2_table is None else f", that is a table of 2**{log2_table:.1f} entries"
    work = "" if log2_work is None else f" and 2**{log2_work:.1f} in all"
    return InputError(
        found=f"{found}{size}{work}",
        expected=f"tables of at most 2**{LOG2_LARGEST:g} entries, and 2**{LOG2_MOST_WORK:g} in all",
        remedy="use log_z(model) for log Z from both sides (the command log-z), or ais_log_z(model) for an estimate",
    )


def _canonical(
    scope: tuple[int, ...], table: Floats, place: Mapping[int, int]
) -> tuple[tuple[int, ...], Floats]:
    """A table with its axes in the order of all tables: the unit that is summed out first is the last."""
    axes = sorted(range(len(scope)), key=lambda k: -place[scope[k]])
    return tuple(scope[k] for k in axes), np.asarray(table, np.float64).transpose(axes)


def _put(
    waiting: list[dict[tuple[int, ...], Floats]],
    place: Mapping[int, int],
    scope: tuple[int, ...],
    table: Floats,
) -> None:
    """File a table under the unit of its scope that is summed out first; tables of one scope are added up."""
    bucket = waiting[place[scope[-1]]]
    bucket[scope] = bucket[scope] + table if scope in bucket else table


def _bucket(
    unit: int, own: Mapping[tuple[int, ...], Floats], cardinalities: Sequence[int], place: Mapping[int, int]
) -> Bucket:
    rest = tuple(
        sorted({other for scope in own for other in scope} - {unit}, key=lambda other: -place[other])
    )
    strides = np.zeros((len(own), len(rest)), np.int64)
    column = {other: k for k, other in enumerate(rest)}
    for row, scope in enumerate(own):
        step = cardinalities[unit]
        for other in reversed(scope[:-1]):
            strides[row, column[other]] = step
            step *= cardinalities[other]
    tables = tuple(np.ascontiguousarray(table).reshape(-1) for table in own.values())
    return Bucket(unit, rest, tables, strides)


def _sum_out(
    bucket: Bucket, cardinalities: Sequence[int], pool: ThreadPoolExecutor, progress: Progress | None
) -> Floats:
    """The message of a bucket, one axis for each unit of its rest."""
    # Numba takes most of a second to import, so it waits until there is something to run.
    from meltpoint.estimators.elimination_kernel import sum_out

    n_states = cardinalities[bucket.unit]
    shape = tuple(cardinalities[other] for other in bucket.rest)
    message = np.empty(math.prod(shape))
    starts = np.cumsum([0, *(table.size for table in bucket.tables[:-1])], dtype=np.int64)
    values = np.concatenate([np.zeros(0), *bucket.tables])
    sizes = np.array(shape, np.int64)

    def call(low: int) -> None:
        part = message[low : low + _CALL_ENTRIES]
        sum_out(values, starts[: len(bucket.tables)], bucket.strides, sizes, n_states, low, part)

    if message.size <= _CALL_ENTRIES:
        call(0)
    else:
        calls = [pool.submit(call, low) for low in range(0, message.size, _CALL_ENTRIES)]
        try:
            for one in calls:
                one.result()
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    return message.reshape(shape)
