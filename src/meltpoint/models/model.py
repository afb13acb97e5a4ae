"""What estimators, evaluation and files ask of a model. No other package asks which kind of model it has.

The defaults are those of any undirected model whose visible units come first in the state of its Markov random field.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from meltpoint.errors import InputError, Progress
from meltpoint.kernels.threads import check_threads
from meltpoint.layers import BERNOULLI, Unit, two_state
from meltpoint.layers.unit import Bits, Floats
from meltpoint.models import checks
from meltpoint.models.blocks import RaiseStart, Segment
from meltpoint.models.factors import Factors, condition
from meltpoint.models.log_f import SAMPLES, LogF
from meltpoint.models.mrf import MarkovRandomField
from meltpoint.models.readings import Reading

Uniforms: TypeAlias = Callable[[int], NDArray[np.floating]]
"""Gives uniform numbers (chain, so many) from the chains' own streams."""

ParameterArrays: TypeAlias = dict[str, NDArray[Any]]

_ROWS = 4096  # examples whose log f is computed at once


class PathToModel(Protocol):
    """What a model asks of the path from a base to its Markov random field."""

    @property
    def log_z_base(self) -> float:
        """Log normaliser of the base."""
        ...

    def log_f(self, beta: float, state: Bits) -> Floats:
        """Log unnormalised probability (chain,) of states at beta."""
        ...

    def log_prob_base(self, states: Bits) -> Floats:
        """Log probability (chain,) under the base of the leading units of the state."""
        ...


