"""Msgpack, as much of it as files of numbers have: maps with text keys, arrays of numbers, text, numbers, nil.

A list of numbers becomes an array (number,). Reading takes no recursion, and so many objects and no more.
"""

import struct
from typing import Any

import numpy as np

_DEEPEST = 8
_MOST_OBJECTS = 1_000_000  # besides the numbers of long lists
_FIXED = dict(enumerate((">f", ">d", ">B", ">H", ">I", ">Q", ">b", ">h", ">i", ">q"), 0xCA))
_TEXT = {0xD9: ">B", 0xDA: ">H", 0xDB: ">I", 0xC4: ">B", 0xC5: ">H", 0xC6: ">I"}
_ARRAYS = {0xDC: ">H", 0xDD: ">I"}
_MAPS = {0xDE: ">H", 0xDF: ">I"}
_CONSTANTS = {0xC0: None, 0xC2: False, 0xC3: True}
_EMPTY = np.empty(0)


def is_map(head: bytes) -> bool:
    """Whether these bytes begin a map with text keys."""
    if len(head) < 6 or not (0x80 <= head[0] <= 0x8F or head[0] in _MAPS):
        return False
    key = head[{0xDE: 3, 0xDF: 5}.get(head[0], 1)]
    return 0xA0 <= key <= 0xBF or key in _TEXT


def unpack(data: bytes) -> Any:  # noqa: ANN401
    """The object that the bytes hold: dict, array (number,), list, text, number or None.

    >>> unpack(bytes([0x81, 0xA1, 0x78, 0x92, 1, 2]))
    {'x': array([1., 2.])}
    """
    reader = _Reader(data)
    stack: list[_Open] = []
    while True:
        value = reader.next(len(stack))
        # A container that is full is a value of the one around it.
        while not isinstance(value, _Open):
            if not stack:
                reader.check_end()
                return value
            stack[-1].add(value)
            if stack[-1].left:
                break
            value = stack.pop().close()
        else:
            stack.append(value)


class _Open:
    """A list or a map whose items are still being read."""

    def __init__(self, count: int, is_map: bool) -> None:
        self.left = 2 * count if is_map else count
        self._is_map = is_map
        self._items: list[Any] = []

    def add(self, value: Any) -> None:  # noqa: ANN401
        self._items.append(value)
        self.left -= 1

    def close(self) -> Any:  # noqa: ANN401
        if self._is_map:
            keys, values = self._items[::2], self._items[1::2]
            if not all(isinstance(key, str) for key in keys):
                raise ValueError("a map with keys that are no text")
            return dict(zip(keys, values, strict=True))
        if all(type(item) in (int, float) for item in self._items):
            return np.array(self._items, np.float64)
        return self._items


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data, self._position, self._left = data, 0, _MOST_OBJECTS

    def next(self, depth: int) -> Any:  # noqa: ANN401
        self._left -= 1
        if self._left < 0:
            raise ValueError(f"more than {_MOST_OBJECTS:,} objects")
        code = self._take(1)[0]
        if code <= 0x7F:
            return code
        if code >= 0xE0:
            return code - 0x100
        if code in _CONSTANTS:
            return _CONSTANTS[code]
        if code in _FIXED:
            return self._number(_FIXED[code])
        if 0xA0 <= code <= 0xBF or code in _TEXT:
            length = code & 0x1F if code <= 0xBF else self._number(_TEXT[code])
            return self._take(length).decode("utf-8")
        is_map = 0x80 <= code <= 0x8F or code in _MAPS
        if not is_map and not 0x90 <= code <= 0x9F and code not in _ARRAYS:
            raise ValueError(f"a value of type 0x{code:02x}")
        count = code & 0x0F if code <= 0x9F else self._number((_MAPS if is_map else _ARRAYS)[code])
        # Every item takes a byte at least.
        if count > len(self._data) - self._position or depth >= _DEEPEST:
            raise ValueError(f"a list of {count} items, or lists nested too deeply")
        if count == 0:
            return {} if is_map else _EMPTY
        return _Open(count, is_map) if is_map else self._list(count)

    def _list(self, count: int) -> Any:  # noqa: ANN401
        """A list of numbers of one type at once, which is what large lists are; any other is left open."""
        code = self._data[self._position]
        if code in _FIXED:
            item = np.dtype([("code", "u1"), ("value", _FIXED[code])])
            if self._position + item.itemsize * count <= len(self._data):
                found = np.frombuffer(self._data, item, count, self._position)
                if (found["code"] == code).all():
                    self._position += found.nbytes
                    return found["value"].astype(np.float64)
        return _Open(count, is_map=False)

    def check_end(self) -> None:
        if self._position < len(self._data):
            raise ValueError(f"{len(self._data) - self._position} bytes after the end")

    def _number(self, layout: str) -> Any:  # noqa: ANN401
        return struct.unpack(layout, self._take(struct.calcsize(layout)))[0]

    def _take(self, count: int) -> bytes:
        taken = self._data[self._position : self._position + count]
        if len(taken) < count:
            raise ValueError("it ends too early")
        self._position += count
        return taken
