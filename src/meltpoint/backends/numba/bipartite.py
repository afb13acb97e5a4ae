"""The backend of units on two sides, Bernoulli or Potts and hidden bits: kernels that keep a tile for many steps.

Its one block is drawn after the other side, which is summed out, so that a sweep is its own reversal: segments with
reversed sweeps are run as they are.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from numpy.typing import DTypeLike, NDArray

from meltpoint.annealing.blocks import Segment
from meltpoint.annealing.field import BlockPath
from meltpoint.annealing.path import BlockGibbs, Path
from meltpoint.backends.backend import Tile, run_without_chains
from meltpoint.backends.numba.kernels.blocks import to_bits, to_words
from meltpoint.backends.numba.kernels.packing import Packed, pack, spread, without_padding
from meltpoint.backends.numba.kernels.tile import Chains, Workspace, run_tile
from meltpoint.backends.numba.precision import (
    Precision,
    PrecisionSpan,
    cut_at_model,
    round_weights,
    sixteen_bit_scale,
)
from meltpoint.kernels.streams import LANES
from meltpoint.layers import BERNOULLI, Potts
from meltpoint.layers.unit import Floats, States
from meltpoint.models.bipartite import Bipartite, BipartitePath, WeightBlock
from meltpoint.statistics.elementary import log

_CALL_WORK = 4_000_000_000  # unit pairs per kernel call: a fraction of a second
_LEAST_WORK = 400_000_000  # some milliseconds: what surrounds a call must not be felt
_STEP_WORK = 50_000  # what a chain-step costs besides its unit pairs, counted in them


@dataclass(frozen=True)
class OneHot:
    """Where the states of sites lie among the bits (block, state, lane)."""

    sites: int
    q: int

    @property
    def n_blocks(self) -> int:
        """Blocks of sites, the last one padded."""
        return -(-self.sites // LANES)

    def rows(self, values: NDArray[Any]) -> NDArray[Any]:
        """Values (site, state, …) at their places (bit, …); those of padding are zero."""
        padded = np.zeros((self.n_blocks * LANES, *values.shape[1:]), values.dtype)
        padded[: self.sites] = values
        blocks = padded.reshape(self.n_blocks, LANES, *values.shape[1:])
        return np.ascontiguousarray(np.moveaxis(blocks, 2, 1)).reshape(
            len(padded) * self.q, *values.shape[2:]
        )

    def bits(self, states: States) -> NDArray[np.uint8]:
        """Bits (chain, bit) of states (chain, site)."""
        one_hot = states[..., np.newaxis] == np.arange(self.q, dtype=states.dtype)
        return self._each_chain(one_hot.astype(np.uint8))

    def states(self, bits: NDArray[np.uint8]) -> States:
        """States (chain, site) of bits (chain, bit)."""
        blocks = bits.reshape(len(bits), self.n_blocks, self.q, LANES)
        return (
            blocks.argmax(axis=2)
            .reshape(len(bits), self.n_blocks * LANES)[:, : self.sites]
            .astype(Potts(self.q).dtype)
        )

    def all_states(self, sites: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Bits (bit,) that are on for every state of some sites (site,)."""
        return self.rows(np.repeat(sites[:, np.newaxis], self.q, axis=1))

    def _each_chain(self, values: NDArray[Any]) -> NDArray[Any]:
        """Values (chain, site, state) at their places (chain, bit)."""
        return np.ascontiguousarray(self.rows(np.moveaxis(values, 0, 2)).T)


def has_potts_sites(path: BlockPath) -> bool:
    """Whether a path leads to Potts units with hidden bits that are summed out."""
    target = path.target
    if not isinstance(target, Bipartite) or target.odd_unit != BERNOULLI:
        return False
    return target.even_unit.input_shape == (target.even_unit.n_states,)


def one_hot_path(path: BlockPath) -> tuple[OneHot, BipartitePath]:
    """The same path for the bits of its Potts sites."""
    target, weights = _target(path)
    places = OneHot(*weights.shape[:2])
    bits = Bipartite(
        (places.rows(target.even_bias),),
        (target.odd_bias,),
        (WeightBlock(0, 0, places.rows(weights)),),
    )
    even, odd = path.base
    return places, BipartitePath(bits, (places.rows(even), odd))


def largest_slope(path: BlockPath) -> float:
    """The largest |d t / d beta| that a hidden unit's input t can have: one state of each site counts."""
    target, weights = _target(path)
    slopes = np.abs(target.odd_bias - path.base[1]) + np.abs(weights).max(axis=1).sum(axis=0)
    return float(slopes.max())


def _target(path: BlockPath) -> tuple[Bipartite, Floats]:
    """The path's field, and its weights (site, state, hidden unit)."""
    field = cast(Bipartite, path.target)
    return field, field.blocks[0].weights.reshape(field.n_even, field.even_unit.n_coupled, -1)


