"""Potts models of proteins: parameters of plmc and EVcouplings, of CCMpred and CCMgen, couplings of Mi3-GPU.

plmc is binary and little-endian, in float32 or float64. Version 2: int32 L, q, nValid, nInvalid, nIter; five floats; q
letters; a float weight for each sequence; L letters of the target; L int32 numbers of its sites; f_i (L, q); h_i (L,
q); f_ij (q, q) of all pairs i < j; J_ij (q, q) of all pairs. Version 1: int32 L, q; L letters; L int32; f_i; h_i; and
for each pair int32 i, j from 1, f_ij, J_ij. p ~ exp(+h + J). There is no signature: the numbers in front must make the
size of the file.

CCMpred and CCMgen have 20 fields and 21 x 21 couplings. Raw text: a line of 20 fields for each site, then for each pair
`# i j` and 21 rows of couplings (a row for each state of i), and perhaps `#>META> {json}`. `.braw` is the same in
msgpack: {"format": "ccm-1", "ncol": L, "x_single": [20 L], "x_pair": {"i/j": {"i", "j", "x": [441]}}}. The 21st state
is the gap. CCMpred counts it as a state whose field is 0; CCMgen leaves gaps out, so its model has 20.

Mi3-GPU: `J.npy`, (pair, q²) for all pairs i < j in order, p ~ exp(-Σ J), without fields. Only its shape tells it from
data, so that the number of states is asked for.
"""

import io
import math
import re
import struct
from itertools import combinations
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from meltpoint.formats import build, npz
from meltpoint.formats.documents import is_msgpack_map, numbers, read_msgpack, rows
from meltpoint.formats.format import Format, Options, missing_option
from meltpoint.formats.sequences import ALPHABETS, letters_of
from meltpoint.formats.source import Source
from meltpoint.layers.unit import Floats
from meltpoint.models import Model

_MOST_STATES = 64

_CCM = "CCMpred or CCMgen potentials"
_CCM_ALPHABET = "ARNDCQEGHILKMFPSTWYV-"
_AMINO, _STATES = 20, 21
_HEADING = re.compile(rb"^#[ \t]*(\d{1,6})[ \t]+(\d{1,6})[ \t\r]*\n", re.MULTILINE)
_META = re.compile(rb"^#>META>.*$", re.MULTILINE)

_Layout: TypeAlias = list[tuple[str, np.dtype[Any], tuple[int, ...]]]
"""What follows what: name, type and shape of each array."""


def _plmc_layout(source: Source) -> _Layout | None:
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


def _plmc(source: Source, options: Options) -> Model:
    """The Potts model; its states are in the order of the file's alphabet."""
    found: dict[str, NDArray[Any]] = {}
    begin = 0
    for name, dtype, shape in _plmc_layout(source) or []:
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
    return build.potts(source, pairs, fields, options, alphabet, letters_of(options.alphabet))


def _is_ccm(source: Source) -> bool:
    """Whether it is msgpack that names the format, or text with 20 numbers in its first line and a line `# i j`."""
    if not source.is_text:
        # The short entries of the map may be at both ends.
        return is_msgpack_map(source.head) and b"ccm-1" in source.head + source.data[-(1 << 16) :]
    line = source.first_lines.partition(b"\n")[0].strip()
    if line.startswith(b"#") or len(line.split()) != _AMINO:
        return False
    return _HEADING.search(source.data) is not None or _META.search(source.data) is not None


def _ccm(source: Source, options: Options) -> Model:
    gap = options.require("gap", f"{source.name}, {_CCM}")
    fields, listed = _ccm_text(source.numbers) if source.is_text else _ccm_msgpack(source.data)
    pairs: build.Pairs = {}
    for i, j, table in listed:
        low, high = min(i, j), max(i, j)
        if not 0 <= low < high < len(fields) or (low, high) in pairs or table.size != _STATES**2:
            raise ValueError(
                f"{table.size} couplings of the sites {i} and {j} of {len(fields)}, or the pair is there twice"
            )
        table = table.reshape(_STATES, _STATES)
        pairs[low, high] = table if i < j else table.T
    if gap == "masked":
        stored = _CCM_ALPHABET[:_AMINO]
        pairs = {pair: table[:_AMINO, :_AMINO] for pair, table in pairs.items()}
    else:
        fields, stored = np.pad(fields, [(0, 0), (0, 1)]), _CCM_ALPHABET
    return build.potts(source, pairs, fields, options, stored, letters_of(options.alphabet))


