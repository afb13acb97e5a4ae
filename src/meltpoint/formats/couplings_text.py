"""Couplings J and fields h as text: log p = Σ h_i(a_i) + Σ_{i<j} J_ij(a_i, a_j) - log Z.

Lines `J i j a b value`, `h i a value` of adabmDCA, bmDCA, DCATools, PottsEvolver's `.pottsgraph`; Ising without a, b.
Missing lines are zeros, lines with `#` comments. Sites, and states that are numbers, count from 0 or from 1: the
smallest number on the `h` lines tells which. States may be letters.

DCATools also writes a matrix: a row J(ia, jb) for every site and state, the fields h(jb) as its last row.
"""

import math
import re
import warnings
from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meltpoint.errors import described
from meltpoint.formats import build
from meltpoint.formats.documents import numbers
from meltpoint.formats.format import Format, Options, missing_option, refuse
from meltpoint.formats.sequences import alphabet_of_states
from meltpoint.formats.source import Source
from meltpoint.layers.unit import Floats
from meltpoint.models import Model

_LINE = re.compile(rb"[Jh][ \t]+\d+[ \t]")
_WRONG = re.compile(rb"^[ \t]*+(?!#|[Jh][ \t])[^\s].*", re.MULTILINE)
_LINES = {letter: re.compile(rb"^[ \t]*" + letter + rb"[ \t].*", re.MULTILINE) for letter in (b"J", b"h")}
_LONGEST = 10  # characters of a state that is a number, and one more
_MOST_COLUMNS = 100_000  # of a matrix: sites times states
_FIRST = set(b"0123456789.+-eE \t\r\n")


def _is_lines(source: Source) -> bool:
    lines = (line.strip() for line in source.first_lines.splitlines())
    first = next((line for line in lines if line and not line.startswith(b"#")), b"")
    return source.is_text and _LINE.match(first) is not None


def _from_lines(source: Source, options: Options) -> Model:
    text = source.numbers.replace(b"\r", b"\n")
    if wrong := _WRONG.search(text):
        raise ValueError(f"a line {described(wrong[0].decode('latin-1'))}")
    first = _LINES[b"J"].search(text) or _LINES[b"h"].search(text)
    words = first[0].split() if first else []
    is_ising = len(words) == (4 if words[:1] == [b"J"] else 3)
    couplings, fields = (_table(text, letter, n, is_ising) for letter, n in ((b"J", 2), (b"h", 1)))
    return (_ising if is_ising else _potts)(source, couplings, fields, options)


def _table(text: bytes, letter: bytes, n: int, is_ising: bool) -> NDArray[Any]:
    """Sites (line, n), states (line, n) as they are written, and value (line,) of the lines of a letter."""
    columns = [("letter", "S1"), ("sites", "i8", (n,)), ("value", "f8")]
    if not is_ising:
        columns.insert(2, ("states", f"S{_LONGEST}", (n,)))
    lines = (line[0] for line in _LINES[letter].finditer(text))  # one by one: all of them would take far more
    with warnings.catch_warnings():
        # NumPy takes 1.5 for a whole number, and only warns.
        warnings.simplefilter("error", DeprecationWarning)
        warnings.filterwarnings("ignore", "loadtxt: input contained no data")
        return np.loadtxt(lines, np.dtype(columns), comments="#", ndmin=1)


def _count_from_0(
    source: Source, tables: Sequence[NDArray[Any]], seen: Sequence[NDArray[np.int64]], options: Options
) -> tuple[int, int]:
    """Number of the first site and of the first state, which is subtracted from sites, and how many sites there are."""
    smallest = min((int(numbers.min()) for numbers in seen if numbers.size), default=None)
    base = smallest if options.base is None else options.base
    if base not in (0, 1):
        begin = "are missing" if base is None else f"begin at {base}"
        raise missing_option("base", f"{source.name}, whose h lines {begin}")
    for table in tables:
        table["sites"] -= base
    if min(table["sites"].min(initial=0) for table in tables) < 0:
        raise ValueError(f"a site below {base}")
    n = max(int(table["sites"].max(initial=0)) for table in tables) + 1
    build.check_size(source, n)
    return base, n


def _ising(source: Source, couplings: NDArray[Any], fields: NDArray[Any], options: Options) -> Model:
    what = f"{source.name}, an Ising model"
    units = options.require("units", what)
    refuse(options, ("alphabet", "gauge"), what)
    _, n = _count_from_0(source, (couplings, fields), [fields["sites"]], options)
    i, j = np.sort(couplings["sites"], axis=1).T
    (site,) = fields["sites"].T
    _refuse_twice(site, "h")
    _refuse_twice(i * n + j, "J")
    h = np.zeros(n)
    h[site] = fields["value"]
    return build.ising(source, n, (i, j, couplings["value"]), h, units)


