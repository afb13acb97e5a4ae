"""The process that reads an HDF5 file: a program of its own, which imports nothing of meltpoint.

HDF5's library takes the memory that a damaged file asks for, follows its lists in circles, and can be brought to crash.
Here it has a limit of memory and of time, and what it crashes is this process. Requests are lines of JSON on stdin,
behind the file itself; each answer is a line of JSON on stdout, and the bytes of the array that it tells of.
"""

import contextlib
import json
import math
import sys
import tempfile
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

try:
    import resource
except ImportError:  # not on Windows
    resource = None

_MOST_OBJECTS, _DEEPEST = 10_000, 20
_LONGEST_TEXT = 1000  # bytes
_OVERHEAD = 128 << 20  # bytes besides arrays, for the library and a copy of the file's parts


def _limit(memory: int, seconds: int) -> None:
    """Limit this process to so many bytes more than it has now, and to some time of a processor."""
    if resource is None:
        return
    with contextlib.suppress(OSError, ValueError):
        pages = int(open("/proc/self/statm").read().split()[0])  # noqa: PTH123, SIM115
        most = pages * resource.getpagesize() + memory + _OVERHEAD
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _item(group: Any, name: str) -> Any:  # noqa: ANN401
    # Soft and external links are not followed.
    return group[name] if isinstance(group.get(name, getlink=True), h5py.HardLink) else None


def _find(root: Any, path: str) -> Any:  # noqa: ANN401
    item = root
    for name in path.split("/"):
        item = _item(item, name) if isinstance(item, h5py.Group) and name in item else None
    return item


def _dataset(root: Any, path: str) -> Any:  # noqa: ANN401
    dataset = _find(root, path)
    if not isinstance(dataset, h5py.Dataset):
        raise ValueError(f"no {path!r}")
    if dataset.external or dataset.is_virtual or dataset.shape is None:
        raise ValueError(f"the numbers of {path!r} are not in this file")
    return dataset


def names(root: Any) -> list[str]:  # noqa: ANN401
    """Names at the top."""
    return list(root)


def contains(root: Any, path: str) -> bool:  # noqa: ANN401
    """Whether there is a dataset."""
    return isinstance(_find(root, path), h5py.Dataset)


def numeric_paths(root: Any) -> list[str]:  # noqa: ANN401
    """Paths of all datasets of numbers."""
    groups, seen, found = [("", root)], 0, []
    while groups:
        prefix, group = groups.pop()
        for name in group:
            seen += 1
            # Hard links can form circles.
            if seen > _MOST_OBJECTS or prefix.count("/") > _DEEPEST:
                raise ValueError(f"more than {_MOST_OBJECTS} objects, or groups nested too deeply")
            item = _item(group, name)
            if isinstance(item, h5py.Group) and name != "#refs#":  # MATLAB's cells
                groups.append((f"{prefix}{name}/", item))
            elif isinstance(item, h5py.Dataset) and item.dtype.kind in "biuf":
                found.append(f"{prefix}{name}")
    return found


def text(root: Any, path: str) -> str:  # noqa: ANN401
    """The text in a dataset with one entry."""
    dataset = _dataset(root, path)
    if dataset.size != 1 or dataset.dtype.kind not in "OS" or dataset.dtype.itemsize > _LONGEST_TEXT:
        raise ValueError(f"{path!r} is no text")
    value = dataset[()]
    if not isinstance(value, bytes | str) or len(value) > _LONGEST_TEXT:
        raise ValueError(f"{path!r} is no text, or a long one")
    return value.decode("utf-8") if isinstance(value, bytes) else value


def layout(root: Any, path: str) -> tuple[str, tuple[int, ...], int]:  # noqa: ANN401
    """Type and shape of an array, and the bytes that it takes while it is read."""
    dataset = _dataset(root, path)
    if dataset.dtype.kind not in "biuf":
        raise ValueError(f"{path!r} has values of type {dataset.dtype}")
    filters = dataset.id.get_create_plist()
    kinds = [filters.get_filter(k)[0] for k in range(filters.get_nfilters())]
    if len(set(kinds)) < len(kinds):  # packed twice, a chunk says nothing of what it becomes on the way
        raise ValueError(f"{path!r} is packed twice in one way")
    # A chunk is unpacked as a whole, and may be larger than its dataset.
    chunk = math.prod(dataset.chunks or ()) * dataset.dtype.itemsize
    return dataset.dtype.newbyteorder("<").str, dataset.shape, max(dataset.nbytes, chunk)


def array(root: Any, path: str) -> NDArray[Any]:  # noqa: ANN401
    """The numbers themselves, little-endian."""
    found = np.asarray(_dataset(root, path)[()])
    return np.ascontiguousarray(found, found.dtype.newbyteorder("<"))


_ANSWERS = {each.__name__: each for each in (names, contains, numeric_paths, text, layout, array)}


def main() -> None:
    """Answer requests until there are no more."""
    size, memory, seconds = map(int, sys.argv[1:])
    given, answers = sys.stdin.buffer, sys.stdout.buffer
    with tempfile.TemporaryFile() as file:
        while size and (part := given.read(min(size, 1 << 20))):
            size -= file.write(part)
        _limit(memory, seconds)
        root = None
        for line in given:
            data = b""
            try:
                root = root or h5py.File(file, "r")
                question, *arguments = json.loads(line)
                value: Any = _ANSWERS[question](root, *arguments)
                if question == "array":
                    value, data = None, memoryview(value).cast("B") if value.size else b""
                answer = {"value": value}
            except Exception as problem:  # whatever the library finds wrong
                answer = {"error": str(problem) or type(problem).__name__}
            answers.write(json.dumps(answer).encode() + b"\n")
            answers.write(data)
            answers.flush()


if __name__ == "__main__":
    main()
