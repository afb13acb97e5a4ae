"""Parameters of plmc and EVcouplings, binary and little-endian, in versions 1 and 2; float32 or float64.

Version 2: int32 L, q, nValid, nInvalid, nIter; five floats; q letters; a float weight for each sequence; L letters of
the target; L int32 numbers of its sites; f_i (L, q); h_i (L, q); f_ij (q, q) of all pairs i < j; J_ij (q, q) of all
pairs. Version 1: int32 L, q; L letters; L int32; f_i; h_i; and for each pair int32 i, j from 1, f_ij, J_ij. p ~
exp(+h + J). There is no signature: the numbers in front must make the size of the file.
"""

import struct
from dataclasses import dataclass

import numpy as np

from meltpoint.formats import build
from meltpoint.formats.alphabets import PROTEIN, letters_of
from meltpoint.formats.options import Options
from meltpoint.formats.source import Source
from meltpoint.layers.unit import Floats
from meltpoint.models import Model

NAME = "plmc or EVcouplings parameters"
OPTIONS = frozenset({"alphabet", "gauge"})

_MOST_STATES = 64


@dataclass(frozen=True)
class _Layout:
    """Version, length of the sequences, states, stored sequences, and bytes of a float."""

    version: int
    length: int
    states: int
    sequences: int
    width: int

    @property
    def size(self) -> int:
        """Bytes of the file."""
        n, q, f = self.length, self.states, self.width
        pairs = n * (n - 1) // 2
        if self.version == 1:
            return 8 + 5 * n + 2 * n * q * f + pairs * (8 + 2 * q * q * f)
        return 20 + 5 * f + q + self.sequences * f + 5 * n + 2 * n * q * f + 2 * pairs * q * q * f


def recognises(source: Source) -> bool:
    """Whether the header makes the size of the file, in one of the versions and precisions."""
    return _layout(source) is not None


def read(source: Source, options: Options) -> Model:
    """The Potts model; its states are in the order of the file's alphabet."""
    layout = _layout(source)
    if layout is None:
        raise ValueError("its header and its size do not fit")
    pairs, fields, alphabet = (_version_1 if layout.version == 1 else _version_2)(source.data, layout)
    pairs, fields = build.reordered(pairs, fields, alphabet, letters_of(options.alphabet), source)
    return build.potts(source, pairs, fields, options)


def _layout(source: Source) -> _Layout | None:
    if len(source.head) < 20:
        return None
    length, states, valid, invalid, _ = struct.unpack_from("<5i", source.head)
    if length < 1 or not 2 <= states <= _MOST_STATES:
        return None
    made = [_Layout(1, length, states, 0, width) for width in (4, 8)]
    if valid >= 0 and invalid >= 0:
        made += [_Layout(2, length, states, valid + invalid, width) for width in (4, 8)]
    return next((layout for layout in made if layout.size == source.size), None)


def _version_2(data: bytes, layout: _Layout) -> tuple[build.Pairs, Floats, str]:
    n, q, f = layout.length, layout.states, layout.width
    begin = 20 + 5 * f
    alphabet = data[begin : begin + q].decode("latin-1")
    begin += q + layout.sequences * f + 5 * n + n * q * f
    fields = _floats(data, begin, (n, q), f)
    begin += n * q * f + n * (n - 1) // 2 * q * q * f
    tables = _floats(data, begin, (n * (n - 1) // 2, q, q), f)
    sites = zip(*np.triu_indices(n, 1), strict=True)
    return {(int(i), int(j)): table for (i, j), table in zip(sites, tables, strict=True)}, fields, alphabet


def _version_1(data: bytes, layout: _Layout) -> tuple[build.Pairs, Floats, str]:
    n, q, f = layout.length, layout.states, layout.width
    begin = 8 + 5 * n + n * q * f
    fields = _floats(data, begin, (n, q), f)
    begin += n * q * f
    pairs: build.Pairs = {}
    for _ in range(n * (n - 1) // 2):
        i, j = struct.unpack_from("<2i", data, begin)
        if not 1 <= i < j <= n or (i - 1, j - 1) in pairs:
            raise ValueError(f"a pair of the sites {i} and {j} of {n}")
        pairs[i - 1, j - 1] = _floats(data, begin + 8 + q * q * f, (q, q), f)
        begin += 8 + 2 * q * q * f
    # Version 1 does not store the letters; its programs know proteins only.
    return pairs, fields, PROTEIN[-q:] if q <= len(PROTEIN) else "".join(map(chr, range(q)))


def _floats(data: bytes, begin: int, shape: tuple[int, ...], width: int) -> Floats:
    return np.frombuffer(data, f"<f{width}", int(np.prod(shape)), begin).reshape(shape).astype(np.float64)
