"""Sequences of letters: alphabets in the orders that programs number them in, and alignments in FASTA and a2m.

In a2m, upper-case letters and "-" are columns of the alignment; lower-case letters and "." are insertions, which are
left out. Where a file has no upper-case letter at all, its lower-case letters are the columns.
"""

import warnings
from collections import Counter

import numpy as np

from meltpoint.errors import DataWarning, InputError, shortened
from meltpoint.formats.format import Format, Options, missing_option
from meltpoint.formats.source import Source
from meltpoint.layers.unit import States

ALPHABETS = {"protein": "-ACDEFGHIKLMNPQRSTVWY", "rna": "-ACGU", "dna": "-ACGT"}
"""Alphabets by name: the gap is state 0, the letters follow in the order of the alphabet, as in most programs."""

_OUTSIDE = 255
_SHOWN = 8


def letters_of(alphabet: str | None) -> str | None:
    """The letters of an alphabet given by name or by its letters.

    >>> letters_of("rna"), letters_of("01")
    ('-ACGU', '01')
    """
    if alphabet is None:
        return None
    letters = ALPHABETS.get(alphabet.lower(), alphabet)
    if not 2 <= len(set(letters)) == len(letters) or not letters.isascii() or not letters.isprintable():
        raise InputError(
            found=f"alphabet={alphabet!r}",
            expected=f"{', '.join(ALPHABETS)}, or at least two different letters in the order of the states",
            remedy="take the order in which the model was trained, each letter once",
        )
    return letters


def alphabet_of_states(source: Source, found: str, alphabet: str | None) -> str:
    """The alphabet of a file with these letters: the one that was asked for, or the known one that has all of them."""
    wanted = letters_of(alphabet)
    if wanted is None:
        wanted = next((letters for letters in ALPHABETS.values() if set(letters) == set(found)), None)
    if wanted is None:
        states = "".join(sorted(set(found)))[:60]
        values = '"protein", "rna", "dna" or the letters in order'
        raise missing_option("alphabet", f"{source.name} with the states {states!r}", values)
    if other := "".join(sorted(set(found) - set(wanted))):
        raise source.refusal(
            f"states {other[:60]!r}",
            f"letters of the alphabet {wanted!r}",
            "give all its letters with alphabet=",
        )
    return wanted


def _states(source: Source, options: Options, _: str | None) -> States:
    """States (sequence, column) of an alignment.

    Without an alphabet: RNA or DNA if the file has no other letters, otherwise protein. Sequences with a letter outside
    it are refused or dropped.
    """
    sequences = _without_insertions(_sequences(source.numbers))
    width = _check_widths(sequences, source)
    symbols = np.frombuffer(b"".join(sequences), np.uint8).reshape(len(sequences), width)
    letters = letters_of(options.alphabet)
    if letters is None:
        present = {chr(symbol) for symbol in np.unique(symbols)}
        known = (ALPHABETS[name] for name in ("dna", "rna") if present <= set(ALPHABETS[name]))
        letters = next(known, ALPHABETS["protein"])
    table = np.full(256, _OUTSIDE, np.uint8)
    table[np.frombuffer(letters.encode("ascii"), np.uint8)] = np.arange(len(letters), dtype=np.uint8)
    states = table[symbols]
    strange = (states == _OUTSIDE).any(axis=1)
    if not strange.any():
        return states
    if options.outside != "drop" or strange.all():
        counts = Counter(symbols[states == _OUTSIDE].tolist())
        shown = ", ".join(f"{chr(symbol)} ({count:,})" for symbol, count in counts.most_common(_SHOWN))
        dropped = options.outside == "drop"
        which = "every sequence" if dropped else f"{strange.sum():,} of {len(states):,} sequences"
        raise InputError(
            found=f"letters outside the alphabet {shortened(letters, 40)} in {which} of {source.name}: {shown}",
            expected="some sequences with only letters of the alphabet"
            if dropped
            else "only letters of the alphabet",
            remedy="give the alphabet of the model"
            if dropped
            else "leave these sequences out, outside='drop' (--outside drop), or give the model's alphabet",
        )
    warnings.warn(
        f"{source.name}: {strange.sum():,} of {len(states):,} sequences have letters outside {letters}: left out",
        DataWarning,
        stacklevel=4,
    )
    return states[~strange]


def _sequences(content: bytes) -> list[bytes]:
    records = content.replace(b"\r", b"\n").lstrip().removeprefix(b">").split(b"\n>")
    return [b"".join(record.partition(b"\n")[2].split()) for record in records]


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


FASTA = Format(
    "FASTA file",
    (".fasta", ".fa", ".a2m"),
    lambda source: source.is_text and source.first_lines.startswith(b">"),
    options=("alphabet", "outside"),
    data=_states,
)
