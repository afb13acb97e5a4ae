"""Ising models, Potts models and factor graphs from objects of dimod, pgmpy and NetworkX."""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meltpoint import models
from meltpoint.errors import InputError
from meltpoint.formats.dimod import UNITS
from meltpoint.formats.format import Options
from meltpoint.models.foreign import as_array
from meltpoint.models.model import Model
from meltpoint.statistics.elementary import log


def from_dimod(model: Any, options: Options) -> Model:  # noqa: ANN401
    """The Ising model with p ~ exp(-beta E) of a binary quadratic model; sites in the order of its variables."""
    beta = options.inverse_temperature(f"a {type(model).__name__}")
    vartype = getattr(model.vartype, "name", str(model.vartype))
    if vartype not in UNITS:
        raise InputError(
            found=f"a model of vartype {vartype}",
            expected="SPIN or BINARY",
            remedy="use a BinaryQuadraticModel",
        )
    variables = list(getattr(model, "variables", model.linear))
    site = _sites(variables)
    fields = np.array([float(model.linear[variable]) for variable in variables])
    pairs = [(site[u], site[v], float(bias)) for (u, v), bias in model.quadratic.items()]
    couplings = _symmetric(pairs, len(variables))
    constant = -beta * float(model.offset)
    return models.Ising(-beta * couplings, -beta * fields, units=UNITS[vartype], constant=constant)


def from_pgmpy(model: Any, _: Options) -> Model:  # noqa: ANN401
    """The factor graph of a Markov network or factor graph; variables in the order of its nodes."""
    factors = list(model.get_factors())
    if not factors:
        raise InputError(
            found=f"a {type(model).__name__} without factors",
            expected="at least one",
            remedy="add its factors",
        )
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
    site = _sites(variables)
    tables = []
    for factor in factors:
        values = as_array(factor.values, "a factor").astype(np.float64)
        scope = tuple(site[variable] for variable in factor.scope())
        with np.errstate(divide="ignore", invalid="ignore"):  # the constructor says what is wrong with zeros
            tables.append((scope, log(values.reshape(tuple(map(int, factor.cardinality))))))
    return models.FactorGraph([cardinality[variable] for variable in variables], tables)


def from_networkx(graph: Any, options: Options) -> Model:  # noqa: ANN401
    """The Ising model (numbers as couplings) or Potts model (tables) of a graph; sites in the order of its nodes."""
    if graph.is_directed() or graph.is_multigraph():
        raise InputError(
            found=f"a {type(graph).__name__}",
            expected="an undirected graph with one edge for each pair",
            remedy="convert it with networkx.Graph(graph), and look at what becomes of double edges",
        )
    coupling, field = options.coupling or "weight", options.field or "bias"
    beta = options.inverse_temperature("a graph", default=1.0)
    nodes = list(graph.nodes)
    edges = [(u, v, attributes) for u, v, attributes in graph.edges(data=True)]
    missing = next(((u, v) for u, v, attributes in edges if coupling not in attributes), None)
    if missing is not None or not nodes:
        known = sorted({str(name) for _, _, attributes in edges for name in attributes})
        raise InputError(
            found=f"edge {missing} without an attribute {coupling!r}" if nodes else "a graph without nodes",
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
    site = _sites(nodes)
    values = {(site[u], site[v]): as_array(attributes[coupling], coupling) for u, v, attributes in edges}
    on_nodes = [graph.nodes[node].get(field) for node in nodes]
    if all(value.ndim == 0 for value in values.values()):
        fields = np.array([0.0 if value is None else float(value) for value in on_nodes])
        pairs = [(i, j, float(value)) for (i, j), value in values.items()]
        return models.Ising(
            beta * _symmetric(pairs, len(nodes)), beta * fields, units=options.units or "spin"
        )
    return _potts(values, on_nodes, beta)


def _potts(tables: Mapping[tuple[int, int], NDArray[Any]], on_nodes: Sequence[Any], beta: float) -> Model:
    """A Potts model of tables (state of i, state of j); a missing field is zero in all states."""
    states: dict[int, int] = {}
    for (i, j), table in tables.items():
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
    return models.Potts({pair: beta * table for pair, table in tables.items()}, fields)


def _sites(variables: Sequence[Any]) -> dict[Any, int]:
    return {variable: k for k, variable in enumerate(variables)}


def _symmetric(pairs: Sequence[tuple[int, int, float]], n: int) -> Any:  # noqa: ANN401
    """A symmetric sparse matrix (n, n) of couplings, each pair given once."""
    from scipy.sparse import coo_array

    i, j, values = (np.array(column) for column in zip(*pairs, strict=True)) if pairs else (np.zeros(0),) * 3
    one_way = coo_array((values, (i.astype(int), j.astype(int))), shape=(n, n)).tocsr()
    return one_way + one_way.T
