"""Variants of RAISE with N particles, at equal chain-steps: islands, sizes of a run, and dependent starts.

python benchmarks/particle_variants.py islands --model mnistPCD-20 --examples 25 --steps 300 --chains 1600
python benchmarks/particle_variants.py sizes --model mnistPCD-20 --examples 50 --chains 400
python benchmarks/particle_variants.py starts --model digits --steps 10 100 --chains 3200

Chains that melt examples and chains that run forwards are counted alike. Errors are standard errors over seeds; the
examples are the same for all seeds. docs/decisions/particles.md says what was found.
"""

import argparse
import itertools
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp, softmax

import meltpoint as mp
from meltpoint.annealing.blocks import Segment
from meltpoint.annealing.loop import anneal, prepare_path
from meltpoint.backends.backend import PreparedPath
from meltpoint.estimators.ais import run_ais
from meltpoint.estimators.particles import particle_log_prob
from meltpoint.estimators.raise_ import run_raise
from meltpoint.kernels.streams import Streams
from meltpoint.layers.unit import Bits, Floats
from meltpoint.models.model import Model
from meltpoint.randomness import Purpose, generator
from meltpoint.statistics.log_space import log_mean_exp

ROOT = Path(__file__).resolve().parents[1]
SHARED = ROOT.parent / "shared"
REFERENCE_STEPS, REFERENCE_CHAINS = 10_000, 200
"""Of the long AIS run that stands for an exact log Z where there is none."""


@dataclass(frozen=True, eq=False)
class Islands:
    """Islands of m particles along a path, cut at the betas where an island may resample its particles.

    An island resamples (multinomially) where its effective sample size is below `threshold` times m; 2 is always. Its
    weight, the product of the mean weights between resamplings, is unbiased for Z. m = 1 is a chain of AIS.
    """

    prepared: PreparedPath
    betas: Floats
    cuts: tuple[int, ...]  # positions in betas, increasing, without the ends
    m: int
    seed: int
    threshold: float = 0.5

    @property
    def edges(self) -> list[int]:
        """Cuts and ends: positions in betas."""
        return [0, *self.cuts, self.betas.size - 1]

    @property
    def log_z_base(self) -> float:
        """What every log weight begins with."""
        return self.prepared.path.log_z_base + self.prepared.path.target.log_constant

    def forward(self, n: int) -> tuple[Floats, Bits]:
        """Log weights (island,) of n islands and a state (island, unit) of each, in proportion to their weights."""
        states = np.zeros((n, self.m, self.prepared.path.target.n_state), np.uint8)
        log_weights, states, own = self._run(states, None, 0)
        noise = generator(self.seed, Purpose.AIS, 1, 0).gumbel(size=own.shape)
        chosen = np.argmax(own + noise, axis=1)
        return log_weights, states[np.arange(n), chosen]

    def conditional(self, visible: Bits) -> Floats:
        """Log weights (example,) of islands of which one particle's path is that along which an example is melted."""
        kept_states, kept_weights = self._melt(visible)
        states = np.zeros((len(visible), self.m, visible.shape[1]), np.uint8)
        return self._run(states, (kept_states, kept_weights), 1)[0]

    def _melt(self, visible: Bits) -> tuple[list[Bits], Floats]:
        """The state (example, unit) before each cut, and a forward chain's log weights (example, part) of the path.

        A forward chain comes to a cut at beta c with the state that a melting chain has after its sweep at c.
        """
        state, kept, weights = visible, [], []
        keys = np.arange(len(visible))
        parts = list(itertools.pairwise(self.edges))
        for k, (low, high) in reversed(list(enumerate(parts))):
            first = Segment(self.betas[[high, high - 1]], reversed_sweeps=True)
            run = anneal(self.prepared, [first], state, self._streams(2, k, keys))
            kept.append(run.state)
            log_weights = run.log_weights
            if high - 1 > low:
                rest = Segment(self.betas[low:high][::-1].copy(), reversed_sweeps=True)
                run = anneal(self.prepared, [rest], run.state, self._streams(3, k, keys))
                log_weights = log_weights + run.log_weights
            state = run.state
            weights.append(-log_weights)
        return kept[::-1], np.stack(weights[::-1], axis=1)

    def _run(
        self, states: NDArray[np.uint8], kept: tuple[list[Bits], Floats] | None, number: int
    ) -> tuple[Floats, NDArray[np.uint8], Floats]:
        """Islands' log weights (island,), final states (island, particle, unit) and their own log weights.

        Where paths are kept, the first particle of each island has one, and is never replaced.
        """
        n, m = states.shape[:2]
        fresh = slice(0 if kept is None else 1, None)
        total, own = np.full(n, self.log_z_base), np.zeros((n, m))
        rng = generator(self.seed, Purpose.AIS, 2, number)
        for k, (low, high) in enumerate(itertools.pairwise(self.edges)):
            if k:
                ess = np.exp(2 * logsumexp(own, axis=1) - logsumexp(2 * own, axis=1))
                low_ess = np.flatnonzero(ess < self.threshold * m) if m > 1 else np.zeros(0, int)
                edges = np.cumsum(softmax(own[low_ess], axis=1), axis=1)
                drawn = rng.random((len(low_ess), m, 1)) * edges[:, np.newaxis, -1:]
                ancestors = (drawn > edges[:, np.newaxis, :]).sum(axis=2)
                resampled = states[low_ess[:, np.newaxis], ancestors]
                states[low_ess, fresh] = resampled[:, fresh]
                total[low_ess] += log_mean_exp(own[low_ess])
                own[low_ess] = 0.0
            moving = states[:, fresh].reshape(-1, states.shape[2])
            if len(moving):
                keys = np.arange(len(moving))
                run = anneal(
                    self.prepared,
                    [Segment(self.betas[low : high + 1])],
                    moving,
                    self._streams(number, k, keys),
                )
                states[:, fresh] = run.state.reshape(n, -1, states.shape[2])
                own[:, fresh] += run.log_weights.reshape(n, -1)
            if kept is not None:
                states[:, 0] = kept[0][k]
                own[:, 0] += kept[1][:, k]
        return total + log_mean_exp(own), states, own

    def _streams(self, number: int, part: int, keys: NDArray[np.integer]) -> Streams:
        constant = np.full(len(keys), number), np.full(len(keys), part)
        return Streams(self.seed, Purpose.AIS, np.stack([keys, *constant], axis=1))


