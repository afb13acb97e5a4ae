"""Whether a model is read with the right convention: the pseudo-likelihood of data under the few plausible readings.

The pseudo-likelihood is the probability of each unit given all others. It needs no normaliser, so readings can be
compared in a fraction of a second. A wrong orientation, sign or kind of unit costs a trained model several per cent of
it. The check only reports a better reading; it changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from meltpoint.arguments import Seed, public
from meltpoint.kernels.sigmoid import sum_softplus
from meltpoint.layers.unit import Floats, States
from meltpoint.models.bipartite import Bipartite
from meltpoint.models.model import Model, ModelLike
from meltpoint.models.readings import Reading
from meltpoint.records import Record
from meltpoint.statistics.elementary import log, softplus
from meltpoint.statistics.log_space import log_sum_exp

_SIGNIFICANT = 4.0  # standard errors, of differences between readings on the same examples and units
_AS_GOOD = 3.0  # standard errors within which the more usual mistake is named
_COLDER = 2.0  # how many times the gain of half the temperature a sharper reading must have
_MOST = 0.6  # share of the largest gain that the least unusual mistake must explain
_UNITS = 64  # whose conditional probabilities are taken
_FEWEST, _EXAMPLES = 10, 1000
_WORK = 4_000_000  # terms to add up for one reading: some hundredths of a second


@dataclass(frozen=True)
class ConventionCheck(Record):
    """Log pseudo-likelihoods, in nats per example, of a model as it is and under other readings of its parameters.

    `suspected` is the reading that fits much better, None if there is none; `gains` are the differences of all other
    readings from `own`, by name.
    """

    own: float = field(metadata={"key": "log_pseudo_likelihood"})
    gains: dict[str, float]
    suspected: str | None = None
    meaning: str = ""
    remedy: str = ""

    def __post_init__(self) -> None:
        if self.suspected is not None and self.suspected not in self.gains:
            raise ValueError(f"{self.suspected!r} is none of the readings")

    def __str__(self) -> str:
        if self.suspected is None:
            return "no other reading of the parameters fits the data better by far"
        return (
            f"the data fit better if {self.meaning} (pseudo-likelihood {self.own + self.gains[self.suspected]:.2f} "
            f"in place of {self.own:.2f} nats per example): if so, {self.remedy}"
        )


@public
def check_conventions(model: ModelLike, data: ArrayLike, *, seed: Seed = 0) -> ConventionCheck | None:
    """Compare a model on data with other readings of its parameters; None if it has no other readings.

    Parameters
    ----------
    model
        A model, or an object of another library.
    data
        Training or test examples (example, visible unit), as the model takes them.
    seed
        Seed of the choice of examples and units.

    >>> from meltpoint.models.rbm import RBM
    >>> examples = [[1, 1, 1, 0], [1, 1, 0, 0], [1, 1, 1, 0], [1, 0, 1, 0]] * 20
    >>> print(check_conventions(RBM([[0.0]] * 4, [-3, -2, -1, 3], [0.0]), examples).meaning)
    all parameters have the other sign
    """
    readings = model.other_readings()
    if not readings:
        return None
    states = model.encode(data, "data")
    rng = np.random.default_rng(seed)
    n_states = _n_states(model)
    units = np.sort(rng.permutation(model.n_visible)[: _UNITS if n_states == 2 else _UNITS // 4])
    size = int(np.clip(_WORK // _terms(model, len(units)), _FEWEST, _EXAMPLES))
    chosen = states[np.sort(rng.permutation(len(states))[:size])]
    # Per example, as if all units had been taken.
    scale = 1.0 if _is_visible(model) else model.n_visible / len(units)
    own = conditional_log_probs(model, chosen, units).sum(axis=1)
    gains: dict[Reading, Floats] = {}
    for reading in readings:
        other = model if reading.model is None else reading.model()
        renumbered = chosen if reading.states is None else reading.states[chosen]
        found = conditional_log_probs(other, renumbered, units, reading.scale)
        gains[reading] = scale * (found.sum(axis=1) - own)
    suspected = _suspect(gains, _independent(states, n_states))
    by_name = {each.name: float(gain.mean()) for each, gain in gains.items() if each.effect != "colder"}
    named = (suspected.name, suspected.meaning, suspected.remedy) if suspected else ()
    return ConventionCheck(float((scale * own).mean()), by_name, *named)


def conditional_log_probs(
    model: Model, states: States, units: NDArray[np.integer], scale: float = 1.0
) -> Floats:
    """Log probability (example, unit) of the states of visible units, each given all other visible units.

    Of a model without hidden units those of all units, in the order of its Markov random field; `scale` multiplies
    their inputs. Of others those of `units`.
    """
    if _is_visible(model):
        return _given_all(model, states, scale)
    two = model.bipartite
    if two is not None and len(two.blocks) == 1 and two.n_even == model.n_visible:
        return _two_sided(two, states, units)
    n_states = _n_states(model)
    log_f = model.log_f(model.decode(states))[:, np.newaxis]
    result = np.empty((len(states), len(units)))
    steps = np.arange(1, n_states)
    for k, unit in enumerate(units):
        changed = np.repeat(states, len(steps), axis=0)
        changed[:, unit] = ((states[:, [unit]] + steps) % n_states).ravel()
        ratios = model.log_f(model.decode(changed)).reshape(len(states), -1) - log_f
        result[:, k] = -softplus(log_sum_exp(ratios, axis=1))
    return result


def _n_states(model: Model) -> int:
    """Number of states of a visible unit; models of real numbers have no other readings."""
    n_states = model.units[0].n_states
    assert n_states is not None, "only models of states have other readings"
    return n_states


def _is_visible(model: Model) -> bool:
    """Whether all units are visible, so that the inputs of a block are what is needed."""
    return model.undirected is model and model.mrf is not None and model.mrf.n_units == model.n_visible


def _given_all(model: Model, states: States, scale: float) -> Floats:
    """Log probability (example, unit) of all units, block by block."""
    mrf = model.mrf
    assert mrf is not None, "`_is_visible` says so"
    layout = getattr(mrf, "layout", None)
    ordered = states if layout is None else states[:, layout.order]
    parts = []
    for block in mrf.unit_blocks:
        inputs = scale * mrf.inputs(block, ordered)
        own = block.unit.log_weight(ordered[:, block.columns], inputs)
        parts.append(own - block.unit.log_partition(inputs))
    return np.concatenate(parts, axis=1)


def _two_sided(two: Bipartite, states: States, units: NDArray[np.integer]) -> Floats:
    """The same with one change of the other side's inputs for each flip."""
    inputs = two.odd_field(states) + two.odd_bias
    log_f = sum_softplus(inputs)
    result = np.empty((len(states), len(units)))
    for k, unit in enumerate(units):
        change = 1.0 - 2.0 * states[:, unit]
        flipped = sum_softplus(inputs + change[:, np.newaxis] * two.blocks[0].weights[unit])
        result[:, k] = -softplus(change * two.even_bias[unit] + flipped - log_f)
    return result


