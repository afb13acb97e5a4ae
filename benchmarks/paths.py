"""Other paths from the base to an RBM at equal cost: what they lose up and down, and how many chains stay effective.

    python benchmarks/paths.py --steps 1000 --chains 200
    python benchmarks/paths.py mnistPCD-500 --paths data bias-first --seeds 1

Every path is a broken line of RBM parameters that begins at a distribution with a known Z that can be sampled:

    data             independent units with the training set's rates, one straight line (what `evaluate` does)
    uniform          the same from the uniform distribution
    bias-first       visible and hidden biases reach the model's at half of the way, weights at its end
    weights-first    the other way round
    moments          knots whose moments are averages of those of both ends (Grosse, Maddison and Salakhutdinov, 2013),
                     fitted by persistent chains; between knots a straight line
    moments-few      the same with two knots
    small-rbm        from an RBM with ten hidden units whose Z is exact, trained on the training set
    kept-units       from the model's own ten hidden units that matter most, with fitted biases and exact Z

Steps are spaced alike for all: a pilot measures what up and down lose together in each of 50 windows, twice, and an
equal square root of it goes to every step. The loss is log Z of the way down (melted test examples) less log Z of the
way up, in means of log weights: what annealing loses in both directions together, zero for a perfect path. Test
examples are not samples of the model, so only its differences between paths tell. `ess` are the effective chains.
"""

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

import meltpoint as mp

ZOO = Path(__file__).parents[1] / "zoo"
MODELS = {"mnistCD25-500": "mnist", "mnistPCD-500": "mnist", "omniPCD-1000": "omniglot"}
FEW = 10  # hidden units of a base whose Z is a sum over their configurations
WINDOWS = 50
LINEAR_PART = 0.2  # of the steps that are spread equally
Array = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Parameters:
    """An RBM: weights (hidden, visible), visible and hidden biases."""

    weights: Array
    visible: Array
    hidden: Array

    def to(self, other: "Parameters", part: float) -> "Parameters":
        """So far on the straight line to another."""
        return Parameters(
            *(
                ((1 - part) * a + part * b).astype(np.float32)
                for a, b in zip(vars(self).values(), vars(other).values(), strict=True)
            )
        )

    def log_f(self, v: Array) -> npt.NDArray[np.float64]:
        """Unnormalised log-probability of visible states (chain, visible), hidden units summed out."""
        inputs = v @ self.weights.T + self.hidden
        return (v @ self.visible).astype(np.float64) + np.logaddexp(0, inputs).sum(1, dtype=np.float64)

    def move(self, v: Array, rng: np.random.Generator) -> tuple[Array, Array]:
        """One Gibbs step: hidden units given the visible, then the visible; both as drawn, (chain, unit)."""
        h = draw(v @ self.weights.T + self.hidden, rng)
        return draw(h @ self.weights + self.visible, rng), h


@dataclass(frozen=True, eq=False)
class Base:
    """Where a path begins: its parameters, its log Z, and exact samples (chain, visible)."""

    parameters: Parameters
    log_z: float
    sample: Callable[[int, np.random.Generator], Array]


@dataclass(frozen=True, eq=False)
class ParameterPath:
    """A base and the parameters that the path goes through after it, the last of them the model's."""

    base: Base
    knots: list[Parameters]

    def at(self, t: float) -> Parameters:
        """The parameters at t in [0, 1]; knots are equally spaced."""
        line = [self.base.parameters, *self.knots]
        x = t * (len(line) - 1)
        k = min(int(x), len(line) - 2)
        return line[k].to(line[k + 1], x - k)


def draw(inputs: Array, rng: np.random.Generator) -> Array:
    """Bernoulli units with these inputs."""
    u = rng.random(inputs.shape, dtype=np.float32)
    return (u * (1 + np.exp(-inputs)) < 1).astype(np.float32)


def factorial(visible: Array, hidden: int) -> Base:
    """Independent units: these visible inputs, hidden units at one half."""
    zero = Parameters(np.zeros((hidden, len(visible)), np.float32), visible, np.zeros(hidden, np.float32))
    log_z = float(np.logaddexp(0, visible.astype(float)).sum() + hidden * np.log(2))
    return Base(zero, log_z, lambda n, rng: draw(np.broadcast_to(visible, (n, len(visible))), rng))


def few_units(parameters: Parameters, active: npt.NDArray[np.int64]) -> Base:
    """An RBM of which only few hidden units have weights: Z and samples by enumerating their configurations."""
    bits = (np.arange(1 << len(active))[:, None] >> np.arange(len(active))) & 1
    inputs = bits @ parameters.weights[active].astype(float) + parameters.visible
    log_p = bits @ parameters.hidden[active].astype(float) + np.logaddexp(0, inputs).sum(1)
    total = np.logaddexp.reduce(log_p)
    rest = len(parameters.hidden) - len(active)

    def sample(n: int, rng: np.random.Generator) -> Array:
        chosen = rng.choice(len(log_p), n, p=np.exp(log_p - total))
        return draw(inputs[chosen].astype(np.float32), rng)

    return Base(parameters, float(total + rest * np.log(2)), sample)


