"""What models on any graph share: visible and hidden sites, unnormalised probabilities, and how RAISE starts.

Sites are numbered as the user numbers them. A layer of visible sites and perhaps one of hidden sites are what bases and
reports see; where a site lies in a chain's state is known to the layout of the Markov random field alone.
"""

import itertools
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from meltpoint.annealing.blocks import Indices, RaiseStart, Segment, Sparse
from meltpoint.annealing.path import Path
from meltpoint.arguments import Count, Seed
from meltpoint.errors import InputError
from meltpoint.foreign import as_array
from meltpoint.layers import Unit
from meltpoint.layers.unit import Floats, States
from meltpoint.models.clamped import enumerate_hidden, hidden_states, weigh_hidden
from meltpoint.models.factors import Factor, Factors
from meltpoint.models.graph_fields import GraphField, PairField, factor_field, pair_field
from meltpoint.models.layout import Layout, lay_out
from meltpoint.models.log_f import SAMPLES, LogFMethod, block_that_fits, estimate_log_f, exact_log_f
from meltpoint.models.model import Model, Uniforms
from meltpoint.randomness import Purpose, generator
from meltpoint.statistics.elementary import log

if TYPE_CHECKING:
    from meltpoint.models.factor_graph import FactorGraph

_ENUMERATED = 1024  # states of the hidden sites, up to which log f is added up
_MOST_PROBABILITIES = 50_000_000  # most probabilities in memory at once; larger graphs keep states instead


