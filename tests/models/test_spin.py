"""Spins in RBMs, DBMs and DBNs: the definition with -1 and +1, and the chains of the Bernoulli model they map to."""

import pickle
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import meltpoint as mp
from meltpoint.errors import InputError
from oracle.driving import models
from oracle.tables import all_states

kinds = st.sampled_from(["bernoulli", "spin"])
VALUES = {"bernoulli": (0, 1), "spin": (-1, 1)}


@given(st.integers(1, 4), st.integers(1, 3), kinds, kinds, st.floats(0, 4), st.integers(0, 999))
@settings(max_examples=min(40, settings().max_examples))
def test_an_rbm_is_the_sum_over_its_hidden_values(n_visible, n_hidden, visible, hidden, scale, seed) -> None:
    rbm = models.rbm(seed, n_visible, n_hidden, scale, units=(visible, hidden))
    for v in product(VALUES[visible], repeat=n_visible):
        x = np.array(v)
        log_f = [
            x @ rbm.visible_bias + np.array(h) @ rbm.hidden_bias + x @ rbm.weights @ np.array(h)
            for h in product(VALUES[hidden], repeat=n_hidden)
        ]
        assert rbm.log_f([x])[0] == pytest.approx(np.logaddexp.reduce(log_f), abs=1e-11)
        gap = VALUES[hidden][1] - VALUES[hidden][0]
        rates = 1 / (1 + np.exp(-gap * (x @ rbm.weights + rbm.hidden_bias)))
        np.testing.assert_allclose(rbm.hidden_given_visible([x])[0], rates, rtol=1e-9)


def mapped(rbm: mp.RBM) -> mp.RBM:
    """The Bernoulli RBM of a spin RBM, by hand."""
    w, a, b = rbm.weights, rbm.visible_bias, rbm.hidden_bias
    return mp.RBM(4 * w, 2 * (a - w.sum(axis=1)), 2 * (b - w.sum(axis=0)))


@pytest.mark.parametrize("precision", ["mixed", "float64"])
def test_chains_are_those_of_the_bernoulli_model(precision) -> None:
    spin = models.rbm(3, 6, 4, 0.4, units=("spin", "spin"))
    bits = mapped(spin)
    constant = float(spin.weights.sum() - spin.visible_bias.sum() - spin.hidden_bias.sum())
    assert abs(constant) > 1  # there is something to leave out
    x = all_states(6)[::9]
    how = {"steps": 12, "seed": 4, "precision": precision}
    z_spin, z_bits = (mp.ais_log_z(model, chains=20, **how) for model in (spin, bits))
    np.testing.assert_allclose(z_spin.log_weights, z_bits.log_weights + constant, rtol=1e-12)
    p_spin = mp.raise_log_prob(spin, 2.0 * x - 1, forward=z_spin, **how)
    p_bits = mp.raise_log_prob(bits, x, forward=z_bits, **how)
    assert p_spin.particles == 21
    np.testing.assert_allclose(p_spin.values, p_bits.values, rtol=1e-12)
    assert mp.exact_log_z(spin) == pytest.approx(mp.exact_log_z(bits) + constant, abs=1e-12)
    drawn = mp.sample_annealing_model(spin, 9, **how)
    assert drawn.dtype == np.int8
    np.testing.assert_array_equal(drawn, 2 * mp.sample_annealing_model(bits, 9, **how).astype(int) - 1)


def test_forward_weights_without_the_constant_would_be_found_out() -> None:
    spin = models.rbm(3, 6, 4, 0.4, units=("spin", "spin"))
    x, how = 2 * all_states(6)[::9].astype(int) - 1, {"steps": 12, "seed": 4}
    forward = mp.ais_log_z(spin, chains=20, **how)
    right = mp.raise_log_prob(spin, x, forward=forward, **how)
    wrong = mp.raise_log_prob(spin, x, forward=forward.log_weights - spin.mrf.log_constant, **how)
    assert np.abs(right.values - wrong.values).max() > 0.1


def test_kinds_of_units_of_deep_models() -> None:
    names = [unit.name for unit in models.dbm(0, [3, 2, 2], units="spin").units]
    assert names == ["spin"] * 3
    top = models.rbm(0, 3, 2, units=("spin", "bernoulli"))
    dbn = mp.DBN([(np.zeros((4, 3)), np.zeros(4), np.zeros(3))], top)
    assert [unit.name for unit in dbn.units] == ["spin", "spin", "bernoulli"]
    assert repr(dbn) == "DBN 4-3-2 (spin, spin, bernoulli)"
    assert repr(models.rbm(0, 3, 2, units=("spin", "spin"))) == "RBM 3-2 spin"
    with pytest.raises(InputError, match="found 2 kinds of units, expected 3, one for each layer"):
        models.dbm(0, [3, 2, 2], units=["spin", "spin"])
    with pytest.raises(
        InputError, match="found units 'binary', expected 'bernoulli', 'spin', 'potts' or 'gaussian'"
    ):
        mp.RBM([[0.0]], [0.0], [0.0], visible="binary")


@pytest.mark.parametrize("name", ["bernoulli", "spin"])
def test_kinds_of_units_survive_pickling(name) -> None:
    rbm = models.rbm(0, 3, 2, units=(name, name))
    again = pickle.loads(pickle.dumps(rbm))
    assert again.units == rbm.units
    assert repr(again) == repr(rbm)
    assert len({*again.units, *rbm.units}) == 1


def test_a_report_on_spins_is_that_of_the_bernoulli_model() -> None:
    spin = models.rbm(5, 6, 4, 0.3, units=("spin", "spin"))
    x = mp.sample(spin, 40, steps=20, moves=5)
    how = {"steps": 20, "chains": 2, "examples": 8, "ais_chains": 8, "base": "data"}
    found = mp.evaluate(spin, x[:20], x[20:], **how)
    expected = mp.evaluate(mapped(spin), (x[:20] + 1) // 2, (x[20:] + 1) // 2, **how)
    for one, other in ((found.optimistic, expected.optimistic), (found.conservative, expected.conservative)):
        assert one.value == pytest.approx(other.value, abs=1e-9)
