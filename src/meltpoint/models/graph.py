"""What models on any graph share: visible and hidden sites, unnormalised probabilities, and how RAISE starts.

Sites are numbered as the user numbers them. A layer of visible sites and perhaps one of hidden sites are what bases and
reports see; where a site lies in a chain's state is known to the layout of the Markov random field alone.
"""

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from meltpoint.annealing.blocks import Indices, RaiseStart, Segment, Sparse
from meltpoint.annealing.path import Path
from meltpoint.errors import InputError, Progress
from meltpoint.layers import Unit
from meltpoint.layers.unit import Bits, Floats
from meltpoint.models.binary_field import BinaryField
from meltpoint.models.clamped import enumerate_hidden, hidden_states, weigh_hidden
from meltpoint.models.factor_field import FactorField
from meltpoint.models.factors import number_visible_first
from meltpoint.models.log_f import SAMPLES, LogF, block_that_fits, estimate_log_f
from meltpoint.models.model import Model, Uniforms
from meltpoint.randomness import Purpose, generator
from meltpoint.statistics.elementary import log

GraphField: TypeAlias = BinaryField | FactorField

LARGEST_Q = 255
"""Largest number of states of a site, which is kept in one byte."""

_ENUMERATED = 1024  # states of the hidden sites, up to which log f is added up
_MOST_PROBABILITIES = 50_000_000  # most probabilities in memory at once; larger graphs keep states instead


