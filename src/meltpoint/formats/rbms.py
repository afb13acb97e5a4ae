"""RBMs in HDF5 files of two packages: rbms (DsysDML) and RestrictedBoltzmannMachines.jl.

rbms has a group `update_k` for each stored update of training. Since 0.5 the parameters are in `update_k/params`:
weight_matrix (visible, hidden) or (site, state, hidden), vbias, hbias. In the old layout they are in `update_k`, and
Potts parameters have the states first: weight_matrix (state, site, hidden), vbias (state, site). Hidden units are
Bernoulli; log f has the signs of meltpoint.

RestrictedBoltzmannMachines.jl: E = E_v + E_h - v·w·h, with the kinds of the two layers by name. `visible_par` and
`hidden_par` stack the parameters of a layer: θ of Binary, Spin and Potts (E = -θ·x), θ and γ of Gaussian (E = |γ| x²/2
- θ x). Julia's axes are in reverse order in the file: `weights` is (hidden, …, visible), Potts sites are (site, state).
A StandardizedRBM couples (v - offset_v) / scale_v with (h - offset_h) / scale_h: the same RBM with other fields, up to
a constant in log f, which changes no probability.
"""

import re

import numpy as np

from meltpoint.errors import InputError
from meltpoint.formats import build
from meltpoint.formats.format import Format, Options, missing_option
from meltpoint.formats.hdf5 import File, file_of, is_hdf5
from meltpoint.formats.source import Source
from meltpoint.layers.unit import Floats
from meltpoint.models import Model

_UPDATE = re.compile(r"update_(\d{1,18})")

_JULIA_HEADER = "rbm_hdf5_file_format_version"
_HIDDEN = {"Binary": "bernoulli", "Spin": "spin"}
_VISIBLE = _HIDDEN | {"Potts": "potts", "PottsGumbel": "potts", "Gaussian": "gaussian"}


def _is_rbms(source: Source) -> bool:
    if not is_hdf5(source):
        return False
    file = source.once(file_of)
    return any(
        f"{name}/{folder}weight_matrix" in file
        for name in file.names
        if _UPDATE.fullmatch(name)
        for folder in ("params/", "")
    )


def _rbms(source: Source, options: Options) -> Model:
    file = source.once(file_of)
    group = f"update_{_chosen_update(source, file, options)}"
    is_new = f"{group}/params/weight_matrix" in file
    if is_new:
        group += "/params"
    weights, visible_bias, hidden_bias = (
        file.array(f"{group}/{name}") for name in ("weight_matrix", "vbias", "hbias")
    )
    if weights.ndim == 3 and not is_new and "model_type" not in file:
        weights, visible_bias = weights.transpose(1, 0, 2), visible_bias.T
    return build.rbm(source, weights, visible_bias, hidden_bias)


def _chosen_update(source: Source, file: File, options: Options) -> int:
    """Number of the update that was asked for, or of the only one."""
    stored = sorted(int(match[1]) for name in file.names if (match := _UPDATE.fullmatch(name)))
    shown = ", ".join(map(str, stored if len(stored) < 12 else [*stored[:5], "…", *stored[-5:]]))
    wanted = options.update
    if wanted is None:
        if len(stored) == 1:
            return stored[0]
        found = f"{source.name} with the updates {shown}"
        raise missing_option("update", found, 'one of them, "first" or "last"')
    if wanted in ("first", "last"):
        return stored[0 if wanted == "first" else -1]
    number = int(wanted) if str(wanted).isdecimal() else None
    if number is None or number not in stored:
        raise InputError(
            found=f"update={wanted} for {source.name}, which has the updates {shown}",
            expected="one of them, first or last",
            remedy="correct the number",
        )
    return number


def _is_julia(source: Source) -> bool:
    names = source.once(file_of).names if is_hdf5(source) else []
    return _JULIA_HEADER in names or {"visible_type", "hidden_type", "visible_par"} <= set(names)


def _julia(source: Source, _: Options) -> Model:
    """The RBM; its sites are flattened in Julia's order, the first axis fastest."""
    file = source.once(file_of)
    kind = file.text("rbm_type") if "rbm_type" in file else "RBM"
    if kind not in ("RBM", "StandardizedRBM"):
        raise ValueError(f"an RBM of type {kind[:40]!r}")
    visible, visible_parameters = _layer(source, file, "visible", _VISIBLE)
    hidden, hidden_parameters = _layer(source, file, "hidden", _HIDDEN)
    fields, hidden_fields = visible_parameters[..., 0], hidden_parameters[..., 0]
    # From (hidden, sites, …) to (sites, …, hidden), as the layers are.
    n_hidden_axes = file.array("hidden_par").ndim - 1
    weights = np.moveaxis(file.array("weights"), range(n_hidden_axes), range(-n_hidden_axes, 0))
    weights = weights.reshape(*fields.shape, -1)
    if kind == "StandardizedRBM":
        weights, fields, hidden_fields = _unstandardized(file, weights, fields, hidden_fields)
    if visible != "gaussian":
        return build.rbm(source, weights, fields, hidden_fields, visible=visible, hidden=hidden)
    # |γ| x²/2 - θ x is ((x - θ/γ) √γ)²/2 and a constant.
    gamma = np.abs(visible_parameters[..., 1])
    if not (gamma > 0).all():
        raise ValueError("a Gaussian unit with γ = 0")
    scale = gamma**-0.5
    weights, fields = weights * scale[:, None], fields / gamma
    units = {"visible": visible, "hidden": hidden, "visible_scale": scale}
    return build.rbm(source, weights, fields, hidden_fields, **units)


def _layer(source: Source, file: File, side: str, known: dict[str, str]) -> tuple[str, Floats]:
    """Kind of a layer, and its parameters (site, parameter); Potts (site, state, parameter)."""
    name = file.text(f"{side}_type")
    if name not in known:
        expected = f"one of {', '.join(known)}"
        raise source.refusal(f"{side} units of type {name[:40]!r}", expected, "meltpoint has no such units")
    parameters = file.array(f"{side}_par").astype(np.float64)
    wanted = 2 if name == "Gaussian" else 1
    if parameters.ndim < 2 or parameters.shape[-1] != wanted:
        raise ValueError(f"{side}_par of shape {parameters.shape}")
    return known[name], parameters.reshape(-1, *parameters.shape[-2 if known[name] == "potts" else -1 :])


def _unstandardized(
    file: File, weights: Floats, fields: Floats, hidden_fields: Floats
) -> tuple[Floats, Floats, Floats]:
    """Weights and fields of the same RBM without offsets and scales."""
    offset_v, scale_v = (file.array(name).reshape(fields.shape) for name in ("offset_v", "scale_v"))
    offset_h, scale_h = (file.array(name).reshape(-1) for name in ("offset_h", "scale_h"))
    if not (np.abs(scale_v) > 0).all() or not (np.abs(scale_h) > 0).all():
        raise ValueError("a scale of 0")
    weights = weights / scale_v[..., None] / scale_h
    axes = list(range(fields.ndim))
    return weights, fields - weights @ offset_h, hidden_fields - np.tensordot(offset_v, weights, (axes, axes))


JULIA = Format("HDF5 file of RestrictedBoltzmannMachines.jl", (".h5",), _is_julia, model=_julia)
RBMS = Format("HDF5 file of rbms", (".h5",), _is_rbms, ("update",), _rbms)
