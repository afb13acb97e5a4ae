"""The backend of graphs: sites with a few states each, coupled by pairs or by larger factors, in any number of blocks.

Kernels work with whole numbers of steps: the path they run leads to a model whose fields and couplings are rounded to
multiples of a scale. Steps are 2**-23 of the largest input (2**-51 in float64), and between the ends of the path 2**-15
where tables would otherwise leave the cache. Wherever the chains change to other steps, and at both ends of every
segment, the weight takes the factor between the two paths at that beta, in float64: no rounding is left in it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Generic

import numpy as np

from meltpoint.annealing.blocks import Segment
from meltpoint.annealing.field import BlockPath
from meltpoint.annealing.path import Path
from meltpoint.annealing.transitions import BlockGibbs
from meltpoint.backends.backend import PreparedPath, Tile, run_without_chains
from meltpoint.backends.numba.graph_forms import Chains, Form, Forms, bit_forms, table_forms
from meltpoint.backends.numba.kernels.chains import CHAINS, n_groups
from meltpoint.backends.numba.precision import Precision, PrecisionSpan, check_precision, cut_at_model
from meltpoint.kernels.streams import LANES
from meltpoint.layers.unit import Floats
from meltpoint.models.binary_field import BinaryField
from meltpoint.models.factor_field import FactorField

_CALL_WORK = 200_000_000  # updates of sites with two neighbours per kernel call: a fraction of a second
_LEAST_WORK = 4_000_000  # some milliseconds: what surrounds a call must not be felt
_MOST_STATES = 256  # of which a byte holds one


class GraphBackend:
    """Runs paths to graphs."""

    name = "graph"

    def supports(self, path: Path) -> bool:
        """Block Gibbs sweeps to a graph of pairs of bits, or of factors with few states for each site."""
        if type(path) is not BlockPath or not isinstance(path.transition, BlockGibbs):
            return False
        tables = path.target.form(FactorField)
        if tables is not None:
            return tables.cardinalities.max() <= _MOST_STATES
        return path.target.form(BinaryField) is not None

    def prepare(self, path: BlockPath, precision: Precision) -> PreparedPath:
        check_precision(precision)
        graph, factors = path.target.form(BinaryField), path.target.form(FactorField)
        if graph is not None:
            bits = bit_forms(graph, path, precision)
            return GraphPath(path, bits, _constant(path, bits))
        assert factors is not None, "supports has found one"
        tables = table_forms(factors, path, precision)
        return GraphPath(path, tables, _constant(path, tables))


@dataclass(frozen=True, eq=False)
class GraphPath(Generic[Form]):
    """A path in the kernels' layout, and what log f_1 - log f_0 has beyond it in any state."""

    path: BlockPath
    forms: Forms[Form]
    constant: float

    def compile(self) -> None:
        """Compile what it needs, or load it from a cache."""
        run_without_chains(self)

    def advance(self, tile: Tile, segments: Sequence[Segment], steps: int) -> Iterator[None]:
        chains = self.forms.start(tile.state, tile.streams.generators())
        n_chains = len(tile.state)
        work = self.forms.work * CHAINS * max(1, n_groups(n_chains))
        steps = max(1, min(max(steps, _LEAST_WORK // work), _CALL_WORK // work))
        cumulative = np.empty_like(tile.cumulative_log_weights)
        current = None
        for k, segment in enumerate(segments):
            for span in self._spans(segment.betas):
                graph = self.forms.fine if span.exact or self.forms.coarse is None else self.forms.coarse
                _change(chains, span.betas[0], current, graph)
                current = graph
                for low in range(0, span.betas.size - 1, steps):
                    betas = np.ascontiguousarray(span.betas[low : low + steps + 1])
                    chains.run(graph, segment, betas)
                    tile.count(betas.size - 1)
                    yield
            _change(chains, segment.betas[-1], current, None)
            current = None
            chains.log_weights += (segment.betas[-1] - segment.betas[0]) * self.constant
            cumulative[:, k] = chains.log_weights[:n_chains]
        tile.finish(chains.state(), cumulative)

    def _spans(self, betas: Floats) -> list[PrecisionSpan]:
        """Betas cut by the steps they are run in."""
        return [PrecisionSpan(betas, True)] if self.forms.coarse is None else cut_at_model(betas)


def _change(chains: Chains[Form], beta: float, current: Form | None, graph: Form | None) -> None:
    """Change to another form of the graph where the chains are; None is the exact one."""
    if graph is current:
        return
    if beta != 0:  # where couplings count for nothing
        if current is not None:
            chains.log_weights += chains.rounding_gap(beta, current)
        if graph is not None:
            chains.log_weights -= chains.rounding_gap(beta, graph)
    if graph is not None:
        chains.enter(graph)


def _constant(path: BlockPath, forms: Forms[Form]) -> float:
    """What log f_1 - log f_0 has beyond the sum over sites and factors, in any state."""
    zeros = np.zeros((1, path.target.n_state), path.target.dtype)
    chains = forms.start(zeros, np.zeros((1, 4, LANES), np.uint32))
    found = chains.log_f(1.0)[0] - chains.log_f(0.0)[0]
    return float(path.log_f(1.0, zeros)[0] - path.log_f(0.0, zeros)[0] - found)
