"""Exact log Z and exact samples by summing out units one after the other, for graphs of small width.

A model is its factors: log f(x) = constant + sum of tables over scopes of units. Summing out a unit adds up the tables
that contain it and leaves one over its neighbours, its *message*; what is left after the last unit is Z. Everything
stays in logarithms, so nothing overflows, and a table entry that is 500 nats below the others keeps its digits. Going
back through the messages in the opposite order draws each unit given those after it, which gives independent exact
samples.
"""

import math
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from meltpoint.errors import InputError, Progress
from meltpoint.estimators.elimination_order import Order, find_order, interaction_graph, least_width
from meltpoint.layers.unit import Floats
from meltpoint.models.factors import Factors
from meltpoint.records import short_repr
from meltpoint.statistics.elementary import exp, log

LOG2_LARGEST = 27.0
"""Largest log2 of the number of entries that are added up for one unit: its message has half of them or fewer."""

LOG2_MOST_WORK = 33.0
"""Largest log2 of the number of entries that are added up in all: a few minutes of one core."""

LOG2_MOST_KEPT = 27.0
"""Largest log2 of the number of entries of all messages, which sampling keeps: 1 GiB."""

_AT_ONCE = (
    1 << 15
)  # entries of a message that are computed at once: what is added up for them stays in the cache
_SAMPLE_ROWS = 1 << 14
TASK = "elimination"

_Scope = tuple[int, ...]


@dataclass(frozen=True, eq=False, repr=False)
class Bucket:
    """A unit, the units its message is over (`rest`, the next one to be summed out first), and the tables with it.

    Tables have an axis for the unit and one for each unit of the rest, of length 1 where they do not depend on it.
    """

    unit: int
    rest: _Scope
    tables: tuple[Floats, ...]

    __repr__ = short_repr

    def log_weights(self, states: NDArray[np.integer]) -> Floats:
        """Log unnormalised probability (state of the unit, row) given the rest of states (row, unit)."""
        total: Floats = np.zeros((len(self.tables[0]) if self.tables else 1, len(states)))
        for table in self.tables:
            own = [states[:, other] % n for other, n in zip(self.rest, table.shape[1:], strict=True)]
            total = total + table[(slice(None), *own)].reshape(len(table), -1)
        return total

    def sum_out(self, cardinalities: tuple[int, ...], pool: ThreadPoolExecutor) -> Floats:
        """The message, one axis for each unit of the rest."""
        shape = tuple(cardinalities[other] for other in self.rest)
        message = np.empty(shape)
        n_outer = 0  # leading axes that are gone through one state after the other
        while math.prod(shape[n_outer:]) > _AT_ONCE:
            n_outer += 1

        def compute(outer: tuple[int, ...]) -> None:
            parts = [
                table[(slice(None), *(k % n for k, n in zip(outer, table.shape[1:], strict=False)))]
                for table in self.tables
            ]
            message[outer] = _log_sum(sum(parts[1:], parts[0]))

        if self.tables:
            list(pool.map(compute, np.ndindex(shape[:n_outer])))
        else:
            message[...] = log(cardinalities[self.unit])
        return message


def _log_sum(log_weights: Floats) -> Floats:
    """Log of the sum of weights along the first axis."""
    largest = np.max(log_weights, axis=0)
    largest = np.where(np.isneginf(largest), 0.0, largest)
    with np.errstate(invalid="ignore"):
        return largest + log(exp(log_weights - largest).sum(axis=0))


