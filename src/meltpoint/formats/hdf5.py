"""HDF5: the arrays of a file by their paths. A process with a limit of memory reads them (`hdf5_reader.py`)."""

import json
import os
import shutil
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from subprocess import DEVNULL, PIPE
from typing import Any, BinaryIO, cast

import numpy as np
from numpy.typing import NDArray

from meltpoint.errors import InputError
from meltpoint.extras import require
from meltpoint.formats import named_arrays
from meltpoint.formats.format import Format, Options
from meltpoint.formats.source import Source
from meltpoint.models import Model

_SIGNATURE = b"\x89HDF\r\n\x1a\n"
_READER = str(Path(__file__).with_name("hdf5_reader.py"))
_SECONDS = 60  # of a processor, for one file


def is_hdf5(source: Source) -> bool:
    """Whether it has the signature, at its beginning or behind MATLAB's header."""
    return _SIGNATURE in (source.head[:8], source.head[512:520])


@dataclass(frozen=True, eq=False)
class File:
    """An open file, which a process of its own reads. Paths have no slash in front; links are not followed."""

    source: Source
    process: "subprocess.Popen[bytes]"

    def __contains__(self, path: str) -> bool:
        return self._ask("contains", path)

    @property
    def names(self) -> list[str]:
        return self._ask("names")

    def numeric_paths(self) -> list[str]:
        """Paths of all datasets of numbers."""
        return self._ask("numeric_paths")

    def text(self, path: str) -> str:
        """The text in a dataset with one entry."""
        return self._ask("text", path)

    def array(self, path: str) -> NDArray[Any]:
        kind, shape, n_bytes = self._ask("layout", path)
        self.source.take(n_bytes)
        found = np.empty(shape, np.dtype(kind))
        self._ask("array", path)
        if cast("BinaryIO", self.process.stdout).readinto(found.reshape(-1).view(np.uint8)) != found.nbytes:  # pyright: ignore
            raise self._ended()
        return found.astype(found.dtype.newbyteorder("="), copy=False)

    def _ask(self, *question: str) -> Any:  # noqa: ANN401
        requests, answers = cast("BinaryIO", self.process.stdin), cast("BinaryIO", self.process.stdout)
        try:
            requests.write(json.dumps(question).encode() + b"\n")
            requests.flush()
            answer = json.loads(answers.readline())
        except (OSError, ValueError) as problem:
            raise self._ended() from problem
        if "error" in answer:
            raise ValueError(answer["error"])
        return answer["value"]

    def _ended(self) -> ValueError:
        return ValueError(
            f"HDF5's library ended, or took more than its memory or time: {self.process.wait(_SECONDS)}"
        )


def file_of(source: Source) -> File:
    """The file, open for reading as long as the source is."""
    if find_spec("h5py") is None:
        try:
            require("h5py", "reading HDF5 files")
        except InputError as problem:
            raise problem.with_found(f"{source.name}, an HDF5 file, and {problem.found}") from problem
    command = [sys.executable, "-P", _READER, str(source.size), str(source.left), str(_SECONDS)]
    alone = os.environ | {"OPENBLAS_NUM_THREADS": "1"}
    process = subprocess.Popen(command, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, env=alone)
    source.closing.callback(_end, process)
    file = File(source, process)
    with suppress(OSError):  # it has ended, which the first question finds
        shutil.copyfileobj(source.open(), cast("BinaryIO", process.stdin))
    return file


def _end(process: "subprocess.Popen[bytes]") -> None:
    process.kill()
    with suppress(OSError):
        process.communicate()


def _model(source: Source, options: Options) -> Model:
    """The model whose parameters are the named arrays; MATLAB's (version 7.3) have their axes reversed."""
    file = source.once(file_of)
    arrays = {path: file.array(path) for path in file.numeric_paths()}
    if source.head.startswith(b"MATLAB 7.3"):
        arrays = {path: array.T for path, array in arrays.items()}
    return named_arrays.model(source, arrays, options)


# Any HDF5 file: the formats with a layout of their own are asked first.
FORMAT = Format("HDF5 file with named arrays", (".h5", ".hdf5"), is_hdf5, named_arrays.OPTIONS, model=_model)
