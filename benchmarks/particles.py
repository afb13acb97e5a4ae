"""RAISE with N particles against RAISE with one: the same examples, and the same number of chain-steps.

python benchmarks/particles.py --quick                 # the paper's model, few steps
python benchmarks/particles.py --out particles.jsonl   # the paper's model and the ten of zoo/; finished rows are kept

Every row anneals `forward` AIS chains and melts one chain per example (three for a DBN): N = 1, 10, 100 and all of them
use the same chains. Beside it stands RAISE with one particle and as many chains per example as cost the same.
"""

import argparse
import json
import os
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

import meltpoint as mp

ROOT = Path(__file__).resolve().parents[1]
SHARED = ROOT.parent / "shared"
PAPER_MODEL = SHARED / "models" / "mnistvh_CD25.mat"


@dataclass(frozen=True)
class Row:
    """A model, a base, a number of steps and how they are spaced, forward chains, examples, chains per example."""

    model: str
    base: str
    steps: int
    schedule: str
    forward: int
    examples: int = 100
    melting: int = 1


def rows(quick: bool) -> list[Row]:
    """What is measured."""
    paper = "mnistvh_CD25"
    if quick:
        return [Row(paper, "data", 300, "friction", 200, 30)]
    sizes = [(300, "friction"), (1000, "linear"), (1000, "friction"), (3000, "linear"), (3000, "friction")]
    zoo = sorted(path.stem for path in (ROOT / "zoo").glob("*.npz"))
    return [
        *(Row(paper, "data", steps, schedule, 1000) for steps, schedule in sizes),
        Row(paper, "uniform", 3000, "friction", 1000),
        # A DBN's recognition draws are noise that forward chains do not average: three melting chains at the same cost.
        *(
            Row(name, base, 2000, "friction", *((300, 100, 3) if "DBN" in name else (500, 100, 1)))
            for name in zoo
            for base in ("data", "uniform")
        ),
    ]


def measure(row: Row, seed: int) -> dict[str, object]:
    """All numbers of a row."""
    model = mp.load(PAPER_MODEL if row.model == "mnistvh_CD25" else ROOT / "zoo" / f"{row.model}.npz")
    data = mp.datasets.load("omniglot" if row.model.startswith("omni") else "mnist")
    base = mp.uniform() if row.base == "uniform" else mp.data_rates(data.train, model)
    test = data.test[np.random.default_rng(0).choice(len(data.test), row.examples, replace=False)]
    log_f = model.log_f(test)
    steps = row.steps
    if row.schedule == "friction":
        steps = mp.friction_schedule(model, data.train, base=base, seed=seed).betas(row.steps)
    how = {"base": base, "steps": steps, "seed": seed}
    begun = time.perf_counter()
    forward = mp.ais_log_z(model, chains=row.forward, **how)
    melted = {
        n: mp.raise_log_prob(model, test, chains=row.melting, forward=forward, particles=n, **how)
        for n in (1, 10, 100, row.forward + 1)
        if n <= row.forward + 1
    }
    seconds = time.perf_counter() - begun
    chains = row.melting + row.forward // row.examples
    equal = mp.raise_log_prob(model, test, chains=chains, **how)
    optimistic = float(log_f.mean() - forward.value)
    exact = None
    if min(sum(model.layer_sizes[0::2]), sum(model.layer_sizes[1::2])) <= 20:
        exact = float(log_f.mean() - mp.exact_log_z(model))
    return {
        **asdict(row),
        "seed": seed,
        "ais": optimistic,
        "ess": forward.ess,
        "raise": {str(n): [float(p.values.mean()), _error(p.values - log_f)] for n, p in melted.items()},
        "gap_error": _gap_error(melted[max(melted)], log_f, forward),
        "raise_equal_cost": [float(equal.values.mean()), _error(equal.values - log_f)],
        "chains_equal_cost": chains,
        "exact": exact,
        "seconds": round(seconds, 1),
    }


def _error(differences: np.ndarray) -> float:
    return float(np.std(differences, ddof=1) / np.sqrt(len(differences)))


def _gap_error(prob: mp.LogProb, log_f: np.ndarray, forward: mp.LogZ) -> float:
    """Standard error of the gap: that of the examples, and what is left of the forward chains' common error."""
    common = (1 - prob.forward_shares.mean()) * forward.stderr
    return float(np.hypot(_error(prob.values - log_f), common))


def show(found: dict[str, object]) -> str:
    """A row of a Markdown table."""
    particles = found["raise"]
    cells = [
        f"{found['model']}, {found['base']}, {found['steps']:,} {found['schedule']}",
        f"{found['ais']:.2f}",
    ]
    cells += [f"{value:.2f} ± {error:.2f}" for value, error in particles.values()]
    value, error = found["raise_equal_cost"]
    cells.append(f"{value:.2f} ± {error:.2f} ({found['chains_equal_cost']} chains)")
    cells.append("" if found["exact"] is None else f"{found['exact']:.2f}")
    return f"| {' | '.join(cells)} |"


def factor_saved(kept: list[dict[str, object]]) -> str:
    """How many times the chain-steps N = 1 needs for the gap that N particles reach, on the paper's model.

    The gap of one particle falls as a power of its steps between the rows that were measured; forward chains are
    counted for N particles, and RAISE's chains alone for one.
    """
    mine = [
        r
        for r in kept
        if r["model"] == "mnistvh_CD25" and r["base"] == "data" and r["schedule"] == "friction"
    ]
    if len(mine) < 2:
        return ""
    mine.sort(key=lambda r: r["steps"])
    truth = min(r["ais"] for r in mine[-1:])
    one = np.array([[r["steps"], truth - r["raise_equal_cost"][0]] for r in mine])
    slope, offset = np.polyfit(np.log(one[:, 0]), np.log(one[:, 1]), 1)
    lines = []
    for r in mine:
        n = str(max(map(int, r["raise"])))
        gap = max(truth - r["raise"][n][0], r["gap_error"])
        needed = np.exp((np.log(gap) - offset) / slope) * r["examples"] * r["chains_equal_cost"]
        spent = r["steps"] * (r["forward"] + r["examples"] * r["melting"])
        lines.append(
            f"{r['steps']:,} steps, N = {n}: gap {gap:.2f}, chain-steps saved {needed / spent:.1f} x"
        )
    return "\n".join(lines)


def main() -> None:
    """Print the table, row by row as they come."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, help="keep finished rows in this file, and go on from there")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="one row with few steps")
    arguments = parser.parse_args()
    os.environ.setdefault("MELTPOINT_DATA", str(SHARED / "data"))
    kept = []
    if arguments.out and arguments.out.exists():
        kept = [json.loads(line) for line in arguments.out.read_text().splitlines()]
    print("| model, base, steps | AIS | N = 1 | N = 10 | N = 100 | all | N = 1 at equal cost | exact |")
    print("|---|---|---|---|---|---|---|---|")
    for row in rows(arguments.quick):
        found = next((r for r in kept if all(r.get(k) == v for k, v in asdict(row).items())), None)
        if found is None:
            found = measure(row, arguments.seed)
            kept.append(found)
            if arguments.out:
                with arguments.out.open("a") as file:
                    file.write(json.dumps(found) + "\n")
        print(show(found), flush=True)
    print(factor_saved(kept))


if __name__ == "__main__":
    main()