class GraphModel(Model):
    """Sites with states 0, 1, …, some of them hidden, and factors over them."""

    hidden: Indices
    """Hidden sites (hidden unit,), in ascending order."""
    cardinalities: Indices
    """Number of states (site,) of each site."""
    unit: Unit
    """The kind of unit of all sites: that of the largest number of states."""

    def _set_sites(
        self, cardinalities: Indices, unit: Unit, hidden: ArrayLike | Iterable[int] | None
    ) -> None:
        """Set what all graphs have; hidden sites are checked, and given by their numbers or as a mask (site,)."""
        n_sites = len(cardinalities)
        array = np.zeros(0, np.int64) if hidden is None else as_array(hidden, "hidden")
        if array.dtype == np.bool_ and array.shape == (n_sites,):
            array = np.flatnonzero(array)
        whole = array.ndim == 1 and (array.size == 0 or array.dtype.kind in "iu")
        sites = np.unique(array.astype(np.int64)) if whole else array
        inside = whole and (sites.size == 0 or (sites[0] >= 0 and sites[-1] < n_sites))
        if not inside or sites.size != array.size:
            raise InputError(
                found=f"hidden={hidden!r}",
                expected=f"different numbers of sites from 0 to {n_sites - 1}, or {n_sites} true-or-false values",
                remedy="for example hidden=[0, 3]; leave it out if every site is observed",
            )
        if sites.size == n_sites:
            raise InputError(
                found="hidden sites only",
                expected="at least one visible site",
                remedy="leave hidden out for log Z of the model",
            )
        self._set(cardinalities=cardinalities, unit=unit, hidden=sites)

    @property
    @abstractmethod
    def site_factors(self) -> Sequence[Factor]:
        """Factors (sites, log values), whose values add up to log f; one without sites is a constant."""

    @cached_property
    def adjacency(self) -> Sparse:
        """Which sites (site, site) share a factor; the diagonal is empty."""
        pairs = [pair for scope, _ in self.site_factors for pair in itertools.combinations(scope, 2)]
        rows, columns = np.array(pairs, np.int64).reshape(-1, 2).T
        n = len(self.cardinalities)
        upper = scipy.sparse.coo_array((np.ones(len(pairs), np.bool_), (rows, columns)), (n, n)).tocsr()
        return scipy.sparse.csr_array(upper + upper.T)

    @cached_property
    def layout(self) -> Layout:
        hidden = np.zeros(len(self.cardinalities), np.bool_)
        hidden[self.hidden] = True
        return lay_out(self.adjacency, self.cardinalities, hidden)

    @cached_property
    def mrf(self) -> GraphField:  # pyright: ignore[reportIncompatibleMethodOverride]
        """The field that is annealed, for bits if all sites have two states and factors are of order 2."""
        counts = self.cardinalities
        constant = float(sum(table.item() for scope, table in self.site_factors if len(scope) == 0))
        factors = [factor for factor in self.site_factors if len(factor[0])]
        if (counts == 2).all() and all(len(scope) <= 2 for scope, _ in factors):
            fields, couplings, rest = _for_bits(factors, counts.size)
            return pair_field(self.layout, fields, couplings, constant + rest)
        return factor_field(self.layout, counts, factors, constant)

    def as_factors(self) -> Factors:
        numbers, order = self._number.tolist(), np.concatenate([self.visible, self.hidden])
        factors = [
            (tuple(numbers[site] for site in scope), table)
            for scope, table in self.site_factors
            if len(scope)
        ]
        constant = float(sum(table.item() for scope, table in self.site_factors if len(scope) == 0))
        return tuple(self.cardinalities[order].tolist()), factors, constant

    @cached_property
    def visible(self) -> Indices:
        """Visible sites (visible unit,), in ascending order."""
        return np.delete(np.arange(len(self.cardinalities)), self.hidden)

    @property
    def _number(self) -> Indices:
        """The number (site,) of each site where visible ones come first."""
        return np.argsort(np.concatenate([self.visible, self.hidden]))

    @property
    def n_visible(self) -> int:
        return len(self.visible)

    @property
    def support(self) -> Unit:
        return self.unit

    @property
    def layer_sizes(self) -> tuple[int, ...]:
        visible, hidden = len(self.visible), len(self.hidden)
        return (visible, hidden) if hidden else (visible,)

    @property
    def units(self) -> tuple[Unit, ...]:
        return (self.unit,) * len(self.layer_sizes)

    # Data.

    def encode(self, x: ArrayLike, name: str = "x") -> States:
        states = super().encode(x, name)
        most = self.cardinalities[self.visible]
        example, site = np.nonzero(states >= most)
        if len(site):
            raise InputError(
                found=f"{name} with state {states[example[0], site[0]]} of visible site {site[0]}",
                expected=f"states from 0 to {most[site[0]] - 1} there",
                remedy="sites have different numbers of states; are the columns in the order of the sites?",
            )
        return states

    # Unnormalised probabilities.

    @property
    def log_z_ceiling(self) -> float:
        """An upper bound: all states have the largest value of every factor."""
        cardinalities, factors, constant = self.as_factors()
        return float(log(cardinalities).sum() + sum(float(np.max(table)) for _, table in factors) + constant)

    def log_f(self, x: ArrayLike, *, samples: Count = SAMPLES, seed: Seed = 0) -> Floats:
        """Log unnormalised probability (example,) of visible states, hidden sites summed out.

        It is exact without hidden sites, where these are not coupled to each other, and where they have few states;
        otherwise it is estimated, as `log_f_estimate` says.
        """
        states = self.encode(x)
        if self.mrf.n_state > self.n_visible:
            return self.log_f_estimate(x, samples=samples, seed=seed).values
        if len(self.hidden):
            return self.mrf.log_f(states)
        return self.mrf.log_f_of_all(states[:, self.mrf.layout.order]) + self.mrf.log_constant

    def log_f_method(self, samples: int = SAMPLES, seed: int = 0, threads: int = 1) -> LogFMethod:
        """Exact, or by annealing the hidden sites with the visible ones clamped, from independent sites to the model.

        Each example has chains that cost about as much as `samples` importance samples with 25 moves each.
        """
        if self.mrf.n_state <= self.n_visible:
            return super().log_f_method(samples, seed, threads)
        if hidden_states(self.mrf, self.n_visible) <= _ENUMERATED:
            return partial(exact_log_f, log_f=partial(enumerate_hidden, self.mrf))

        def weigh(visible: States, numbers: NDArray[np.integer]) -> tuple[Floats, Floats]:
            generators = [generator(seed, Purpose.LOG_F, number) for number in numbers.tolist()]
            log_weights = weigh_hidden(self.mrf, visible, generators, samples)
            return log_weights, log_weights.mean(axis=1)

        return partial(estimate_log_f, weigh=weigh, block=block_that_fits(self.mrf.n_units, samples))

    def given(self, clamped: Mapping[int, int]) -> "FactorGraph":
        """The factor graph of the other sites, given states of some by site; hidden ones stay hidden.

        >>> from meltpoint.models.ising import Ising
        >>> Ising([[0.0, 0.5], [0.5, 0.0]], [0.0, 0.0]).given({0: 1}).log_f([[0], [1]])
        array([-0.5,  0.5])
        """
        number = dict(enumerate(self._number.tolist()))
        found = super().given({number.get(site, site): state for site, state in clamped.items()})
        visible = sum(site not in clamped for site in self.visible.tolist())
        hidden = range(visible, len(found.cardinalities)) if visible else ()
        return type(found)(found.cardinalities, found.factors, hidden)

    def state_of(self, units: NDArray[Any]) -> NDArray[Any]:
        layout = self.mrf.layout
        return units[:, self._number[layout.order[: layout.n_state]]]

    # Annealing.

    def raise_start(
        self, path: Path, visible: States, betas: Floats, seed: int, keys: NDArray[np.integer]
    ) -> RaiseStart:
        """Where one colour of visible sites is summed out, the other is melted, and the first is given exactly."""
        layout = self.mrf.layout
        if not layout.visible_summed_out:
            return super().raise_start(path, visible, betas, seed, keys)
        units = visible[:, layout.order]
        # log p(kept) + log p(summed out | kept), where the sum over the second colour cancels.
        log_weights = self.mrf.log_f_of_all(units) - path.log_z_base
        melt = Segment(betas[::-1].copy(), reversed_sweeps=True)
        return RaiseStart(units[:, : layout.n_state], [melt], log_weights)

    def generate(self, state: States, generator: np.random.Generator) -> States:
        if not self.mrf.layout.visible_summed_out:
            return super().generate(state, generator)
        return self._draw_summed_out(state, generator)[:, self.mrf.layout.column]

    def visible_means(self, state: States, generator: np.random.Generator) -> NDArray[Any]:
        """Probabilities of visible states (chain, visible site, …) given all other sites, for a base's biases.

        For very large graphs the states themselves, which are smaller.
        """
        probabilities = len(state) * self.n_visible * int(np.prod(self.unit.input_shape, dtype=np.int64))
        if probabilities > _MOST_PROBABILITIES:
            return self.generate(state, generator)
        units = self._draw_summed_out(state, generator)
        means = np.zeros((len(state), len(self.cardinalities), *self.unit.input_shape))
        for block in self.mrf.unit_blocks:
            own = block.unit.mean(self.mrf.inputs(block, units))
            if means.ndim == 2:
                means[:, block.columns] = own
            elif own.ndim == 2:  # two states, written for a bit
                means[:, block.columns] = np.stack([1 - own, own], axis=-1)
            else:
                means[:, block.columns, : own.shape[-1]] = own
        return means[:, self.mrf.layout.column[self.visible]]

    def visible_log_odds(self, state: States, uniforms: Uniforms) -> Floats:
        """Log odds (chain, visible site) of state 1, given a draw of the hidden sites."""
        mrf, coupled = self.mrf, self.adjacency[self.visible][:, self.visible].nnz
        if not isinstance(mrf, PairField) or len(self.hidden) == 0 or coupled:
            return super().visible_log_odds(state, uniforms)
        units = mrf.with_summed_out_drawn(state, uniforms)
        log_odds = np.zeros((len(state), mrf.n_state))
        for block in mrf.state_blocks:
            log_odds[:, block.columns] = mrf.inputs(block, units)
        return log_odds[:, : self.n_visible]

    def by_layer(self, units: States) -> list[States]:
        column = self.mrf.layout.column
        return [units[:, column[sites]] for sites in (self.visible, self.hidden) if len(sites)]

    def base_inputs(self, layers: Sequence[Floats]) -> tuple[Floats, ...]:
        by_site = np.zeros((len(self.cardinalities), *self.unit.input_shape))
        for sites, inputs in zip((self.visible, self.hidden), layers, strict=False):
            by_site[sites] = inputs
        by_column = by_site[self.mrf.layout.order]
        return tuple(
            _inputs_of(by_column[block.columns], self.unit, block.unit) for block in self.mrf.unit_blocks
        )

    def _draw_summed_out(self, state: States, generator: np.random.Generator) -> States:
        return self.mrf.with_summed_out_drawn(state, lambda count: 1 - generator.random((len(state), count)))


