"""Models from objects of other libraries, recognised by their attributes: no library is imported for it."""

import os
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from functools import wraps
from inspect import Parameter, signature
from typing import Any

import numpy as np

from meltpoint import models
from meltpoint.arguments import public
from meltpoint.errors import InputError
from meltpoint.foreign import as_array
from meltpoint.formats import build, dimod, named_arrays
from meltpoint.formats.format import Options, Orientation, parse_options, refuse_unused
from meltpoint.formats.own_values import check_own_values
from meltpoint.formats.source import source_of_object
from meltpoint.models.model import Model
from meltpoint.models.model import ModelLike as ModelLike
from meltpoint.statistics.elementary import log

_NAMED = ("orientation", "visible", "hidden", "weights", "visible_bias", "hidden_bias")
"""Options of models whose parameters are known by their names."""


@public
def from_object(
    x: Any,  # noqa: ANN401
    *,
    orientation: str | None = None,
    visible: str | None = None,
    hidden: str | None = None,
    weights: str | None = None,
    visible_bias: str | None = None,
    hidden_bias: str | None = None,
    beta: float | None = None,
    temperature: float | None = None,
    units: str | None = None,
    coupling: str | None = None,
    field: str | None = None,
) -> Model:
    """The model in an object of another library; a model of this library is returned as it is.

    Read are scikit-learn's BernoulliRBM, PyTorch modules and state dicts (any dict of weights and two biases), RBMs of
    rbms and of learnergy, dimod's binary quadratic models and polynomials, QUBO dicts {(i, j): bias}, pgmpy's Markov
    networks and factor graphs, and NetworkX graphs. Sites of a graph are in the order of its variables or nodes.

    What the object says about itself (`free_energy`, `energy`, `log_prob`, …) is compared with log f of the model on
    random states, up to a constant. A difference is refused, and so is a module with further parameters.

    Parameters
    ----------
    x
        The object.
    orientation
        "visible-hidden" or "hidden-visible": the axes of a state dict's weights. Asked for where they are square.
    visible, hidden
        Kinds of units of an RBM in a state dict, "bernoulli" by default.
    weights, visible_bias, hidden_bias
        Names of the parameters of a state dict, where they have unusual ones.
    beta, temperature
        p is proportional to exp(-beta E) = exp(-E / temperature): for a dimod model, which is an energy. In a
        NetworkX graph couplings and fields enter log p with a plus sign, times beta (1). `evaluate`, `log_z` and the
        other functions that take one model take `beta` too.
    units
        "spin" (the default) or "bernoulli": the units of a NetworkX graph.
    coupling, field
        Names of the attributes of a NetworkX graph's edges ("weight") and nodes ("bias").

    >>> from types import SimpleNamespace
    >>> fitted = SimpleNamespace(components_=[[1.0, 0.5]], intercept_hidden_=[0.0], intercept_visible_=[0.0, 0.1])
    >>> from_object(fitted)
    RBM 2-1
    """
    options = parse_options({name: value for name, value in locals().items() if name != "x"})
    for kind in _KINDS:
        if kind.is_one(x):
            refuse_unused(options, kind.options, kind.name)
            model = kind.build(x, options)
            # An object's own energy does not know the beta that was sampled at.
            scaled = options.beta is not None or options.temperature is not None
            plain = replace(options, beta=1.0, temperature=None)
            check_own_values(x, kind.build(x, plain) if scaled else model)
            return model
    raise _unknown(x)


def takes_models(function: Callable[..., Any], also: tuple[type, ...] = ()) -> Callable[..., Any]:
    """A function whose argument `model` may be an object of another library, or of the types `also`.

    It takes `beta` besides, for objects that are energies.
    """
    own = signature(function)
    place, is_optional = list(own.parameters).index("model"), own.parameters["model"].default is None

    @wraps(function)
    def with_model(*arguments: Any, beta: float | None = None, **options: Any) -> Any:  # noqa: ANN401
        def as_model(x: Any) -> Any:  # noqa: ANN401
            as_it_is = (x is None and is_optional) or (beta is None and isinstance(x, also))
            return x if as_it_is else from_object(x, beta=beta)

        given = [as_model(x) if k == place else x for k, x in enumerate(arguments)]
        if "model" in options:
            options["model"] = as_model(options["model"])
        return function(*given, **options)

    rows = list(own.parameters.values())
    at = len(rows) - (bool(rows) and rows[-1].kind is Parameter.VAR_KEYWORD)
    rows.insert(at, Parameter("beta", Parameter.KEYWORD_ONLY, default=None, annotation="float | None"))
    with_model.__signature__ = own.replace(parameters=rows)  # pyright: ignore[reportAttributeAccessIssue]
    with_model.__module__ = "meltpoint"  # where a pickle finds it
    return with_model


def _has(*names: str) -> Callable[[Any], bool]:
    return lambda x: all(hasattr(x, name) for name in names)


