"""What is known when Ctrl-C comes too early for a report."""

from meltpoint.estimators.ais import LogZ
from meltpoint.statistics.estimate import Estimate


class Interrupted(KeyboardInterrupt):
    """Ctrl-C when AIS had an answer and RAISE had none: one side of the bracket, so no report.

    `log_z` is what AIS found with the chains that were finished, `optimistic` the likelihood that follows.
    """

    def __init__(self, optimistic: Estimate, log_z: LogZ, ais_chains: int) -> None:
        done = len(log_z.log_weights)
        stage = (
            f"of {ais_chains:,} AIS chains, {done:,} were finished" if done < ais_chains else "AIS was done"
        )
        super().__init__(
            f"{stage}, RAISE had finished no example: optimistic {optimistic}, conservative unknown "
            f"(log Z {log_z})"
        )
        self.optimistic = optimistic
        self.log_z = log_z
