"""An RBM from weights and two biases that are known by the names people give them."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meltpoint.errors import InputError
from meltpoint.models.foreign import as_array
from meltpoint.models.model import Model
from meltpoint.models.rbm import RBM

ORIENTATIONS = ("visible-hidden", "hidden-visible")

_WEIGHTS = {
    "w",
    "weight",
    "weights",
    "vishid",
    "weight_matrix",
    "weightmatrix",
    "components_",
    "kernel",
    "w_vh",
}
_VISIBLE = {
    *("v_bias", "vbias", "v", "a", "bv", "b_v", "vb", "v_b", "bias_v", "visible_bias", "visible_biases"),
    *("visbiases", "visbias", "bvis", "b_vis", "visible", "intercept_visible_", "bias_visible", "vis_bias"),
}
_HIDDEN = {
    *("h_bias", "hbias", "h", "c", "bh", "b_h", "hb", "h_b", "bias_h", "hidden_bias", "hidden_biases"),
    *("hidbiases", "hidbias", "bhid", "b_hid", "hidden", "intercept_hidden_", "bias_hidden", "hid_bias"),
}


def rbm_of_named(
    parameters: Mapping[str, Any],
    orientation: str | None = None,
    visible: str | None = None,
    hidden: str | None = None,
) -> Model:
    """The RBM with these parameters, whose names and shapes say which is which.

    Weights are turned by the lengths of the biases. Where both are equal the axes are asked for.

    Parameters
    ----------
    parameters
        Arrays or tensors by name, such as W, v_bias and h_bias; "rbm.W" counts as W.
    orientation
        "visible-hidden" or "hidden-visible", the axes of the weights.
    visible, hidden
        Kinds of units, "bernoulli" by default.

    >>> rbm_of_named({"W": [[1.0, 0.5, 2.0]], "v_bias": [0, 0, 0], "h_bias": [1]})
    RBM 3-1
    """
    weights, visible_bias, hidden_bias = _three(parameters)
    units = {"visible": visible or "bernoulli", "hidden": hidden or "bernoulli"}
    n_visible, n_hidden = visible_bias.size, hidden_bias.size
    fits = {(n_visible, n_hidden): "visible-hidden", (n_hidden, n_visible): "hidden-visible"}
    if orientation is not None and orientation not in ORIENTATIONS:
        raise InputError(
            found=f"orientation={orientation!r}",
            expected=" or ".join(map(repr, ORIENTATIONS)),
            remedy="it names the axes of the weights in their order",
        )
    if weights.ndim != 2 or weights.shape not in fits:
        raise InputError(
            found=f"weights of shape {weights.shape} with {n_visible} visible and {n_hidden} hidden biases",
            expected=f"({n_visible}, {n_hidden}) or ({n_hidden}, {n_visible})",
            remedy="do they belong to one RBM of one layer of hidden units?",
        )
    if n_visible == n_hidden and orientation is None:
        raise InputError(
            found=f"square weights, {n_visible} visible and {n_hidden} hidden units, and no orientation",
            expected="orientation='visible-hidden' or 'hidden-visible'",
            remedy="hidden inputs are v @ W in the first case and W @ v, or linear(v, W), in the second",
        )
    if n_visible != n_hidden:
        told, orientation = orientation, fits[weights.shape]
        if told not in (None, orientation):
            raise InputError(
                found=f"orientation={told!r} for weights of shape {weights.shape}",
                expected=f"{orientation!r}, by the biases' lengths {n_visible} and {n_hidden}",
                remedy="leave it away",
            )
    return RBM(weights if orientation == "visible-hidden" else weights.T, visible_bias, hidden_bias, **units)


def _three(parameters: Mapping[str, Any]) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Weights, visible and hidden biases; others than these are refused."""
    arrays = {
        str(name): as_array(value, str(name))
        for name, value in parameters.items()
        if str(name).rpartition(".")[2] != "num_batches_tracked"
    }
    by_role: dict[str, list[str]] = {"weights": [], "visible": [], "hidden": []}
    for name in arrays:
        role = _role(name, arrays)
        if role is None:
            raise _not_understood(arrays, f"{name}, which no RBM has")
        by_role[role].append(name)
    if max(map(len, by_role.values())) > 1:
        raise InputError(
            found=f"parameters of several layers: {', '.join(arrays)}",
            expected="weights, visible biases and hidden biases of one RBM",
            remedy="pass the part that is one RBM, or make a meltpoint.DBM or DBN from the layers",
        )
    missing = [role for role, names in by_role.items() if not names]
    if missing:
        raise _not_understood(arrays, f"no {' and no '.join(missing)}")
    weights, visible, hidden = (arrays[names[0]] for names in by_role.values())
    return _squeezed(weights, 2), _squeezed(visible, 1), _squeezed(hidden, 1)


def _role(name: str, arrays: Mapping[str, NDArray[Any]]) -> str | None:
    """What a parameter of this name is, among all of them."""
    last = name.rpartition(".")[2].lower()
    names = {other.rpartition(".")[2].lower() for other in arrays}
    if last in _WEIGHTS:
        return "weights"
    # b is the hidden bias beside a, and the visible one beside c.
    if last == "b":
        return "visible" if "c" in names and "a" not in names else "hidden"
    # A linear layer holds the weights and the hidden biases.
    if last == "bias":
        return "hidden"
    return "visible" if last in _VISIBLE else "hidden" if last in _HIDDEN else None


def _squeezed(array: NDArray[Any], ndim: int) -> NDArray[Any]:
    """Without axes of length 1 that biases of shape (1, n) have."""
    return array.reshape(-1) if ndim == 1 and array.ndim == 2 and 1 in array.shape else np.asarray(array)


def _not_understood(arrays: Mapping[str, NDArray[Any]], found: str) -> InputError:
    shapes = ", ".join(f"{name} {array.shape}" for name, array in list(arrays.items())[:8])
    return InputError(
        found=f"{found}, in the parameters {shapes or '(none)'}",
        expected="weights with visible and hidden biases, such as W, v_bias and h_bias",
        remedy="rename them, or make the model: meltpoint.RBM(weights, visible_bias, hidden_bias)",
    )
