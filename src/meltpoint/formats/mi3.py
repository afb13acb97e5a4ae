"""Couplings of Mi3-GPU, `J.npy`: (pair, q²) for all pairs i < j in order, p ~ exp(-Σ J), without fields.

Only its shape tells it from data, so that the number of states is asked for.
"""

import io
import math
from itertools import combinations

import numpy as np

from meltpoint.formats import build, npy
from meltpoint.formats.format import Format
from meltpoint.formats.options import Options, ask
from meltpoint.formats.source import Source
from meltpoint.models import Model


def _recognises(source: Source) -> bool:
    """Whether it is a .npy file with a row of q² floats for each of L (L - 1) / 2 pairs."""
    if not npy.FORMAT.recognises(source):
        return False
    shape, _, dtype = npy.read_header(io.BytesIO(source.head), source.name)
    return (
        dtype.kind == "f"
        and len(shape) == 2
        and _sites(shape[0]) > 1
        and math.isqrt(shape[1]) ** 2 == shape[1] > 1
    )


def _model(source: Source, options: Options) -> Model:
    """The Potts model with fields of zero."""
    couplings = npy.read(source)
    length, q = _sites(len(couplings)), math.isqrt(couplings.shape[1])
    if options.states != q:
        raise ask(
            "states",
            f"{source.name}, a .npy file of shape {couplings.shape}",
            f"{q} if it is J.npy of Mi3 with {length} sites",
            "say so; or are model and data swapped?",
        )
    tables = -couplings.astype(np.float64).reshape(-1, q, q)
    pairs = dict(zip(combinations(range(length), 2), tables, strict=True))
    return build.potts(source, pairs, np.zeros((length, q)), options)


def _sites(pairs: int) -> int:
    """L with L (L - 1) / 2 pairs, 0 if there is none."""
    length = (1 + math.isqrt(1 + 8 * pairs)) // 2
    return length if pairs > 0 and length * (length - 1) // 2 == pairs else 0


FORMAT = Format("Mi3 couplings (J.npy)", (".npy",), _recognises, ("states", "gauge"), _model)
