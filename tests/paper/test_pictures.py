"""Pictures survive being kept as letters, and are what the estimators draw."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import meltpoint as mp
from meltpoint.paper.cells import Cell
from meltpoint.paper.compute import compute, picture_result
from meltpoint.paper.figures import pictures_of
from meltpoint.runs.store import NullStore


@given(hnp.arrays(np.uint8, st.tuples(st.integers(1, 5), st.just(15)), elements=st.integers(0, 1)))
def test_letters_give_the_pictures_back(pictures):
    back, shape = pictures_of(picture_result(pictures, (3, 5)))
    np.testing.assert_array_equal(back, pictures)
    assert shape == (3, 5)


def test_each_method_draws_its_own(inputs):
    loaded = inputs["mnistCD1-20"]
    cells = {
        "samples": Cell("mnistCD1-20", "samples", steps=3, chains=2),
        "annealed": Cell("mnistCD1-20", "annealed", "data", steps=3, chains=2),
        "training": Cell("mnistCD1-20", "training", chains=2),
    }
    drawn = {
        name: pictures_of(compute(cell, loaded, None, 1, None, NullStore()))[0]
        for name, cell in cells.items()
    }
    np.testing.assert_array_equal(drawn["samples"], mp.sample(loaded.model, 2, steps=3))
    base = mp.data_rates(loaded.data.train)
    np.testing.assert_array_equal(
        drawn["annealed"], mp.sample_annealing_model(loaded.model, 2, base=base, steps=3)
    )
    for example in drawn["training"]:
        assert (loaded.data.train == example).all(axis=1).any()
