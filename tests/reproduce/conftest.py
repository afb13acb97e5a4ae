"""Models as small as can be under the paper's names, on the paper's data."""

import numpy as np
import pytest

import meltpoint as mp
from reproduce.models import DBMS, DBNS, RBMS, Inputs


def _rbm(rng, visible, hidden):
    return mp.RBM(0.1 * rng.normal(size=(visible, hidden)), rng.normal(size=visible) - 2, np.zeros(hidden))


@pytest.fixture(scope="session")
def models(tmp_path_factory):
    """A folder with all ten models: 784 visible units and a handful of others."""
    folder, rng = tmp_path_factory.mktemp("zoo"), np.random.default_rng(0)
    for model in RBMS:
        mp.save(_rbm(rng, 784, 6), folder / f"{model.name}.npz")
    for model in DBMS:
        w1, w2 = 0.1 * rng.normal(size=(784, 5)), 0.1 * rng.normal(size=(5, 4))
        dbm = mp.DBM([w1, w2], [rng.normal(size=784) - 2, np.zeros(5), np.zeros(4)])
        mp.save(dbm, folder / f"{model.name}.npz")
    for model in DBNS:
        below = _rbm(rng, 784, 5)
        directed = [(below.weights, below.visible_bias, below.hidden_bias)]
        mp.save(mp.DBN(directed, _rbm(rng, 5, 4)), folder / f"{model.name}.npz")
    return folder


@pytest.fixture(scope="session")
def data(shared):
    """MNIST and Omniglot, where they lie."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MELTPOINT_DATA", str(shared / "data"))
        yield shared / "data"


@pytest.fixture(scope="session")
def inputs(models, data):
    return Inputs(models)
