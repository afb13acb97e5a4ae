"""How far the library is from the truth: the same checks serve the library and its mutants."""

from typing import Any

import numpy as np

from meltpoint.annealing.base import Base
from meltpoint.layers.unit import Floats
from meltpoint.models import Model
from oracle.driving.estimates import expected_probabilities, expected_z, sampled_distribution
from oracle.driving.truth import oracle_path, p_ann

EXACT = 1e-12
"""Relative error that float64 arithmetic may leave in an enumerated expectation."""

LOUD = 1e-3
"""Relative error above which a check rejects without doubt: nine digits from EXACT."""


def ais_error(model: Model, base: Base, betas: Floats, anneal: Any = None) -> float:
    """Relative error of E[Z estimated by `ais_log_z`]."""
    return abs(expected_z(model, base, betas, anneal) / oracle_path(model, base).z(1.0) - 1)


def raise_error(model: Model, base: Base, betas: Floats, anneal: Any = None) -> float:
    """Largest relative error, over all v, of E[p(v) estimated by `raise_log_prob`] as an estimate of p_ann(v)."""
    return _largest(expected_probabilities(model, base, betas, anneal), p_ann(model, base, betas))


def sampling_error(model: Model, base: Base, betas: Floats, change_segments: Any = list) -> float:
    """Largest relative error, over all v, of the distribution `sample_annealing_model` draws from."""
    return _largest(sampled_distribution(model, base, betas, change_segments), p_ann(model, base, betas))


def _largest(found: Floats, expected: Floats) -> float:
    return float(np.abs(found / expected - 1).max())
