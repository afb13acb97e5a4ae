"""Lines `J i j a b value`, `h i a value`: adabmDCA, bmDCA, DCATools, PottsEvolver's `.pottsgraph`; Ising without
a, b.

log p = Σ h_i(a_i) + Σ_{i<j} J_ij(a_i, a_j) - log Z. Missing lines are zeros, lines with `#` comments. Sites, and
states that are numbers, count from 0 or from 1: the smallest number on the `h` lines tells which. States may be
letters.
"""

import re
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meltpoint.errors import InputError
from meltpoint.formats import build
from meltpoint.formats.alphabets import spelled
from meltpoint.formats.bounded import Allowance, described
from meltpoint.formats.format import Format
from meltpoint.formats.options import Options, ask
from meltpoint.formats.source import Source
from meltpoint.layers.unit import Floats
from meltpoint.models import Model

_LINE = re.compile(rb"[Jh][ \t]+\d+[ \t]")
_WRONG = re.compile(rb"^[ \t]*+(?!#|[Jh][ \t])[^\s].*", re.MULTILINE)
_LINES = {letter: re.compile(rb"^[ \t]*" + letter + rb"[ \t].*", re.MULTILINE) for letter in (b"J", b"h")}
_LONGEST = 10  # characters of a state that is a number, and one more


def _recognises(source: Source) -> bool:
    """Whether the first line that is no comment is one of J or h."""
    lines = (line.strip() for line in source.first_lines.splitlines())
    first = next((line for line in lines if line and not line.startswith(b"#")), b"")
    return source.is_text and _LINE.match(first) is not None


def _model(source: Source, options: Options) -> Model:
    """A Potts model, or an Ising model where the lines have no states."""
    lines = _parse(source.text.replace(b"\r", b"\n"))
    return (_ising if lines.is_ising else _potts)(source, lines, options)


@dataclass(frozen=True)
class _Lines:
    """Sites (line, 1 or 2), states as they are written (line, 1 or 2) and values (line,) of J and of h."""

    is_ising: bool
    sites: dict[bytes, NDArray[np.int64]]
    states: dict[bytes, NDArray[Any]]
    values: dict[bytes, Floats]


def _parse(text: bytes) -> _Lines:
    if wrong := _WRONG.search(text):
        raise ValueError(f"a line {described(wrong[0].decode('latin-1'))}")
    first = {letter: line.search(text) for letter, line in _LINES.items()}
    words = {letter: len(line[0].split()) for letter, line in first.items() if line}
    is_ising = words.get(b"J") == 4 if b"J" in words else words.get(b"h") == 3
    tables = {b"J": _table(text, b"J", 2, not is_ising), b"h": _table(text, b"h", 1, not is_ising)}
    return _Lines(
        is_ising,
        sites={letter: table[0] for letter, table in tables.items()},
        states={letter: table[1] for letter, table in tables.items()},
        values={letter: table[2] for letter, table in tables.items()},
    )


def _table(
    text: bytes, letter: bytes, n: int, has_states: bool
) -> tuple[NDArray[np.int64], NDArray[Any], Floats]:
    """Sites (line, n), states (line, n) as they are written, and values (line,) of the lines of this letter."""
    lines = (line[0] for line in _LINES[letter].finditer(text))  # one by one: all of them would take far more
    if not _LINES[letter].search(text):
        return np.empty((0, n), np.int64), np.empty((0, n), "S1"), np.empty(0)
    columns = [("letter", "S1"), ("sites", "i8", (n,)), ("value", "f8")]
    if has_states:
        columns.insert(2, ("states", f"S{_LONGEST}", (n,)))
    with warnings.catch_warnings():
        # NumPy takes 1.5 for a whole number, and only warns.
        warnings.simplefilter("error", DeprecationWarning)
        table = np.loadtxt(lines, np.dtype(columns), comments="#", ndmin=1)
    states = table["states"] if has_states else np.empty((len(table), 0), "S1")
    if (np.char.str_len(states) == _LONGEST).any():
        raise ValueError("states that are neither numbers nor single letters")
    return table["sites"], states, table["value"]


def _base(source: Source, numbers: NDArray[np.int64], options: Options) -> int:
    """Number of the first site, and of the first state where states are numbers."""
    if options.base is not None:
        return options.base
    smallest = int(numbers.min()) if numbers.size else None
    if smallest not in (0, 1):
        raise ask(
            "base",
            f"{source.name}, whose h lines {'are missing' if smallest is None else f'begin at {smallest}'}",
            "0 or 1",
            "say what number the first site has",
        )
    return smallest


