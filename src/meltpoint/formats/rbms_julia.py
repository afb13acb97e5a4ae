"""RBMs of RestrictedBoltzmannMachines.jl, `.h5`: E = E_v + E_h - v·w·h, with the kinds of the two layers by name.

`visible_par` and `hidden_par` stack the parameters of a layer: θ of Binary, Spin and Potts (E = -θ·x), θ and γ of
Gaussian (E = |γ| x²/2 - θ x). Julia's axes are in reverse order in the file: `weights` is (hidden, …, visible), Potts
sites are (site, state). A StandardizedRBM couples (v - offset_v) / scale_v with (h - offset_h) / scale_h: the same
RBM with other fields, up to a constant in log f, which changes no probability.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from meltpoint.errors import InputError
from meltpoint.formats import build
from meltpoint.formats.format import Format
from meltpoint.formats.hdf5 import File, file_of, is_hdf5
from meltpoint.formats.options import Options
from meltpoint.formats.source import Source
from meltpoint.layers.unit import Floats
from meltpoint.models import Model

_HEADER = "rbm_hdf5_file_format_version"
_VISIBLE = {
    "Binary": "bernoulli",
    "Spin": "spin",
    "Potts": "potts",
    "PottsGumbel": "potts",
    "Gaussian": "gaussian",
}
_HIDDEN = {"Binary": "bernoulli", "Spin": "spin"}


def _recognises(source: Source) -> bool:
    names = source.once(file_of).names if is_hdf5(source) else []
    return _HEADER in names or {"visible_type", "hidden_type", "visible_par"} <= set(names)


def _model(source: Source, _: Options) -> Model:
    """The RBM; its sites are flattened in Julia's order, the first axis fastest."""
    file = source.once(file_of)
    kind = file.text("rbm_type") if "rbm_type" in file else "RBM"
    if kind not in ("RBM", "StandardizedRBM"):
        raise ValueError(f"an RBM of type {kind[:40]!r}")
    visible, hidden = (_layer(source, file, side) for side in ("visible", "hidden"))
    # From (hidden, sites, …) to (sites, …, hidden), as the layers are.
    n_hidden_axes = file.array("hidden_par").ndim - 1
    weights = file.array("weights")
    weights = np.moveaxis(weights, range(n_hidden_axes), range(-n_hidden_axes, 0))
    weights = weights.reshape(*visible[1].shape[:-1], -1)
    fields, hidden_fields = visible[1][..., 0], hidden[1][..., 0].reshape(-1)
    if kind != "RBM":
        standard = [file.array(name) for name in ("offset_v", "scale_v", "offset_h", "scale_h")]
        weights, fields, hidden_fields = _unstandardized(weights, fields, hidden_fields, standard)
    units = {"visible": visible[0], "hidden": hidden[0]}
    if visible[0] == "gaussian":
        # |γ| x²/2 - θ x is ((x - θ/γ) √γ)²/2 and a constant.
        gamma = np.abs(visible[1][..., 1])
        if not (gamma > 0).all():
            raise ValueError("a Gaussian unit with γ = 0")
        scale = gamma**-0.5
        return build.rbm(
            source, weights * scale[:, None], fields / gamma, hidden_fields, visible_scale=scale, **units
        )
    return build.rbm(source, weights, fields, hidden_fields, **units)


def _layer(source: Source, file: File, side: str) -> tuple[str, Floats]:
    """Kind of a layer, and its parameters (site, …, parameter); Potts (site, state, parameter)."""
    name = file.text(f"{side}_type")
    known = _VISIBLE if side == "visible" else _HIDDEN
    if name not in known:
        raise InputError(
            found=f"{side} units of type {name[:40]!r} in {source.name}",
            expected=f"one of {', '.join(known)}",
            remedy="meltpoint has no such units",
        )
    parameters = file.array(f"{side}_par").astype(np.float64)
    wanted = 2 if name == "Gaussian" else 1
    if parameters.ndim < 2 or parameters.shape[-1] != wanted:
        raise ValueError(f"{side}_par of shape {parameters.shape}")
    if known[name] == "potts":
        return known[name], parameters.reshape(-1, *parameters.shape[-2:])
    return known[name], parameters.reshape(-1, wanted)


def _unstandardized(
    weights: Floats, fields: Floats, hidden_fields: Floats, standard: list[NDArray[Any]]
) -> tuple[Floats, Floats, Floats]:
    """Weights and fields of the same RBM without offsets and scales."""
    offset_v, scale_v = (array.reshape(fields.shape) for array in standard[:2])
    offset_h, scale_h = (array.reshape(-1) for array in standard[2:])
    if not (np.abs(scale_v) > 0).all() or not (np.abs(scale_h) > 0).all():
        raise ValueError("a scale of 0")
    weights = weights / scale_v[..., None] / scale_h
    axes = list(range(fields.ndim))
    return weights, fields - weights @ offset_h, hidden_fields - np.tensordot(offset_v, weights, (axes, axes))


FORMAT = Format("HDF5 file of RestrictedBoltzmannMachines.jl", (".h5",), _recognises, model=_model)