class GraphModel(Model):
    """Sites with states 0, 1, …, some of them hidden, and a Markov random field of one kind or the other."""

    hidden: Indices
    """Hidden sites (hidden unit,), in ascending order."""

    @property
    @abstractmethod
    def cardinalities(self) -> Indices:
        """Number of states (site,) of each site."""

    @property
    @abstractmethod
    def adjacency(self) -> Sparse:
        """Which sites (site, site) share a factor; the diagonal is empty."""

    @property
    @abstractmethod
    def unit(self) -> Unit:
        """The kind of unit of all sites: that of the largest number of states."""

    @property
    @abstractmethod
    def mrf(self) -> GraphField:
        """The Markov random field that is annealed, in blocks."""

    @cached_property
    def visible(self) -> Indices:
        """Visible sites (visible unit,), in ascending order."""
        return np.delete(np.arange(len(self.cardinalities)), self.hidden)

    @property
    def n_visible(self) -> int:
        return len(self.visible)

    @property
    def support(self) -> Unit:
        return self.unit

    @property
    def layer_sizes(self) -> tuple[int, ...]:
        """Numbers of visible and of hidden sites."""
        visible, hidden = len(self.visible), len(self.hidden)
        return (visible, hidden) if hidden else (visible,)

    @property
    def units(self) -> tuple[Unit, ...]:
        """The same kind of unit in every layer."""
        return (self.unit,) * len(self.layer_sizes)

    # Data.

    def encode(self, x: ArrayLike, name: str = "x") -> Bits:
        """States (example, visible site) of examples, checked."""
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

    def log_f(self, x: ArrayLike, *, samples: int = SAMPLES, seed: int = 0) -> Floats:
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

    def log_f_part(
        self,
        states: Bits,
        numbers: NDArray[np.integer],
        *,
        samples: int = SAMPLES,
        seed: int = 0,
        threads: int = 1,
        progress: Progress | None = None,
    ) -> LogF:
        """Log f with standard errors: 0 where it is exact.

        Otherwise hidden sites are annealed with the visible ones clamped, from independent sites to the model: each
        example has chains that cost about as much as `samples` importance samples with 25 moves each.
        """
        if self.mrf.n_state <= self.n_visible:
            return super().log_f_part(states, numbers)
        if hidden_states(self.mrf, self.n_visible) <= _ENUMERATED:
            return LogF.exact(enumerate_hidden(self.mrf, states, progress))

        def weigh(visible: Bits, numbers: NDArray[np.integer]) -> tuple[Floats, Floats]:
            generators = [generator(seed, Purpose.LOG_F, number) for number in numbers.tolist()]
            log_weights = weigh_hidden(self.mrf, visible, generators, samples)
            return log_weights, log_weights.mean(axis=1)

        block = block_that_fits(self.mrf.n_units, samples)
        return estimate_log_f(states, numbers, weigh, block=block, progress=progress)

    def given(self, clamped: Mapping[int, int]) -> Model:
        """The factor graph of the other sites, given states of some by site; hidden ones stay hidden.

        >>> from meltpoint.models.ising import Ising
        >>> Ising([[0.0, 0.5], [0.5, 0.0]], [0.0, 0.0]).given({0: 1}).log_f([[0], [1]])
        array([-0.5,  0.5])
        """
        number = number_visible_first(self.visible, self.hidden)
        for site in clamped:
            if not 0 <= site < len(number):
                raise InputError(
                    found=f"site {site} clamped",
                    expected=f"sites 0 to {len(number) - 1}",
                    remedy="sites count from 0",
                )
        visible = sum(1 for site in self.visible.tolist() if site not in clamped)
        free = len(number) - len(clamped)
        hidden = range(visible, free) if visible else ()
        return self._given_by_number({int(number[site]): state for site, state in clamped.items()}, hidden)

    def state_of(self, units: NDArray[Any]) -> NDArray[Any]:
        """The sites of the state in their columns, from all sites (chain, site), visible ones first."""
        layout = self.mrf.layout
        return units[:, number_visible_first(self.visible, self.hidden)[layout.order[: layout.n_state]]]

    # Annealing.

    def raise_start(
        self, path: Path, visible: Bits, betas: Floats, seed: int, keys: NDArray[np.integer]
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

    def generate(self, state: Bits, generator: np.random.Generator) -> Bits:
        """Visible states (chain, visible site): a colour that is summed out is drawn given the other."""
        if not self.mrf.layout.visible_summed_out:
            return super().generate(state, generator)
        return self._draw_summed_out(state, generator)[:, self.mrf.layout.column]

    def visible_means(self, state: Bits, generator: np.random.Generator) -> NDArray[Any]:
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

    def visible_log_odds(self, state: Bits, uniforms: Uniforms) -> Floats:
        """Log odds (chain, visible site) of state 1, given a draw of the hidden sites."""
        mrf = self.mrf
        if not isinstance(mrf, BinaryField):
            raise InputError(
                found=f"{self!r}, whose sites do not all have two states",
                expected="sites of two states",
                remedy="use raise_log_prob for a conservative estimate",
            )
        if len(self.hidden) == 0 or self.adjacency[self.visible][:, self.visible].nnz:
            return super().visible_log_odds(state, uniforms)
        units = mrf.with_summed_out_drawn(state, uniforms)
        log_odds = np.zeros((len(state), mrf.n_state))
        for block in mrf.state_blocks:
            log_odds[:, block.columns] = mrf.inputs(block, units)
        return log_odds[:, : self.n_visible]

    def by_layer(self, units: Bits) -> list[Bits]:
        """States (chain, unit) of visible and of hidden sites, from those of all units in their columns."""
        column = self.mrf.layout.column
        return [units[:, column[sites]] for sites in (self.visible, self.hidden) if len(sites)]

    def base_inputs(self, layers: Sequence[Floats]) -> tuple[Floats, ...]:
        """Inputs of independent units, block by block, from those of visible and of hidden sites."""
        by_site = np.zeros((len(self.cardinalities), *self.unit.input_shape))
        for sites, inputs in zip((self.visible, self.hidden), layers, strict=False):
            by_site[sites] = inputs
        by_column = by_site[self.mrf.layout.order]
        return tuple(
            _inputs_of(by_column[block.columns], self.unit, block.unit) for block in self.mrf.unit_blocks
        )

    def _draw_summed_out(self, state: Bits, generator: np.random.Generator) -> Bits:
        """All units (chain, unit) of a state, those that are summed out drawn."""
        return self.mrf.with_summed_out_drawn(state, lambda count: 1 - generator.random((len(state), count)))


def _inputs_of(inputs: Floats, unit: Unit, own: Unit) -> Floats:
    """Inputs of a block's units, whose kind is `own`, from inputs of the model's kind of unit."""
    if unit.bit is not None:
        return unit.bit.scale * inputs
    if own.bit is not None:  # two states with an input each, written for a bit
        return inputs[:, 1] - inputs[:, 0]
    return np.ascontiguousarray(inputs[:, : own.n_states])


def hidden_sites(hidden: ArrayLike | Iterable[int] | None, n_sites: int) -> Indices:
    """Hidden sites (hidden unit,), ascending, from their numbers or from a mask (site,); checked."""
    array = np.zeros(0, np.int64) if hidden is None else np.asarray(hidden)
    if array.dtype == np.bool_ and array.shape == (n_sites,):
        array = np.flatnonzero(array)
    whole = array.ndim == 1 and (array.size == 0 or array.dtype.kind in "iu")
    sites = np.unique(array.astype(np.int64)) if whole else array
    if not whole or sites.size != array.size or (sites.size and not (sites[0] >= 0 and sites[-1] < n_sites)):
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
    return sites
