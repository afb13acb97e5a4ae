"""Models from arrays by the names that people give them: W, b, c; weights, visible_bias, hidden_bias; J, h; and the
like.

A bias belongs to the side that its name says; the axes of the weights follow from the lengths of the biases,
and are asked for where they are equal. Arrays besides the parameters are refused: they may belong to the model. Where
the caller names all parameters, those that cannot (a history of the loss, momenta) are ignored.
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
from meltpoint.models.potts import Potts

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
_PARAMETERS = {"weights": WEIGHTS, "visible_bias": VISIBLE, "hidden_bias": HIDDEN}
_LETTERS = (("b", "c"), ("a", "b"))
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
    short = _short_names(arrays)
    graph = [short[name] for names in (_COUPLINGS, _FIELDS) for name in names if name in short]
    if len(graph) == len(arrays) == 2 and not options.given(*_PARAMETERS):
        return _graph(source, arrays[graph[0]], arrays[graph[1]], options)
    refuse(options, ("units", "gauge"), f"the RBM in {source.name}, whose units are visible= and hidden=")
    names = _choose(source, arrays, short, options, complete)
    for name in names:
        if arrays[name].dtype.kind not in "biuf":
            raise ValueError(f"{name!r} has values of type {arrays[name].dtype}")
    weights, visible_bias, hidden_bias = (np.asarray(arrays[name]) for name in names)
    hidden_bias = hidden_bias.reshape(-1)
    if weights.ndim != 3:
        visible_bias = visible_bias.reshape(-1)
        weights = _oriented(source, names[0], weights, visible_bias.size, hidden_bias.size, options)
    elif weights.shape != (*visible_bias.shape, hidden_bias.size):
        raise source.refusal(
            f"weights {names[0]} of shape {weights.shape}, visible bias {visible_bias.shape} and "
            f"{hidden_bias.size} hidden biases",
            "(site, state, hidden), (site, state) and (hidden,)",
            "transpose the arrays, and save them again",
        )
    units = options.given("visible", "hidden")
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
    options: Options,
    complete: bool,
) -> tuple[str, str, str]:
    """Names of the weights, the visible bias and the hidden bias."""
    given = options.given(*_PARAMETERS)
    for name in given.values():
        if name not in arrays:
            raise source.refusal(
                f"no array {name!r}", f"one of its arrays: {', '.join(arrays)}", "check the name"
            )
    known = {
        key: next(short[name] for name in names if name in short)
        for key, names in _PARAMETERS.items()
        if any(name in short for name in names)
    }
    letters = next((pair for pair in _LETTERS if {*pair} <= {*short}), None)
    if letters and not {"visible_bias", "hidden_bias"} & {*known}:
        known |= {"visible_bias": short[letters[0]], "hidden_bias": short[letters[1]]}
    chosen: dict[str, str] = known | given
    if missing := [key for key in _PARAMETERS if key not in chosen]:
        raise InputError(
            found=f"no {', '.join(missing)} in {source.name} with the arrays {', '.join(arrays)}",
            expected="weights, visible_bias and hidden_bias (or W, b, c)",
            remedy="name the arrays: weights=…, visible_bias=…, hidden_bias=…; or are model and data swapped?",
        )
    parameters = {key: arrays[name].shape for key, name in chosen.items()}
    own = {*parameters.values(), parameters["weights"][::-1]}
    besides = {name: array.shape for name, array in arrays.items() if name not in chosen.values()}
    if complete:  # a counter is not a parameter
        besides = {n: s for n, s in besides.items() if s not in ((), (1,)) or arrays[n].dtype.kind == "f"}
    else:
        besides = {n: s for n, s in besides.items() if arrays[n].size > 1}
        if len(given) == len(chosen):
            sizes = set(parameters["weights"]) - {1}
            besides = {n: s for n, s in besides.items() if sizes & set(s) and s not in own}
    if besides:
        listed = ", ".join(f"{name} {shape}" for name, shape in besides.items())
        others = {name: shape for name, shape in besides.items() if shape not in own}
        raise InputError(
            found=f"{listed} besides the parameters of an RBM in {source.name} with the arrays {', '.join(arrays)}",
            expected="weights, visible_bias and hidden_bias alone",
            remedy=_what_to_do(others, parameters),
        )
    return chosen["weights"], chosen["visible_bias"], chosen["hidden_bias"]


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
    shapes = {"visible-hidden": (visible, hidden), "hidden-visible": (hidden, visible)}
    fitting = [key for key, shape in shapes.items() if shape == weights.shape]
    biases = f"{visible} visible and {hidden} hidden biases in {source.name}"
    if not fitting:
        raise InputError(
            found=f"weights {name} of shape {weights.shape} with {biases}",
            expected=f"({visible}, {hidden}) or ({hidden}, {visible})",
            remedy="name the arrays: weights=…, visible_bias=…, hidden_bias=…",
        )
    if orientation is None and len(fitting) == 2:
        orientation = _FIXED.get(name.replace("/", ".").rpartition(".")[2])
        if orientation is None:
            raise missing_option("orientation", f"square weights {name} {weights.shape} in {source.name}")
    if orientation is None:
        (orientation,) = fitting
    if orientation not in fitting:
        raise InputError(
            found=f"orientation={orientation!r} for weights {weights.shape} with {biases}",
            expected=f"{fitting[0]!r}, the only one that fits",
            remedy="leave it out; are the two biases swapped?",
        )
    return weights if orientation == "visible-hidden" else weights.T


def _graph(source: Source, couplings: NDArray[Any], fields: NDArray[Any], options: Options) -> Model:
    """An Ising model from J (i, j) and h (i,), a Potts model from J (i, j, a, b) or (i, a, j, b) and h (i, a)."""
    n = len(fields) if fields.ndim else 0
    if fields.ndim == 1 and couplings.shape == (n, n):
        units = options.require("units", f"couplings and fields of {n} units in {source.name}")
        i, j = np.triu_indices(n, 1)
        return build.ising(source, n, (i, j, _once(source, couplings)[i, j]), fields, units)
    if fields.ndim == 2 and couplings.ndim == 4:
        q = fields.shape[1]
        if couplings.shape == (n, q, n, q) != (n, n, q, q):
            couplings = couplings.transpose(0, 2, 1, 3)
        if couplings.shape == (n, n, q, q):
            coupled = (couplings != 0).any(axis=(2, 3))
            if not (np.triu(coupled).any() and np.tril(coupled).any()):
                couplings = couplings + couplings.transpose(1, 0, 3, 2)
            tables = Potts(couplings, fields)  # refuses what is not symmetric
            pairs = dict(zip(map(tuple, tables.pairs.tolist()), tables.couplings, strict=True))
            return build.potts(source, pairs, fields, options)
    raise source.refusal(
        f"couplings of shape {couplings.shape} and fields of shape {fields.shape}",
        "(n, n) and (n,), or (sites, sites, states, states) and (sites, states)",
        "transpose the arrays, and save them again",
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
