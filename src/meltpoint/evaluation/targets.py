"""What is known of the test set without annealing: log f, and the exact value where a side is small."""

import numpy as np

from meltpoint.errors import Progress
from meltpoint.estimators.exact import exact_log_z
from meltpoint.models import Model, mrf_of
from meltpoint.models.checks import Bits
from meltpoint.models.log_f import LogF
from meltpoint.models.rbm import RBM
from meltpoint.report.compose import mean_error
from meltpoint.statistics.estimate import Estimate

_EXACT_UNITS = 20
_ROWS = 4096


def log_f_of(model: Model, bits: Bits, seed: int, progress: Progress | None) -> LogF:
    """Log f of every test example: exact for an RBM, estimated for a deep model."""
    if isinstance(model, RBM):
        values = np.concatenate([model.log_f(bits[low : low + _ROWS]) for low in range(0, len(bits), _ROWS)])
        return LogF(values, np.zeros(len(bits)), values)
    return model.log_f_estimate(bits, seed=seed, progress=progress)


def exact_mean(
    model: Model, exact: bool | None, log_f: LogF, threads: int, progress: Progress | None
) -> Estimate | None:
    """The exact mean log-probability, None unless it is cheap (`exact` None) or wanted."""
    two = mrf_of(model).bipartite
    wanted = min(two.n_even, two.n_odd) <= _EXACT_UNITS if exact is None else exact
    if not wanted:
        return None
    value = float(np.mean(log_f.values)) - exact_log_z(model, threads=threads, progress=progress)
    error = mean_error(log_f)
    return Estimate(
        value, error, "exact", "nothing to cover: log Z by enumeration" if error == 0 else "log f"
    )
