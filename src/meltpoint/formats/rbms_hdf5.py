"""RBMs of the package `rbms` (DsysDML), `.h5`: a group `update_k` for each stored update of training.

Since 0.5 the parameters are in `update_k/params`: weight_matrix (visible, hidden) or (site, state, hidden), vbias,
hbias. In the old layout they are in `update_k`, and Potts parameters have the states first: weight_matrix (state,
site, hidden), vbias (state, site). Hidden units are Bernoulli; log f has the signs of meltpoint.
"""

import re

from meltpoint.errors import InputError
from meltpoint.formats import build
from meltpoint.formats.format import Format
from meltpoint.formats.hdf5 import File, file_of, is_hdf5
from meltpoint.formats.options import Options, ask
from meltpoint.formats.source import Source
from meltpoint.models import Model

_UPDATE = re.compile(r"update_(\d{1,18})")


def _recognises(source: Source) -> bool:
    if not is_hdf5(source):
        return False
    file = source.once(file_of)
    return any(
        _UPDATE.fullmatch(name)
        and (f"{name}/params/weight_matrix" in file or f"{name}/weight_matrix" in file)
        for name in file.names
    )


def _model(source: Source, options: Options) -> Model:
    file = source.once(file_of)
    update = _chosen(source, file, options)
    is_new = f"update_{update}/params/weight_matrix" in file
    group = f"update_{update}/params" if is_new else f"update_{update}"
    weights, visible_bias, hidden_bias = (
        file.array(f"{group}/{name}") for name in ("weight_matrix", "vbias", "hbias")
    )
    if weights.ndim == 3 and not is_new and "model_type" not in file:
        weights, visible_bias = weights.transpose(1, 0, 2), visible_bias.T
    return build.rbm(source, weights, visible_bias, hidden_bias)


def _chosen(source: Source, file: File, options: Options) -> int:
    """Number of the update that was asked for, or of the only one."""
    stored = sorted(int(match[1]) for name in file.names if (match := _UPDATE.fullmatch(name)))
    wanted = options.update
    if wanted is None and len(stored) == 1:
        return stored[0]
    if wanted in ("first", "last"):
        return stored[0 if wanted == "first" else -1]
    if isinstance(wanted, str) and wanted.isdigit():
        wanted = int(wanted)
    if wanted not in stored:
        shown = ", ".join(map(str, stored if len(stored) < 12 else [*stored[:5], "…", *stored[-5:]]))
        if wanted is not None:
            raise InputError(
                found=f"update={wanted} for {source.name}, which has the updates {shown}",
                expected="one of them, first or last",
                remedy="correct the number",
            )
        raise ask(
            "update",
            f"{source.name} with the updates {shown}",
            'one of them, "first" or "last"',
            "say after which update of training",
        )
    return int(wanted)  # pyright: ignore


FORMAT = Format("HDF5 file of rbms", (".h5",), _recognises, ("update",), _model)