@dataclass(frozen=True, eq=False, repr=False)
class Eliminated:
    """log Z, the order that gave it, and, if they were kept, the buckets in that order."""

    log_z: float
    order: Order
    cardinalities: tuple[int, ...]
    buckets: tuple[Bucket, ...] = ()

    __repr__ = short_repr

    def sample(self, n: int, rng: np.random.Generator) -> NDArray[np.integer]:
        """Independent exact samples (n, unit) of all units."""
        states = np.zeros((n, len(self.cardinalities)), np.min_scalar_type(max(self.cardinalities) - 1))
        for low in range(0, n, _SAMPLE_ROWS):
            part = states[low : low + _SAMPLE_ROWS]
            for bucket in reversed(self.buckets):
                # The largest of log weight + Gumbel noise is a draw in proportion to the weights.
                noise = rng.gumbel(size=(len(part), self.cardinalities[bucket.unit]))
                part[:, bucket.unit] = np.argmax(bucket.log_weights(part).T + noise, axis=1)
        return states


def order_for(factors: Factors) -> Order:
    """An order in which elimination is possible within this file's limits, or an error with the width that was found.

    >>> order_for(((2, 2, 2), [((0, 1), np.zeros((2, 2))), ((1, 2), np.zeros((2, 2)))], 0.0)).width
    1
    """
    cardinalities, tables, _ = factors
    graph = interaction_graph(len(cardinalities), [scope for scope, _ in tables])
    least = least_width(graph)
    least_table = (least + 1) * math.log2(min(cardinalities, default=1))
    if least_table > LOG2_LARGEST:
        raise _too_wide(f"a graph of width {least} at least", least_table)
    order = find_order(cardinalities, graph)
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
    order = order or order_for(factors)
    place = {unit: k for k, unit in enumerate(order.units)}
    total = float(constant)
    # By unit, the tables in which it is the one that is summed out first; those of one scope are added up.
    waiting: dict[int, dict[_Scope, Floats]] = {unit: {} for unit in order.units}

    def put(scope: _Scope, table: Floats) -> None:
        nonlocal total
        if not scope:
            total += float(table)
            return
        axes = sorted(range(len(scope)), key=lambda k: place[scope[k]])
        scope, table = tuple(scope[k] for k in axes), np.asarray(table, np.float64).transpose(axes)
        own = waiting[scope[0]]
        own[scope] = own[scope] + table if scope in own else table

    for scope, table in tables:
        put(scope, table)
    buckets: list[Bucket] = []
    kept = 0.0
    with ThreadPoolExecutor(threads) as pool:
        for k, unit in enumerate(order.units):
            bucket = _bucket(unit, waiting.pop(unit), place)
            if keep:
                buckets.append(bucket)
                kept += sum(table.size for table in bucket.tables)
                if kept > 2.0**LOG2_MOST_KEPT:
                    raise _too_wide("messages of exact samples", math.log2(kept))
            put(bucket.rest, bucket.sum_out(tuple(cardinalities), pool))
            if progress:
                progress(TASK, float(k + 1), float(len(order.units)))
    if math.isnan(total) or total == math.inf:
        raise InputError(
            found="factors with NaN or infinite values",
            expected="finite log values, or -inf for what is impossible",
            remedy="look at the factors' tables",
        )
    return Eliminated(total, order, tuple(cardinalities), tuple(buckets))


def _bucket(unit: int, own: Mapping[_Scope, Floats], place: Mapping[int, int]) -> Bucket:
    rest = tuple(sorted({other for scope in own for other in scope[1:]}, key=place.__getitem__))
    tables = []
    for scope, table in own.items():
        axes = tuple(k for k, other in enumerate(rest, start=1) if other not in scope)
        tables.append(np.expand_dims(table, axes))
    return Bucket(unit, rest, tuple(tables))


def _too_wide(found: str, log2_table: float | None = None, log2_work: float | None = None) -> InputError:
    size = "" if log2_table is None else f", that is a table of 2**{log2_table:.1f} entries"
    work = "" if log2_work is None else f" and 2**{log2_work:.1f} in all"
    return InputError(
        found=f"{found}{size}{work}",
        expected=f"tables of at most 2**{LOG2_LARGEST:g} entries, and 2**{LOG2_MOST_WORK:g} in all",
        remedy="use log_z(model) for log Z from both sides (the command log-z), or ais_log_z(model) for an estimate",
    )
