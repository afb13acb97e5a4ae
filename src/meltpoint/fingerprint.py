"""Fingerprints: short texts that differ when arrays do."""

import hashlib
from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Arrays: TypeAlias = Mapping[str, NDArray[Any]]


def fingerprint(arrays: Arrays, *context: str) -> str:
    """A fingerprint of named arrays, their types and shapes, and of some texts that belong to them.

    >>> fingerprint({"bits": np.array([0, 1], np.uint8)})
    '4e79f8c6473704738630a7f2bd1c30ee'
    """
    digest = hashlib.blake2b(digest_size=16)
    for text in context:
        _add(digest, text.encode())
    for name, array in arrays.items():
        stored = np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<"), copy=False)
        _add(digest, repr((name, stored.dtype.str, array.shape)).encode())
        _add(digest, stored.tobytes())
    return digest.hexdigest()


def _add(digest: "hashlib.blake2b", data: bytes) -> None:
    # The length in front keeps ("ab", "c") and ("a", "bc") apart.
    digest.update(len(data).to_bytes(8, "little"))
    digest.update(data)
