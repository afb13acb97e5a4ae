"""Aligned sequences: FASTA and a2m files as states (sequence, column).

In a2m, upper-case letters and "-" are columns of the alignment; lower-case letters and "." are insertions, which are
left out. Where a file has no upper-case letter at all, its lower-case letters are the columns.
"""

import io
from collections import Counter
from pathlib import Path
from typing import Literal, TypeAlias

import numpy as np

from meltpoint.errors import InputError, shortened
from meltpoint.formats.bounded import open_regular, reading
from meltpoint.formats.formats import Format
from meltpoint.layers.unit import Bits

ALPHABETS = {"protein": "-ACDEFGHIKLMNPQRSTVWY", "rna": "-ACGU", "dna": "-ACGT"}
"""Alphabets by name: the gap is state 0, the letters follow in the order of the alphabet."""

Outside: TypeAlias = Literal["refuse", "drop"]
_OUTSIDE = 255
_SHOWN = 8


def read_fasta(
    path: Path, alphabet: str | None = None, outside: Outside = "refuse", content: bytes | None = None
) -> tuple[Bits, str, int]:
    """States (sequence, column) of an alignment, its alphabet, and how many sequences were left out.

    `alphabet` is "protein", "rna", "dna", or the letters in the order of the states. Default: RNA or DNA if the file
    has no other letters, otherwise protein. Sequences with a letter outside it are refused or dropped. `content` is
    that of the file, if it was unpacked already.
    """
    with reading(path, Format.FASTA.value):
        with open_regular(path) if content is None else io.BytesIO(content) as file:
            sequences = _sequences(file.read())
        matched = _without_insertions(sequences)
        width = _check_widths(matched, path)
        symbols = np.frombuffer(b"".join(matched), np.uint8).reshape(len(matched), width)
        letters = _letters(alphabet, symbols)
        table = np.full(256, _OUTSIDE, np.uint8)
        table[np.frombuffer(letters.encode("ascii"), np.uint8)] = np.arange(len(letters), dtype=np.uint8)
        states = table[symbols]
        strange = (states == _OUTSIDE).any(axis=1)
        if strange.any():
            states = _without_strange(states, symbols, strange, letters, outside, path)
        return states, letters, int(strange.sum())


def check_alphabet(alphabet: str) -> str:
    """The letters of an alphabet that is named or given."""
    letters = ALPHABETS.get(alphabet.lower(), alphabet)
    if (
        len(letters) < 2
        or len(set(letters)) != len(letters)
        or not letters.isascii()
        or not letters.isprintable()
    ):
        raise InputError(
            found=f"alphabet={alphabet!r}",
            expected=f"{', '.join(ALPHABETS)}, or at least two different letters in the order of the states",
            remedy="take the order in which the model was trained",
        )
    return letters


def _sequences(content: bytes) -> list[bytes]:
    """The sequences of a file, without names, blanks and ends of lines."""
    records = content.removeprefix(b"\xef\xbb\xbf").replace(b"\r", b"\n").split(b"\n>")
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


def _check_widths(sequences: list[bytes], path: Path) -> int:
    widths = Counter(map(len, sequences))
    width, usual = widths.most_common(1)[0]
    if len(widths) > 1 or width == 0:
        number = next(k for k, sequence in enumerate(sequences) if len(sequence) != width or width == 0)
        raise InputError(
            found=f"{path}, where sequence {number + 1} has {len(sequences[number])} columns"
            + (f" and {usual:,} others have {width}" if width else ""),
            expected="aligned sequences of one length, insertions in lower case",
            remedy="align them first, or check whether the file was cut off",
        )
    return width


def _letters(alphabet: str | None, symbols: Bits) -> str:
    if alphabet is not None:
        return check_alphabet(alphabet)
    present = {chr(symbol) for symbol in np.unique(symbols)}
    for name in ("dna", "rna"):
        if present <= set(ALPHABETS[name]):
            return ALPHABETS[name]
    return ALPHABETS["protein"]


def _without_strange(
    states: Bits, symbols: Bits, strange: np.ndarray, letters: str, outside: Outside, path: Path
) -> Bits:
    """The sequences without a letter outside the alphabet, or an error that counts the others."""
    counts = Counter(symbols[states == _OUTSIDE].tolist())
    shown = ", ".join(f"{chr(symbol)} ({count:,})" for symbol, count in counts.most_common(_SHOWN))
    if outside == "refuse":
        raise InputError(
            found=f"letters outside the alphabet {shortened(letters, 40)} in {strange.sum():,} of {len(states):,} "
            f"sequences of {path}: {shown}",
            expected="only letters of the alphabet",
            remedy="leave these sequences out, outside='drop' (--outside drop), or give the model's alphabet",
        )
    if strange.all():
        raise InputError(
            found=f"letters outside the alphabet {shortened(letters, 40)} in every sequence of {path}: {shown}",
            expected="some sequences with only letters of the alphabet",
            remedy="give the alphabet of the model",
        )
    return states[~strange]