def _is_module(x: Any) -> bool:  # noqa: ANN401
    return callable(getattr(x, "state_dict", None)) and callable(getattr(x, "named_parameters", None))


def _is_learnergy(x: Any) -> bool:  # noqa: ANN401
    return _is_module(x) and _has("W", "a", "b", "T")(x) and type(x).__module__.startswith("learnergy.")


def _from_arrays(x: Any, options: Options, *, complete: bool = False) -> Model:  # noqa: ANN401
    arrays = {str(name): as_array(value, str(name)) for name, value in x.items()}
    return named_arrays.model(source_of_object(), arrays, options, complete=complete)


def _from_attributes(orientation: Orientation, *names: str) -> Callable[[Any, Options], Model]:
    """Reads an RBM from three attributes, whose weights have their axes in this order whatever their sizes."""
    return lambda x, _: _from_arrays(
        {name: getattr(x, name) for name in names}, Options(orientation=orientation)
    )


def _from_learnergy(x: Any, options: Options) -> Model:  # noqa: ANN401
    """W is (visible, hidden); only Bernoulli units have a density that learnergy's own sampler agrees with."""
    name, temperature = type(x).__name__, float(x.T)
    if name not in ("RBM", "DropoutRBM", "EDropoutRBM"):
        raise InputError(
            found=f"learnergy's {name}",
            expected="its RBM, DropoutRBM or EDropoutRBM, whose units are 0 and 1",
            remedy="make the model from its parameters, meltpoint.RBM(weights, visible_bias, hidden_bias, visible=…)",
        )
    # learnergy divides by its temperature only where its samplers are asked to; its energy never does.
    if options.temperature is None and options.beta is None and temperature != 1.0:
        raise InputError(
            found=f"learnergy's {name} with temperature {temperature:g}, and neither temperature nor beta",
            expected=f"temperature={temperature:g}, or temperature=1 for its energy as it is",
            remedy="choose what its samples were drawn with",
        )
    beta = options.inverse_temperature(name, default=1.0)
    parameters = {key: beta * as_array(getattr(x, key), key) for key in ("W", "a", "b")}
    return _from_arrays(parameters, Options(orientation="visible-hidden"))


def _from_module(x: Any, options: Options) -> Model:  # noqa: ANN401
    buffers = dict(x.named_buffers()) if hasattr(x, "named_buffers") else {}  # also those that are not saved
    return _from_arrays({**buffers, **x.state_dict()}, options, complete=True)


def _from_pgmpy(model: Any, _: Options) -> Model:  # noqa: ANN401
    """The factor graph of a Markov network or factor graph; variables in the order of its nodes."""
    factors = list(model.get_factors())
    if not factors:
        found = f"a {type(model).__name__} without factors"
        raise InputError(found=found, expected="at least one", remedy="add its factors")
    cardinality: dict[Hashable, int] = {}
    for factor in factors:
        cardinality |= dict(zip(factor.scope(), map(int, factor.cardinality), strict=True))
    # The nodes of a factor graph are variables and factors, or names of factors.
    variables = [node for node in model.nodes() if node in cardinality]
    lonely = [] if hasattr(model, "get_factor_nodes") else [n for n in model.nodes() if n not in cardinality]
    if lonely:
        raise InputError(
            found=f"variables without a factor: {', '.join(map(str, lonely[:5]))}",
            expected="a factor for each variable, which says how many states it has",
            remedy="add a factor of ones, or remove them",
        )
    site = {variable: k for k, variable in enumerate(variables)}
    tables = []
    for factor in factors:
        values = as_array(factor.values, "a factor").astype(np.float64)
        scope = tuple(site[variable] for variable in factor.scope())
        with np.errstate(divide="ignore", invalid="ignore"):  # the constructor says what is wrong with zeros
            tables.append((scope, log(values.reshape(tuple(map(int, factor.cardinality))))))
    return models.FactorGraph([cardinality[variable] for variable in variables], tables)