def _terms(model: Model, n_units: int) -> int:
    """Terms that the conditional probabilities of an example add up, roughly."""
    n_states = _n_states(model)
    if _is_visible(model):
        return model.n_visible * n_states * min(model.n_visible, _UNITS)
    hidden = max(1, sum(model.layer_sizes) - model.n_visible)
    # With two states only what changes is added up.
    return n_units * hidden * (n_states if n_states == 2 else n_states * model.n_visible)


def _suspect(gains: Mapping[Reading, Floats], independent: float) -> Reading | None:
    """The reading that fits much better, None if there is none.

    Gains are counted in shares of what independent units with the data's rates have. The least unusual mistake is named
    that explains most of what can be gained.
    """
    colder = [gain.mean() for reading, gain in gains.items() if reading.effect == "colder"]
    means = {
        reading: float(gain.mean())
        for reading, gain in gains.items()
        if reading.effect != "colder"
        and not (reading.effect == "sharper" and any(gain.mean() < _COLDER * cold for cold in colder))
    }
    for rank in sorted({reading.rank for reading in means}):
        group = [reading for reading in means if reading.rank == rank]
        best = max(group, key=means.__getitem__)
        if means[best] < _MOST * max(means.values()):
            continue
        for reading in group:
            as_good = _errors_above(gains[best] - gains[reading]) <= _AS_GOOD
            enough = means[reading] > reading.least_gain * abs(independent)
            if as_good and enough and _errors_above(gains[reading]) > _SIGNIFICANT:
                return reading
    return None


def _independent(states: States, n_states: int) -> float:
    """Mean log probability of the states under independent units with their own rates."""
    rates = np.stack([(states == state).mean(axis=0) for state in range(n_states)])
    return float(np.sum(rates * log(np.maximum(rates, 1e-300))))


def _errors_above(differences: Floats) -> float:
    """The mean in standard errors; 0 where it is 0."""
    mean = float(differences.mean())
    if mean == 0.0 or len(differences) < 2:
        return 0.0
    return mean / max(float(differences.std(ddof=1)) / len(differences) ** 0.5, 1e-12 * abs(mean))