def islands_log_prob(log_f: Floats, own: Floats, forward: Floats) -> Floats:
    """Log (…, example) of f(v) N / (Z_own + the sum of N - 1 forward Z), from islands' log weights (…, N - 1)."""
    others = forward.shape[-1]
    log_sum = np.logaddexp(own, logsumexp(forward, axis=-1, keepdims=True)) if others else own
    return log_f + np.log(others + 1) - log_sum


def equal_cuts(steps: int, parts: int) -> tuple[int, ...]:
    """Positions that cut so many steps into parts of about the same number, at most one part for each step."""
    return tuple(np.linspace(0, steps, min(parts, steps) + 1).round().astype(int)[1:-1].tolist())


def latin_uniforms(groups: int, k: int, units: int, rng: np.random.Generator) -> Floats:
    """Uniforms (group, chain of the group, unit): each chain's are independent, each unit's k lie in k strata."""
    order = rng.permuted(np.tile(np.arange(k)[:, np.newaxis], (groups, 1, units)), axis=1)
    return (order + rng.random(order.shape)) / k


def antithetic_uniforms(groups: int, units: int, rng: np.random.Generator) -> Floats:
    """Uniforms (group, chain of the pair, unit): u and 1 - u."""
    u = rng.random((groups, 1, units))
    return np.concatenate([u, 1 - u], axis=1)


def started_log_weights(prepared: PreparedPath, betas: Floats, uniforms: Floats, seed: int) -> Floats:
    """AIS log weights (group, chain) of chains whose first states are drawn with these uniforms."""
    path = prepared.path
    rates = 1 / (1 + np.exp(-path.base[0]))
    state = (uniforms.reshape(-1, uniforms.shape[2]) < rates).astype(np.uint8)
    first = path.log_f(betas[1], state) - path.log_f(betas[0], state)
    streams = Streams(seed, Purpose.AIS, np.arange(len(state)))
    run = anneal(prepared, [Segment(betas[1:])], state, streams)
    log_z_base = path.log_z_base + path.target.log_constant
    return (log_z_base + first + run.log_weights).reshape(uniforms.shape[:2])


