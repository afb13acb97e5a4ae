"""The real functions, kernels and all, agree with enumeration within bounds that hold for every sample size.

Bernstein's inequality with the enumerated variance and the enumerated largest weight leaves a false-alarm
probability of 1e-6 per test. Beside each bound stands what it can tell: the algorithm as printed lies outside.
"""

import numpy as np
import pytest

from meltpoint.annealing.blocks import Segment
from meltpoint.estimators.ais import ais_log_z
from meltpoint.estimators.raise_ import raise_log_prob
from meltpoint.estimators.sampling import sample_annealing_model
from oracle.concentration import FALSE_ALARM, bernstein
from oracle.driving import models
from oracle.driving.estimates import weight_moments
from oracle.driving.mutants import moves_as_printed
from oracle.driving.steps import moments
from oracle.driving.truth import oracle_path, p_ann
from oracle.tables import all_states, code

BETAS = np.array([0.0, 0.2, 0.5, 1.0])
RBM = models.rbm(11, 2, 3)
DBM = models.dbm(11, [2, 2, 2])
DBN = models.dbn(11, [2, 2, 2])
CASES = [(RBM, "mixed"), (RBM, "float32"), (RBM, "float64"), (DBM, "mixed"), (DBN, "mixed")]
case = pytest.mark.parametrize(("model", "precision"), CASES, ids=str)


@case
def test_ais(model, precision) -> None:
    base, n = models.base("every layer", model), 4000
    path = model.path(base)
    weights = moments(path, [Segment(BETAS)])
    mean, square, largest = weights.mean[0], weights.square[0], weights.largest[0]
    assert np.exp(path.log_z_base) * mean == pytest.approx(oracle_path(model, base).z(1.0))
    allowed = bernstein(n, square - mean**2, largest)
    run = ais_log_z(model, base=base, steps=BETAS, chains=n, seed=5, precision=precision, threads=1)
    assert abs(np.exp(run.log_weights - path.log_z_base).mean() - mean) < allowed
    assert abs(moments(path, [Segment(BETAS)], moves_as_printed).mean[0] - mean) > allowed


@case
def test_raise(model, precision) -> None:
    base, n = models.base("every layer", model), 2000
    weights = weight_moments(model, base, BETAS)
    np.testing.assert_allclose(weights.mean, p_ann(model, base, BETAS), rtol=1e-9)
    one_of_many = FALSE_ALARM / weights.mean.size
    allowed = np.array(
        [
            bernstein(n, square - mean**2, largest, one_of_many)
            for mean, square, largest in zip(weights.mean, weights.square, weights.largest, strict=True)
        ]
    )
    x = all_states(model.n_visible)
    run = raise_log_prob(model, x, base=base, steps=BETAS, chains=n, seed=6, precision=precision, threads=1)
    assert (np.abs(np.exp(run.log_weights).mean(axis=1) - weights.mean) < allowed).all()
    printed = weight_moments(model, base, BETAS, moves_as_printed).mean
    assert (np.abs(printed - weights.mean) > allowed).any()


@case
def test_samples_of_the_annealing_model(model, precision) -> None:
    base, n = models.base("every layer", model), 8000
    expected = p_ann(model, base, BETAS)
    allowed = np.array([bernstein(n, p * (1 - p), 1.0, FALSE_ALARM / expected.size) for p in expected])
    drawn = sample_annealing_model(model, n, base=base, steps=BETAS, seed=7, precision=precision, threads=1)
    frequency = np.bincount(code(drawn), minlength=expected.size) / n
    assert (np.abs(frequency - expected) < allowed).all()
    without_last_move = p_ann(model, base, BETAS[:-1])
    assert (np.abs(without_last_move - expected) > allowed).any()
