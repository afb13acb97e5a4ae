"""A pickle's opcodes, followed without calling anything: text, numbers, lists, tuples and dictionaries.

Names of functions and classes become `Global` objects. What shall happen where a pickle would call one, or refers to
something stored elsewhere, is decided by the two functions that are handed in; they know a few names and refuse the
rest.
"""

import io
import pickletools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from meltpoint.errors import described

IGNORED = object()
"""Stands for an object that is not needed."""

_MARK = object()
_NEW: dict[str, Callable[[], object]] = {
    "NONE": lambda: None,
    "NEWTRUE": lambda: True,
    "NEWFALSE": lambda: False,
    "MARK": lambda: _MARK,
    "EMPTY_DICT": dict,
    "EMPTY_LIST": list,
    "EMPTY_TUPLE": tuple,
}
_LITERALS = {
    *("BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT", "BINUNICODE", "SHORT_BINUNICODE"),
    *("BINSTRING", "SHORT_BINSTRING", "BINBYTES", "SHORT_BINBYTES"),
}
_TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}
_MOST_INSTRUCTIONS = 250_000  # each may make an object; a tensor takes forty


class Refused(ValueError):  # noqa: N818  what happened to the file, not to the program
    """A pickle that would call something unknown; the message says what."""


@dataclass(frozen=True)
class Global:
    """The name of a function or class."""

    module: str
    name: str

    def __str__(self) -> str:
        return f"{self.module}.{self.name}"[:80]


def read_opcodes(
    data: bytes,
    persistent: Callable[[object], object],
    reduce: Callable[[Global, tuple[Any, ...]], object],
) -> tuple[Any, int]:
    """The object that a pickle describes, and the pickle's length.

    >>> import pickle
    >>> read_opcodes(pickle.dumps({"a": (1, [2.5])}), print, print)[0]
    {'a': (1, [2.5])}
    """
    stream = io.BytesIO(data)
    stack: list[Any] = []
    memo: dict[int, Any] = {}
    for count, (opcode, argument, _) in enumerate(pickletools.genops(stream)):
        name = opcode.name
        if count > _MOST_INSTRUCTIONS:
            raise ValueError(f"more than {_MOST_INSTRUCTIONS:,} instructions")
        if name == "STOP":
            return stack.pop(), stream.tell()
        if name in ("PROTO", "FRAME"):
            continue
        if name in _LITERALS:
            stack.append(argument)
        elif name in _NEW:
            stack.append(_NEW[name]())
        elif name in _TUPLES:
            stack.append(tuple(_popped(stack, _TUPLES[name])))
        elif name == "TUPLE":
            stack.append(tuple(_above_mark(stack)))
        elif name in ("BINPUT", "LONG_BINPUT", "MEMOIZE"):
            memo[len(memo) if name == "MEMOIZE" else int(argument)] = stack[-1]  # pyright: ignore
        elif name in ("BINGET", "LONG_BINGET"):
            stack.append(memo[argument])  # pyright: ignore
        elif name == "GLOBAL":
            stack.append(Global(*str(argument).split(" ", 1)))
        elif name == "STACK_GLOBAL":
            module, attribute = _popped(stack, 2)
            if type(module) is not str or type(attribute) is not str:
                raise Refused(f"a function or class with {described(module)} as its module's name")
            stack.append(Global(module, attribute))
        elif name == "BINPERSID":
            stack.append(persistent(stack.pop()))
        elif name == "REDUCE":
            function, arguments = _popped(stack, 2)
            if not isinstance(function, Global) or not isinstance(arguments, tuple):
                raise Refused("a call of something that has no name")
            stack.append(reduce(function, arguments))
        elif name in ("APPEND", "APPENDS"):
            items = _above_mark(stack) if name == "APPENDS" else _popped(stack, 1)
            if type(stack[-1]) is not list:
                raise Refused("items for something that is no list")
            stack[-1].extend(items)
        elif name in ("SETITEM", "SETITEMS"):
            _set_items(stack, _above_mark(stack) if name == "SETITEMS" else _popped(stack, 2))
        elif name == "BUILD" and len(stack) > 1 and (type(stack[-2]) is dict or stack[-2] is IGNORED):
            stack.pop()  # attributes of an OrderedDict: the versions of a model's layers
        else:
            raise Refused(_what(name, stack))
    raise ValueError("it ends too early")


def _what(name: str, stack: list[Any]) -> str:
    """What an instruction would have made, in words."""
    if name in ("NEWOBJ", "NEWOBJ_EX", "BUILD", "INST", "OBJ"):
        known = [item for item in stack[-3:] if isinstance(item, Global)]
        if known:
            return f"an object of class {known[0]}"
    return f"an instruction {name}"


def _popped(stack: list[Any], count: int) -> list[Any]:
    items = stack[-count:]
    if len(items) < count or any(item is _MARK for item in items):
        raise ValueError("a tuple, call or item without its parts")
    del stack[-count:]
    return items


def _above_mark(stack: list[Any]) -> list[Any]:
    items = []
    while (item := stack.pop()) is not _MARK:
        items.append(item)
    return items[::-1]


def _set_items(stack: list[Any], items: list[Any]) -> None:
    container = stack[-1]
    if type(container) is not dict or len(items) % 2:
        raise Refused("items for something that is no dictionary")
    for key, value in zip(items[::2], items[1::2], strict=True):
        # Keys of other types would be hashed, which could take unbounded time.
        if type(key) not in (str, int):
            raise Refused(f"a dictionary with a key of type {type(key).__name__}")
        container[key] = value