@dataclass(frozen=True, eq=False)
class Case:
    """A model, its test examples, the base and the schedule evaluate would use, and log Z (exact, or of a long run)."""

    name: str
    model: Model
    test: Bits
    base: mp.Base
    betas: Callable[[int], Floats]
    log_z: float


def load_case(name: str, examples: int, base_name: str, log_z: float | None) -> Case:
    """The case with this name; its log Z, if it is not known, is computed."""
    data = mp.datasets.load("digits" if name == "digits" else "mnist")
    model = mp.train_rbm(data.train, hidden=16) if name == "digits" else mp.load(ROOT / "zoo" / f"{name}.npz")
    base = mp.uniform() if base_name == "uniform" else mp.data_rates(data.train, model)
    test = data.test[np.random.default_rng(0).choice(len(data.test), examples, replace=False)]
    betas = mp.friction_schedule(model, data.train, base=base, seed=0).betas
    if log_z is None and min(model.layer_sizes) <= 20:
        log_z = mp.exact_log_z(model)
    if log_z is None:
        how = {"steps": betas(REFERENCE_STEPS), "chains": REFERENCE_CHAINS, "seed": 10**6}
        reference = mp.ais_log_z(model, base=base, **how)
        print(f"{reference!r} stands for the exact value", flush=True)
        log_z = reference.value
    return Case(name, model, test, base, betas, log_z)


def summary(values: Floats) -> str:
    """Mean and standard error over seeds."""
    return f"{np.mean(values):.4f} ± {np.std(values, ddof=1) / np.sqrt(len(values)):.4f}"


def both_ends(case: Case, ends: list[tuple[float, float]]) -> str:
    """AIS's end less the exact value, its RMS error, and the gaps to both, from each seed's ends less log f."""
    high, low = np.array(ends).T
    rms = np.sqrt(np.mean((high + case.log_z) ** 2))
    return f"{summary(high + case.log_z)} | {rms:.4f} | {summary(high - low)} | {summary(-case.log_z - low)}"


def measure_islands(
    case: Case, seeds: int, steps: int, chains: int, variants: list[tuple[int, int, float]]
) -> Iterator[str]:
    """One line for each m, parts and threshold: all of them cost chains x steps."""
    ends_of = "AIS's end - exact | its RMS error | gap to AIS's end | gap to exact"
    yield f"| m | parts | resample below | forward | {ends_of} |"
    yield "|---|---|---|---|---|---|---|---|"
    prepared = prepare_path(case.model.path(case.base), "float32")
    log_f = case.model.log_f(case.test)
    betas = case.betas(steps)
    for m, parts, threshold in variants:
        n = (chains - m * len(case.test)) // m
        ends = []
        for seed in range(seeds):
            islands = Islands(prepared, betas, equal_cuts(steps, parts), m, seed, threshold)
            forward = islands.forward(n)[0]
            own = islands.conditional(case.model.encode(case.test))
            low = float(np.mean(islands_log_prob(log_f, own, forward) - log_f))
            ends.append((-float(log_mean_exp(forward)), low))
        yield f"| {m} | {parts} | {threshold:g} m | {n} | {both_ends(case, ends)} |"


def measure_sizes(case: Case, seeds: int, chain_steps: int, step_numbers: list[int]) -> Iterator[str]:
    """One line for each number of steps and of melting chains: all of them cost the same chain-steps."""
    yield "| steps | melting | forward | AIS's end - exact | its RMS error | gap to AIS's end | gap to exact |"
    yield "|---|---|---|---|---|---|---|"
    log_f = case.model.log_f(case.test)
    n, states = len(case.test), case.model.encode(case.test)
    prepared = prepare_path(case.model.path(case.base))
    for steps in step_numbers:
        betas, chains = case.betas(steps), chain_steps // steps
        meltings = [melting for melting in (1, 2, 4) if n * melting < chains]
        found: dict[int, list[tuple[float, float]]] = {}
        for seed in range(seeds):
            forward = run_ais(prepared, betas, np.arange(chains - n), seed).log_weights
            melted = run_raise(
                case.model, prepared, betas, states, np.arange(n), np.arange(max(meltings)), seed
            )
            for melting in meltings:
                used = forward[: chains - n * melting]
                weights = melted.log_weights[:, :melting], melted.log_reverse_weights[:, :melting]
                low = float(np.mean(particle_log_prob(*weights, used).values - log_f))
                found.setdefault(melting, []).append((-float(log_mean_exp(used)), low))
        for melting, ends in found.items():
            yield f"| {steps} | {melting} | {chains - n * melting} | {both_ends(case, ends)} |"


