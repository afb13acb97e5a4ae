"""Models from arrays by the names that people give them: W, b, c; weights, visible_bias, hidden_bias; J, h; and the
like.

A bias belongs to the side that its name says; the axes of the weights follow from the lengths of the biases,
and asked for where they are equal. Arrays besides the parameters are refused: they may belong to the model. Where the
caller names all parameters, those that cannot (a history of the loss, momenta) are ignored.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meltpoint.errors import InputError
from meltpoint.formats import build
from meltpoint.formats.format import Options, missing_option, refuse
from meltpoint.formats.source import Source
from meltpoint.models import Model

OPTIONS = frozenset(
    {"orientation", "visible", "hidden", "weights", "visible_bias", "hidden_bias", "units", "gauge"}
)

WEIGHTS = (
    *("weights", "weight", "w", "weight_matrix", "weightmatrix", "vishid", "components_", "kernel"),
    "w_vh",
)
VISIBLE = (
    *("visible_bias", "visible_biases", "vbias", "v_bias", "v_b", "b_v", "bv", "vb", "bias_v"),
    *("bias_visible", "visbias", "visbiases", "vis_bias", "bvis", "b_vis", "intercept_visible_", "v"),
)
HIDDEN = (
    *("hidden_bias", "hidden_biases", "hbias", "h_bias", "h_b", "b_h", "bh", "hb", "bias_h", "bias_hidden"),
    *("hidbias", "hidbiases", "hid_bias", "bhid", "b_hid", "intercept_hidden_", "h"),
    "bias",  # of a linear layer, which holds the weights and the hidden biases
)
_LETTERS = {frozenset("bc"): ("b", "c"), frozenset("ab"): ("a", "b")}
"""Visible and hidden bias where they have one letter: E = -b·v - c·h (Bengio), E = -a·v - b·h (Hinton)."""

_FIXED = {"vishid": "visible-hidden", "components_": "hidden-visible"}
"""Weights whose axes are known from their name."""

_COUPLINGS, _FIELDS = ("j", "couplings", "coupling_matrix"), ("h", "fields", "bias")


def model(
    source: Source, arrays: Mapping[str, NDArray[Any]], options: Options, *, complete: bool = False
) -> Model:
    """The model that the named arrays are the parameters of; if they are `complete`, none may be ignored."""
    if not arrays:
        raise InputError(
            found=f"{source.name}, without an array of numbers",
            expected="the parameters of a model",
            remedy="check how it was saved",
        )
    given = {
        key: getattr(options, key)
        for key in ("weights", "visible_bias", "hidden_bias")
        if getattr(options, key) is not None
    }
    short = _short_names(arrays)
    graph = [next((short[name] for name in names if name in short), None) for names in (_COUPLINGS, _FIELDS)]
    if not given and graph[0] is not None and graph[1] is not None and len(arrays) == 2:
        return _graph(source, arrays[graph[0]], arrays[graph[1]], options)
    refuse(options, ("units", "gauge"), f"the RBM in {source.name}, whose units are visible= and hidden=")
    names = _choose(source, arrays, short, given, complete)
    weights, visible_bias, hidden_bias = (np.asarray(arrays[name]) for name in names)
    for name, array in zip(names, (weights, visible_bias, hidden_bias), strict=True):
        if array.dtype.kind not in "biuf":
            raise ValueError(f"{name!r} has values of type {array.dtype}")
    hidden_bias = hidden_bias.reshape(-1)
    if weights.ndim == 3:
        if weights.shape != (*visible_bias.shape, hidden_bias.size):
            raise InputError(
                found=f"weights {names[0]} of shape {weights.shape}, visible bias {visible_bias.shape} and "
                f"{hidden_bias.size} hidden biases in {source.name}",
                expected="(site, state, hidden), (site, state) and (hidden,)",
                remedy="transpose the arrays, and save them again",
            )
    else:
        visible_bias = visible_bias.reshape(-1)
        weights = _oriented(source, names[0], weights, visible_bias.size, hidden_bias.size, options)
    units = {key: value for key in ("visible", "hidden") if (value := getattr(options, key)) is not None}
    return build.rbm(source, weights, visible_bias, hidden_bias, **units)


def _short_names(arrays: Mapping[str, NDArray[Any]]) -> dict[str, str]:
    """Full name by the last part of it in small letters, as far as that is unique: rbm.W and params/W are w."""
    short: dict[str, list[str]] = {}
    for name in arrays:
        short.setdefault(name.replace("/", ".").rpartition(".")[2].lower(), []).append(name)
    return {last: names[0] for last, names in short.items() if len(names) == 1}


def _choose(
    source: Source,
    arrays: Mapping[str, NDArray[Any]],
    short: dict[str, str],
    given: dict[str, str],
    complete: bool,
) -> tuple[str, str, str]:
    """Names of the weights, the visible bias and the hidden bias."""
    for name in given.values():
        if name not in arrays:
            raise InputError(
                found=f"no array {name!r} in {source.name}",
                expected=f"one of its arrays: {', '.join(arrays)}",
                remedy="check the name",
            )
    letters = next((pair for both, pair in _LETTERS.items() if both <= set(short)), None)
    known = {
        "weights": next((short[name] for name in WEIGHTS if name in short), None),
        "visible_bias": next((short[name] for name in VISIBLE if name in short), None),
        "hidden_bias": next((short[name] for name in HIDDEN if name in short), None),
    }
    if letters and known["visible_bias"] is None and known["hidden_bias"] is None:
        known |= {"visible_bias": short[letters[0]], "hidden_bias": short[letters[1]]}
    chosen = known | given
    missing = [key for key, name in chosen.items() if name is None]
    if missing:
        raise InputError(
            found=f"no {', '.join(missing)} in {source.name} with the arrays {', '.join(arrays)}",
            expected="weights, visible_bias and hidden_bias (or W, b, c)",
            remedy="name the arrays: weights=…, visible_bias=…, hidden_bias=…; or are model and data swapped?",
        )
    parameters = {key: np.shape(arrays[name]) for key, name in chosen.items() if name is not None}
    own = {*parameters.values(), parameters["weights"][::-1]}
    besides = {name: np.shape(array) for name, array in arrays.items() if name not in chosen.values()}
    if complete:  # a counter is not a parameter
        besides = {n: s for n, s in besides.items() if s not in ((), (1,)) or arrays[n].dtype.kind == "f"}
    else:
        besides = {n: s for n, s in besides.items() if arrays[n].size > 1}
        if len(given) == len(chosen):
            sizes = set(parameters["weights"]) - {1}
            besides = {n: s for n, s in besides.items() if sizes & set(s) and s not in own}
    if besides:
        raise InputError(
            found=f"{', '.join(f'{name} {shape}' for name, shape in besides.items())} besides the parameters of an "
            f"RBM in {source.name} with the arrays {', '.join(arrays)}",
            expected="weights, visible_bias and hidden_bias alone",
            remedy=_what_to_do(
                {name: shape for name, shape in besides.items() if shape not in own}, parameters
            ),
        )
    return chosen["weights"], chosen["visible_bias"], chosen["hidden_bias"]  # pyright: ignore


def _what_to_do(besides: Mapping[str, tuple[int, ...]], parameters: Mapping[str, tuple[int, ...]]) -> str:
    """What to do with a model that has more parameters than an RBM, by their shapes."""
    visible, hidden = (int(np.prod(parameters[f"{side}_bias"])) for side in ("visible", "hidden"))
    for name, shape in besides.items():
        if len(shape) > 3 or len(parameters["weights"]) > 3:
            return "unroll a convolution into weights (visible, hidden), or see docs/your-model.md"
        if shape in ((visible, visible), (hidden, hidden)):
            return (
                f"if {name} couples units of one layer (a semi-restricted RBM), make a graph with hidden sites: "
                "mp.Ising(couplings, fields, units='bernoulli', hidden=…); if it is a second layer: mp.DBM or mp.DBN"
            )
        if len(shape) == 2 and {visible, hidden} & set(shape):
            return (
                f"if {name} weighs a condition, fold it into the biases: mp.RBM(W, b + condition @ A, "
                "c + condition @ B); if it is a second layer: mp.DBM or mp.DBN"
            )
    return (
        "if they belong to the model, docs/your-model.md says what to do; if not, name the arrays (weights=…, "
        "visible_bias=…, hidden_bias=…), of a module pass a dict of the three"
    )


def _oriented(
    source: Source, name: str, weights: NDArray[Any], visible: int, hidden: int, options: Options
) -> NDArray[Any]:
    """Weights (visible, hidden)."""
    orientation = options.orientation
    if weights.shape == (visible, hidden) != (hidden, visible):
        fitting = "visible-hidden"
    elif weights.shape == (hidden, visible) != (visible, hidden):
        fitting = "hidden-visible"
    elif weights.shape == (visible, hidden):
        fitting = orientation or _FIXED.get(name.replace("/", ".").rpartition(".")[2])
        if fitting is None:
            raise missing_option("orientation", f"square weights {name} {weights.shape} in {source.name}")
    else:
        raise InputError(
            found=f"weights {name} of shape {weights.shape} with {visible} visible and {hidden} hidden biases in "
            f"{source.name}",
            expected=f"({visible}, {hidden}) or ({hidden}, {visible})",
            remedy="name the arrays: weights=…, visible_bias=…, hidden_bias=…",
        )
    if orientation not in (None, fitting):
        raise InputError(
            found=f"orientation={orientation!r} for weights {weights.shape} with {visible} visible and {hidden} "
            f"hidden biases in {source.name}",
            expected=f"{fitting!r}, the only one that fits",
            remedy="leave it out; are the two biases swapped?",
        )
    return weights if fitting == "visible-hidden" else weights.T


def _graph(source: Source, couplings: NDArray[Any], fields: NDArray[Any], options: Options) -> Model:
    """An Ising model from J (i, j) and h (i,), a Potts model from J (i, j, a, b) or (i, a, j, b) and h (i, a)."""
    n = len(fields) if fields.ndim else 0
    if fields.ndim == 1 and couplings.shape == (n, n):
        units = options.require("units", f"couplings and fields of {n} units in {source.name}")
        i, j = np.triu_indices(n, 1)
        return build.ising(source, n, (i, j, _once(source, couplings)[i, j]), fields, units)
    if fields.ndim == 2 and couplings.ndim == 4:
        q = fields.shape[1]
        tables = (
            couplings.transpose(0, 2, 1, 3) if couplings.shape == (n, q, n, q) != (n, n, q, q) else couplings
        )
        if tables.shape == (n, n, q, q):
            pairs = {(i, j): np.asarray(tables[i, j], float) for i in range(n) for j in range(i + 1, n)}
            return build.potts(source, pairs, fields, options)
    raise InputError(
        found=f"couplings of shape {couplings.shape} and fields of shape {fields.shape} in {source.name}",
        expected="(n, n) and (n,), or (sites, sites, states, states) and (sites, states)",
        remedy="transpose the arrays, and save them again",
    )


def _once(source: Source, couplings: NDArray[Any]) -> NDArray[Any]:
    """The coupling of every pair above the diagonal, from a symmetric or a triangular matrix."""
    upper, lower = np.triu(couplings, 1), np.tril(couplings, -1)
    if np.diag(couplings).any() or not (np.array_equal(upper, lower.T) or not upper.any() or not lower.any()):
        raise InputError(
            found=f"couplings in {source.name} that are neither symmetric nor triangular, or have a diagonal",
            expected="the coupling of every pair once or in both places, and zeros on the diagonal",
            remedy="add the two triangles, and the diagonal to the fields (0 and 1) or leave it out (-1 and +1)",
        )
    return upper if upper.any() else lower.T
