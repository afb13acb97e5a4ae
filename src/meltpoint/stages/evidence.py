"""Evidence from other starts, computed once for a stage that is reported and kept with it."""

import time
from collections.abc import Callable, Sequence

import numpy as np

from meltpoint.annealing.base import Base
from meltpoint.annealing.schedule import as_betas
from meltpoint.estimators.evidence import Start, Starts
from meltpoint.estimators.starts import Computation, ask_starts
from meltpoint.runs.chunks import ChunkLayout
from meltpoint.runs.contents import evidence_name
from meltpoint.runs.fingerprint import Arrays
from meltpoint.runs.store import Store
from meltpoint.stages.execute import Execution
from meltpoint.stages.stage import Stage, StageWeights

_LAYOUT: ChunkLayout = {
    "names": (("start",), "U"),
    "chains": (("start",), "i"),
    "states": (("start",), "i"),
    "log_weights": ((None,), "f"),
    "log_reverse_weights": ((None,), "f"),
    "modes": ((), "i"),
    "unweighed": ((), "i"),
    "chain_steps": ((), "i"),
    "seconds": ((), "f"),
    "log_z_ceiling": ((), "f"),
}


def other_bases(chosen: str, has_train: bool) -> list[str]:
    """Names of the bases that are asked besides the chosen one.

    The model's own rates come from chains that start at the uniform base, and cost more than all other starts. They are
    used only if there is no other base.
    """
    names = ["data"] if has_train else []
    return [name for name in (*names, "uniform") if name != chosen] or ["model"]


def gather_evidence(
    stage: Stage, weights: StageWeights, bases: Callable[[], Sequence[Base]], execution: Execution
) -> Starts:
    """What other starts found for a stage whose AIS weights are known; from the store, if it has it.

    Which modes are asked depends on the chains that the stage began with, so that the answer is the same whenever it is
    asked for, and holds for the stage as it grows. Other bases have as many steps, equally spaced. Modes are sought in
    this process, also where workers run the chains: that takes half a second.
    """
    kept = recall_evidence(stage, execution.store)
    if kept is not None:
        return kept
    begun = time.perf_counter()
    log_z = weights.log_z()
    assert log_z is not None, "the stage is complete"
    forward = log_z.log_weights[: stage.begun_with[1]]
    linear = as_betas(stage.size.steps)
    run = execution.run.inside(evidence_name(stage.part, stage.index))
    how = Computation(stage.seed, stage.precision, run)
    others = [(base, linear) for base in bases()]
    found = ask_starts(stage.model, stage.base, stage.betas, forward, others, how)
    arrays = _to_arrays(found, time.perf_counter() - begun)
    execution.store.write(evidence_name(stage.part, stage.index), arrays)
    return _from_arrays(arrays)


def recall_evidence(stage: Stage, store: Store) -> Starts | None:
    """What a store has of a stage's other starts."""
    kept = store.read(evidence_name(stage.part, stage.index), _LAYOUT)
    return _from_arrays(kept) if kept else None


def _to_arrays(found: Starts, seconds: float) -> Arrays:
    starts = found.starts
    return {
        "names": np.array([start.name for start in starts], np.str_),
        "chains": np.array([len(start.log_weights) for start in starts], np.int64),
        "states": np.array([len(start.log_reverse_weights) for start in starts], np.int64),
        "log_weights": np.concatenate([np.zeros(0), *(start.log_weights for start in starts)]),
        "log_reverse_weights": np.concatenate(
            [np.zeros(0), *(start.log_reverse_weights for start in starts)]
        ),
        "modes": np.array(found.modes),
        "unweighed": np.array(found.unweighed),
        "chain_steps": np.array(found.chain_steps),
        "seconds": np.array(seconds),
        "log_z_ceiling": np.array(found.log_z_ceiling),
    }


def _from_arrays(arrays: Arrays) -> Starts:
    weights = np.split(arrays["log_weights"], np.cumsum(arrays["chains"])[:-1])
    reverse = np.split(arrays["log_reverse_weights"], np.cumsum(arrays["states"])[:-1])
    starts = [Start(str(name), *own) for name, *own in zip(arrays["names"], weights, reverse, strict=False)]
    return Starts(
        tuple(starts),
        int(arrays["modes"]),
        int(arrays["unweighed"]),
        int(arrays["chain_steps"]),
        float(arrays["seconds"]),
        float(arrays["log_z_ceiling"]),
    )
