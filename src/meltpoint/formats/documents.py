"""Numbers, JSON and msgpack from untrusted files: a limited number of objects, and long lists of numbers as arrays."""

import json
import re
import struct
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meltpoint.layers.unit import Floats

_MOST_IN_JSON = 500_000
# Possessive, and a string without an end is one too: no byte is looked at twice.
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*+(?:"|\\?\Z)|\[([\s\d.,eE+-]{200,}+)\]', re.DOTALL)
_PLACE = "\0"  # key of what stands for an array until the document is read

_MOST_IN_MSGPACK = 1_000_000  # besides the numbers of long lists
_DEEPEST = 8
_CONSTANTS = {0xC0: None, 0xC2: False, 0xC3: True}
_NUMBERS = dict(enumerate((">f", ">d", ">B", ">H", ">I", ">Q", ">b", ">h", ">i", ">q"), 0xCA))
_TEXT = {0xD9: ">B", 0xDA: ">H", 0xDB: ">I", 0xC4: ">B", 0xC5: ">H", 0xC6: ">I"}
_LISTS = {0xDC: ">H", 0xDD: ">I"}
_MAPS = {0xDE: ">H", 0xDF: ">I"}


def numbers(text: bytes) -> Floats:
    """All numbers (number,) of a text of blanks and numbers; anything else is a ValueError.

    >>> numbers(b"1 2.5e-3 -7").tolist()
    [1.0, 0.0025, -7.0]
    """
    if not text.strip():
        return np.empty(0)
    with warnings.catch_warnings():
        # Before NumPy 2.3 it stops at what is no number, and only warns.
        warnings.simplefilter("error", DeprecationWarning)
        try:
            return np.fromstring(text.decode("ascii"), sep=" ")  # pyright: ignore
        except (DeprecationWarning, ValueError):
            raise ValueError(f"{_first_wrong(text)!r} in place of a number") from None


def rows(text: bytes, columns: int) -> Floats:
    """Numbers (row, column) of a text whose every line has this many."""
    found = numbers(text)
    if found.size % columns:
        raise ValueError(f"{found.size} numbers, no multiple of {columns}")
    return found.reshape(-1, columns)


def _first_wrong(text: bytes) -> str:
    # Piece by piece: a list of all tokens would take many times the memory of the text.
    for begin in range(0, len(text), 1 << 16):
        for token in text[begin : begin + (1 << 16)].split():
            try:
                float(token)
            except ValueError:
                return token[:40].decode("latin-1")
    return "something"


def read_json(data: bytes) -> Any:  # noqa: ANN401
    """The object in a text of JSON; lists of numbers that are longer than a line are arrays (number,).

    >>> read_json(b'{"few": [1, 2], "many": [' + b"1.5, " * 99 + b"2]}")["many"][-2:]
    array([1.5, 2. ])
    """
    arrays: list[NDArray[np.float64]] = []

    def shortened(token: re.Match[bytes]) -> bytes:
        if token[1] is None:
            return token[0]
        # A comma too many would be passed over where commas are taken for blanks.
        found = numbers(token[1].replace(b",", b" "))
        if found.size != token[1].count(b",") + 1:
            raise ValueError("a list of numbers with a comma too many or too few")
        arrays.append(found)
        return b'{"\\u0000": %d}' % (len(arrays) - 1)

    rest = _TOKEN.sub(shortened, data)
    if sum(map(rest.count, (b",", b"[", b"{"))) > _MOST_IN_JSON:
        raise ValueError(f"more than {_MOST_IN_JSON:,} objects")
    return json.loads(
        rest, object_hook=lambda found: arrays[found[_PLACE]] if found.keys() == {_PLACE} else found
    )


def is_msgpack_map(head: bytes) -> bool:
    """Whether these bytes begin a msgpack map with text keys."""
    if len(head) < 6 or not (0x80 <= head[0] <= 0x8F or head[0] in _MAPS):
        return False
    key = head[{0xDE: 3, 0xDF: 5}.get(head[0], 1)]
    return 0xA0 <= key <= 0xBF or key in _TEXT


def read_msgpack(data: bytes) -> Any:  # noqa: ANN401
    """The object that msgpack holds: a dict with text keys, array (number,), list, text, number or None.

    >>> read_msgpack(bytes([0x81, 0xA1, 0x78, 0x92, 1, 2]))
    {'x': array([1., 2.])}
    """
    reader = _Msgpack(data)
    value = reader.value(depth=0)
    if reader.at < len(data):
        raise ValueError(f"{len(data) - reader.at} bytes after the end")
    return value


class _Msgpack:
    """The package msgpack makes an object of every number: a budget of objects would refuse real files."""

    def __init__(self, data: bytes) -> None:
        self._data, self.at, self._left = data, 0, _MOST_IN_MSGPACK

    def value(self, depth: int) -> Any:  # noqa: ANN401
        self._left -= 1
        if self._left < 0 or depth > _DEEPEST:
            raise ValueError(f"more than {_MOST_IN_MSGPACK:,} objects, or lists nested too deeply")
        code = self._take(1)[0]
        if code <= 0x7F or code >= 0xE0:
            return code if code <= 0x7F else code - 0x100
        if code in _CONSTANTS:
            return _CONSTANTS[code]
        if code in _NUMBERS:
            return self._number(_NUMBERS[code])
        if 0xA0 <= code <= 0xBF or code in _TEXT:
            length = code & 0x1F if code <= 0xBF else self._number(_TEXT[code])
            return self._take(length).decode("utf-8")
        if code <= 0x8F or code in _MAPS:
            return self._map(self._count(code, _MAPS), depth + 1)
        if code <= 0x9F or code in _LISTS:
            return self._list(self._count(code, _LISTS), depth + 1)
        raise ValueError(f"a value of type 0x{code:02x}")

    def _map(self, count: int, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for _ in range(count):
            key = self.value(depth)
            if not isinstance(key, str):
                raise ValueError("a map with keys that are no text")
            found[key] = self.value(depth)
        return found

    def _list(self, count: int, depth: int) -> Any:  # noqa: ANN401
        # Large lists hold numbers of one type, which are read at once.
        code = self._data[self.at] if count else 0
        if code in _NUMBERS:
            item = np.dtype([("code", "u1"), ("value", _NUMBERS[code])])
            if self.at + item.itemsize * count <= len(self._data):
                found = np.frombuffer(self._data, item, count, self.at)
                if (found["code"] == code).all():
                    self.at += found.nbytes
                    return found["value"].astype(np.float64)
        items = [self.value(depth) for _ in range(count)]
        return np.array(items, np.float64) if all(type(item) in (int, float) for item in items) else items

    def _count(self, code: int, layouts: dict[int, str]) -> int:
        count = self._number(layouts[code]) if code in layouts else code & 0x0F
        # Every item takes a byte at least.
        if count > len(self._data) - self.at:
            raise ValueError(f"a list of {count} items")
        return count

    def _number(self, layout: str) -> Any:  # noqa: ANN401
        return struct.unpack(layout, self._take(struct.calcsize(layout)))[0]

    def _take(self, count: int) -> bytes:
        taken = self._data[self.at : self.at + count]
        if len(taken) < count:
            raise ValueError("it ends too early")
        self.at += count
        return taken
