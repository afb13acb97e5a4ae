"""HDF5 through h5py: the arrays of a file by their paths, nothing outside it, and no more than its size allows."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meltpoint.errors import InputError
from meltpoint.files.bounded import Allowance, allowance_of
from meltpoint.importers import named_arrays
from meltpoint.importers.options import Options
from meltpoint.importers.source import Source
from meltpoint.models import Model

NAME = "HDF5 file with named arrays"
OPTIONS = named_arrays.OPTIONS

_SIGNATURE = b"\x89HDF\r\n\x1a\n"
_MOST_OBJECTS = 100_000


def is_hdf5(source: Source) -> bool:
    """Whether it has the signature, at its beginning or behind MATLAB's header."""
    return source.head.startswith(_SIGNATURE) or source.head[512:520] == _SIGNATURE


def recognises(source: Source) -> bool:
    """Any HDF5 file: the formats with a layout of their own are asked first."""
    return is_hdf5(source)


def read(source: Source, options: Options) -> Model:
    """The model whose parameters are the named arrays; MATLAB's (version 7.3) have their axes reversed."""
    is_matlab = source.head.startswith(b"MATLAB 7.3")
    with open_file(source) as file:
        arrays = {
            name: file.array(name) for name, dataset in file.datasets.items() if dataset.dtype.kind in "biuf"
        }
    return named_arrays.model(
        source, {name: array.T if is_matlab else array for name, array in arrays.items()}, options
    )


@dataclass(frozen=True)
class File:
    """An open file: its datasets by their paths, without the slash in front."""

    datasets: Mapping[str, Any]
    allowance: Allowance

    def __contains__(self, name: str) -> bool:
        return name in self.datasets

    def array(self, name: str) -> NDArray[Any]:
        """The numbers of a dataset."""
        dataset = self._checked(name)
        if dataset.dtype.kind not in "biuf":
            raise ValueError(f"{name!r} has values of type {dataset.dtype}")
        self.allowance.take(dataset.nbytes)
        return np.asarray(dataset[()])

    def text(self, name: str) -> str:
        """The text in a dataset with one entry."""
        dataset = self._checked(name)
        if dataset.size != 1 or dataset.dtype.kind not in "OS" or dataset.dtype.itemsize > 1000:
            raise ValueError(f"{name!r} is no text")
        value = dataset[()]
        return value.decode("utf-8") if isinstance(value, bytes) else str(value)

    def _checked(self, name: str) -> Any:  # noqa: ANN401
        if name not in self.datasets:
            raise ValueError(f"no {name!r}")
        dataset = self.datasets[name]
        if dataset.external or dataset.is_virtual or dataset.shape is None:
            raise ValueError(f"the numbers of {name!r} are not in this file")
        return dataset


@contextmanager
def open_file(source: Source) -> Iterator[File]:
    """The file, open for reading. Soft and external links are not followed."""
    h5py = _library(source)
    with source.open() as stream, h5py.File(stream, "r") as file:
        yield File(dict(_datasets(h5py, file)), allowance_of(source.path, source.size))


def _library(source: Source) -> ModuleType:
    try:
        import h5py  # pyright: ignore
    except ImportError as problem:
        raise InputError(
            found=f"{source.name}, an HDF5 file, and no h5py to read it",
            expected="the package h5py",
            remedy="install it with pip install 'meltpoint[h5]'",
        ) from problem
    return h5py


def _datasets(h5py: ModuleType, file: Any) -> Iterator[tuple[str, Any]]:  # noqa: ANN401
    """Path and dataset of everything that hangs in the file by hard links."""
    groups, seen = [("", file)], 0
    while groups:
        prefix, group = groups.pop()
        for name in group:
            seen += 1
            # Hard links can form circles.
            if seen > _MOST_OBJECTS or prefix.count("/") > 20:
                raise ValueError(f"more than {_MOST_OBJECTS} objects, or groups nested too deeply")
            if not isinstance(group.get(name, getlink=True), h5py.HardLink) or name == "#refs#":
                continue
            item = group[name]
            if isinstance(item, h5py.Group):
                groups.append((f"{prefix}{name}/", item))
            elif isinstance(item, h5py.Dataset):
                yield f"{prefix}{name}", item
