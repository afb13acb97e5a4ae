"""Estimators broken on purpose, each in a way that has been published or nearly written. The checks reject them all."""

from unittest import mock

import numpy as np
import pytest
from scipy.special import expit

from meltpoint.annealing.blocks import Segment
from meltpoint.annealing.field import BlockPath
from meltpoint.models import dbn
from meltpoint.models.bipartite import BipartitePath
from meltpoint.models.dbn import DBN
from meltpoint.models.log_f import log_bernoulli
from oracle.driving import models
from oracle.driving.checks import EXACT, LOUD, ais_error, raise_error, sampling_error
from oracle.driving.mutants import heats_as_printed, moves_as_printed, weighs_backwards, weighs_before_moving
from oracle.driving.steps import exact_anneal
from oracle.zoo import SCHEDULES

BETAS = SCHEDULES["linear"]
RBM = models.rbm(7, 3, 3)
DBM = models.dbm(7, [2, 2, 2])
DEEP_DBM = models.dbm(8, [2, 2, 1, 2])
DBN_ = models.dbn(7, [3, 2, 2])
DEEP_DBN = models.dbn(8, [2, 2, 2, 2])
MODELS = [RBM, DBM, DEEP_DBM, DBN_, DEEP_DBN]


def test_nothing_is_rejected_when_nothing_is_broken() -> None:
    for model in MODELS:
        base = models.base("every layer", model)
        assert ais_error(model, base, BETAS) < EXACT
        assert raise_error(model, base, BETAS) < EXACT
        assert sampling_error(model, base, BETAS) < EXACT


@pytest.mark.parametrize("loop", [moves_as_printed, weighs_before_moving, weighs_backwards])
@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_broken_loops(model, loop) -> None:
    base, mutant = models.base("data", model), exact_anneal(loop)
    assert ais_error(model, base, BETAS, mutant) > LOUD
    assert raise_error(model, base, BETAS, mutant) > LOUD


@pytest.mark.parametrize("model", [DBM, DEEP_DBM], ids=repr)
def test_heating_as_printed(model) -> None:
    assert raise_error(model, models.base("data", model), BETAS, exact_anneal(heats_as_printed)) > LOUD


@pytest.mark.parametrize("model", [DBM, DEEP_DBM], ids=repr)
def test_visible_units_that_are_not_clamped_while_heating(model) -> None:
    mutant = exact_anneal(change_segments=lambda segments: [Segment(s.betas) for s in segments])
    assert raise_error(model, models.base("data", model), BETAS, mutant) > LOUD


@pytest.mark.parametrize("model", [DBM, DEEP_DBM], ids=repr)
def test_visible_units_that_stay_clamped_while_melting(model) -> None:
    mutant = exact_anneal(
        change_segments=lambda segments: [Segment(s.betas, segments[0].clamped) for s in segments]
    )
    assert raise_error(model, models.base("data", model), BETAS, mutant) > LOUD


@pytest.mark.parametrize("model", [RBM, DBN_, DEEP_DBN], ids=repr)
def test_a_base_whose_sampler_and_log_z_disagree(model) -> None:
    base, units = models.base("data", model), sum(model.layer_sizes[-2:])
    with mock.patch.object(BlockPath, "log_z_base", units * np.log(2)):  # that of the uniform base
        assert ais_error(model, base, BETAS) > LOUD
        assert raise_error(model, base, BETAS) > LOUD


@pytest.mark.parametrize("model", [DBM, DEEP_DBM], ids=repr)
def test_a_base_whose_sampler_and_visible_normaliser_disagree(model) -> None:
    def without_rates(self, states):
        inputs = self.base_even[: states.shape[1]]
        return states @ inputs - inputs.size * np.log(2)

    with mock.patch.object(BipartitePath, "log_prob_base", without_rates):
        assert raise_error(model, models.base("data", model), BETAS) > LOUD


@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_samples_without_the_last_move(model) -> None:
    assert sampling_error(model, models.base("data", model), BETAS, lambda segments: segments[:-1]) > LOUD


def recognise_without_density(self, lower, generators):
    """`DBN.recognise_sample` that forgets - log q(upper | lower)."""
    state = lower.astype(np.bool_)
    log_weights = np.zeros(state.shape[:2])
    for layer in self.directed:
        upper = dbn.draw_given(generators, expit(state @ layer.weights + layer.recognition_bias))
        log_weights += log_bernoulli(state, upper @ layer.weights.T + layer.visible_bias)
        state = upper
    return state, log_weights


@pytest.mark.parametrize("model", [DBN_, DEEP_DBN], ids=repr)
def test_recognition_without_its_density(model) -> None:
    with mock.patch.object(DBN, "recognise_sample", recognise_without_density):
        assert raise_error(model, models.base("data", model), BETAS) > LOUD
