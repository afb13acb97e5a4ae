"""Probabilities of hidden configurations against the enumerated joint distribution."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from meltpoint.models.rbm import RBM
from meltpoint.paper import compute
from meltpoint.paper.compute import configuration_log_probs, describe_configurations
from oracle.driving import models
from oracle.tables import all_states


@given(
    seed=st.integers(0, 1000), visible=st.integers(1, 4), hidden=st.integers(1, 4), block=st.integers(1, 20)
)
def test_they_are_the_marginal_of_the_joint(seed, visible, hidden, block):
    rbm = models.rbm(seed, visible, hidden)
    v, h = all_states(visible).astype(float), all_states(hidden)[:, ::-1].astype(float)
    log_f = (v @ rbm.visible_bias)[:, None] + h @ rbm.hidden_bias + v @ rbm.weights @ h.T
    joint = np.exp(log_f) / np.exp(log_f).sum()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compute, "_BLOCK", block)
        found = np.exp(configuration_log_probs(rbm))
    np.testing.assert_allclose(found, joint.sum(axis=0), rtol=1e-12)


def test_description():
    told = describe_configurations(RBM([[0.0, 0.0]], [0.0], [np.log(9.0), -50.0]))
    assert told["configurations"] == 4
    assert told["largest"][:2] == pytest.approx([0.9, 0.1])
    assert told["carry_the_share"] in (1, 2)  # nine tenths exactly, but for rounding
    assert told["perplexity"] == pytest.approx(np.exp(-0.9 * np.log(0.9) - 0.1 * np.log(0.1)))
