"""Examples from a file, whatever its format: what is no example, such as an index or labels, is left out and said."""

import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meltpoint.errors import DataWarning, InputError
from meltpoint.formats.arrays import read_array, split_name
from meltpoint.formats.fasta import Outside, read_fasta
from meltpoint.formats.formats import Format, detect, is_fasta, is_idx, is_text
from meltpoint.formats.packed import first_unpacked, read_tar, tar_content, unpack
from meltpoint.formats.parquet import read_parquet
from meltpoint.formats.text import Table, read_table
from meltpoint.models.checks import counts_rows

_INDEX = {"", "unnamed: 0", "index", "id", "row", "no", "nr", "__index_level_0__"}
_LABELS = {"label", "labels", "class", "classes", "target", "targets", "y", "digit", "category", "species"}
_HEAD = 4096
_ROWS = 10  # fewest rows for which an unnamed column that counts the rows is taken as an index


def read(
    path: str | os.PathLike[str],
    *,
    name: str | None = None,
    alphabet: str | None = None,
    outside: Outside = "refuse",
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

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "family.fasta"
    ...     _ = file.write_text(">first\nAC-\n>second\nACY\n")
    ...     read(file)
    array([[ 1,  2,  0],
           [ 1,  2, 20]], dtype=uint8)
    """
    if outside not in ("refuse", "drop"):
        raise InputError(
            found=f"outside={outside!r}", expected="'refuse' or 'drop'", remedy="choose one of them"
        )
    file, found_name = (Path(path), name) if name is not None else split_name(path)
    archive, content = read_tar(file), None
    if archive is not None:
        content = tar_content(file, archive, found_name)
        found_name, format = None, _text_format_in(file, content)
    else:
        format = detect(file)
    if format is Format.GZIP:
        head = first_unpacked(file)
        if is_text(head) and head and not is_idx(head):
            format, content = _text_format(head), unpack(file)
    if found_name is None and format is Format.FASTA:
        return _sequences(file, alphabet, outside, content)
    _refuse_alphabet(alphabet, outside, file, format)
    if found_name is None and format is Format.TEXT:
        return _examples(read_table(file, content), file)
    if found_name is None and format is Format.PARQUET:
        return _examples(read_parquet(file), file)
    return read_array(file, found_name)


def _text_format(head: bytes) -> Format:
    return Format.FASTA if is_fasta(head) else Format.TEXT


def _text_format_in(archive: Path, content: bytes) -> Format:
    head = content[:_HEAD]
    if not head or not is_text(head):
        raise InputError(
            found=f"a file in {archive}, a tar archive, that is {'no text' if head else 'empty'}",
            expected="a text table or FASTA",
            remedy="unpack the archive first",
        )
    return _text_format(head)


def _refuse_alphabet(alphabet: str | None, outside: str, file: Path, format: Format) -> None:
    if alphabet is not None or outside != "refuse":
        raise InputError(
            found=f"an alphabet for {file}, a {format.value}",
            expected="a file with letters: FASTA or a2m",
            remedy="leave the alphabet out: numbers are states already",
        )


def _sequences(file: Path, alphabet: str | None, outside: Outside, content: bytes | None) -> NDArray[Any]:
    states, letters, dropped = read_fasta(file, alphabet, outside, content)
    if dropped:
        _warn(
            f"{file}: {dropped:,} of {dropped + len(states):,} sequences have letters outside {letters}: left out"
        )
    return states


def _examples(table: Table, file: Path) -> NDArray[Any]:
    """The columns of a table that are examples."""
    values, names = table.values, table.names
    left_out = [f"{word!r} (not numbers)" for word in table.words]
    kept = np.ones(values.shape[1], bool)
    for k in range(values.shape[1]):
        said = _not_an_example(values, names, k)
        if said and kept.sum() > 1:
            kept[k] = False
            left_out.append(f"{_name(names, k)} ({said})")
    if not left_out:
        # Labels without a name: the only column that is not zeros and ones.
        bits = ((values == 0) | (values == 1)).all(axis=0)
        ends = [k for k in (0, values.shape[1] - 1) if not bits[k]]
        if len(ends) == 1 and bits.sum() == len(bits) - 1 > 1 and (values[:, ends[0]] % 1 == 0).all():
            kept[ends[0]] = False
            left_out.append(f"{_name(names, ends[0])} (labels: the others are 0 and 1)")
    if left_out:
        _warn(
            f"{file}: left out {', '.join(left_out[:5])}{', …' if len(left_out) > 5 else ''}; "
            f"{kept.sum():,} columns are examples"
        )
    return values[:, kept]


def _not_an_example(values: NDArray[np.float64], names: tuple[str, ...] | None, k: int) -> str:
    """Why a column is no part of the examples, empty if it is one."""
    name = names[k].strip().lower() if names else None
    if name in _LABELS:
        return "labels"
    column = values[:, k]
    if k == 0 and (name in _INDEX or len(column) >= _ROWS) and counts_rows(column):
        return "an index"
    if name in _INDEX and (column % 1 == 0).all() and len(np.unique(column)) == len(column) > 2:
        return "an index"
    return ""


def _name(names: tuple[str, ...] | None, k: int) -> str:
    return f"column {k}" if names is None or not names[k].strip() else f"column {names[k]!r}"


def _warn(text: str) -> None:
    warnings.warn(text, DataWarning, stacklevel=4)
