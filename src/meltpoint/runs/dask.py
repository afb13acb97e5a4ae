"""A Dask cluster's workers: connecting to them, noticing when none is left, and running tasks there.

Dask sends tasks and results as pickles. Whoever can reach a scheduler or a worker can run programs there, and a
hostile worker can run programs here: use trusted networks, or TLS.
"""

import asyncio
import logging
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Executor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from meltpoint.errors import InputError, SystemFailure
from meltpoint.runs.executor import ReportingExecutor

Notify = Callable[[str], None]
"""Called with a sentence about the cluster, from another thread."""

PATIENCE = 60.0
"""Seconds to wait for a worker when there is none."""

_CONNECT_SECONDS = 10
_LOOK_SECONDS = 1.0  # between looks at the workers
_NOTICE_SECONDS = 4.0  # without a worker before the user is notified: one that restarts is back sooner
# Sent as text to be evaluated: a function of this package could not be named where the package is missing.
_HAS_PACKAGE = "bool(__import__('meltpoint.errors'))"


@dataclass(frozen=True)
class TLS:
    """Files for an encrypted connection with authentication of both sides: authority, certificate, private key."""

    ca_file: Path
    cert: Path
    key: Path


@contextmanager
def dask_cluster(
    address: str, *, patience: float = PATIENCE, tls: TLS | None = None, notify: Notify | None = None
) -> Iterator[Executor]:
    """An executor with the workers of the Dask cluster whose scheduler is at this address.

    When no worker is left, or the scheduler does not answer, `notify` is called within ten seconds. If that lasts for
    `patience` seconds the tasks end with a SystemFailure, as they do at once where the package is missing.
    """
    _check_patience(patience)
    client = _connect(address, tls)
    _silence()
    notify = notify or (lambda _text: None)
    try:
        _wait_for_workers(client, address, patience, notify)
        _check_package(client, address)
        executor = ReportingExecutor(client.get_executor(), _explainer(address))
        ended = threading.Event()
        watcher = threading.Thread(
            target=_watch, args=(client, executor, address, patience, notify, ended), daemon=True
        )
        watcher.start()
        try:
            yield executor
        finally:
            ended.set()
            watcher.join(2 * _CONNECT_SECONDS)
    finally:
        # Dask's error about a lost connection would hide ours.
        with suppress(Exception):
            client.close(timeout=_CONNECT_SECONDS)


def is_dask(executor: Executor) -> bool:
    """Whether an executor's workers are those of a Dask cluster, which reach each other through its network."""
    return type(_inner(executor)).__module__.partition(".")[0] == "distributed"


def send(executor: Executor, value: Any, key: str) -> Any:  # noqa: ANN401
    """A Dask future of a value, which a task gets as the value itself; `key` names the value.

    It is the result of a task: workers get it from each other, and if all that have it die it is made again.
    """
    client: Any = _inner(executor)._client  # pyright: ignore  there is no public way
    # Dask warns of tasks with more than 10 MB of arguments, and recommends what is done here.
    with warnings.catch_warnings(action="ignore"):
        return client.submit(_pass_on, value, key=f"meltpoint-{key}")


def compute_unprofiled(compute: Callable[..., Any], *arguments: Any) -> Any:  # noqa: ANN401
    """What a function gives, computed on a Dask worker with its profiler paused."""
    from distributed import get_worker

    with _unprofiled(get_worker()):
        return compute(*arguments)


_lock = threading.Lock()
_under_way = 0
"""Tasks that this worker's threads are computing."""


@contextmanager
def _unprofiled(worker: Any) -> Iterator[None]:  # noqa: ANN401
    """Pause the profiler of a Dask worker until its last task is done.

    It looks at the stack a hundred times a second, to see the same compiled call each time, and takes 3% of a core.
    """
    global _under_way
    profiler = worker.periodic_callbacks.get("profile")
    if profiler is None:  # switched off by the cluster's owner
        yield
        return
    with _lock:
        _under_way += 1
        worker.loop.add_callback(profiler.stop)  # it belongs to the loop's thread
    try:
        yield
    finally:
        with _lock:
            _under_way -= 1
            if not _under_way:
                worker.loop.add_callback(profiler.start)


def _pass_on(value: Any) -> Any:  # noqa: ANN401
    return value


def _inner(executor: Executor) -> Executor:
    return executor.inner if isinstance(executor, ReportingExecutor) else executor


def _check_patience(patience: float) -> None:
    if not 0 <= patience < float("inf"):
        raise InputError(
            found=f"patience={patience}", expected="seconds, from 0 on", remedy="60 is a good choice"
        )


def _connect(address: str, tls: TLS | None) -> Any:  # noqa: ANN401
    try:
        from distributed import Client
        from distributed.security import Security
    except ImportError as problem:
        raise SystemFailure(
            found="no Dask on this machine",
            expected="the package distributed, for a cluster",
            remedy="pip install 'meltpoint[cluster]'",
        ) from problem
    security = None
    if tls is None and address.startswith("tls://") and not _is_tls_configured():
        raise InputError(
            found=f"the encrypted Dask scheduler {address} and no certificate",
            expected="the files of a certificate",
            remedy="give --tls-ca-file, --tls-cert and --tls-key (tls=TLS(…) in Python), or configure Dask's own",
        )
    if tls is not None:
        for file in (tls.ca_file, tls.cert, tls.key):
            if not file.is_file():
                raise InputError(
                    found=f"no file {file}", expected="a PEM file for TLS", remedy="check the path"
                )
        security = Security(
            tls_ca_file=str(tls.ca_file),
            tls_client_cert=str(tls.cert),
            tls_client_key=str(tls.key),
            require_encryption=True,
        )
    _silence()
    try:
        return Client(address, timeout=_CONNECT_SECONDS, set_as_default=False, security=security)
    except (ValueError, TypeError) as problem:
        raise InputError(
            found=f"{address!r} as a Dask scheduler ({problem})",
            expected="the address that dask scheduler prints, such as tcp://10.0.0.1:8786",
            remedy="with --tls-ca-file, --tls-cert and --tls-key it begins with tls://",
        ) from problem
    except (OSError, RuntimeError) as problem:
        raise SystemFailure(
            found=f"no Dask scheduler at {address} ({problem})",
            expected="the address that dask scheduler prints, such as tcp://10.0.0.1:8786",
            remedy="start one with: dask scheduler; and workers on each machine with: dask worker ADDRESS",
        ) from problem


