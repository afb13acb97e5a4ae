"""What the commands that evaluate models have in common: who computes, what is read, and how to continue."""

import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from meltpoint.cli.inputs import read_test_and_train
from meltpoint.cli.screen import echo_err
from meltpoint.errors import InputError, Progress

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from meltpoint.models.model import Model

_READING = "train", "binarize", "alphabet", "outside"


@dataclass(frozen=True)
class Evaluating:
    """A command's options: those for reading examples, and the keywords of the library's function."""

    reading: dict[str, Any]
    keywords: dict[str, Any]

    def read(self, data: str, model: "Model") -> tuple[Any, Any]:
        """Test and training examples, as this model has them."""
        how = {"seed": self.keywords["seed"], "progress": self.keywords["progress"]}
        return read_test_and_train(data, model=model, **self.reading, **how)


@contextmanager
def evaluating(given: dict[str, Any], progress: Progress) -> Iterator[Evaluating]:
    """The values of a command's TRAIN, READING, SIZES and COMPUTING options, with the executor they ask for."""
    keywords = dict(given)
    reading = {name: keywords.pop(name) for name in _READING}
    where = {name: keywords.pop(name) for name in ("workers", "cluster", "patience")}
    tls = {name: keywords.pop(f"tls_{name}") for name in ("ca_file", "cert", "key")}
    with _executor(**where, tls=tls) as executor:
        yield Evaluating(reading, {**keywords, "executor": executor, "progress": progress})


def to_continue(run: Path | None) -> str:
    """How to go on after an interruption."""
    if run is None:
        return "to be able to continue, add --run FOLDER"
    return f"to continue: {shlex.join(['meltpoint', *sys.argv[1:]])}"


@contextmanager
def _executor(
    workers: int | None, cluster: str | None, patience: float, tls: dict[str, Path | None]
) -> "Iterator[Executor | None]":
    """Processes, the workers of a cluster, or nothing: threads."""
    if workers is not None and cluster is not None:
        raise InputError(
            found="both --workers and --cluster",
            expected="one of them",
            remedy="leave out --workers: the cluster has workers of its own",
        )
    if any(tls.values()) and not all(tls.values()):
        raise InputError(
            found="some of --tls-ca-file, --tls-cert and --tls-key",
            expected="all three of them, or none",
            remedy="add the others: both sides of a connection show a certificate",
        )
    if workers is not None:
        from meltpoint.runs.workers import processes

        with processes(workers) as executor:
            yield executor
    elif cluster is not None:
        from meltpoint.runs.dask import TLS, dask_cluster

        files: Any = tls
        encrypted = TLS(**files) if any(tls.values()) else None

        def notify(text: str) -> None:
            echo_err(f"meltpoint: {text}")

        with dask_cluster(cluster, patience=patience, tls=encrypted, notify=notify) as executor:
            yield executor
    else:
        yield None