def measure_starts(case: Case, seeds: int, step_numbers: list[int], chains: int) -> Iterator[str]:
    """One line for each number of steps and kind of start.

    For each seed the log of the variance of a group's mean (of log weights, and of weights) over that of groups of as
    many independent chains: 0 is no gain.
    """
    yield "| steps | start | log ratio of variances of log weights | of weights |"
    yield "|---|---|---|---|"
    prepared = prepare_path(case.model.path(case.base), "float32")
    units = prepared.path.target.n_state
    for steps in step_numbers:
        betas = case.betas(steps)
        found: dict[str, list[Floats]] = {}
        for seed in range(seeds):
            rng = np.random.default_rng(seed)
            kinds = {
                "independent": rng.random((chains // 16, 16, units)),
                "independent, again": rng.random((chains // 16, 16, units)),
                "antithetic pairs": antithetic_uniforms(chains // 2, units, rng),
                "Latin hypercube, 16": latin_uniforms(chains // 16, 16, units, rng),
            }
            log_weights = {
                kind: started_log_weights(prepared, betas, uniforms, seed * len(kinds) + number)
                for number, (kind, uniforms) in enumerate(kinds.items())
            }
            for kind, own in list(log_weights.items())[1:]:
                plain = log_weights["independent"].reshape(-1, own.shape[1])
                found.setdefault(kind, []).append(np.log(group_variances(own) / group_variances(plain)))
        for kind, ratios in found.items():
            of_log_weights, of_weights = np.array(ratios).T
            yield f"| {steps} | {kind} | {summary(of_log_weights)} | {summary(of_weights)} |"


def group_variances(log_weights: Floats) -> Floats:
    """Variances (2,) of groups' mean log weight and mean relative weight, from log weights (group, chain)."""
    relative = np.exp(log_weights - log_mean_exp(log_weights.ravel()))
    return np.array([np.var(w.mean(axis=1), ddof=1) for w in (log_weights, relative)])


def main() -> None:
    """Print a table, line by line as they come."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["islands", "sizes", "starts"])
    parser.add_argument("--model", default="digits", help="digits, or a model of zoo/ trained on MNIST")
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--examples", type=int, default=100)
    parser.add_argument("--steps", type=int, nargs="+", default=[750, 1500, 3000, 6000])
    parser.add_argument(
        "--chains", type=int, default=800, help="all chains, at the third number of steps for sizes"
    )
    parser.add_argument("--m", type=int, nargs="+", default=[1, 4, 16], help="particles of an island")
    parser.add_argument(
        "--parts", type=int, nargs="+", default=[10, 10, 40], help="with chances to resample between"
    )
    parser.add_argument(
        "--below", type=float, nargs="+", default=[0.5, 2.0, 0.5], help="resample below this times m"
    )
    parser.add_argument("--base", choices=["data", "uniform"], default="data")
    parser.add_argument("--log-z", type=float, help="instead of computing it")
    arguments = parser.parse_args()
    os.environ.setdefault("MELTPOINT_DATA", str(SHARED / "data"))
    case = load_case(arguments.model, arguments.examples, arguments.base, arguments.log_z)
    steps = arguments.steps
    if arguments.what == "islands":
        ways = list(zip(arguments.parts, arguments.below, strict=True))
        variants = [(m, *way) for m in arguments.m for way in (ways if m > 1 else ways[:1])]
        lines = measure_islands(case, arguments.seeds, steps[0], arguments.chains, variants)
    elif arguments.what == "sizes":
        chain_steps = arguments.chains * steps[min(2, len(steps) - 1)]
        lines = measure_sizes(case, arguments.seeds, chain_steps, steps)
    else:
        lines = measure_starts(case, arguments.seeds, steps, arguments.chains)
    for line in lines:
        print(line, flush=True)


if __name__ == "__main__":
    main()
