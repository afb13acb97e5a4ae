"""Data from a file, whatever its format."""

import os
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from meltpoint.formats.format import Table
from meltpoint.formats.options import Options, parse_options
from meltpoint.formats.registry import recognised


def read_array(
    path: str | os.PathLike[str], name: str | None = None, *, unpacked: int | None = None
) -> NDArray[Any]:
    r"""The array in a .npy, .npz, .mat, .csv or MNIST idx file (.gz too), with the values as stored.

    In files that hold several, name the array, or write it behind a colon: `data.npz:test`. Images of an idx
    file and batches (case, pixel, batch) of a .mat file become (example, pixel). A packed file may be unpacked to 256
    megabytes, or `unpacked`.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "test.csv"
    ...     _ = file.write_text("left,right\n0,1\n1,1")
    ...     read_array(file)
    array([[0., 1.],
           [1., 1.]])
    """
    found = _read(path, name, parse_options({"unpacked": unpacked}), as_examples=False)
    assert not isinstance(found, Table), "an array was wanted"
    return found


def read_examples(path: str | os.PathLike[str], name: str | None, options: Options) -> Table | NDArray[Any]:
    """As `read_array`, but sequences become states, and a table comes with the names of its columns."""
    return _read(path, name, options, as_examples=True)


def _read(
    path: str | os.PathLike[str], name: str | None, options: Options, *, as_examples: bool
) -> Table | NDArray[Any]:
    file, name = split_name(path) if name is None else (Path(path), name)
    with recognised(file, "data", options, name) as (source, format):
        assert format.array is not None, "data were wanted"
        if source.name != str(file):  # the name was that of a file in an archive
            name = None
        if as_examples and format.examples is not None and name is None:
            return format.examples(source, options)
        return format.array(source, name)


def split_name(path: str | os.PathLike[str]) -> tuple[Path, str | None]:
    """A path and the array's name behind its last colon, None if there is none.

    A file that exists under the whole path is meant as it is; the colon of a drive letter separates nothing.

    >>> split_name("data.npz:test")[1]
    'test'
    >>> split_name("C:/data.npz")[1] is None
    True
    """
    whole = os.fspath(path)
    head, _, tail = whole.rpartition(":")
    is_drive = len(head) == 1 and head.isalpha() and not Path(head).is_file()
    in_folders = ("/" in tail or "\\" in tail) and not Path(head).is_file()
    if not head or not tail or is_drive or in_folders or Path(whole).exists():
        return Path(whole), None
    return Path(head), tail
