"""Aligned sequences: FASTA and a2m files as states (sequence, column).

In a2m, upper-case letters and "-" are columns of the alignment; lower-case letters and "." are insertions, which are
left out. Where a file has no upper-case letter at all, its lower-case letters are the columns.
"""

import warnings
from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meltpoint.errors import DataWarning, InputError, shortened
from meltpoint.formats.alphabets import ALPHABETS, letters_of
from meltpoint.formats.format import Format, without_name
from meltpoint.formats.options import Options
from meltpoint.formats.source import Source
from meltpoint.layers.unit import Bits

_OUTSIDE = 255
_SHOWN = 8


def _examples(source: Source, options: Options) -> Bits:
    """States (sequence, column) of an alignment.

    Without an alphabet: RNA or DNA if the file has no other letters, otherwise protein. Sequences with a letter outside
    it are refused or dropped.
    """
    sequences = _without_insertions(_sequences(source.numbers))
    width = _check_widths(sequences, source)
    symbols = np.frombuffer(b"".join(sequences), np.uint8).reshape(len(sequences), width)
    letters = letters_of(options.alphabet) or _alphabet_of(symbols)
    table = np.full(256, _OUTSIDE, np.uint8)
    table[np.frombuffer(letters.encode("ascii"), np.uint8)] = np.arange(len(letters), dtype=np.uint8)
    states = table[symbols]
    strange = (states == _OUTSIDE).any(axis=1)
    if strange.any():
        _check_strange(states, symbols, strange, letters, options.outside, source)
        warnings.warn(
            f"{source.name}: {strange.sum():,} of {len(states):,} sequences have letters outside {letters}: left out",
            DataWarning,
            stacklevel=5,
        )
    return states[~strange]


def _sequences(content: bytes) -> list[bytes]:
    records = content.replace(b"\r", b"\n").split(b"\n>")
    sequences = []
    for k, record in enumerate(records):
        text = record.lstrip()[1:] if k == 0 else record
        sequences.append(b"".join(text.partition(b"\n")[2].split()))
    return sequences


def _without_insertions(sequences: list[bytes]) -> list[bytes]:
    lower, upper = bytes(range(97, 123)), bytes(range(65, 91))
    if any(sequence.translate(None, upper) != sequence for sequence in sequences):
        return [sequence.translate(None, lower + b".") for sequence in sequences]
    return [sequence.translate(None, b".").upper() for sequence in sequences]


def _check_widths(sequences: list[bytes], source: Source) -> int:
    widths = Counter(map(len, sequences))
    width, usual = widths.most_common(1)[0]
    if len(widths) > 1 or width == 0:
        number = next(k for k, sequence in enumerate(sequences) if len(sequence) != width or width == 0)
        raise InputError(
            found=f"{source.name}, where sequence {number + 1} has {len(sequences[number])} columns"
            + (f" and {usual:,} others have {width}" if width else ""),
            expected="aligned sequences of one length, insertions in lower case",
            remedy="align them first, or check whether the file was cut off",
        )
    return width


def _alphabet_of(symbols: Bits) -> str:
    present = {chr(symbol) for symbol in np.unique(symbols)}
    return next(
        (ALPHABETS[name] for name in ("dna", "rna") if present <= set(ALPHABETS[name])), ALPHABETS["protein"]
    )


def _check_strange(
    states: Bits, symbols: Bits, strange: np.ndarray, letters: str, outside: str | None, source: Source
) -> None:
    """Refuse sequences with letters outside the alphabet, unless they are to be dropped and others are left."""
    counts = Counter(symbols[states == _OUTSIDE].tolist())
    shown = ", ".join(f"{chr(symbol)} ({count:,})" for symbol, count in counts.most_common(_SHOWN))
    within = f"letters outside the alphabet {shortened(letters, 40)} in"
    if outside != "drop":
        raise InputError(
            found=f"{within} {strange.sum():,} of {len(states):,} sequences of {source.name}: {shown}",
            expected="only letters of the alphabet",
            remedy="leave these sequences out, outside='drop' (--outside drop), or give the model's alphabet",
        )
    if strange.all():
        raise InputError(
            found=f"{within} every sequence of {source.name}: {shown}",
            expected="some sequences with only letters of the alphabet",
            remedy="give the alphabet of the model",
        )


def _array(source: Source, name: str | None) -> NDArray[Any]:
    without_name(source, name)
    return _examples(source, Options())


FORMAT = Format(
    "FASTA file",
    (".fasta", ".fa", ".a2m"),
    lambda source: source.is_text and source.first_lines.startswith(b">"),
    options=("alphabet", "outside"),
    array=_array,
    examples=_examples,
)
