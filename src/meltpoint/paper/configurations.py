"""Which hidden configurations carry an RBM's probability: all of them, by enumeration."""

import math
from typing import Any

import numpy as np
from scipy.special import logsumexp

from meltpoint.errors import Progress
from meltpoint.models.checks import Floats
from meltpoint.models.rbm import RBM
from meltpoint.units.bernoulli import sum_softplus

_LOW = 10  # units whose configurations are added up at once
_SHOWN = 10
_SHARE = 0.9


def configuration_log_probs(rbm: RBM, progress: Progress | None = None) -> Floats:
    """log p(h) (configuration,) of every hidden configuration, visible units summed out.

    >>> configuration_log_probs(RBM([[0.0]], [0.0], [0.0])).round(4)
    array([-0.6931, -0.6931])
    """
    low = min(_LOW, rbm.n_hidden)
    low_states, high_states = _states(low), _states(rbm.n_hidden - low)
    low_field = low_states @ rbm.weights[:, :low].T + rbm.visible_bias
    log_f = np.empty((len(high_states), len(low_states)))
    for k, high in enumerate(high_states):
        log_f[k] = sum_softplus(low_field + rbm.weights[:, low:] @ high) + high @ rbm.hidden_bias[low:]
        if progress:
            progress("configurations", k + 1.0, float(len(high_states)))
    log_f += low_states @ rbm.hidden_bias[:low]
    total: Any = logsumexp(log_f)
    return (log_f - total).ravel()


def describe_configurations(rbm: RBM, progress: Progress | None = None) -> dict[str, Any]:
    """The largest probabilities, how many configurations carry nine tenths, and the perplexity."""
    log_probs = np.sort(configuration_log_probs(rbm, progress))[::-1]
    probs = np.exp(log_probs)
    return {
        "configurations": len(probs),
        "largest": probs[:_SHOWN].tolist(),
        "share": _SHARE,
        "carry_the_share": int(np.searchsorted(np.cumsum(probs), _SHARE)) + 1,
        "perplexity": math.exp(-float(probs @ log_probs)),
    }


def _states(n: int) -> Floats:
    """All states (state, unit) of n units."""
    return (np.arange(2**n)[:, np.newaxis] >> np.arange(n) & 1).astype(np.float64)
