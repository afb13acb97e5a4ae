"""Whatever is wrong is found at the door, before any chain is run."""

import re

import numpy as np
import pytest

import meltpoint as mp

MODEL = mp.RBM(np.zeros((4, 3)), np.zeros(4), np.zeros(3))
DEEP = mp.DBM([np.zeros((4, 3)), np.zeros((3, 2))], [np.zeros(4), np.zeros(3), np.zeros(2)])
TEST = np.eye(4)


def never(task, done, total):
    pytest.fail(f"{task} was begun")


@pytest.mark.parametrize("model", [MODEL, DEEP], ids=repr)
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"test": np.zeros((2, 5))},
            "found test with 5 columns, expected 4, .*: is the label column",
        ),
        ({"test": np.zeros((2, 9))}, "found test with 9 columns, expected 4, .*: do model and data belong"),
        ({"test": np.zeros((2, 2, 2))}, r"found test of shape \(2, 2, 2\), .*: flatten each example"),
        ({"test": np.zeros((0, 4))}, "found test without a single example, expected at least one row"),
        ({"test": []}, "found test of shape"),
        (
            {"test": np.full((2, 4), 0.5)},
            "expected only 0 and 1: binarise grey values first",
        ),
        ({"test": np.full((2, 4), 255)}, r"expected only 0 and 1: binarise .* test / 255"),
        ({"test": 2 * TEST - 1}, "expected only 0 and 1: these are spins"),
        ({"test": np.full((2, 4), np.nan)}, "found NaN in test, expected zeros and ones"),
        ({"test": [["0", "1", "0", "1"]]}, "expected zeros and ones: convert it to numbers first"),
        ({"evidence": "no"}, "found evidence='no', expected True or False"),
        ({"evidence": 0}, "found evidence=0, expected True or False"),
        ({"exact": "no"}, "found exact='no', expected True or False"),
        ({"train": np.zeros((2, 5))}, "found train with 5 columns, expected 4"),
        ({"train": np.full((2, 4), 0.5)}, "found train with values from 0.5 to 0.5"),
        ({"train": np.zeros((0, 4))}, "found train without a single example"),
        ({"base": "data"}, r"found base='data' without training data, .*: pass train .*or use base='model'"),
        ({"base": "dbr"}, "found base='dbr', expected 'auto', 'data', 'model', 'uniform' or a Base"),
        ({"base": mp.data_rates(np.zeros((2, 5)))}, "found base rates for 5 units, expected 4"),
        ({"steps": 0}, "found steps=0, expected a whole number from 1 on"),
        ({"steps": -3}, "found steps=-3, expected a whole number from 1 on"),
        ({"steps": 2.5}, "found steps=2.5, expected a whole number from 1 on"),
        (
            {"steps": [0, 0.5, 0.5, 1]},
            "do not increase at position 2 .*, expected increasing betas",
        ),
        ({"steps": [0, 0.7, 0.2, 1]}, "do not increase at position 2"),
        ({"steps": [0.1, 1]}, "found betas from 0.1 to 1, expected betas from 0 to 1"),
        ({"steps": [1, 0]}, "found betas from 1 to 0, expected betas from 0 to 1"),
        ({"steps": [0, np.nan, 1]}, "with NaN or infinity, expected a vector"),
        ({"chains": 0}, "found chains=0, expected a whole number from 1 on"),
        ({"chains": True}, "found chains=True, expected a whole number from 1 on"),
        ({"ais_chains": 0}, "found ais_chains=0, expected a whole number from 1 on"),
        ({"particles": 0}, "found particles=0, expected a whole number from 1 on"),
        ({"particles": 1.5}, "found particles=1.5, expected a whole number from 1 on"),
        ({"particles": 10, "ais_chains": 8}, "found particles=10 with 8 AIS chains, expected at most 9"),
        ({"part": -1}, "found part=-1, expected a whole number from 0 on"),
        ({"budget": "soon"}, "found budget='soon', expected a length of time"),
        ({"examples": 0}, "found examples=0, expected a whole number from 1 on"),
        ({"examples": 5}, "found examples=5 with a test set of 4, expected at most 4: leave it out"),
        ({"seed": -1}, "found seed=-1, expected a whole number from 0 on"),
        ({"seed": 0.5}, "found seed=0.5, expected a whole number from 0 on"),
        ({"tolerance": 0.0}, "found tolerance=0.0, expected a finite number above 0"),
        ({"tolerance": np.inf}, "found tolerance=inf, expected a finite number above 0"),
        ({"tolerance": np.nan}, "found tolerance=nan, expected a finite number above 0"),
        ({"confidence": 1.0}, "found confidence=1.0, expected a number between 0 and 1"),
        ({"threads": 0}, "found threads=0, expected a whole number from 1 on"),
    ],
    ids=lambda value: str(value)[:40] if isinstance(value, dict) else "",
)
def test_refused_before_anything_is_run(model, changes, message):
    arguments = {"test": TEST, **changes}
    with pytest.raises(mp.InputError, match=message):
        mp.evaluate(model, arguments.pop("test"), progress=never, **arguments)


def test_too_many_units_to_enumerate_is_known_before_ais():
    def begun(task, *_):
        assert task == "unnormalised probabilities"

    large = mp.RBM(np.ones((40, 31)), np.zeros(40), np.zeros(31))  # without weights it would be eliminated
    with pytest.raises(mp.InputError, match="found 31 units on the smaller side"):
        mp.evaluate(large, np.zeros((1, 40)), base="uniform", exact=True, progress=begun)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (None, "that from_object reads: make one from its parameters"),
        (np.zeros((4, 3)), "that from_object reads: make one from its parameters"),
        ("model.npz", "expected the model itself: load it: meltpoint.load('model.npz')"),
    ],
)
def test_something_else_than_a_model(model, message):
    with pytest.raises(mp.InputError, match=re.escape(message)):
        mp.evaluate(model, TEST)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_parameters_that_are_not_finite_make_no_model(bad):
    weights = np.zeros((4, 3))
    weights[1, 2] = bad
    with pytest.raises(mp.InputError, match="found 1 NaN or infinite value in weights, expected finite"):
        mp.RBM(weights, np.zeros(4), np.zeros(3))
