"""Who computes what a command asks for: threads, processes (--workers) or a cluster (--cluster)."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from meltpoint.cli.screen import echo_err
from meltpoint.errors import InputError

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from meltpoint.runs.dask import TLS


@contextmanager
def executor_of(
    workers: int | None,
    address: str | None,
    patience: float,
    ca_file: Path | None,
    cert: Path | None,
    key: Path | None,
) -> "Iterator[Executor | None]":
    """Processes, the workers of a cluster, or nothing: threads. The files are those of an encrypted connection."""
    tls = _tls(ca_file, cert, key)
    if workers is not None and address is not None:
        raise InputError(
            found="both --workers and --cluster",
            expected="one of them",
            remedy="leave out --workers: the cluster has workers of its own",
        )
    if workers is None and address is None:
        yield None
        return
    if workers is not None:
        from meltpoint.runs.processes import processes

        with processes(workers) as executor:
            yield executor
        return
    from meltpoint.runs.dask import dask_cluster

    def notify(text: str) -> None:
        echo_err(f"meltpoint: {text}")

    with dask_cluster(str(address), patience=patience, tls=tls, notify=notify) as executor:
        yield executor


def _tls(ca_file: Path | None, cert: Path | None, key: Path | None) -> "TLS | None":
    """The files of an encrypted connection, None without any."""
    if ca_file is None and cert is None and key is None:
        return None
    if ca_file is None or cert is None or key is None:
        raise InputError(
            found="some of --tls-ca-file, --tls-cert and --tls-key",
            expected="all three of them, or none",
            remedy="add the others: both sides of a connection show a certificate",
        )
    from meltpoint.runs.dask import TLS

    return TLS(ca_file, cert, key)
