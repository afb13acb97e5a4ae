"""Parameters of plmc and EVcouplings, binary and little-endian, in versions 1 and 2; float32 or float64.

Version 2: int32 L, q, nValid, nInvalid, nIter; five floats; q letters; a float weight for each sequence; L letters of
the target; L int32 numbers of its sites; f_i (L, q); h_i (L, q); f_ij (q, q) of all pairs i < j; J_ij (q, q) of all
pairs. Version 1: int32 L, q; L letters; L int32; f_i; h_i; and for each pair int32 i, j from 1, f_ij, J_ij. p ~
exp(+h + J). There is no signature: the numbers in front must make the size of the file.
"""

import math
import struct
from itertools import combinations
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from meltpoint.formats import build
from meltpoint.formats.alphabets import ALPHABETS, letters_of
from meltpoint.formats.format import Format
from meltpoint.formats.options import Options
from meltpoint.formats.source import Source
from meltpoint.models import Model

_MOST_STATES = 64

_Layout: TypeAlias = list[tuple[str, np.dtype[Any], tuple[int, ...]]]
"""What follows what: name, type and shape of each array."""


def _layout(source: Source) -> _Layout | None:
    """The layout of the version and precision that make the size of the file, None if none does."""
    if len(source.head) < 20:
        return None
    n, q, valid, invalid, _ = struct.unpack_from("<5i", source.head)
    if n < 1 or not 2 <= q <= _MOST_STATES:
        return None
    pairs, letter, whole = n * (n - 1) // 2, np.dtype("S1"), np.dtype("<i4")
    for real in (np.dtype("<f4"), np.dtype("<f8")):
        sites: _Layout = [("target", letter, (n,)), ("numbers", whole, (n,))]
        sites += [("f_i", real, (n, q)), ("h_i", real, (n, q))]
        pair = np.dtype([("sites", whole, 2), ("f", real, (q, q)), ("J", real, (q, q))])
        layouts = [[("counts", whole, (2,)), *sites, ("pairs", pair, (pairs,))]]
        if valid >= 0 and invalid >= 0:
            head: _Layout = [("counts", whole, (5,)), ("settings", real, (5,)), ("letters", letter, (q,))]
            head.append(("weights", real, (valid + invalid,)))
            layouts.append([*head, *sites, ("f_ij", real, (pairs, q, q)), ("J_ij", real, (pairs, q, q))])
        for layout in layouts:
            if sum(dtype.itemsize * math.prod(shape) for _, dtype, shape in layout) == source.size:
                return layout
    return None


def _model(source: Source, options: Options) -> Model:
    """The Potts model; its states are in the order of the file's alphabet."""
    found: dict[str, NDArray[Any]] = {}
    begin = 0
    for name, dtype, shape in _layout(source) or []:
        found[name] = np.frombuffer(source.data, dtype, math.prod(shape), begin).reshape(shape)
        begin += found[name].nbytes
    fields = found["h_i"].astype(np.float64)
    n, q = fields.shape
    if "J_ij" in found:
        alphabet = b"".join(found["letters"]).decode("latin-1")
        sites, tables = list(combinations(range(n), 2)), found["J_ij"]
    else:
        # Version 1 does not store the letters; its programs know proteins only.
        protein = ALPHABETS["protein"]
        alphabet = protein[-q:] if q <= len(protein) else "".join(map(chr, range(q)))
        i, j = found["pairs"]["sites"].T.astype(np.int64) - 1
        sites, tables = list(zip(i.tolist(), j.tolist(), strict=True)), found["pairs"]["J"]
        if not ((i >= 0) & (i < j) & (j < n)).all() or len(set(sites)) < len(sites):
            raise ValueError(f"pairs of other sites than {n}, or a pair that is there twice")
    pairs = dict(zip(sites, tables.astype(np.float64), strict=True))
    pairs, fields = build.reordered(pairs, fields, alphabet, letters_of(options.alphabet), source)
    return build.potts(source, pairs, fields, options)


FORMAT = Format(
    "plmc or EVcouplings parameters",
    (".params", ".model"),
    lambda source: _layout(source) is not None,
    ("alphabet", "gauge"),
    _model,
)