def _n_sites(source: Source, lines: _Lines, base: int) -> int:
    highest = max(int(sites.max(initial=base)) for sites in lines.sites.values())
    if min(int(sites.min(initial=base)) for sites in lines.sites.values()) < base:
        raise ValueError(f"a site below {base}")
    n = highest - base + 1
    build.check_size(source, n)
    return n


def _ising(source: Source, lines: _Lines, options: Options) -> Model:
    if options.units is None:
        raise ask(
            "units",
            f"{source.name}, an Ising model",
            '"spin" or "bernoulli"',
            "spin if its units are -1 and +1 (adabmDCA), bernoulli if 0 and 1",
        )
    _refuse(source, options, "alphabet", "gauge")
    base = _base(source, lines.sites[b"h"], options)
    n = _n_sites(source, lines, base)
    fields = np.zeros(n)
    _refuse_twice(lines.sites[b"h"][:, 0], "h")
    fields[lines.sites[b"h"][:, 0] - base] = lines.values[b"h"]
    i, j = np.sort(lines.sites[b"J"] - base, axis=1).T
    _refuse_twice(i * n + j, "J")
    return build.ising(source, n, (i, j, lines.values[b"J"]), fields, options.units)


def _potts(source: Source, lines: _Lines, options: Options) -> Model:
    as_numbers = all(np.char.isdigit(states).all() for states in lines.states.values())
    numbers = lines.sites[b"h"]
    if as_numbers:
        _refuse(source, options, "alphabet")
        states = {letter: found.astype(np.int64) for letter, found in lines.states.items()}
        numbers = np.concatenate([numbers, states[b"h"]], axis=1)
        base = _base(source, numbers, options)
        states = {letter: found - base for letter, found in states.items()}
        q = max(int(found.max(initial=0)) for found in states.values()) + 1
    else:
        base = _base(source, numbers, options)
        letters = b"".join(np.unique(np.concatenate([found.ravel() for found in lines.states.values()])))
        alphabet = spelled(source, letters.decode("latin-1"), options.alphabet)
        states = {letter: _positions(found, alphabet) for letter, found in lines.states.items()}
        q = len(alphabet)
    n = _n_sites(source, lines, base)
    source.allowance.take(8 * n * q)
    fields = np.zeros((n, q))
    sites = lines.sites[b"h"][:, 0] - base
    _refuse_twice(sites * q + states[b"h"][:, 0], "h")
    fields[sites, states[b"h"][:, 0]] = lines.values[b"h"]
    pairs = _tables(lines.sites[b"J"] - base, states[b"J"], lines.values[b"J"], (n, q), source.allowance)
    return build.potts(source, pairs, fields, options)


def _positions(letters: NDArray[Any], alphabet: str) -> NDArray[np.int64]:
    if (np.char.str_len(letters) != 1).any():
        raise ValueError("states that are neither numbers nor single letters")
    table = np.full(256, -1)
    table[np.frombuffer(alphabet.encode("latin-1"), np.uint8)] = np.arange(len(alphabet))
    return table[letters.astype("S1").view(np.uint8).reshape(letters.shape)]


def _tables(
    sites: NDArray[np.int64],
    states: NDArray[np.int64],
    values: Floats,
    shape: tuple[int, int],
    allowance: Allowance,
) -> build.Pairs:
    """Couplings (state of i, state of j) of the pairs i < j that have lines."""
    n, q = shape
    if (states < 0).any():
        raise ValueError("a state that is not there")
    if (sites[:, 0] == sites[:, 1]).any():
        raise ValueError("a coupling of a site with itself")
    swapped = sites[:, 0] > sites[:, 1]
    sites[swapped], states[swapped] = sites[swapped, ::-1], states[swapped, ::-1]
    present, which = np.unique(sites[:, 0] * n + sites[:, 1], return_inverse=True)
    allowance.take(8 * len(present) * q * q)
    tables = np.zeros((len(present), q, q))
    _refuse_twice((which * q + states[:, 0]) * q + states[:, 1], "J")
    tables[which, states[:, 0], states[:, 1]] = values
    return {(int(pair) // n, int(pair) % n): table for pair, table in zip(present, tables, strict=True)}


def _refuse_twice(keys: NDArray[np.int64], letter: str) -> None:
    if np.unique(keys).size < keys.size:
        raise ValueError(f"a value of {letter} is there twice")


def _refuse(source: Source, options: Options, *names: str) -> None:
    given = [name for name in names if getattr(options, name) is not None]
    if given:
        raise InputError(
            found=f"{', '.join(given)} for {source.name}",
            expected="nothing of that kind: the file has no letters and no such gauge",
            remedy="leave it out",
        )


FORMAT = Format(
    "couplings (J) and fields (h) as text",
    (".dat", ".txt", ".pottsgraph"),
    _recognises,
    ("units", "base", "alphabet", "gauge"),
    _model,
)
