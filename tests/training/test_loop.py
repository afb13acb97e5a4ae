"""The loop: what it starts from, in which order it goes, what it averages."""

import numpy as np
import pytest
from scipy.special import expit, logit

from meltpoint.training import stage, train
from meltpoint.training.examples import Examples
from meltpoint.training.phases import Architecture, Gradient, initial_dbm, trainable_dbm
from meltpoint.training.stage import initial_state, sgd_step
from meltpoint.training.train import train_dbm, train_rbm

DATA = (np.random.default_rng(0).random((60, 9)) < 0.3).astype(np.uint8)


def test_a_new_model_has_the_rates_of_the_data_and_rare_hidden_units():
    rates = np.array([0.1, 0.5, 0.9])
    dbm = initial_dbm(Architecture((3, 4), (1, 1)), logit(rates), np.random.default_rng(0))
    weights, visible_bias, hidden_bias = dbm.parameters
    np.testing.assert_allclose(expit(visible_bias), rates, rtol=1e-6)
    assert (expit(hidden_bias) < 0.2).all()
    assert 0 < np.abs(weights).max() < 0.1


def test_a_step_is_felt_by_the_next_product():
    rng = np.random.default_rng(1)
    dbm = trainable_dbm([rng.normal(size=(300, 100)), np.zeros(300), np.zeros(100)], (1, 1))
    lower = (rng.random((5, 300)) < 0.1).astype(np.uint8)
    dbm.couplings[0].up(lower)
    slopes = Gradient((rng.normal(size=(300, 100)),), (np.zeros(300), np.zeros(100)))
    sgd_step(initial_state(dbm), slopes, 1.0, 0.0, 0.0)
    np.testing.assert_allclose(dbm.couplings[0].up(lower), lower @ dbm.couplings[0].weights, atol=1e-9)


def test_every_epoch_shows_all_examples_in_an_order_of_its_own(monkeypatch):
    shown = []
    monkeypatch.setattr(
        Examples, "layer", lambda self, chosen, _: (shown.append(chosen), self.rows[chosen])[1]
    )
    train_rbm(DATA, 4, epochs=2, batch=10)
    first, second = np.concatenate(shown[:6]), np.concatenate(shown[6:])
    assert sorted(first) == sorted(second) == list(range(60))
    assert (first != second).any()


@pytest.mark.parametrize(("method", "starts"), [("cd", 12), ("pcd", 1)])
def test_chains_start_at_every_batch_or_once(method, starts, monkeypatch):
    calls = []
    start_chains = stage.start_chains
    monkeypatch.setattr(
        stage, "start_chains", lambda *arguments: (calls.append(arguments), start_chains(*arguments))[1]
    )
    train_rbm(DATA, 4, epochs=2, batch=10, method=method)
    assert len(calls) == starts


@pytest.mark.parametrize(("averaged", "count"), [(0.0, 0), (0.5, 6), (1.0, 12)])
def test_the_last_share_of_the_updates_is_averaged(averaged, count, tmp_path):
    train_rbm(DATA, 4, epochs=2, batch=10, averaged=averaged, checkpoint=tmp_path / "run.npz")
    with np.load(tmp_path / "run.npz") as file:
        position = [int(file[f"stages.0.{name}"]) for name in ("epoch", "batch", "n_averaged")]
    assert position == [2, 0, count]


def test_what_is_handed_over_is_the_average(tmp_path):
    model = train_rbm(DATA, 4, epochs=2, batch=10, averaged=0.5, checkpoint=tmp_path / "run.npz")
    with np.load(tmp_path / "run.npz") as file:
        np.testing.assert_array_equal(model.weights, file["stages.0.average.0"])
        assert (file["stages.0.average.0"] != file["stages.0.parameters.0"]).any()


def test_pretraining_doubles_the_layers_that_will_have_two_neighbours(monkeypatch):
    copies = []
    train_stage = train.train_stage
    monkeypatch.setattr(
        train,
        "train_stage",
        lambda stage, start: (copies.append(start().copies), train_stage(stage, start))[1],
    )
    dbm = train_dbm(DATA, (4, 3, 2), epochs=1)
    assert copies == [(2, 1), (2, 2), (1, 2), (1, 1, 1, 1)]
    assert dbm.layer_sizes == (9, 4, 3, 2)
