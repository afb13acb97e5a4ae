"""Ising models, Potts models and factor graphs from objects of pgmpy and NetworkX."""

from collections.abc import Hashable
from typing import Any

import numpy as np

from meltpoint import models
from meltpoint.errors import InputError
from meltpoint.formats import build
from meltpoint.formats.format import Options
from meltpoint.formats.source import source_of_object
from meltpoint.models.foreign import as_array
from meltpoint.models.model import Model
from meltpoint.statistics.elementary import log


def from_pgmpy(model: Any, _: Options) -> Model:  # noqa: ANN401
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
