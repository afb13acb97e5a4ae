"""HDF5 through h5py: the arrays of a file by their paths, nothing outside it, and no more than its size allows."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from meltpoint.errors import InputError
from meltpoint.extras import require
from meltpoint.formats import named_arrays
from meltpoint.formats.format import Format, Options
from meltpoint.formats.source import Source
from meltpoint.models import Model

_SIGNATURE = b"\x89HDF\r\n\x1a\n"
_MOST_OBJECTS, _DEEPEST = 10_000, 20
_SIZES = (2, 4, 8, 16, 32)  # bytes that addresses and lengths may have
_END = 1  # of a free list
_AT_ONCE = 1 << 20
_LONGEST_TEXT = 1000  # bytes


def is_hdf5(source: Source) -> bool:
    """Whether it has the signature, at its beginning or behind MATLAB's header."""
    return _SIGNATURE in (source.head[:8], source.head[512:520])


@dataclass(frozen=True)
class File:
    """An open file. Paths have no slash in front; soft and external links are not followed."""

    source: Source
    h5py: ModuleType
    stream: BinaryIO
    root: Any

    def __contains__(self, path: str) -> bool:
        return isinstance(self._find(path), self.h5py.Dataset)

    @property
    def names(self) -> list[str]:
        return list(self.root)

    def array(self, path: str) -> NDArray[Any]:
        dataset = self._dataset(path)
        if dataset.dtype.kind not in "biuf":
            raise ValueError(f"{path!r} has values of type {dataset.dtype}")
        filters = dataset.id.get_create_plist()
        kinds = [filters.get_filter(k)[0] for k in range(filters.get_nfilters())]
        if len(set(kinds)) < len(kinds):  # packed twice, a chunk says nothing of what it becomes on the way
            raise ValueError(f"{path!r} is packed twice in one way")
        # A chunk is unpacked as a whole, and may be larger than its dataset.
        chunk = math.prod(dataset.chunks or ()) * dataset.dtype.itemsize
        self.source.take(max(dataset.nbytes, chunk))
        return np.asarray(dataset[()])

    def text(self, path: str) -> str:
        """The text in a dataset with one entry."""
        dataset = self._dataset(path)
        if dataset.size != 1 or dataset.dtype.kind not in "OS" or dataset.dtype.itemsize > _LONGEST_TEXT:
            raise ValueError(f"{path!r} is no text")
        if dataset.dtype.kind == "O":  # the library takes as much memory as the length in the file says
            at = dataset.id.get_offset()
            if at is None or _number(self.stream, at, 4) > _LONGEST_TEXT:
                raise ValueError(f"{path!r} is no text, or a long one")
        value = dataset[()]
        return value.decode("utf-8") if isinstance(value, bytes) else str(value)

    def numeric_paths(self) -> Iterator[str]:
        """Paths of all datasets of numbers."""
        groups, seen = [("", self.root)], 0
        while groups:
            prefix, group = groups.pop()
            for name in group:
                seen += 1
                # Hard links can form circles.
                if seen > _MOST_OBJECTS or prefix.count("/") > _DEEPEST:
                    raise ValueError(f"more than {_MOST_OBJECTS} objects, or groups nested too deeply")
                item = self._item(group, name)
                if isinstance(item, self.h5py.Group) and name != "#refs#":  # MATLAB's cells
                    groups.append((f"{prefix}{name}/", item))
                elif isinstance(item, self.h5py.Dataset) and item.dtype.kind in "biuf":
                    yield f"{prefix}{name}"

    def _item(self, group: Any, name: str) -> Any:  # noqa: ANN401
        link = group.get(name, getlink=True)
        return group[name] if isinstance(link, self.h5py.HardLink) else None

    def _find(self, path: str) -> Any:  # noqa: ANN401
        item: Any = self.root
        for name in path.split("/"):
            item = self._item(item, name) if isinstance(item, self.h5py.Group) and name in item else None
        return item

    def _dataset(self, path: str) -> Any:  # noqa: ANN401
        dataset = self._find(path)
        if not isinstance(dataset, self.h5py.Dataset):
            raise ValueError(f"no {path!r}")
        if dataset.external or dataset.is_virtual or dataset.shape is None:
            raise ValueError(f"the numbers of {path!r} are not in this file")
        return dataset


def file_of(source: Source) -> File:
    """The file, open for reading as long as the source is."""
    try:
        h5py = require("h5py", "reading HDF5 files")
    except InputError as problem:
        raise problem.with_found(f"{source.name}, an HDF5 file, and {problem.found}") from problem
    stream = source.open()
    check_free_lists(stream, source.size)
    return File(source, h5py, stream, source.closing.enter_context(h5py.File(stream, "r")))


def check_free_lists(stream: BinaryIO, size: int) -> None:
    """ValueError if the free list of a group's heap is a circle.

    HDF5's library follows such a list without end, and takes memory for every link of it. A heap is `HEAP`, a version,
    its length, the first free block of its data and their address; a free block begins with the next one, and its
    own length, and 1 is the end. Lists that are wrong in other ways are left to the library, which refuses them.
    """
    base, of_address, of_length = _layout(stream)
    least = 2 * of_length  # bytes of a free block
    left = size // least  # blocks of all heaps together
    for at in _positions(stream, b"HEAP\0\0\0\0"):
        length, block = (_number(stream, at + 8 + k * of_length, of_length) for k in range(2))
        data = base + _number(stream, at + 8 + least, of_address)
        while block != _END and block + least <= length and data + block + least <= size:
            left -= 1
            if left < 0:
                raise ValueError("the free list of a heap is a circle")
            block = _number(stream, data + block, of_length)


def _layout(stream: BinaryIO) -> tuple[int, int, int]:
    """Where addresses are counted from, and how many bytes an address and a length have."""
    base = 0
    stream.seek(0)
    while not (head := stream.read(16)).startswith(_SIGNATURE):
        if len(head) < 16:
            raise ValueError("no HDF5 signature")
        base = max(512, 2 * base)  # a superblock may begin at 0, 512, 1024, 2048, …
        stream.seek(base)
    of_address, of_length = head[13:15] if head[8] < 2 else head[9:11]
    if of_address not in _SIZES or of_length not in _SIZES:
        raise ValueError(f"addresses of {of_address} and lengths of {of_length} bytes")
    return base, of_address, of_length


def _positions(stream: BinaryIO, wanted: bytes) -> Iterator[int]:
    """Where these bytes are in a file."""
    low, before = 0, b""
    while True:
        stream.seek(low)
        part = stream.read(_AT_ONCE)
        if not part:
            return
        together, at = before + part, -1
        while (at := together.find(wanted, at + 1)) >= 0:
            yield low - len(before) + at
        low, before = low + len(part), together[1 - len(wanted) :]


def _number(stream: BinaryIO, at: int, n_bytes: int) -> int:
    stream.seek(at)
    return int.from_bytes(stream.read(n_bytes), "little")


def _model(source: Source, options: Options) -> Model:
    """The model whose parameters are the named arrays; MATLAB's (version 7.3) have their axes reversed."""
    file = source.once(file_of)
    arrays = {path: file.array(path) for path in file.numeric_paths()}
    if source.head.startswith(b"MATLAB 7.3"):
        arrays = {path: array.T for path, array in arrays.items()}
    return named_arrays.model(source, arrays, options)


# Any HDF5 file: the formats with a layout of their own are asked first.
FORMAT = Format("HDF5 file with named arrays", (".h5", ".hdf5"), is_hdf5, named_arrays.OPTIONS, model=_model)