def fit_few(
    start: Parameters, active: npt.NDArray[np.int64], train: Array, steps: int, move_weights: bool
) -> Parameters:
    """Maximise the likelihood of the training set over visible biases and the few units; exact gradients."""
    bits = ((np.arange(1 << len(active))[:, None] >> np.arange(len(active))) & 1).astype(np.float64)
    w, b, c = (
        start.weights[active].astype(float),
        start.visible.astype(float),
        start.hidden[active].astype(float),
    )
    first, second = [np.zeros_like(x) for x in (w, b, c)], [np.zeros_like(x) for x in (w, b, c)]
    for step in range(1, steps + 1):
        inputs = bits @ w + b
        log_p = bits @ c + np.logaddexp(0, inputs).sum(1)
        p = np.exp(log_p - np.logaddexp.reduce(log_p))
        rates = 1 / (1 + np.exp(-inputs))
        q = 1 / (1 + np.exp(-(train @ w.T + c)))
        gradients = (
            q.T @ train / len(train) - bits.T @ (p[:, None] * rates),
            train.mean(0) - p @ rates,
            q.mean(0) - p @ bits,
        )
        for k, (x, g) in enumerate(zip((w, b, c), gradients, strict=True)):
            if k == 1 or move_weights:
                first[k] = 0.9 * first[k] + 0.1 * g
                second[k] = 0.99 * second[k] + 0.01 * g * g
                x += 0.03 * (first[k] / (1 - 0.9**step)) / (np.sqrt(second[k] / (1 - 0.99**step)) + 1e-6)
    weights, hidden = np.zeros_like(start.weights), np.zeros_like(start.hidden)
    weights[active], hidden[active] = w, c
    return Parameters(weights, b.astype(np.float32), hidden)


def moments(parameters: Parameters, v: Array) -> Parameters:
    """Mean statistics of an RBM with visible states from it: E[h v], E[v], E[h]."""
    h = 1 / (1 + np.exp(-(v @ parameters.weights.T + parameters.hidden)))
    return Parameters(h.T @ v / len(v), v.mean(0), h.mean(0))


