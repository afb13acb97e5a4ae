"""Examples from a file, whatever its format: columns that are no examples, such as an index or labels, are left out."""

import os
import warnings
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from meltpoint.arguments import Count, public
from meltpoint.errors import DataWarning
from meltpoint.formats.format import Table, parse_options
from meltpoint.formats.load import read_examples
from meltpoint.models.checks import counts_rows

Outside: TypeAlias = Literal["refuse", "drop"]

_INDEX = {"", "unnamed: 0", "index", "id", "row", "no", "nr", "__index_level_0__"}
_LABELS = {"label", "labels", "class", "classes", "target", "targets", "y", "digit", "category", "species"}
_ROWS = 10  # fewest rows for which an unnamed column that counts the rows is taken as an index


@public
def read(
    path: str | os.PathLike[str],
    *,
    name: str | None = None,
    alphabet: str | None = None,
    outside: Outside = "refuse",
    unpacked: Count | None = None,
) -> NDArray[Any]:
    r"""Examples (example, column) from a .csv, .npy, .npz, .mat, FASTA, a2m, parquet or MNIST idx file, or one in .gz.

    Sequences become states, numbered from 0 in the order of the alphabet. Columns of a table that are no examples (an
    index, labels, words) are left out, with a DataWarning that names them. A matrix of scipy.sparse.save_npz is written
    out. Everything else has the values as stored.

    Parameters
    ----------
    path
        The file; FILE:NAME for one array of several, or for one file of a tar archive (.tar.gz).
    name
        The array's name, in place of a colon.
    alphabet
        Alphabet of sequences: "protein" (`-ACDEFGHIKLMNPQRSTVWY`), "rna", "dna", or the letters in the order of the
        model's states. Default: RNA or DNA if there are no other letters, otherwise protein.
    outside
        What becomes of sequences with letters outside the alphabet: "refuse" or "drop".
    unpacked
        Megabytes that a packed file may be unpacked to, 256 by default.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "family.fasta"
    ...     _ = file.write_text(">first\nAC-\n>second\nACY\n")
    ...     read(file)
    array([[ 1,  2,  0],
           [ 1,  2, 20]], dtype=uint8)
    """
    options = {
        "alphabet": alphabet,
        "outside": None if outside == "refuse" else outside,
        "unpacked": unpacked,
    }
    found = read_examples(path, name, parse_options(options))
    return _examples(found, Path(path)) if isinstance(found, Table) else found


def _examples(table: Table, file: Path) -> NDArray[Any]:
    """The columns of a table that are examples."""
    values, names = table.values, table.names
    left_out = [f"{word!r} (not numbers)" for word in table.words]
    kept = np.ones(values.shape[1], bool)

    def leave_out(k: int, reason: str) -> None:
        name = f"{names[k]!r}" if names and names[k].strip() else f"{k}"
        left_out.append(f"column {name} ({reason})")
        kept[k] = False

    for k in range(values.shape[1]):
        reason = _not_an_example(values, names, k)
        if reason and kept.sum() > 1:
            leave_out(k, reason)
    if not left_out:
        # Labels without a name: the only column that is not zeros and ones.
        bits = ((values == 0) | (values == 1)).all(axis=0)
        ends = [k for k in (0, values.shape[1] - 1) if not bits[k]]
        if len(ends) == 1 and bits.sum() == len(bits) - 1 > 1 and (values[:, ends[0]] % 1 == 0).all():
            leave_out(ends[0], "labels: the others are 0 and 1")
    if left_out:
        shown = f"{', '.join(left_out[:5])}{', …' if len(left_out) > 5 else ''}"
        text = f"{file}: left out {shown}; {kept.sum():,} columns are examples"
        warnings.warn(text, DataWarning, stacklevel=3)
    return values[:, kept]


def _not_an_example(values: NDArray[np.float64], names: tuple[str, ...] | None, k: int) -> str:
    """Why a column is no part of the examples, empty if it is one."""
    name, column = names[k].strip().lower() if names else None, values[:, k]
    if name in _LABELS:
        return "labels"
    counts = k == 0 and (name in _INDEX or len(column) >= _ROWS) and counts_rows(column)
    differs = name in _INDEX and (column % 1 == 0).all() and len(np.unique(column)) == len(column) > 2
    return "an index" if counts or differs else ""
