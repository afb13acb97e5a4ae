"""Couplings in named arrays: the same model from either triangle, and none from what contradicts itself."""

import numpy as np
import pytest

import meltpoint as mp


def test_couplings_of_a_potts_model_are_symmetric_or_triangular(tmp_path):
    rng = np.random.default_rng(0)
    n, q = 4, 3
    fields, upper = rng.normal(size=(n, q)), np.zeros((n, n, q, q))
    for i, j in zip(*np.triu_indices(n, 1), strict=True):
        upper[i, j] = rng.normal(size=(q, q))
    lower = upper.transpose(1, 0, 3, 2)
    states = rng.integers(0, q, (20, n))
    expected = mp.Potts(upper + lower, fields).log_f(states)
    for couplings in (upper, lower, upper + lower):
        np.savez(tmp_path / "model.npz", J=couplings, h=fields)
        np.testing.assert_allclose(mp.load(tmp_path / "model.npz").log_f(states), expected, atol=1e-12)
    np.savez(tmp_path / "model.npz", J=upper + 2 * lower, h=fields)
    with pytest.raises(mp.InputError, match="J\\[j, i, b, a\\]"):
        mp.load(tmp_path / "model.npz")