def _inputs_of(inputs: Floats, unit: Unit, own: Unit) -> Floats:
    """Inputs of a block's units, whose kind is `own`, from inputs of the model's kind of unit."""
    if unit.bit is not None:
        return unit.bit.scale * inputs
    if own.bit is not None:  # two states with an input each, written for a bit
        return inputs[:, 1] - inputs[:, 0]
    return np.ascontiguousarray(inputs[:, : own.n_states])


def _for_bits(factors: Sequence[Factor], n: int) -> tuple[Floats, Sparse, float]:
    """Fields (site,), couplings (site, site) and a constant of the bits' log f."""
    single = [(scope[0], table) for scope, table in factors if len(scope) == 1]
    double = [(scope, table) for scope, table in factors if len(scope) == 2]
    fields, constant = np.zeros(n), 0.0
    tables = np.array([table for _, table in single]).reshape(-1, 2)
    np.add.at(fields, np.array([i for i, _ in single], np.int64), tables[:, 1] - tables[:, 0])
    constant += float(tables[:, 0].sum())
    sites = np.array([scope for scope, _ in double], np.int64).reshape(-1, 2)
    pairs = np.array([table for _, table in double]).reshape(-1, 2, 2)
    np.add.at(fields, sites[:, 0], pairs[:, 1, 0] - pairs[:, 0, 0])
    np.add.at(fields, sites[:, 1], pairs[:, 0, 1] - pairs[:, 0, 0])
    constant += float(pairs[:, 0, 0].sum())
    coupling = pairs[:, 1, 1] - pairs[:, 1, 0] - pairs[:, 0, 1] + pairs[:, 0, 0]
    upper = scipy.sparse.coo_array((coupling, tuple(sites.T)), (n, n)).tocsr()
    return fields, scipy.sparse.csr_array(upper + upper.T), constant
