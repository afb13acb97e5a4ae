"""log Z by enumeration: the answer the estimators are checked against, for models with one small side."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Any

import numpy as np
from scipy.special import logsumexp

from meltpoint.errors import InputError, Progress
from meltpoint.kernels.threads import check_threads
from meltpoint.models.bipartite import Bipartite
from meltpoint.models.model import Model
from meltpoint.models.mrf import MarkovRandomField
from meltpoint.progress import reports_progress

LARGEST = 30
"""Units on the smaller side. Each one more doubles the time; 784 x 25 takes six seconds of one core."""

LARGEST_STATE = 24
"""Units of the state of a model that is not two-sided, which NumPy enumerates."""

_CALL_WORK = 100_000_000  # factors per kernel call: some hundredths of a second
_STATES = 1 << 14  # that NumPy enumerates at once
_LARGEST_INPUTS = 1 << 22  # of the units of these states together


@reports_progress
def exact_log_z(
    model: Model, *, threads: int | None = None, progress: Progress | bool | None = None
) -> float:
    """The logarithm of a model's normaliser Z (a DBN's is its top RBM's), by adding up all states.

    All states of the smaller side, that is: the other side is summed out analytically. A DBM's sides are its
    layers v, h2, h4, … and h1, h3, …. Models without two sides are enumerated state by state. The result does not
    depend on the number of threads.

    Parameters
    ----------
    model
        An RBM, DBM or DBN with at most 30 units on the smaller side.
    threads, progress
        As in `ais_log_z`.

    >>> from meltpoint.models.rbm import RBM
    >>> round(exact_log_z(RBM([[0.0], [0.0]], [0.0, 0.0], [0.0])), 4)  # log 8
    2.0794
    """
    assert not isinstance(progress, bool), "reports_progress has made a callback of it"
    threads = check_threads(threads)
    progress = progress or _silent
    mrf = model.mrf
    two = mrf.bipartite
    largest = LARGEST_STATE if two is None else LARGEST
    if mrf.smaller_side > largest:
        n = mrf.smaller_side
        raise InputError(
            found=f"{n} units {'of' if two is None else 'on the smaller side of'} {model!r}, "
            f"that is 2**{n} states to add up",
            expected=f"at most {largest}",
            remedy="use ais_log_z(model) for an estimate of log Z, or evaluate(model, test) for a likelihood "
            "from both sides",
        )
    return _sum_states(mrf.enumerated, progress) if two is None else _sum_two_sided(two, threads, progress)


def _sum_states(mrf: MarkovRandomField, progress: Progress) -> float:
    """log Z by log f of every state."""
    n_states = [block.unit.n_states or 0 for block in mrf.state_blocks for _ in range(block.size)]
    total = int(np.prod(n_states))
    places = np.cumprod([1, *n_states[:-1]])
    # Units in the order of blocks, which need not be that of their columns.
    columns = np.concatenate([np.arange(mrf.n_state)[block.columns] for block in mrf.state_blocks])
    log_sums = []
    inputs = max(1, sum(block.size * int(np.prod(block.unit.input_shape)) for block in mrf.unit_blocks))
    at_once = max(1, min(_STATES, _LARGEST_INPUTS // inputs))
    for low in range(0, total, at_once):
        numbers = np.arange(low, min(low + at_once, total))[:, np.newaxis]
        states = np.empty((len(numbers), mrf.n_state), mrf.dtype)
        states[:, columns] = numbers // places % n_states
        log_sums.append(logsumexp(mrf.log_f(states)))
        progress("enumeration", float(low + len(numbers)), float(total))
    log_z: Any = logsumexp(log_sums)
    return float(log_z)


def _sum_two_sided(two: Bipartite, threads: int, progress: Progress) -> float:
    """log Z by all states of the smaller side, in compiled code on all threads."""
    smaller = two.smaller_side
    progress("preparing the kernels (compiled once per machine)", 0.0, 1.0)
    # Numba takes most of a second to import, so it waits until there is something to run.
    from meltpoint.estimators.enumeration import lay_out, sum_blocks

    if two.n_even < two.n_odd:
        blocks = lay_out(two.odd_field(np.eye(smaller)), two.even_bias, two.odd_bias)
    else:
        blocks = lay_out(two.even_field(np.eye(smaller)), two.odd_bias, two.even_bias)
    log_sums = np.empty(blocks.n_blocks)
    sum_blocks(blocks, 0, log_sums[:0])
    progress("preparing the kernels (compiled once per machine)", 1.0, 1.0)
    size = max(1, _CALL_WORK // blocks.work)
    with ThreadPoolExecutor(threads) as pool:
        try:
            calls = [
                pool.submit(sum_blocks, blocks, first, log_sums[first : first + size])
                for first in range(0, blocks.n_blocks, size)
            ]
            for done, call in enumerate(as_completed(calls), start=1):
                call.result()
                progress("enumeration", float(done), float(len(calls)))
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    log_z: Any = logsumexp(log_sums)
    return float(log_z) + two.log_constant


def _silent(_task: str, _done: float, _total: float) -> None:
    """Say nothing."""
