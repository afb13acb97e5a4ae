"""Couplings of Mi3-GPU, `J.npy`: (pair, q²) for all pairs i < j in order, p ~ exp(-Σ J), without fields.

Only its shape tells it from data, so that the number of states is asked for.
"""

import io
import math
import warnings

import numpy as np
from numpy.lib import format as npy

from meltpoint.formats import build, npz
from meltpoint.formats.options import Options, ask
from meltpoint.formats.source import Source
from meltpoint.models import Model

NAME = "Mi3 couplings (J.npy)"
OPTIONS = frozenset({"states", "gauge"})


def recognises(source: Source) -> bool:
    """Whether it is a .npy file with a row of q² floats for each of L (L - 1) / 2 pairs."""
    if not source.head.startswith(b"\x93NUMPY\x01\x00") or source.content is not None:
        return False
    stream = io.BytesIO(source.head)
    npy.read_magic(stream)
    with warnings.catch_warnings(action="ignore"):  # of a header written by Python 2
        shape, _, dtype = npy.read_array_header_1_0(stream)
    return (
        dtype.kind == "f"
        and len(shape) == 2
        and _sites(shape[0]) > 1
        and math.isqrt(shape[1]) ** 2 == shape[1] > 1
    )


def read(source: Source, options: Options) -> Model:
    """The Potts model with fields of zero."""
    couplings = npz.read_npy(source.path)
    length, q = _sites(len(couplings)), math.isqrt(couplings.shape[1])
    if options.states != q:
        raise ask(
            "states",
            f"{source.name}, a .npy file of shape {couplings.shape}",
            f"{q} if it is J.npy of Mi3 with {length} sites",
            "say so; or are model and data swapped?",
        )
    tables = -couplings.astype(np.float64).reshape(-1, q, q)
    sites = zip(*(axis.tolist() for axis in np.triu_indices(length, 1)), strict=True)
    return build.potts(source, dict(zip(sites, tables, strict=True)), np.zeros((length, q)), options)


def _sites(pairs: int) -> int:
    """L with L (L - 1) / 2 pairs, 0 if there is none."""
    length = (1 + math.isqrt(1 + 8 * pairs)) // 2
    return length if pairs > 0 and length * (length - 1) // 2 == pairs else 0