class BipartiteBackend:
    """Runs two-sided paths, and those to Potts units with hidden bits, as groups of which one bit is on."""

    name = "bipartite"

    def supports(self, path: Path) -> bool:
        if not isinstance(path.transition, BlockGibbs):
            return False
        return isinstance(path, BipartitePath) or (type(path) is BlockPath and has_potts_sites(path))

    def prepare(self, path: BlockPath, precision: Precision) -> "PreparedBipartite":
        places, bits = (None, path) if isinstance(path, BipartitePath) else one_hot_path(path)

        def packed(bits: BipartitePath, weight_type: DTypeLike, scale: float = 1.0) -> Packed:
            found = pack(bits, weight_type, scale)
            if places is None:
                return found
            real = to_words(places.all_states(np.ones(places.sites, np.bool_)))
            layout = found.even.layout._replace(real=real)
            return replace(
                found, even=found.even._replace(layout=layout), reach=largest_slope(path), q=places.q
            )

        exact_packed = packed(bits, np.float64 if precision == "float64" else np.float32)
        on = None if places is None else places.sites
        scale = sixteen_bit_scale(bits, on) if precision == "mixed" else None
        if scale is None:
            return PreparedBipartite(path, exact_packed, None, None, bits, places)
        rounded = round_weights(bits, scale)
        return PreparedBipartite(path, exact_packed, rounded, packed(rounded, np.int16, scale), bits, places)


@dataclass(frozen=True, eq=False)
class PreparedBipartite:
    """A path in the kernels' layout, exact and, where precision is mixed, rounded.

    Where its units are Potts sites, `bits_path` is the same path for their bits, which lie at `places`.
    """

    path: BlockPath
    exact_packed: Packed
    rounded: BipartitePath | None
    rounded_packed: Packed | None
    bits_path: BipartitePath
    places: OneHot | None = None

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Units of each even layer, without padding."""
        return self.exact_packed.even.layout.sizes

    def to_bits(self, state: States) -> NDArray[np.uint8]:
        """Bits (chain, even unit) of states (chain, unit of the state)."""
        return state if self.places is None else self.places.bits(state)

    def to_state(self, bits: NDArray[np.uint8]) -> States:
        return bits if self.places is None else self.places.states(bits)

    def spans(self, betas: Floats) -> list[PrecisionSpan]:
        """Betas cut by the number format they are run in."""
        return [PrecisionSpan(betas, True)] if self.rounded is None else cut_at_model(betas)

    def packed(self, exact: bool) -> Packed:
        return self.exact_packed if exact or self.rounded_packed is None else self.rounded_packed

    def change(self, beta: float, bits: NDArray[np.uint8], to_exact: bool) -> Floats:
        """Log weight (chain,) of changing between the exact and the rounded path at beta, in float64."""
        if self.rounded is None:
            return np.zeros(len(bits))
        # The even units' biases are the same in both.
        exact, rounded = (path.odd_log_f(beta, bits) for path in (self.bits_path, self.rounded))
        return exact - rounded if to_exact else rounded - exact

    def compile(self) -> None:
        run_without_chains(self)

    def advance(self, tile: Tile, segments: Sequence[Segment], steps: int) -> Iterator[None]:
        words = to_words(spread(self.to_bits(tile.state), self.sizes))
        n = len(words)
        chains = Chains(words, tile.streams.generators(), np.zeros(n), np.ones(n))
        cuts = [self.spans(segment.betas) for segment in segments]
        cumulative = np.empty_like(tile.cumulative_log_weights)
        exact = True
        for k, segment in enumerate(segments):
            clamped = self._clamped_words(segment)
            for span in cuts[k]:
                exact = self._change(chains, span.betas[0], exact, span.exact)
                yield from self._run(chains, span, clamped, tile, steps)
            # A segment ends on the path on which the next one begins, the last one on the exact path.
            following = cuts[k + 1][0].exact if k + 1 < len(segments) else True
            exact = self._change(chains, segment.betas[-1], exact, following)
            cumulative[:, k] = chains.log_weights - log(chains.pending)
        tile.finish(self.to_state(self._units(chains)), cumulative)

    def _units(self, chains: Chains) -> NDArray[np.uint8]:
        return without_padding(to_bits(chains.words), self.sizes)

    def _clamped_words(self, segment: Segment) -> NDArray[np.uint32]:
        """Which even units (block,) keep their value."""
        clamped = segment.clamped
        if clamped is None:
            clamped = np.zeros(self.sizes.sum(), np.bool_)
        elif self.places is not None:
            clamped = self.places.all_states(clamped)
        return to_words(spread(clamped, self.sizes))

    def _change(self, chains: Chains, beta: float, exact: bool, to_exact: bool) -> bool:
        """Change between the exact and the rounded path where the chains are, if they are different ones."""
        if to_exact != exact and beta != 0:  # where weights count for nothing
            chains.log_weights[:] += self.change(beta, self._units(chains), to_exact)
        return to_exact

    def _run(
        self, chains: Chains, span: PrecisionSpan, clamped: NDArray[np.uint32], tile: Tile, steps: int
    ) -> Iterator[None]:
        """Run one span in calls that are short enough to stop between, and long enough to be worth it."""
        packed = self.packed(span.exact)
        pairs = int(packed.even.slope.size * packed.odd.slope.size)
        work = (pairs + _STEP_WORK) * max(1, len(chains.words))
        steps = max(16, min(max(steps, _LEAST_WORK // work), _CALL_WORK // work))
        room = Workspace.of(packed, len(chains.words))
        for low in range(0, span.betas.size - 1, steps):
            betas = span.betas[low : low + steps + 1]
            _call(packed, betas, room, clamped, chains)
            tile.count(betas.size - 1)
            yield


def _call(
    packed: Packed, betas: Floats, work: Workspace, clamped: NDArray[np.uint32], chains: Chains
) -> None:
    run_tile(betas, packed.even, packed.odd, packed.reach, packed.q, work, clamped, chains)
