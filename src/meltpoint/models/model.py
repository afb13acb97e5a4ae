"""What estimators, evaluation and files ask of a model. No other package asks which kind of model it has.

The defaults are those of any undirected model whose visible units come first in the state of its Markov random field.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from meltpoint.annealing.base import Base, IndependentUnits
from meltpoint.annealing.blocks import RaiseStart, Segment
from meltpoint.annealing.field import MarkovRandomField
from meltpoint.annealing.path import Path
from meltpoint.arguments import Count, Seed, Threads, public
from meltpoint.errors import InputError, Progress
from meltpoint.fingerprint import fingerprint
from meltpoint.kernels.compiling import check_threads
from meltpoint.layers import BERNOULLI, Unit
from meltpoint.layers.unit import Floats, States
from meltpoint.models import checks
from meltpoint.models.factors import Factors, condition
from meltpoint.models.log_f import SAMPLES, LogF, LogFMethod, exact_log_f
from meltpoint.models.readings import Reading

if TYPE_CHECKING:
    from meltpoint.models.bipartite import Bipartite
    from meltpoint.models.factor_graph import FactorGraph

Uniforms: TypeAlias = Callable[[int], NDArray[np.floating]]
"""Gives uniform numbers (chain, number), as many as asked for, from the chains' own streams."""

ParameterArrays: TypeAlias = dict[str, NDArray[Any]]


