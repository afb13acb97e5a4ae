"""How workers get a model and its data: as arrays that travel with the tasks, or in a file that all of them read."""

import platform
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from meltpoint.errors import InputError
from meltpoint.runs.chunks import read_sealed, write_sealed
from meltpoint.runs.fingerprint import fingerprint


@dataclass(frozen=True)
class Payload:
    """Arrays of a stage, or of other work, that are sent to workers: the arrays themselves, or a file with them.

    Payloads with the same fingerprint are equal, so that a worker prepares one of them only.
    """

    fingerprint: str
    content: "dict[str, NDArray[Any]] | Path" = field(compare=False, repr=False)

    def in_file(self, path: Path) -> "Payload":
        """The same in a file that the workers read."""
        write_sealed(path, read_payload(self))
        return Payload(self.fingerprint, path)


def payload_of(arrays: dict[str, NDArray[Any]]) -> Payload:
    """Arrays to be carried along."""
    return Payload(fingerprint(arrays), arrays)


def read_payload(payload: Payload) -> dict[str, NDArray[Any]]:
    """The arrays of a payload, on a worker."""
    if isinstance(payload.content, dict):
        return payload.content
    try:
        return read_sealed(payload.content)
    except InputError as problem:
        raise InputError(
            found=f"{problem.found} on a worker ({platform.node()})",
            expected="workers that see the disk of this machine",
            remedy="use a Dask cluster, where the model travels through the network",
        ) from problem