_Listed: TypeAlias = list[tuple[Any, ...]]
"""The two sites of each pair, and its couplings."""


def _ccm_text(data: bytes) -> tuple[Floats, _Listed]:
    data = _META.sub(b"", data)
    headings = list(_HEADING.finditer(data))
    ends = [heading.start() for heading in headings] + [len(data)]
    listed: _Listed = [
        (int(heading[1]), int(heading[2]), numbers(data[heading.end() : end]))
        for heading, end in zip(headings, ends[1:], strict=True)
    ]
    return rows(data[: ends[0]], _AMINO), listed


def _ccm_msgpack(data: bytes) -> tuple[Floats, _Listed]:
    found = read_msgpack(data)
    if not isinstance(found, dict) or found.get("format") != "ccm-1":
        raise ValueError("no entry format: ccm-1")
    n, single, entries = found.get("ncol"), found.get("x_single"), found.get("x_pair")
    if not isinstance(n, int) or not isinstance(single, np.ndarray) or not isinstance(entries, dict):
        raise ValueError("ncol, x_single or x_pair is missing or of a wrong type")
    if single.size != n * _AMINO:
        raise ValueError(f"{single.size} fields of {n} sites")
    listed: _Listed = [tuple(map(entry.get, "ijx")) for entry in entries.values() if isinstance(entry, dict)]
    if len(listed) < len(entries) or not all(
        isinstance(i, int) and isinstance(j, int) and isinstance(x, np.ndarray) for i, j, x in listed
    ):
        raise ValueError("a pair without its sites or its couplings")
    return single.reshape(n, _AMINO), listed


def _is_mi3(source: Source) -> bool:
    """Whether it is a .npy file with a row of q² floats for each of L (L - 1) / 2 pairs."""
    if not npz.is_npy(source):
        return False
    shape, _, dtype = npz.read_header(io.BytesIO(source.head), source.name)
    if dtype.kind != "f" or len(shape) != 2:
        return False
    return _mi3_sites(shape[0]) > 1 and math.isqrt(shape[1]) ** 2 == shape[1] > 1


def _mi3(source: Source, options: Options) -> Model:
    couplings = npz.read_npy(source, source.stream(), source.most, source.name)
    length, q = _mi3_sites(len(couplings)), math.isqrt(couplings.shape[1])
    if options.states != q:
        what = f"{source.name}, a .npy file of shape {couplings.shape}"
        raise missing_option("states", what, f"{q} if it is J.npy of Mi3 with {length} sites")
    tables = -couplings.astype(np.float64).reshape(-1, q, q)
    pairs = dict(zip(combinations(range(length), 2), tables, strict=True))
    return build.potts(source, pairs, np.zeros((length, q)), options)


def _mi3_sites(pairs: int) -> int:
    """L with L (L - 1) / 2 pairs, 0 if there is none."""
    length = (1 + math.isqrt(1 + 8 * pairs)) // 2
    return length if pairs > 0 and length * (length - 1) // 2 == pairs else 0


PLMC = Format(
    "plmc or EVcouplings parameters",
    (".params", ".model"),
    lambda source: _plmc_layout(source) is not None,
    ("alphabet", "gauge"),
    _plmc,
)
CCM = Format(_CCM, (".raw", ".braw"), _is_ccm, ("gap", "alphabet", "gauge"), _ccm)
MI3 = Format("Mi3 couplings (J.npy)", (".npy",), _is_mi3, ("states", "gauge"), _mi3)