class Model(ABC):
    """A distribution of visible units, known up to the normaliser of its undirected part."""

    kind: ClassVar[str]
    """Its name in files."""

    @property
    @abstractmethod
    def layer_sizes(self) -> tuple[int, ...]:
        """Units of each layer, visible first."""

    @property
    @abstractmethod
    def units(self) -> tuple[Unit, ...]:
        """The kind of unit of each layer."""

    @property
    @abstractmethod
    def mrf(self) -> MarkovRandomField:
        """The Markov random field that is annealed, in blocks."""

    def _set(self, **fields: Any) -> None:  # noqa: ANN401
        """Fill in the fields of a new model, which is frozen."""
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        sizes = "-".join(map(str, self.layer_sizes))
        names = [repr(unit) for unit in self.units]
        if all(unit == BERNOULLI for unit in self.units):
            return f"{self.kind} {sizes}"
        return f"{self.kind} {sizes} {names[0] if len(set(names)) == 1 else '(' + ', '.join(names) + ')'}"

    @property
    def n_visible(self) -> int:
        """Number of visible units."""
        return self.layer_sizes[0]

    @property
    def undirected(self) -> "Model":
        """The part whose Z is unknown: the model itself, unless it has directed layers."""
        return self

    # Data.

    def encode(self, x: ArrayLike, name: str = "x") -> Bits:
        """States (example, visible unit) of examples, checked."""
        return checks.examples(x, name, self.n_visible, self.units[0])

    def decode(self, states: Bits) -> NDArray[Any]:
        """Examples (example, visible unit) as users see them."""
        return self.units[0].decode(states)

    # Unnormalised probabilities.

    def log_f(self, x: ArrayLike) -> Floats:
        """Log unnormalised probability (example,) of visible states, all other units summed out."""
        return self.mrf.log_f(self.encode(x))

    def log_f_estimate(
        self,
        x: ArrayLike,
        *,
        samples: int = SAMPLES,
        seed: int = 0,
        threads: int | None = None,
        progress: Progress | None = None,
    ) -> LogF:
        """Log f with standard errors and a lower bound: 0 and the value itself where it is exact.

        Parameters
        ----------
        x
            Examples (example, visible unit).
        samples
            Importance samples of each example, where log f must be estimated.
        seed
            Seed of the samples.
        threads
            Number of threads; all cores by default.
        progress
            Called with (task, done, total).
        """
        states = self.encode(x)
        samples, threads = (
            checks.check_count(samples, "samples", "the paper uses 500"),
            check_threads(threads),
        )
        numbers = np.arange(len(states))
        found = self.log_f_part(
            states, numbers, samples=samples, seed=seed, threads=threads, progress=progress
        )
        return found if found.is_exact else found.controlled_by(*self.log_f_control(states, seed))

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
        """Log f of the examples with these numbers (example,), whose states (example, visible unit) `encode` gave.

        A number names the random numbers of its example: a test set can be computed in parts. Here log f is exact.
        """
        parts = [states[low : low + _ROWS] for low in range(0, max(1, len(states)), _ROWS)]
        return LogF.exact(np.concatenate([self.log_f(self.decode(part)) for part in parts]))

    def log_f_control(self, states: Bits, seed: int) -> tuple[NDArray[np.integer], Floats]:
        """Positions (control example,) of some examples, and log weights (control example, chain) unbiased for f.

        They are found in another way than the estimates, to check and correct their mean. Here there are none.
        """
        return np.zeros(0, np.int64), np.zeros((0, 0))

    def as_factors(self) -> Factors:
        """Cardinalities of all units, visible units first, factors (scope, log values), and a constant of log f."""
        raise InputError(
            found=f"{self!r}, which cannot be written as a list of factors",
            expected="an undirected model of units with finitely many states",
            remedy="take the undirected part of a model with directed layers, model.undirected",
        )

    def given(self, clamped: Mapping[int, int]) -> "Model":
        """The factor graph of the other units, given states of some: units by number, visible first, and their states.

        Its Z is the sum of f over all states that agree with the clamped ones. Units are renumbered in their order.
        """
        return self._given_by_number(clamped, ())

    def _given_by_number(self, clamped: Mapping[int, int], hidden: Iterable[int]) -> "Model":
        """The same, with the numbers that the hidden ones of the free units get."""
        from meltpoint.models.factor_graph import FactorGraph

        cardinalities, factors, constant = condition(self.undirected.as_factors(), clamped)
        if not cardinalities:
            raise InputError(
                found="states of all units",
                expected="at least one unit that is free",
                remedy="log Z is then log f of that state: model.log_f",
            )
        return FactorGraph(cardinalities, [*factors, ((), np.array(constant))], hidden=list(hidden))

    def state_of(self, units: NDArray[Any]) -> NDArray[Any]:
        """States (chain, unit of the state) of chains, from all units (chain, unit) in the order of `as_factors`."""
        return units[:, : self.mrf.n_state]

    @property
    def log_z_ceiling(self) -> float:
        """An upper bound on log Z that needs no chains and is far from tight; infinite where none is known."""
        return self.undirected.mrf.log_z_ceiling

    # Annealing.

    @property
    def raise_passes(self) -> int:
        """How many times RAISE goes through all betas: hidden units of the state are heated before all are melted."""
        return 1 if self.mrf.n_state == self.n_visible else 2

    @property
    def raise_starts_from(self) -> str | None:
        """What RAISE draws a new start from for each chain, in words; None where all chains of an example start alike.

        What few draws lose no number of steps gives back.
        """
        return None

    def raise_start(
        self, path: PathToModel, visible: Bits, betas: Floats, seed: int, keys: NDArray[np.integer]
    ) -> RaiseStart:
        """How RAISE starts at visible states (chain, visible unit), on chains with these keys (chain, key)."""
        melt = Segment(betas[::-1].copy(), reversed_sweeps=True)
        if self.raise_passes == 1:
            # Heating would change nothing, and its weight would telescope to f_1(v) / f_0(v).
            return RaiseStart(visible, [melt], path.log_f(1.0, visible) - path.log_z_base)
        start = np.zeros((len(visible), self.mrf.n_state), self.mrf.dtype)
        start[:, : self.n_visible] = visible
        heat = Segment(betas, clamped=np.arange(self.mrf.n_state) < self.n_visible)
        return RaiseStart(start, [heat, melt], path.log_prob_base(visible))

    def generate(self, state: Bits, generator: np.random.Generator) -> Bits:
        """Visible states (chain, visible unit) of a sample of the Markov random field."""
        return state[:, : self.n_visible]

    def visible_means(self, state: Bits, generator: np.random.Generator) -> NDArray[Any]:
        """Visible states (chain, visible unit), or probabilities of them: what a unit's `bias_from_sample` takes."""
        return self.mrf.state_means(state, generator)[:, : self.n_visible]

    def visible_log_odds(self, state: Bits, uniforms: Uniforms) -> Floats:
        """Log odds (chain, visible unit) of state 1, given a draw of the units that make visible units independent."""
        raise InputError(
            found=f"{self!r}, whose visible units depend on each other given the rest",
            expected="visible units that are independent given the hidden ones",
            remedy="use raise_log_prob for a conservative estimate",
        )

    def annealed_rates(self, visible: Bits) -> NDArray[Any]:
        """States (example, unit) of the lowest layer that is annealed, given visible ones, or their probabilities.

        They are what the unit's `bias_from_sample` takes.
        """
        return visible

    def by_layer(self, units: Bits) -> list[Bits]:
        """States (chain, unit) of every layer, from those of all units in their columns: here layer after layer."""
        return np.split(units, np.cumsum(self.layer_sizes)[:-1], axis=1)

    def base_inputs(self, layers: Sequence[Floats]) -> tuple[Floats, ...]:
        """Inputs of independent units, block by block of the Markov random field, from those of every layer.

        Here all layers have the same kind of unit.
        """
        inputs = np.concatenate(layers)
        return tuple(inputs[block.columns] for block in self.mrf.unit_blocks)

    def uniform_layers(self) -> list[Floats]:
        """Inputs (unit, *input_shape) of every layer under which all states are equally probable."""
        return [
            np.zeros((size, *unit.input_shape))
            for size, unit in zip(self.layer_sizes, self.units, strict=True)
        ]

    def other_readings(self) -> Sequence[Reading]:
        """What the parameters would mean under other conventions, the most usual mistake first."""
        return ()

    # Arrays on disk.

    def arrays(self) -> ParameterArrays:
        """Parameters by the names they have in a file."""
        raise InputError(
            found=f"{self!r}, a kind of model that has no file format",
            expected="one of the library's own models",
            remedy="save its arrays with numpy.savez",
        )

    @classmethod
    def array_names(cls, present: set[str]) -> list[str]:
        """Names that a file of this kind must have, its depth taken from the names that are there."""
        raise NotImplementedError

    @classmethod
    def from_arrays(cls, arrays: Sequence[NDArray[Any]], units: Sequence[str] = ()) -> "Model":
        """The model with these parameters, in the order of `array_names`; all units are Bernoulli by default."""
        raise NotImplementedError


def two_sided_base(layers: Sequence[Floats], units: Sequence[Unit]) -> tuple[Floats, Floats]:
    """Inputs of the bits of independent units on the even and on the odd side, from those of every layer."""
    scaled = [unit.scale * bias for unit, bias in zip(two_state(units), layers, strict=True)]
    return np.concatenate(scaled[0::2]), np.concatenate(scaled[1::2])
