"""The workers of a Dask cluster: connecting to them, noticing when none is left, and running tasks there.

Dask sends tasks and results as pickles. Whoever can reach a scheduler or a worker can run programs there, and a
hostile worker can run programs here: use trusted networks, or TLS.
"""

import asyncio
import hashlib
import logging
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Executor, Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from meltpoint.defaults import PATIENCE
from meltpoint.errors import InputError, SystemFailure

Notify = Callable[[str], None]
"""Called with a sentence about the cluster."""

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
    `patience` seconds an evaluation ends with a SystemFailure, as it does at once where the package is missing.
    """
    if not 0 <= patience < float("inf"):
        raise InputError(
            found=f"patience={patience}", expected="seconds, from 0 on", remedy="60 is a good choice"
        )
    client = _connect(address, tls)
    try:
        executor = DaskExecutor(client, address, patience, notify)
        has_workers = executor.watch()
        while not has_workers():
            time.sleep(min(_LOOK_SECONDS, patience) / 2)
        _check_package(client, address)
        yield executor
    finally:
        # Dask's error about a lost connection would hide ours.
        with suppress(Exception):
            client.close(timeout=_CONNECT_SECONDS)


def as_dask(executor: Executor) -> Executor:
    """An executor of Dask's own as one that shares what it sends; others as they are."""
    if type(executor).__module__.partition(".")[0] != "distributed":
        return executor
    client: Any = executor._client  # pyright: ignore  there is no public way
    return DaskExecutor(client, client.scheduler.address)


class DaskExecutor(Executor):
    """Runs tasks on the workers of a client, whose absence it reports if there is a limit to its patience."""

    def __init__(
        self,
        client: Any,  # noqa: ANN401
        address: str,
        patience: float | None = None,
        notify: Notify | None = None,
    ) -> None:
        self.client, self.address, self.patience = client, address, patience
        self.notify = notify or (lambda _text: None)
        self._inner: Executor = client.get_executor()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> "Future[Any]":  # noqa: ANN401
        """Begin a task as soon as a worker is free."""
        return self._inner.submit(fn, *args, **kwargs)

    def share(self, pickled: bytes) -> Any:  # noqa: ANN401
        """A Dask future of these bytes, which a task gets as the bytes themselves.

        It is the result of a task: workers get it from each other, and if all that have it die it is made again.
        """
        key = f"meltpoint-{hashlib.blake2b(pickled, digest_size=16).hexdigest()}"
        # Dask warns of tasks with more than 10 MB of arguments, and recommends what is done here.
        with warnings.catch_warnings(action="ignore"):
            return self.client.submit(bytes, pickled, key=key)

    def watch(self) -> Callable[[], bool]:
        """A function to call now and then while tasks are under way: whether there are workers.

        It notifies when there are none, and raises a SystemFailure when that lasts for too long.
        """
        return (lambda: True) if self.patience is None else _Watch(self, self.patience)

    def explain(self, problem: BaseException) -> BaseException:
        """The error to report in place of one that a task has ended with."""
        from distributed import KilledWorker

        if isinstance(problem, KilledWorker):
            return SystemFailure(
                found=f"a task at which one worker after the other died ({problem})",
                expected="workers with enough memory for the model",
                remedy="start fewer on each machine, and call again; a run with a folder (--run) continues",
            )
        if isinstance(problem, CancelledError | asyncio.CancelledError):
            return SystemFailure(
                found=f"no connection to the Dask scheduler {self.address} any more",
                expected="a scheduler that stays alive",
                remedy="start it and its workers again, and call again; a run with a folder (--run) continues",
            )
        if isinstance(problem, ImportError):
            return _missing_package(f"a worker that cannot run meltpoint ({problem})")
        return problem


class _Watch:
    """Counts workers once a second, while it is called."""

    def __init__(self, executor: DaskExecutor, patience: float) -> None:
        self._executor, self._patience = executor, patience
        self._next_look = 0.0
        self._alone_since: float | None = None
        self._notified = False

    def __call__(self) -> bool:
        address, notify = self._executor.address, self._executor.notify
        if time.monotonic() < self._next_look:
            return self._alone_since is None
        n, now = _count_workers(self._executor.client), time.monotonic()
        self._next_look = now + _LOOK_SECONDS
        if n:
            if self._notified:
                notify(f"there are workers again at {address}")
            self._alone_since, self._notified = None, False
            return True
        self._alone_since = self._alone_since or now
        waited = now - self._alone_since
        if waited >= self._patience:
            raise (
                self._executor.explain(CancelledError())
                if n is None
                else SystemFailure(
                    found=f"no worker at the Dask scheduler {address} for {self._patience:g} s",
                    expected="at least one",
                    remedy=f"start workers on each machine with: dask worker {address}; "
                    "a run with a folder (--run) continues",
                )
            )
        if not self._notified and waited >= min(_NOTICE_SECONDS, self._patience / 2):
            self._notified = True
            notify(
                f"the Dask scheduler at {address} does not answer"
                if n is None
                else f"no worker at the Dask scheduler {address}: waiting {self._patience - waited:.0f} s for one "
                f"(--patience); start it with: dask worker {address}"
            )
        return False


def _count_workers(client: Any) -> int | None:  # noqa: ANN401
    """Number of workers that are connected, None if the scheduler does not say."""
    try:
        return len(client.sync(client.scheduler.ncores, workers=None, callback_timeout=_CONNECT_SECONDS / 2))
    except (Exception, asyncio.CancelledError):  # a lost connection has a dozen types
        return None


def _connect(address: str, tls: TLS | None) -> Any:  # noqa: ANN401
    try:
        from dask import config
        from distributed import Client
        from distributed.security import Security
    except ImportError as problem:
        raise SystemFailure(
            found="no Dask on this machine",
            expected="the package distributed, for a cluster",
            remedy="pip install 'meltpoint[cluster]'",
        ) from problem
    security = None
    if tls is None and address.startswith("tls://") and not config.get("distributed.comm.tls.ca-file", None):
        raise InputError(
            found=f"the encrypted Dask scheduler {address} and no certificate",
            expected="the files of a certificate",
            remedy="give --tls-ca-file, --tls-cert and --tls-key (tls=TLS(…) in Python), or configure Dask's own",
        )
    if tls is not None:
        missing = next((file for file in (tls.ca_file, tls.cert, tls.key) if not file.is_file()), None)
        if missing:
            raise InputError(
                found=f"no file {missing}", expected="a PEM file for TLS", remedy="check the path"
            )
        security = Security(
            tls_ca_file=str(tls.ca_file),
            tls_client_cert=str(tls.cert),
            tls_client_key=str(tls.key),
            require_encryption=True,
        )
    # What goes wrong is said in a sentence here: no log of Dask's, and no traceback in one. They stay silent: Dask's
    # threads report a lost scheduler when everything is closed.
    names = ("distributed", "tornado", "asyncio")
    for name in [*names, *(n for n in logging.root.manager.loggerDict if n.partition(".")[0] in names)]:
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
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
        raise _missing_package(f"no meltpoint at {', '.join(lacking)} ({answers[lacking[0]]})")


def _missing_package(found: str) -> SystemFailure:
    return SystemFailure(
        found=found,
        expected="the same meltpoint on all machines of the cluster",
        remedy="pip install 'meltpoint[cluster]' there, and start the workers again",
    )
