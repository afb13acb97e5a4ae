"""Tensors, sparse matrices and data frames are data; what has labels, batches or a path is refused with a remedy."""

from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse

import meltpoint as mp
from formats.test_objects import Tensor

X = np.random.default_rng(1).integers(0, 2, (12, 4))
MODEL = mp.RBM(np.random.default_rng(2).normal(size=(4, 2)), np.zeros(4), np.zeros(2))


class Frame:
    """As much of a data frame as is looked at."""

    def __init__(self, array, columns):
        self.array, self.columns = np.asarray(array), columns

    def to_numpy(self):
        return self.array


@pytest.mark.parametrize(
    "data",
    [
        Tensor(X.astype(np.float32)),
        [Tensor(row) for row in X],
        scipy.sparse.csr_matrix(X),
        scipy.sparse.csc_array(X.astype(float)),
        scipy.sparse.coo_array(X),
        Frame(X, list("abcd")),
        Frame(X.astype(object), list("abcd")),
        X.tolist(),
    ],
    ids=["tensor", "tensors", "csr", "csc", "coo", "frame", "frame of objects", "lists"],
)
def test_data_that_other_libraries_hold(data):
    np.testing.assert_array_equal(MODEL.log_f(data), MODEL.log_f(X))
    np.testing.assert_array_equal(mp.data_rates(data).biases[0], mp.data_rates(X).biases[0])
    mp.train_rbm(data, hidden=2, epochs=1)


def test_parameters_that_require_a_gradient():
    model = mp.RBM(Tensor(MODEL.weights), Tensor(MODEL.visible_bias), Tensor(MODEL.hidden_bias))
    np.testing.assert_array_equal(model.log_f(X), MODEL.log_f(X))


def test_sparse_entries_that_are_there_twice_add_up():
    twice = scipy.sparse.coo_array(([1, 1], ([0, 0], [1, 1])), shape=(2, 4))
    with pytest.raises(mp.InputError, match="values from 0 to 2"):
        MODEL.log_f(twice)


class Loader:
    dataset, batch_size = None, 4

    def __iter__(self):
        return iter([])


class Pairs:
    def __len__(self):
        return 3

    def __getitem__(self, k):
        return X[k], 0


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("test.csv", r"found test='test.csv', a path.*meltpoint.datasets.read\('test.csv'\)"),
        ((X, X[:, 0]), r"a pair of arrays of shapes \(12, 4\) and \(12,\).*pass test\[0\]"),
        ((Tensor(X), Tensor(X[:, 0])), r"a pair of arrays.*pass test\[0\]"),
        (Loader(), r"a Loader, which gives batches.*torch.cat\(\[batch\[0\]"),
        (SimpleNamespace(tensors=(X,)), r"of 1 tensors.*test.tensors\[0\]"),
        (Pairs(), "a Pairs, .*numpy.stack"),
        (
            Frame(np.array([[0, 1, "cat"]], object), ["a", "b", "label"]),
            r"a data frame whose column 'label' is not numbers.*test.drop\(columns=\['label'\]\)",
        ),
        (
            np.c_[np.arange(12), X],
            r"5 columns, expected 4.*column 0 counts the rows: drop the index, test\[:, 1:\]",
        ),
        (np.c_[X, np.arange(12) % 10], r"column 4 has values from 0 to 9.*drop the labels, test\[:, :-1\]"),
        (np.c_[X, X[:, 0]], "is the label column still in?"),
        (2 * X - 1, r"these are spins: give the model spin units, or take \(test \+ 1\) // 2"),
    ],
    ids=[
        "path",
        "pair",
        "pair of tensors",
        "loader",
        "tensor data set",
        "data set",
        "words",
        "index",
        "labels",
        "one more",
        "spins",
    ],
)
def test_data_that_is_refused_with_the_right_remedy(data, message):
    with pytest.raises(mp.InputError, match=message):
        mp.evaluate(MODEL, data)


def test_a_path_as_parameters():
    with pytest.raises(mp.InputError, match=r"weights='w.npy', a path.*numpy.load"):
        mp.RBM("w.npy", [0], [0])
