"""Log weights of a stage, as far as they are known."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from meltpoint.estimators.ais import LogZ, log_z_of
from meltpoint.estimators.reverse import LogProb, particle_log_prob
from meltpoint.evaluation.compute import Result
from meltpoint.evaluation.plan import Task
from meltpoint.runs.store import Store


class Weights:
    """Log weights (chain,) of AIS and (example, chain) of RAISE, filled in task by task.

    >>> weights = Weights(examples=2, chains=3, ais_chains=4)
    >>> weights.put(Task("ais", 0, 2), Result(np.zeros(2), seconds=0.1))
    >>> print(weights.log_z().value, weights.log_prob(), weights.complete)
    0.0 None False
    """

    def __init__(self, examples: int, chains: int, ais_chains: int) -> None:
        self._log_weights = {"ais": np.zeros(ais_chains), "raise": np.zeros((examples, chains))}
        self._known = {"ais": np.zeros(ais_chains, np.bool_), "raise": np.zeros(examples, np.bool_)}
        self.seconds = 0.0

    def put(self, task: Task, result: Result) -> None:
        """Take in the result of a task, and count its seconds."""
        self._log_weights[task.estimator][task.part] = result.log_weights
        self._known[task.estimator][task.part] = True
        self.seconds += result.seconds

    def recall(self, store: Store, folder: str, task: Task) -> bool:
        """Take in what a store has of a task, if it has it."""
        kept = store.read(f"{folder}/{task.name}")
        if kept is None:
            return False
        self.put(task, Result(kept["log_weights"], float(kept["seconds"])))
        return True

    @property
    def ais_chains(self) -> int:
        """Number of AIS chains that are known."""
        return int(self._known["ais"].sum())

    @property
    def examples(self) -> NDArray[np.integer]:
        """Positions (example,), among the stage's examples, of those whose chains are all known."""
        return np.flatnonzero(self._known["raise"])

    @property
    def ais_complete(self) -> bool:
        """Whether all chains of AIS are known."""
        return bool(self._known["ais"].all())

    @property
    def complete(self) -> bool:
        """Whether all chains are known."""
        return self.ais_complete and bool(self._known["raise"].all())

    def log_z(self) -> LogZ | None:
        """The estimate from the known chains of AIS, None without any."""
        known = self._known["ais"]
        return log_z_of(self._log_weights["ais"][known]) if known.any() else None

    def log_prob(self) -> LogProb | None:
        """The estimates for the known examples, None without any."""
        known = self._known["raise"]
        if not known.any():
            return None
        log_weights = self._log_weights["raise"][known]
        return particle_log_prob(log_weights, np.zeros_like(log_weights), np.zeros(0))


def side_by_side(parts: Sequence[Weights]) -> Weights:
    """The weights of several parts as those of one: the same examples, with the chains of all parts."""
    joined = Weights(0, 0, 0)
    joined._log_weights = {
        "ais": np.concatenate([part._log_weights["ais"] for part in parts]),
        "raise": np.concatenate([part._log_weights["raise"] for part in parts], axis=1),
    }
    joined._known = {
        "ais": np.concatenate([part._known["ais"] for part in parts]),
        "raise": np.logical_and.reduce([part._known["raise"] for part in parts]),
    }
    joined.seconds = sum(part.seconds for part in parts)
    return joined