def fitted_knots(
    base: Base, target: Parameters, v: Array, count: int, updates: int, rng: np.random.Generator
) -> list[Parameters]:
    """RBMs whose moments are equally spaced averages of those of both ends; v are states of the target."""
    many = len(v)
    low, high = moments(base.parameters, base.sample(4000, rng)), moments(target, v)
    chains, current, knots = base.sample(many, rng), base.parameters, []
    for k in range(1, count):
        wanted = low.to(high, k / count)
        current = current.to(target, 1 / (count - k + 1))
        average = [np.zeros_like(x, dtype=np.float64) for x in vars(current).values()]
        for step in range(updates):
            chains, _ = current.move(chains, rng)
            rate = 0.05 * (1 - step / updates)
            found = moments(current, chains)
            change = [a - b for a, b in zip(vars(wanted).values(), vars(found).values(), strict=True)]
            current = Parameters(
                *(x + np.float32(rate) * g for x, g in zip(vars(current).values(), change, strict=True))
            )
            if step >= updates // 2:
                for total, x in zip(average, vars(current).values(), strict=True):
                    total += x / (updates - updates // 2)
        current = Parameters(*(x.astype(np.float32) for x in average))
        knots.append(current)
    return [*knots, target]


def build(name: str, target: Parameters, train: Array, own: Array, rng: np.random.Generator) -> ParameterPath:
    """The path of this name to a model; `own` are states of the model itself."""
    n_hidden, n_visible = target.weights.shape
    rates = np.clip(train.mean(0), 1 / len(train), 1 - 1 / len(train))
    data = factorial(np.log(rates / (1 - rates)).astype(np.float32), n_hidden)
    start = data.parameters
    if name == "data":
        return ParameterPath(data, [target])
    if name == "uniform":
        return ParameterPath(factorial(np.zeros(n_visible, np.float32), n_hidden), [target])
    if name == "bias-first":
        return ParameterPath(data, [Parameters(0.5 * target.weights, target.visible, target.hidden), target])
    if name == "weights-first":
        half = start.to(target, 0.5)
        return ParameterPath(data, [Parameters(target.weights, half.visible, half.hidden), target])
    if name.startswith("moments"):
        count = 2 if name == "moments-few" else 8
        return ParameterPath(data, fitted_knots(data, target, own, count, 600, rng))
    few = train[rng.permutation(len(train))[:2000]]
    strength = np.abs(target.weights).sum(1) * (
        1 / (1 + np.exp(-(few @ target.weights.T + target.hidden)))
    ).std(0)
    active = np.argsort(strength)[-FEW:]
    if name == "kept-units":
        begin = Parameters(target.weights, start.visible, target.hidden)
        return ParameterPath(
            few_units(fit_few(begin, active, few, 300, move_weights=False), active), [target]
        )
    noise = rng.normal(0, 0.05, target.weights.shape).astype(np.float32)
    extended = Parameters(
        np.vstack([target.weights, np.zeros((FEW, n_visible), np.float32)]),
        target.visible,
        np.concatenate([target.hidden, np.zeros(FEW, np.float32)]),
    )
    begin = Parameters(
        np.vstack([np.zeros_like(noise), rng.normal(0, 0.05, (FEW, n_visible)).astype(np.float32)]),
        start.visible,
        np.zeros(n_hidden + FEW, np.float32),
    )
    own_units = np.arange(n_hidden, n_hidden + FEW)
    return ParameterPath(
        few_units(fit_few(begin, own_units, few, 600, move_weights=True), own_units), [extended]
    )


def climb(
    path: ParameterPath, times: Array, n: int, rng: np.random.Generator
) -> tuple[npt.NDArray, npt.NDArray]:
    """Log weights (chain,) on the way up, with log Z of the base in them, and mean increments (step,)."""
    v = path.base.sample(n, rng)
    total, steps = np.full(n, path.base.log_z), []
    here = path.at(times[0])
    for t in times[1:]:
        after = path.at(t)
        increment = after.log_f(v) - here.log_f(v)
        total += increment
        steps.append(increment.mean())
        here = after
        v, _ = here.move(v, rng)
    return total, np.array(steps)


def descend(
    path: ParameterPath, times: Array, v: Array, rng: np.random.Generator
) -> tuple[npt.NDArray, npt.NDArray]:
    """The same on the way down from given states: what would be log Z if they were samples, and mean increments."""
    total, steps = np.full(len(v), path.base.log_z), []
    here = path.at(times[-1])
    for t in times[-2::-1]:
        v, _ = here.move(v, rng)
        before = path.at(t)
        increment = here.log_f(v) - before.log_f(v)
        total += increment
        steps.append(increment.mean())
        here = before
    return total, np.array(steps)[::-1]


def spaced(
    path: ParameterPath, states: Array, pilot_steps: int, steps: int, rng: np.random.Generator
) -> Array:
    """Times of the steps, with an equal square root of the loss of both directions in each (pilot in two rounds)."""
    times = np.linspace(0, 1, pilot_steps + 1)
    for count in (pilot_steps, steps):
        _, up = climb(path, times, len(states), rng)
        _, down = descend(path, times, states, rng)
        edges = times[:: len(up) // WINDOWS]
        loss = (down - up).reshape(WINDOWS, -1).sum(1).clip(1e-3)
        widths = np.diff(edges)
        effort = np.sqrt(loss * (len(up) // WINDOWS))  # steps there x loss is constant near equilibrium
        density = (1 - LINEAR_PART) * effort / effort.sum() + LINEAR_PART * widths
        reached = np.concatenate([[0], np.cumsum(density)])
        times = np.interp(np.linspace(0, 1, count + 1), reached / reached[-1], edges)
    return times


def main() -> None:
    """Print a row for every model, path and seed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="*", default=list(MODELS))
    names = [
        "data",
        "uniform",
        "bias-first",
        "weights-first",
        "moments",
        "moments-few",
        "small-rbm",
        "kept-units",
    ]
    parser.add_argument("--paths", nargs="+", default=names, choices=names)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--chains", type=int, default=200)
    parser.add_argument("--seeds", type=int, default=2)
    asked = parser.parse_args()
    print(
        f"| model | path | seed | loss | ± | log Z up | ± | ess of {asked.chains} | mean log w up | seconds |",
        flush=True,
    )
    print("|---|---|---:|---:|---:|---:|---:|---:|---:|---:|", flush=True)
    for name in asked.models:
        model, data = mp.load(ZOO / f"{name}.npz"), mp.datasets.load(MODELS[name])
        target = Parameters(
            *(np.asarray(x, np.float32) for x in (model.weights.T, model.visible_bias, model.hidden_bias))
        )
        train, test = data.train.astype(np.float32), data.test.astype(np.float32)
        for seed in range(asked.seeds):
            own = train[np.random.default_rng([seed, 1]).permutation(len(train))[:500]]
            for step in range(200):
                own, _ = target.move(own, np.random.default_rng([seed, 2, step]))
            for kind in asked.paths:
                rng = np.random.default_rng([seed, 3])
                begun = time.process_time()
                path = build(kind, target, train, own, rng)
                pilot = train[rng.permutation(len(train))[:64]]
                times = spaced(path, pilot, 500, asked.steps, rng)
                up, _ = climb(path, times, asked.chains, rng)
                down, _ = descend(path, times, test[rng.permutation(len(test))[: asked.chains]], rng)
                weights = np.exp(up - up.max())
                ess = weights.sum() ** 2 / (weights**2).sum()
                log_z = np.log(weights.mean()) + up.max()
                error = np.sqrt((down.var() + up.var()) / asked.chains)
                print(
                    f"| {name} | {kind} | {seed} | {down.mean() - up.mean():.2f} | {error:.2f} | {log_z:.2f} | "
                    f"{np.sqrt(max(0, 1 / ess - 1 / asked.chains)):.2f} | {ess:.1f} | {up.mean():.2f} | "
                    f"{time.process_time() - begun:.0f} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
