"""What the commands that evaluate models have in common: who computes, what is read and shown, how to continue."""

import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from meltpoint.cli.ending import NOT_TO_BE_TRUSTED, NOTHING_FINISHED
from meltpoint.cli.inputs import Reading, check_output
from meltpoint.cli.screen import PLOT_FORMATS, echo_err, progress_bar, write_result
from meltpoint.errors import InputError

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from meltpoint.models.model import Model
    from meltpoint.results.document import Readable


@dataclass(frozen=True)
class Evaluating:
    """The values of a command's options that all of them have; `keywords` are those of the library's function."""

    keywords: dict[str, Any]
    json: bool
    plot: Path | None
    again: str

    @contextmanager
    def computing(self) -> "Iterator[tuple[Callable[[str, Model], tuple[Any, Any]], dict[str, Any]]]":
        """A function that reads test and training examples for a model, and the keywords with who computes."""
        keywords = dict(self.keywords)
        how = {name: keywords.pop(name) for name in ("binarize", "alphabet", "outside")}
        train = keywords.pop("train")
        names = "workers", "cluster", "patience", "tls_ca_file", "tls_cert", "tls_key"
        executor = _executor(*(keywords.pop(name) for name in names))
        with progress_bar() as progress, executor as workers:
            reading = Reading(progress, keywords["seed"], **how)
            yield partial(reading.pair, train=train), {**keywords, "executor": workers, "progress": progress}

    def show(self, found: "Readable", finished: str, html: Path | None = None) -> None:
        """Write the result, say what of it was `finished` if it was interrupted, and end with the exit code."""
        document = write_result(found, self.json, self.plot, html)
        if document.interrupted:
            echo_err(f"meltpoint: interrupted: {finished}")
            echo_err(self.again)
        if not document.trusted:
            raise typer.Exit(NOT_TO_BE_TRUSTED)


@contextmanager
def evaluating(given: dict[str, Any]) -> Iterator[Evaluating]:
    """A command with the options TRAIN, READING, RUN, COMPUTING and OUTPUT; after Ctrl-C it says how to continue."""
    json, plot = given.pop("json"), given.pop("plot")
    again = "to be able to continue, add --run FOLDER"
    if given["run"] is not None:
        again = f"to continue: {shlex.join(['meltpoint', *sys.argv[1:]])}"
    check_output(plot, *PLOT_FORMATS)
    try:
        yield Evaluating(given, json, plot, again)
    except KeyboardInterrupt as stop:
        raise KeyboardInterrupt(f"{str(stop) or NOTHING_FINISHED}\n{again}") from None


def _executor(
    workers: int | None,
    cluster: str | None,
    patience: float,
    ca_file: Path | None,
    cert: Path | None,
    key: Path | None,
) -> "AbstractContextManager[Executor | None]":
    """Processes, the workers of a cluster, or nothing: threads."""
    if workers is not None and cluster is not None:
        raise InputError(
            found="both --workers and --cluster",
            expected="one of them",
            remedy="leave out --workers: the cluster has workers of its own",
        )
    some = ca_file or cert or key
    if some and not (ca_file and cert and key):
        raise InputError(
            found="some of --tls-ca-file, --tls-cert and --tls-key",
            expected="all three of them, or none",
            remedy="add the others: both sides of a connection show a certificate",
        )
    if workers is not None:
        from meltpoint.runs.workers import processes

        return processes(workers)
    if cluster is not None:
        from meltpoint.runs.dask import TLS, dask_cluster

        tls = TLS(ca_file, cert, key) if ca_file and cert and key else None
        return dask_cluster(
            cluster, patience=patience, tls=tls, notify=lambda text: echo_err(f"meltpoint: {text}")
        )
    return nullcontext()