class Model(ABC):
    """A distribution of visible units, known up to its normaliser, and what it can do.

    Required are `n_visible`, `support`, `log_f`, `path` and `fingerprint`. All else are abilities that a model may
    have, with defaults for one that has none. A model with conditionals in blocks (`mrf`) needs no `path` of its own,
    one with arrays on disk (`arrays`) no `fingerprint`.
    """

    kind: ClassVar[str] = "model"
    """Its name in files."""
    file_arrays: ClassVar[tuple[str, ...]] = ()
    """Names of its parameters in files, where their number is fixed."""

    @property
    @abstractmethod
    def n_visible(self) -> int:
        """Number of visible units."""

    @property
    @abstractmethod
    def support(self) -> Unit:
        """The kind of the visible units: which values they have, and whether likelihoods are densities."""

    @abstractmethod
    def log_f(self, x: ArrayLike) -> Floats:
        """Log unnormalised probability (example,) of visible values, all other units summed out."""

    def path(self, base: Base) -> Path:
        """The path from a base to the model (a DBN's to its top RBM), with the transition that moves chains."""
        if self.mrf is None:
            raise self._lacks("path(base)", "it, or conditional distributions in blocks (mrf)")
        return self.mrf.path_from(self.base_inputs(self.with_biases(base)))

    def fingerprint(self) -> str:
        """A short text that differs when the model does."""
        arrays = self.arrays()
        if arrays is None:
            raise self._lacks("fingerprint()", "a text that differs when the model does")
        return fingerprint(arrays, self.kind_and_units)

    def _lacks(self, what: str, expected: str) -> InputError:
        return InputError(
            found=f"{self!r}, a model without {what}",
            expected=expected,
            remedy="see docs/own-model.md: what a model of one's own needs",
        )

    def __repr__(self) -> str:
        sizes = "-".join(map(str, self.layer_sizes))
        kind = type(self).__name__ if self.kind == Model.kind else self.kind
        names = [repr(unit) for unit in self.units]
        if all(unit == BERNOULLI for unit in self.units):
            return f"{kind} {sizes}"
        return f"{kind} {sizes} {names[0] if len(set(names)) == 1 else '(' + ', '.join(names) + ')'}"

    def _set(self, **fields: Any) -> None:  # noqa: ANN401
        """Fill in the fields of a new model, which is frozen."""
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    # Layers and blocks.

    @property
    def layer_sizes(self) -> tuple[int, ...]:
        """Units of each layer, visible first."""
        return (self.n_visible,)

    @property
    def units(self) -> tuple[Unit, ...]:
        """The kind of unit of each layer."""
        return (self.support,)

    @property
    def mrf(self) -> MarkovRandomField | None:
        """The Markov random field that is annealed, in blocks with conditional distributions; None without any."""
        return None

    @property
    def bipartite(self) -> "Bipartite | None":
        """Its field where it is layers of bits on two sides, for what is computed side by side: enumeration, modes."""
        return None

    @property
    def undirected(self) -> "Model":
        """The part whose Z is unknown: the model itself, unless it has directed layers."""
        return self

    @property
    def n_state(self) -> int:
        """Units of a chain's state, visible ones first."""
        return self.n_visible if self.mrf is None else self.mrf.n_state

    def by_layer(self, units: States) -> list[States]:
        """States (chain, unit) of every layer, from those of all units in their columns: here layer after layer."""
        return np.split(units, np.cumsum(self.layer_sizes)[:-1], axis=1)

    def state_of(self, units: NDArray[Any]) -> NDArray[Any]:
        """States (chain, unit of the state) of chains, from all units (chain, unit) in the order of `as_factors`."""
        return units[:, : self.n_state]

    def encode(self, x: ArrayLike, name: str = "x") -> States:
        """States (example, visible unit) of examples, checked."""
        return checks.examples(x, name, self.n_visible, self.support)

    def decode(self, states: States) -> NDArray[Any]:
        """Examples (example, visible unit) as users see them."""
        return self.support.decode(states)

    # Unnormalised probabilities.

    @public
    def log_f_estimate(
        self,
        x: ArrayLike,
        *,
        samples: Count = SAMPLES,
        seed: Seed = 0,
        threads: Threads | None = None,
        progress: Progress | None = None,
    ) -> LogF:
        """Log f of examples (example, visible unit) with standard errors and a lower bound, if it is not exact.

        Where it must be estimated, each example has this number of importance `samples`, drawn with `seed`. `progress`
        is called with (task, done, total).
        """
        states = self.encode(x)
        method = self.log_f_method(samples, seed, check_threads(threads))
        found = method(states, np.arange(len(states)), progress=progress)
        return found if found.is_exact else found.controlled_by(*self.log_f_control(states, seed))

    def log_f_method(self, samples: int = SAMPLES, seed: int = 0, threads: int = 1) -> LogFMethod:
        """How log f of states is computed, as a function of states and their examples' numbers: here exactly.

        A number names the random numbers of its example: a test set can be computed in parts.
        """
        return partial(exact_log_f, log_f=lambda states: self.log_f(self.decode(states)))

    def log_f_control(self, states: States, seed: int) -> tuple[NDArray[np.integer], Floats]:
        """Positions (control example,) of some examples, and log weights (control example, chain) unbiased for f.

        They are found in another way than the estimates, to check and correct their mean. Here there are none.
        """
        return np.zeros(0, np.int64), np.zeros((0, 0))

    def as_factors(self) -> Factors:
        """Cardinalities of all units, visible units first, factors (scope, log values), and a constant of log f."""
        raise InputError(
            found=f"{self!r}, which cannot be written as a list of factors",
            expected="an undirected model of units with finitely many states",
            remedy="estimate with chains; of a model with directed layers take the undirected part, model.undirected",
        )

    def given(self, clamped: Mapping[int, int]) -> "FactorGraph":
        """The factor graph of the other units, given states of some: units by number, visible first, and their states.

        Its Z is the sum of f over all states that agree with the clamped ones. Units are renumbered in their order.
        """
        from meltpoint.models.factor_graph import FactorGraph

        cardinalities, factors, constant = condition(self.undirected.as_factors(), clamped)
        if not cardinalities:
            raise InputError(
                found="all units clamped",
                expected="at least one unit that is free",
                remedy="log Z is then log f of that state: model.log_f",
            )
        return FactorGraph(cardinalities, [*factors, ((), np.array(constant))])

    @property
    def log_z_ceiling(self) -> float:
        """An upper bound on log Z that needs no chains and is far from tight; infinite where none is known."""
        mrf = self.undirected.mrf
        return math.inf if mrf is None else mrf.log_z_ceiling

    @property
    def smaller_side(self) -> float:
        """Units of two states with as many states as must be enumerated for the exact log Z; infinite for reals."""
        if self.mrf is not None:
            return self.mrf.smaller_side
        n_states = self.support.n_states
        return math.inf if n_states is None else math.ceil(self.n_visible * math.log2(n_states))

    def other_readings(self) -> Sequence[Reading]:
        """What the parameters would mean under other conventions, the most usual mistake first."""
        return ()

    # Bases.

    def independent(self, base: Base) -> IndependentUnits:
        """A base as independent visible units; a distribution of another kind stays what it is."""
        if not isinstance(base, Base):
            return base
        return IndependentUnits(base.name, self.support, self.with_biases(base)[0])

    def with_biases(self, base: Base) -> list[Floats]:
        """Inputs (unit, *input_shape) of every layer of independent units: a base's biases, checked, others uniform."""
        if not isinstance(base, Base):
            raise InputError(
                found=f"a base of type {type(base).__name__} for {self!r}",
                expected="independent units",
                remedy="other bases need a model whose path takes them: see docs/own-model.md",
            )
        layers, sizes = self.uniform_layers(), self.layer_sizes
        if len(base.biases) > len(sizes):
            raise InputError(
                found=f"a base with {len(base.biases)} layers",
                expected=f"at most {len(sizes)}, as {self!r} has",
                remedy="make the base from this model",
            )
        for k, bias in enumerate(base.biases):
            if bias.shape != layers[k].shape:
                raise InputError(
                    found=f"base rates for {len(bias)} units"
                    if len(bias) != sizes[k]
                    else f"base rates of shape {bias.shape}, not {layers[k].shape},",
                    expected=f"{sizes[k]}, the size of layer {k} of {self!r}",
                    remedy="take the rates from training data of the same width as the test data; for a DBN pass the "
                    "model too: data_rates(train, model)",
                )
            layers[k] = bias
        return layers

    def uniform_layers(self) -> list[Floats]:
        """Inputs (unit, *input_shape) of every layer under which all states are equally probable."""
        return [unit.flat_bias(size) for size, unit in zip(self.layer_sizes, self.units, strict=True)]

    def base_inputs(self, layers: Sequence[Floats]) -> tuple[Floats, ...]:
        """Inputs of independent units, block by block of the Markov random field, from those of every layer.

        Here all layers have the same kind of unit.
        """
        inputs, blocks = np.concatenate(layers), [] if self.mrf is None else self.mrf.unit_blocks
        return tuple(inputs[block.columns] for block in blocks)

    def annealed_rates(self, visible: States) -> NDArray[Any]:
        """States (example, unit) of the lowest layer that is annealed, given visible ones, or their probabilities.

        They are what the unit's `bias_from_sample` takes.
        """
        return visible

    def visible_means(self, state: States, generator: np.random.Generator) -> NDArray[Any]:
        """Visible states (chain, visible unit), or probabilities of them: what a unit's `bias_from_sample` takes."""
        means = state if self.mrf is None else self.mrf.state_means(state, generator)
        return means[:, : self.n_visible]

    # Chains.

    @property
    def raise_passes(self) -> int:
        """How many times RAISE goes through all betas: hidden units of the state are heated before all are melted."""
        return 1 if self.n_state <= self.n_visible else 2  # visible units may be summed out

    @property
    def raise_starts_from(self) -> str | None:
        """What RAISE draws a new start from for each chain, in words; None where all chains of an example start alike.

        What a small number of draws misses, no number of steps finds.
        """
        return None

    def raise_start(
        self, path: Path, visible: States, betas: Floats, seed: int, keys: NDArray[np.integer]
    ) -> RaiseStart:
        """How RAISE starts at visible states (chain, visible unit), on chains with these keys (chain, key)."""
        melt = Segment(betas[::-1].copy(), reversed_sweeps=True)
        if self.raise_passes == 1:
            # Heating would change nothing, and its weight would telescope to f_1(v) / f_0(v).
            return RaiseStart(visible, [melt], path.log_f(1.0, visible) - path.log_z_base)
        start = np.zeros((len(visible), path.n_state), path.dtype)
        start[:, : self.n_visible] = visible
        heat = Segment(betas, clamped=np.arange(path.n_state) < self.n_visible)
        return RaiseStart(start, [heat, melt], path.log_prob_base(visible))

    def generate(self, state: States, generator: np.random.Generator) -> States:
        """Visible states (chain, visible unit) of a sample of the Markov random field."""
        return state[:, : self.n_visible]

    def visible_log_odds(self, state: States, uniforms: Uniforms) -> Floats:
        """Log odds (chain, visible unit) of state 1, given a draw of the units that make visible units independent."""
        raise InputError(
            found=f"{self!r}, whose visible units depend on each other given the rest, or do not all have two states",
            expected="visible units of two states that are independent given the hidden ones",
            remedy="use raise_log_prob for a conservative estimate",
        )

    # Arrays on disk.

    @property
    def kind_and_units(self) -> str:
        """Its kind in files, with its kinds of units where not all of them are Bernoulli: "RBM:spin,bernoulli"."""
        names = [unit.name for unit in self.units]
        return self.kind if set(names) == {"bernoulli"} else f"{self.kind}:{','.join(names)}"

    def arrays(self) -> ParameterArrays | None:
        """Parameters by the names they have in a file; None without a file format."""
        return None

    @classmethod
    def array_names(cls, present: set[str]) -> list[str]:
        """Names that a file of this kind must have, its depth taken from the names that are there."""
        return list(cls.file_arrays)

    @classmethod
    def from_arrays(cls, arrays: Sequence[NDArray[Any]], units: Sequence[str] = ()) -> "Model":
        """The model with these parameters, in the order of `array_names`; all units are Bernoulli by default."""
        raise NotImplementedError


ModelLike: TypeAlias = Model | Any
"""A model, or an object of another library that becomes one where users call (`meltpoint.__init__`)."""
