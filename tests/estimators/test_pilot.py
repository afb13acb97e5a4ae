"""The pilot: its own randomness, the same for any number of threads, and no harm."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

import meltpoint as mp
from meltpoint.estimators import pilot as pilots
from meltpoint.estimators.pilot import FrictionSchedule, Pilot, friction_schedule
from meltpoint.randomness import Purpose

RNG = np.random.default_rng(0)
TRAIN = RNG.integers(0, 2, (40, 12))


def layers(*sizes, scale=1.0):
    rng = np.random.default_rng(1)
    weights = [rng.normal(0, scale, (a, b)) for a, b in pairwise(sizes)]
    return weights, [rng.normal(0, scale, size) for size in sizes]


def models():
    weights, biases = layers(12, 6, 5)
    top = mp.RBM(weights[1], biases[1], biases[2])
    return [
        mp.RBM(weights[0], biases[0], biases[1]),
        mp.DBM(weights, biases),
        mp.DBN([(weights[0], biases[0], biases[1])], top),
    ]


@pytest.mark.parametrize("model", models(), ids=repr)
@pytest.mark.parametrize("train", [None, TRAIN], ids=["from samples", "from training examples"])
def test_every_kind_of_model_has_a_schedule(model, train):
    heard = []
    schedule = friction_schedule(
        model,
        train,
        seed=3,
        threads=2,
        progress=lambda *said: heard.append(said) if said[0] == "pilot" else None,
    )
    again = friction_schedule(model, train, seed=3, threads=1)
    np.testing.assert_array_equal(schedule.friction, again.friction)
    assert schedule.pilot == again.pilot
    assert (np.diff(schedule.betas(7)) > 0).all()
    assert heard[-1][1:] == (schedule.pilot.chain_steps, schedule.pilot.chain_steps)
    assert [done for _, done, _ in heard] == sorted(done for _, done, _ in heard)
    passes = 3 if isinstance(model, mp.DBM) else 2
    assert schedule.pilot.chain_steps == 2 * passes * 64 * 500
    assert not np.array_equal(schedule.friction, friction_schedule(model, train, seed=4).friction)


def test_the_pilot_uses_numbers_of_its_own(monkeypatch):
    purposes = []
    original = pilots.Streams

    def spy(seed, purpose, keys):
        purposes.append((purpose, keys.tobytes()))
        return original(seed, purpose, keys)

    monkeypatch.setattr(pilots, "Streams", spy)
    friction_schedule(models()[0], TRAIN)
    assert {purpose for purpose, _ in purposes} == {Purpose.PILOT}
    assert len(set(purposes)) == len(purposes) == 4  # up and down in two rounds, never the same


@pytest.mark.slow
def test_friction_beats_linear_steps_on_a_trained_model(shared, monkeypatch):
    monkeypatch.setenv("MELTPOINT_DATA", str(shared / "data"))
    model = mp.load(shared / "models" / "mnistvh_CD25.mat")
    mnist = mp.datasets.load("mnist")
    schedule = friction_schedule(model, mnist.train, base=mp.data_rates(mnist.train))
    assert schedule.pilot.gain > 3 * schedule.pilot.gain_error
    betas = schedule.betas(100)
    assert 1 - betas[-2] < 0.005  # RAISE loses nearly everything close to beta 1


@pytest.mark.parametrize(
    ("gain", "name"), [(1, "friction"), (-1.9, "friction"), (-2.1, "linear"), (np.nan, "linear")]
)
def test_a_schedule_that_did_harm_is_not_used(gain, name):
    edges, friction = np.array([0.0, 0.5, 1.0]), np.array([1.0, 100.0])
    schedule = FrictionSchedule(edges, friction, Pilot(500, 1, -9.0, gain, 1.0))
    assert schedule.name == name
    assert np.array_equal(schedule.betas(10), np.linspace(0, 1, 11)) == (name == "linear")
    assert replace(schedule.pilot, gain=0.0).to_dict()["helps"]


def test_an_interruption_ends_the_pilot():
    def stop(task, done, total):
        if task == "pilot":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        friction_schedule(models()[0], TRAIN, progress=stop)