def _is_tls_configured() -> bool:
    from dask import config

    return config.get("distributed.comm.tls.ca-file", None) is not None


def _silence() -> None:
    """Keep Dask from logging tracebacks: what goes wrong is said in a sentence here."""
    for name in ("distributed", "tornado", "asyncio"):
        for known in [name, *(n for n in logging.root.manager.loggerDict if n.startswith(f"{name}."))]:
            logging.getLogger(known).setLevel(logging.CRITICAL + 1)


def _count_workers(client: Any) -> int | None:  # noqa: ANN401
    """Number of workers that are connected, None if the scheduler does not say."""
    try:
        return len(client.sync(client.scheduler.ncores, workers=None, callback_timeout=_CONNECT_SECONDS / 2))
    except (Exception, asyncio.CancelledError):  # a lost connection has a dozen types
        return None


def _wait_for_workers(client: Any, address: str, patience: float, notify: Notify) -> None:  # noqa: ANN401
    begun = time.monotonic()
    notified = False
    while not _count_workers(client):
        waited = time.monotonic() - begun
        if waited >= patience:
            raise _no_worker(address, patience)
        if not notified and waited >= min(_LOOK_SECONDS, patience):
            notified = True
            notify(_waiting(address, patience - waited))
        time.sleep(min(_LOOK_SECONDS, patience) / 2)


def _check_package(client: Any, address: str) -> None:  # noqa: ANN401
    """Refuse a cluster whose scheduler or workers lack this package: their tasks could never begin."""
    answers: dict[str, Any] = {}
    with suppress(Exception):
        answers |= client.run(eval, _HAS_PACKAGE, on_error="return")
    try:
        client.run_on_scheduler(eval, _HAS_PACKAGE)
    except Exception as problem:
        answers[f"the scheduler {address}"] = problem
    lacking = sorted(where for where, answer in answers.items() if isinstance(answer, ImportError))
    if lacking:
        raise SystemFailure(
            found=f"no meltpoint at {', '.join(lacking)} ({answers[lacking[0]]})",
            expected="the same meltpoint on all machines of the cluster",
            remedy="pip install 'meltpoint[cluster]' there, and start the workers again",
        )


def _watch(
    client: Any,  # noqa: ANN401
    executor: ReportingExecutor,
    address: str,
    patience: float,
    notify: Notify,
    ended: threading.Event,
) -> None:
    """Give up the executor's tasks when there was no worker for too long."""
    alone_since: float | None = None
    notified = False
    while not ended.wait(_LOOK_SECONDS):
        n = _count_workers(client) if executor.busy else 1
        if n:
            if notified:
                notify(f"there are workers again at {address}")
            alone_since, notified = None, False
            continue
        now = time.monotonic()
        alone_since = alone_since or now
        waited = now - alone_since
        if waited >= patience:
            executor.give_up(_no_worker(address, patience) if n == 0 else _no_scheduler(address))
            return
        if not notified and waited >= min(_NOTICE_SECONDS, patience):
            notified = True
            notify(
                _waiting(address, patience - waited)
                if n == 0
                else f"the Dask scheduler at {address} does not answer"
            )


def _explainer(address: str) -> Callable[[BaseException], BaseException]:
    from distributed import KilledWorker

    def explain(problem: BaseException) -> BaseException:
        if isinstance(problem, KilledWorker):
            return SystemFailure(
                found=f"a task at which one worker after the other died ({problem})",
                expected="workers with enough memory for the model",
                remedy="start fewer on each machine, and call again; a run with a folder (--run) continues",
            )
        if isinstance(problem, CancelledError | asyncio.CancelledError):
            return _no_scheduler(address)
        if isinstance(problem, ImportError):
            return SystemFailure(
                found=f"a worker that cannot run meltpoint ({problem})",
                expected="the same meltpoint on all machines of the cluster",
                remedy="pip install 'meltpoint[cluster]' there, and start the workers again",
            )
        return problem

    return explain


def _waiting(address: str, seconds: float) -> str:
    return (
        f"no worker at the Dask scheduler {address}: waiting {seconds:.0f} s for one (--patience); "
        f"start it with: dask worker {address}"
    )


def _no_worker(address: str, patience: float) -> SystemFailure:
    return SystemFailure(
        found=f"no worker at the Dask scheduler {address} for {patience:g} s",
        expected="at least one",
        remedy=f"start workers on each machine with: dask worker {address}; a run with a folder (--run) continues",
    )


def _no_scheduler(address: str) -> SystemFailure:
    return SystemFailure(
        found=f"no connection to the Dask scheduler {address} any more",
        expected="a scheduler that stays alive",
        remedy="start it and its workers again, and call again; a run with a folder (--run) continues",
    )
