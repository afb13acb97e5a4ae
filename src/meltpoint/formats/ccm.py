"""CCMpred and CCMgen: raw text, and `.braw`, which is the same in msgpack. 20 fields and 21 x 21 couplings.

Text: a line of 20 fields for each site, then for each pair `# i j` and 21 rows of couplings (a row for each state of
i), and perhaps `#>META> {json}`. Msgpack: {"format": "ccm-1", "ncol": L, "x_single": [20 L], "x_pair": {"i/j": {"i",
"j", "x": [441]}}}. The 21st state is the gap. CCMpred counts it as a state whose field is 0; CCMgen leaves gaps out,
so its model has 20.
"""

import re

import numpy as np

from meltpoint.formats import build, msgpack
from meltpoint.formats.alphabets import letters_of
from meltpoint.formats.format import Format
from meltpoint.formats.options import Options, ask
from meltpoint.formats.source import Source
from meltpoint.formats.tokens import rows
from meltpoint.layers.unit import Floats
from meltpoint.models import Model

_NAME = "CCMpred or CCMgen potentials"
_ALPHABET = "ARNDCQEGHILKMFPSTWYV-"
_AMINO, _STATES = 20, 21
_HEADING = re.compile(rb"^#[ \t]*(\d{1,6})[ \t]+(\d{1,6})[ \t\r]*\n", re.MULTILINE)
_META = re.compile(rb"^#>META>.*$", re.MULTILINE)


def _recognises(source: Source) -> bool:
    """Whether it is msgpack that names the format, or text with 20 numbers in its first line and a line `# i j`."""
    if not source.is_text:
        # The short entries of the map may be at both ends.
        return msgpack.is_map(source.head) and b"ccm-1" in source.head + source.data[-(1 << 16) :]
    begins = not source.first_line.startswith(b"#") and len(source.first_line.split()) == _AMINO
    return begins and (_HEADING.search(source.data) is not None or _META.search(source.data) is not None)


def _model(source: Source, options: Options) -> Model:
    if options.gap is None:
        raise ask(
            "gap",
            f"{source.name}, {_NAME}",
            '"state" or "masked"',
            "state: 21 states, the gap's field is 0 (CCMpred); masked: the 20 amino acids alone (CCMgen)",
        )
    single, pairs = _from_text(source.numbers) if source.is_text else _from_msgpack(source.data)
    if options.gap == "masked":
        fields, stored = single, _ALPHABET[:_AMINO]
        pairs = {pair: table[:_AMINO, :_AMINO] for pair, table in pairs.items()}
    else:
        fields, stored = np.pad(single, [(0, 0), (0, 1)]), _ALPHABET
    pairs, fields = build.reordered(pairs, fields, stored, letters_of(options.alphabet), source)
    return build.potts(source, pairs, fields, options)


def _from_text(data: bytes) -> tuple[Floats, build.Pairs]:
    data = _META.sub(b"", data)
    heading = _HEADING.search(data)
    single = rows(data[: heading.start() if heading else len(data)], _AMINO)
    pairs: build.Pairs = {}
    while heading:
        following = _HEADING.search(data, heading.end())
        table = rows(data[heading.end() : following.start() if following else len(data)], _STATES)
        _add(pairs, int(heading[1]), int(heading[2]), table, len(single))
        heading = following
    return single, pairs


def _from_msgpack(data: bytes) -> tuple[Floats, build.Pairs]:
    found = msgpack.unpack(data)
    if not isinstance(found, dict) or found.get("format") != "ccm-1":
        raise ValueError("no entry format: ccm-1")
    n, single, listed = found.get("ncol"), found.get("x_single"), found.get("x_pair")
    if not isinstance(n, int) or not isinstance(single, np.ndarray) or not isinstance(listed, dict):
        raise ValueError("ncol, x_single or x_pair is missing or of a wrong type")
    if single.size != n * _AMINO:
        raise ValueError(f"{single.size} fields of {n} sites")
    pairs: build.Pairs = {}
    for entry in listed.values():
        if not isinstance(entry, dict) or not isinstance(entry.get("x"), np.ndarray):
            raise ValueError("a pair without its couplings")
        i, j, table = entry.get("i"), entry.get("j"), entry["x"]
        if not isinstance(i, int) or not isinstance(j, int) or table.size != _STATES**2:
            raise ValueError("a pair without its sites, or with another number of couplings")
        _add(pairs, i, j, table.reshape(_STATES, _STATES), n)
    return single.reshape(n, _AMINO), pairs


def _add(pairs: build.Pairs, i: int, j: int, table: Floats, n: int) -> None:
    if i > j:
        i, j, table = j, i, table.T
    if not 0 <= i < j < n or (i, j) in pairs or table.shape != (_STATES, _STATES):
        raise ValueError(
            f"couplings {table.shape} of the sites {i} and {j} of {n}, or the pair is there twice"
        )
    pairs[i, j] = table


FORMAT = Format(_NAME, (".raw", ".braw"), _recognises, ("gap", "alphabet", "gauge"), _model)