def _from_networkx(graph: Any, options: Options) -> Model:  # noqa: ANN401
    """The Ising model (numbers as couplings) or Potts model (tables) of a graph; sites in the order of its nodes."""
    if graph.is_directed() or graph.is_multigraph():
        raise InputError(
            found=f"a {type(graph).__name__}",
            expected="an undirected graph with one edge for each pair",
            remedy="convert it with networkx.Graph(graph), and look at what becomes of double edges",
        )
    coupling, field = options.coupling or "weight", options.field or "bias"
    beta = options.inverse_temperature("a graph", default=1.0)
    site = {node: k for k, node in enumerate(graph.nodes)}
    edges = list(graph.edges(data=True))
    missing = next(((u, v) for u, v, attributes in edges if coupling not in attributes), None)
    if missing is not None or not site:
        known = sorted({str(name) for _, _, attributes in edges for name in attributes})
        raise InputError(
            found=f"edge {missing} without an attribute {coupling!r}" if site else "a graph without nodes",
            expected=f"a coupling on every edge; there are {', '.join(known) or 'no attributes'}",
            remedy="name the attribute: coupling=…",
        )
    loop = next((u for u, v, _ in edges if u == v), None)
    if loop is not None:
        raise InputError(
            found=f"an edge of {loop!r} with itself",
            expected="edges between different nodes",
            remedy="remove it, or add it to the node's field",
        )
    pairs = {(site[u], site[v]): as_array(given[coupling], coupling) for u, v, given in edges}
    on_nodes = [graph.nodes[node].get(field) for node in site]
    if all(value.ndim == 0 for value in pairs.values()):
        i, j = np.array(list(pairs), np.int64).reshape(-1, 2).T
        values = np.array([beta * float(value) for value in pairs.values()])
        fields = np.array([0.0 if value is None else beta * float(value) for value in on_nodes])
        return build.ising(source_of_object(), len(site), (i, j, values), fields, options.units or "spin")
    states: dict[int, int] = {}
    for (i, j), table in pairs.items():
        if table.ndim != 2:
            raise InputError(
                found=f"a coupling of shape {table.shape}",
                expected="(states of one node, states of the other) on every edge, or a number on every edge",
                remedy="write single numbers as tables",
            )
        states |= {i: table.shape[0], j: table.shape[1]}
    fields = []
    for k, value in enumerate(on_nodes):
        if value is None and k not in states:
            raise InputError(
                found=f"node {k} without an edge and without a field",
                expected="a field, which says how many states it has",
                remedy="add one, or remove the node",
            )
        fields.append(np.zeros(states[k]) if value is None else beta * as_array(value, "a field"))
    return models.Potts({pair: beta * table for pair, table in pairs.items()}, fields)


@dataclass(frozen=True)
class _Kind:
    """A kind of object: its name in messages, how it is recognised and read, and the options that it takes."""

    name: str
    is_one: Callable[[Any], bool]
    build: Callable[[Any, Options], Model]
    options: tuple[str, ...] = ()


_SCIKIT_LEARN = ("components_", "intercept_visible_", "intercept_hidden_")
_RBMS = ("weight_matrix", "vbias", "hbias")
_DIMOD = _has("linear", "quadratic", "offset", "vartype")
_NETWORKX = _has("nodes", "edges", "adj", "is_directed", "is_multigraph")
_BETA = ("beta", "temperature")

_KINDS = (
    _Kind("a model of meltpoint", lambda x: isinstance(x, Model), lambda x, _: x),
    _Kind(
        "scikit-learn's BernoulliRBM",
        _has(*_SCIKIT_LEARN),
        _from_attributes("hidden-visible", *_SCIKIT_LEARN),
    ),
    _Kind("an RBM of rbms", _has(*_RBMS), _from_attributes("visible-hidden", *_RBMS)),
    _Kind("an RBM of learnergy", _is_learnergy, _from_learnergy, _BETA),
    _Kind("a PyTorch module", _is_module, _from_module, _NAMED),
    _Kind("a polynomial of dimod", _has("keys", "vartype", "degree"), dimod.from_polynomial, _BETA),
    _Kind("a QUBO dict", dimod.is_qubo, dimod.from_qubo, _BETA),
    _Kind("a dict of parameters", _has("keys", "items"), _from_arrays, _NAMED),
    _Kind("a dimod model", _DIMOD, dimod.from_object, _BETA),
    _Kind("a pgmpy model", _has("get_factors", "nodes"), _from_pgmpy),
    _Kind("a NetworkX graph", _NETWORKX, _from_networkx, (*_BETA, "units", "coupling", "field")),
)


def _unknown(x: Any) -> InputError:  # noqa: ANN401
    """The error for an object that is no model, with what to do for the likely ones."""
    name = type(x).__name__
    found, expected, remedy = (
        f"a model of type {name}",
        "a model, such as an RBM or an Ising model, or an object of another library that from_object reads",
        "make one from its parameters, meltpoint.RBM(weights, visible_bias, hidden_bias), or load it, "
        "meltpoint.load(path)",
    )
    if isinstance(x, str | os.PathLike):
        path = os.fspath(x)
        found, expected = f"a path, {path!r}, in place of a model", "the model itself"
        remedy = f"load it: meltpoint.load({path!r})"
    elif name == "BernoulliRBM":
        found, expected = "a BernoulliRBM that was not fitted", "a fitted one, with components_"
        remedy = "call its fit first"
    elif hasattr(x, "named_steps"):
        found, expected = f"a {name} of several steps", "the RBM alone"
        remedy = f"pass it: pipeline.named_steps[…], one of {', '.join(map(repr, x.named_steps))}"
    elif hasattr(x, "get_cpds"):
        found, expected = f"a {name}, a directed model", "a Markov network"
        remedy = "take its to_markov_model()"
    return InputError(found=found, expected=expected, remedy=remedy)
