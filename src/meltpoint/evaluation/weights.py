"""Log weights of a stage, as far as they are known."""

import numpy as np
from numpy.typing import NDArray

from meltpoint.estimators.ais import LogZ, log_z_of
from meltpoint.estimators.reverse import LogProb, log_prob_of
from meltpoint.evaluation.plan import Task
from meltpoint.models.checks import Floats


class Weights:
    """Log weights (chain,) of AIS and (example, chain) of RAISE, filled in task by task.

    >>> weights = Weights(examples=2, chains=3, ais_chains=4)
    >>> weights.put(Task("ais", 0, 2), np.zeros(2))
    >>> print(weights.log_z().value, weights.log_prob(), weights.complete)
    0.0 None False
    """

    def __init__(self, examples: int, chains: int, ais_chains: int) -> None:
        self._log_weights = {"ais": np.zeros(ais_chains), "raise": np.zeros((examples, chains))}
        self._known = {"ais": np.zeros(ais_chains, np.bool_), "raise": np.zeros(examples, np.bool_)}

    def put(self, task: Task, log_weights: Floats) -> None:
        """Take in the results of a task."""
        self._log_weights[task.estimator][task.part] = log_weights
        self._known[task.estimator][task.part] = True

    @property
    def complete(self) -> bool:
        """Whether all chains are known."""
        return all(known.all() for known in self._known.values())

    @property
    def ais_known(self) -> bool:
        """Whether all chains of AIS are known."""
        return bool(self._known["ais"].all())

    @property
    def examples(self) -> NDArray[np.integer]:
        """Positions (example,), among the stage's examples, of those whose chains are all known."""
        return np.flatnonzero(self._known["raise"])

    def log_z(self) -> LogZ | None:
        """The estimate from the known chains of AIS, None without any."""
        known = self._known["ais"]
        return log_z_of(self._log_weights["ais"][known]) if known.any() else None

    def log_prob(self) -> LogProb | None:
        """The estimates for the known examples, None without any."""
        known = self._known["raise"]
        return log_prob_of(self._log_weights["raise"][known]) if known.any() else None
