"""Letters of the states of sequences, in the orders that programs number them in."""

from meltpoint.errors import InputError
from meltpoint.formats.options import ask
from meltpoint.formats.source import Source

ALPHABETS = {"protein": "-ACDEFGHIKLMNPQRSTVWY", "rna": "-ACGU", "dna": "-ACGT"}
"""Alphabets by name: the gap is state 0, the letters follow in the order of the alphabet, as in most programs."""


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


def spelled(source: Source, found: str, alphabet: str | None) -> str:
    """The alphabet of a file with these letters: the one that was asked for, or the known one that has all of them."""
    wanted = letters_of(alphabet)
    if wanted is None:
        wanted = next((letters for letters in ALPHABETS.values() if set(letters) == set(found)), None)
    if wanted is None:
        raise ask(
            "alphabet",
            f"{source.name} with the states {''.join(sorted(set(found)))[:60]!r}",
            '"protein", "rna", "dna" or the letters in order',
            "say which letters the states have, in which order",
        )
    if not set(found) <= set(wanted):
        raise InputError(
            found=f"states {''.join(sorted(set(found) - set(wanted)))[:60]!r} in {source.name}",
            expected=f"letters of the alphabet {wanted!r}",
            remedy="give all its letters with alphabet=",
        )
    return wanted
