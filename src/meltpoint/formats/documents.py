"""JSON from files that nobody vouches for: so many objects and no more, and long lists of numbers as arrays."""

import json
import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meltpoint.formats.tokens import numbers

_MOST_OBJECTS = 500_000
# Possessive, and a string without an end is one too: no byte is looked at twice.
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*+(?:"|\\?\Z)|\[([\s\d.,eE+-]{200,}+)\]', re.DOTALL)
_PLACE = "\0"  # key of what stands for an array until the document is read


def read_json(data: bytes) -> Any:  # noqa: ANN401
    """The object in a text of JSON; lists of numbers that are longer than a line are arrays (number,).

    >>> read_json(b'{"few": [1, 2], "many": [' + b"1.5, " * 99 + b"2]}")["many"][-2:]
    array([1.5, 2. ])
    """
    arrays: list[NDArray[np.float64]] = []

    def shortened(token: re.Match[bytes]) -> bytes:
        if token[1] is None:
            return token[0]
        arrays.append(_array(token[1]))
        return b'{"\\u0000": %d}' % (len(arrays) - 1)

    rest = _TOKEN.sub(shortened, data)
    if sum(map(rest.count, (b",", b"[", b"{"))) > _MOST_OBJECTS:
        raise ValueError(f"more than {_MOST_OBJECTS:,} objects")
    return json.loads(
        rest, object_hook=lambda found: arrays[found[_PLACE]] if found.keys() == {_PLACE} else found
    )


def _array(listed: bytes) -> NDArray[np.float64]:
    # A comma too many would be passed over where commas are taken for blanks.
    found = numbers(listed.replace(b",", b" "))
    if found.size != listed.count(b",") + 1:
        raise ValueError("a list of numbers with a comma too many or too few")
    return found