def _potts(source: Source, couplings: NDArray[Any], fields: NDArray[Any], options: Options) -> Model:
    tables = couplings, fields
    names = np.unique(np.concatenate([table["states"].ravel() for table in tables]))
    if (np.char.str_len(names) == _LONGEST).any():
        raise ValueError("states that are neither numbers nor single letters")
    seen = [fields["sites"]]
    is_numbered = bool(np.char.isdigit(names).all())
    if is_numbered:
        refuse(options, ("alphabet",), f"{source.name}, whose states are numbers")
        seen.append(fields["states"].astype(np.int64))
    elif (np.char.str_len(names) != 1).any():
        raise ValueError("states that are neither numbers nor single letters")
    base, n = _count_from_0(source, tables, seen, options)
    if is_numbered:
        positions: NDArray[np.int64] = names.astype(np.int64) - base
        q = int(positions.max(initial=0)) + 1
    else:
        letters = b"".join(names).decode("latin-1")
        alphabet = alphabet_of_states(source, letters, options.alphabet)
        positions, q = np.array([alphabet.index(letter) for letter in letters]), len(alphabet)
    in_pairs, single = (positions[np.searchsorted(names, table["states"])] for table in tables)
    if min(in_pairs.min(initial=0), single.min(initial=0)) < 0:
        raise ValueError("a state that is not there")
    source.take(8 * n * q)
    h = np.zeros((n, q))
    _refuse_twice(fields["sites"] * q + single, "h")
    h[fields["sites"], single] = fields["value"][:, None]
    return build.potts(
        source, _tables(source, couplings["sites"], in_pairs, couplings["value"], n, q), h, options
    )


def _tables(
    source: Source, sites: NDArray[np.int64], states: NDArray[np.int64], values: Floats, n: int, q: int
) -> build.Pairs:
    """Couplings (state of i, state of j) of the pairs i < j that have lines."""
    if (sites[:, 0] == sites[:, 1]).any():
        raise ValueError("a coupling of a site with itself")
    swapped = sites[:, 0] > sites[:, 1]
    sites[swapped], states[swapped] = sites[swapped, ::-1], states[swapped, ::-1]
    present, which = np.unique(sites[:, 0] * n + sites[:, 1], return_inverse=True)
    source.take(8 * len(present) * q * q)
    tables = np.zeros((len(present), q, q))
    _refuse_twice((which * q + states[:, 0]) * q + states[:, 1], "J")
    tables[which, states[:, 0], states[:, 1]] = values
    return {(int(pair) // n, int(pair) % n): table for pair, table in zip(present, tables, strict=True)}


def _refuse_twice(keys: NDArray[np.int64], letter: str) -> None:
    if np.unique(keys).size < keys.size:
        raise ValueError(f"a value of {letter} is there twice")


def _is_matrix(source: Source) -> bool:
    """Whether it is a table of numbers with one row more than columns."""
    if not source.is_text or not set(source.head) <= _FIRST:
        return False
    lines = source.data.split(b"\n", 2)[:2]
    columns = len(lines[0].split(None, _MOST_COLUMNS))
    # The first line of an alignment in numbers, sequences, columns and states, may chance upon the right number.
    same = 1 < columns <= _MOST_COLUMNS and len(lines[-1].split(None, columns)) == columns
    return same and source.data.rstrip().count(b"\n") == columns


def _from_matrix(source: Source, options: Options) -> Model:
    values = numbers(source.numbers)
    n = math.isqrt(values.size)
    if values.size != n * (n + 1):
        raise ValueError(f"{values.size} numbers, which are no matrix with one row more than columns")
    what, q = f"{source.name}, a matrix of {n + 1} x {n}", options.states
    if q is None or q < 2 or n % q:
        given = "" if q is None else f" with states={q}"
        raise missing_option("states", what + given, f"the number q of states of a site, a divisor of {n}")
    length = n // q
    matrix, fields = values[:-n].reshape(length, q, length, q), values[-n:].reshape(length, q)
    if not np.allclose(matrix, matrix.transpose(2, 3, 0, 1), rtol=0, atol=1e-4):
        raise ValueError("couplings that are not symmetric")
    source.take(matrix.nbytes)
    pairs = {(i, j): matrix[i, :, j].copy() for i, j in combinations(range(length), 2)}
    return build.potts(source, pairs, fields, options)


LINES = Format(
    "couplings (J) and fields (h) as text",
    (".dat", ".txt", ".pottsgraph"),
    _is_lines,
    ("units", "base", "alphabet", "gauge"),
    _from_lines,
)
MATRIX = Format(
    "matrix of couplings with the fields as its last row",
    (".txt",),
    _is_matrix,
    ("states", "gauge"),
    _from_matrix,
)
