"""What does not fit is turned away at the door, and the message says what was found, expected and what to do."""

from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from meltpoint.errors import InputError
from meltpoint.layers import BERNOULLI
from meltpoint.layers.two_state import check_bits
from meltpoint.models.checks import LARGEST, bias, examples, parameter
from meltpoint.models.dbm import DBM
from meltpoint.models.dbn import DBN, Directed
from meltpoint.models.rbm import RBM
from oracle.driving import models

W, A, B = np.ones((3, 2)), np.zeros(3), np.zeros(2)
TOP = RBM(np.ones((2, 4)), np.zeros(2), np.zeros(4))
NAN, INFINITY = np.array([[0.0, np.nan], [0, 0], [0, 0]]), np.array([0.0, np.inf, -np.inf])

PARAMETERS = {
    "weights that are words": (
        lambda: RBM([["a", "b"]], [0], [0, 0]),
        "weights that cannot be read as an array of real numbers",
    ),
    "ragged weights": (
        lambda: RBM([[1, 2], [3]], A, B),
        "weights that cannot be read as an array of real numbers",
    ),
    "complex weights": (
        lambda: RBM(np.ones((3, 2)) * 1j, A, B),
        r"weights that .* \(they are of type complex128\)",
    ),
    "weights with one axis": (lambda: RBM([1.0, 2.0], A, B), r"weights of shape \(2,\), expected 2 axes"),
    "weights with three axes": (lambda: RBM(np.ones((3, 2, 1)), A, B), r"weights of shape \(3, 2, 1\)"),
    "no hidden units": (
        lambda: RBM(np.ones((3, 0)), A, []),
        r"weights of shape \(3, 0\), .* none of them empty",
    ),
    "NaN in the weights": (
        lambda: RBM(NAN, A, B),
        "1 NaN or infinite value in weights, .* did training diverge",
    ),
    "infinite biases": (lambda: RBM(W, INFINITY, B), "2 NaN or infinite values in visible_bias"),
    "visible bias too short": (lambda: RBM(W, B, B), "visible_bias of length 2, expected 3, .* transposed"),
    "hidden bias too long": (
        lambda: RBM(W, A, A),
        "hidden_bias of length 3, expected 2, one for each column",
    ),
    "a matrix of biases": (
        lambda: RBM(W, np.ones((3, 3)), B),
        r"visible_bias of shape \(3, 3\), expected 1 axis",
    ),
    "a DBM without weights": (
        lambda: DBM([], [A]),
        "0 weight matrices and 1 bias vectors, .* one more bias vector",
    ),
    "a DBM short of biases": (lambda: DBM([W], [A]), "1 weight matrices and 1 bias vectors"),
    "layers of a DBM that do not fit": (
        lambda: DBM([W, np.ones((4, 2))], [A, B, B]),
        r"weights\[0\] of shape \(3, 2\) below weights\[1\] of shape \(4, 2\), expected 2 rows in weights\[1\], "
        r"one for each unit of hidden layer 1: is one of them transposed",
    ),
    "the third layer of a DBM": (
        lambda: DBM([W, np.ones((2, 5)), np.ones((4, 2))], [A, B, np.zeros(5), B]),
        r"weights\[1\] of shape \(2, 5\) below weights\[2\]",
    ),
    "biases of a DBM": (
        lambda: DBM([W, np.ones((2, 4))], [A, B, B]),
        r"biases\[2\] of length 2, expected 4, one for each unit of layer 2",
    ),
    "NaN in a DBM": (lambda: DBM([NAN], [A, B]), r"1 NaN or infinite value in weights\[0\]"),
    "a DBN without recognition": (
        lambda: DBN([(W, A)], TOP),
        r"directed\[0\] with 2 parts, expected \(weights, visible_bias, recognition_bias\): the recognition bias",
    ),
    "a DBN whose top is no RBM": (
        lambda: DBN([(W, A, B)], cast(Any, "top")),
        "top='top', expected an RBM",
    ),
    "a DBN whose top does not fit": (
        lambda: DBN([(W.T, B, A)], TOP),
        r"directed\[0\] with weights of shape \(2, 3\) below the top RBM with 2 units, expected 2 columns: is it",
    ),
    "layers of a DBN that do not fit": (
        lambda: DBN([(W, A, B), (W, A, B)], TOP),
        r"directed\[0\] with weights of shape \(3, 2\) below directed\[1\] with 3 units",
    ),
    "biases of a DBN": (lambda: DBN([(W, B, B)], TOP), r"directed\[0\] visible_bias of length 2, expected 3"),
    "recognition of a DBN": (
        lambda: DBN([(W, A, A)], TOP),
        r"directed\[0\] recognition_bias of length 3, expected 2",
    ),
}


@pytest.mark.parametrize("case", PARAMETERS)
def test_bad_parameters(case) -> None:
    make, message = PARAMETERS[case]
    with pytest.raises(InputError, match=message) as caught:
        make()
    assert caught.value.found
    assert caught.value.expected
    assert caught.value.remedy


def test_a_directed_layer_may_be_given_as_itself() -> None:
    layer = Directed(W, A, B)
    assert DBN([layer], TOP).layer_sizes == DBN([(W, A, B)], TOP).layer_sizes == (3, 2, 4)


DATA = {
    "too few axes": (np.zeros(4), r"x of shape \(4,\), expected \(examples, 3\): flatten each example"),
    "too many axes": (np.zeros((2, 3, 1)), r"x of shape \(2, 3, 1\), .* x.reshape\(len\(x\), -1\)"),
    "no examples": (np.zeros((0, 3)), "x without a single example, expected at least one row"),
    "one column too many": (np.zeros((5, 4)), "x with 4 columns, expected 3, .* label column"),
    "columns of another model": (np.zeros((5, 9)), "x with 9 columns, .* belong together"),
    "NaN": (np.array([[0, np.nan, 1]]), "NaN in x, expected zeros and ones: drop or fill"),
    "grey values": (np.array([[0, 0.5, 1]]), r"x with values from 0 to 1, .* binarise .* < x\)"),
    "grey bytes": (np.array([[0, 128, 255]], np.uint8), r"values from 0 to 255, .* binarise .* < x / 255\)"),
    "spins": (
        np.array([[-1, 1, -1]]),
        r"values from -1 to 1, expected only 0 and 1: these are spins: give the model spin units",
    ),
    "float spins": (np.array([[-1.0, 1, -1]]), "these are spins"),
    "other values": (np.array([[-2.5, 0, 1]]), "values from -2.5 to 1, .* binarise the data first"),
    "infinity": (np.array([[0, np.inf, 1]]), "values from 0 to inf"),
    "256, which is 0 in a byte": (np.array([[0, 256, 257]]), "values from 0 to 257"),
    "words": (np.array([["a", "b", "c"]]), "x of type <U1, expected zeros and ones: convert"),
    "complex numbers": (np.array([[1j, 0, 1]]), "x of type complex128"),
    "objects": (np.array([[None, 0, 1]]), "x of type object"),
}


@pytest.mark.parametrize("case", DATA)
@pytest.mark.parametrize(
    "model", [models.rbm(0, 3, 2), models.dbm(0, [3, 2, 2]), models.dbn(0, [3, 2, 2])], ids=repr
)
def test_bad_data(model, case) -> None:
    x, message = DATA[case]
    with pytest.raises(InputError, match=message):
        model.log_f(x)


def test_hidden_states_are_checked_too() -> None:
    with pytest.raises(InputError, match="hidden with 3 columns, expected 2"):
        models.rbm(0, 3, 2).visible_given_hidden(np.zeros((1, 3)))
    with pytest.raises(InputError, match="visible with 2 columns, expected 3"):
        models.rbm(0, 3, 2).hidden_given_visible(np.zeros((1, 2)))


@given(hnp.arrays(np.uint8, st.tuples(st.integers(1, 5), st.integers(1, 5)), elements=st.integers(0, 1)))
def test_every_type_of_zeros_and_ones_is_the_same(bits) -> None:
    for dtype in (np.uint8, np.int8, np.int64, np.uint64, np.bool_, np.float16, np.float32, np.float64):
        found = examples(bits.astype(dtype), "x", bits.shape[1], BERNOULLI)
        assert found.dtype == np.uint8
        np.testing.assert_array_equal(found, bits)
        assert not np.shares_memory(found, bits)
    np.testing.assert_array_equal(examples(bits.tolist(), "x", bits.shape[1], BERNOULLI), bits)


def test_one_example_may_be_a_vector() -> None:
    assert examples([0, 1, 1], "x", 3, BERNOULLI).shape == (1, 3)


@given(
    hnp.arrays(
        st.sampled_from([np.int64, np.float64]),
        st.tuples(st.integers(1, 4), st.integers(1, 4)),
        elements={"min_value": -3, "max_value": 3},
    )
)
def test_nothing_but_zeros_and_ones_gets_through(values) -> None:
    if np.isin(values, (0, 1)).all():
        np.testing.assert_array_equal(check_bits(values, "x"), values)
    else:
        with pytest.raises(InputError):
            check_bits(values, "x")


@given(hnp.arrays(np.float64, hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3)))
def test_a_parameter_is_finite_and_has_its_axes_or_is_turned_away(values) -> None:
    good = values.ndim == 2 and values.size > 0 and (np.abs(values) <= LARGEST).all()
    if good:
        np.testing.assert_array_equal(parameter(values, "weights", 2), values)
    else:
        with pytest.raises(InputError):
            parameter(values, "weights", 2)


@pytest.mark.parametrize("shape", [(3,), (1, 3), (3, 1)])
def test_a_bias_may_be_a_row_or_a_column(shape) -> None:
    assert bias(np.arange(3).reshape(shape), "bias", 3, "unit").tolist() == [0.0, 1.0, 2.0]


def test_one_hot_data_keep_states_above_255():
    rbm = RBM(np.zeros((2, 300, 1)), np.zeros((2, 300)), np.zeros(1), visible="potts")
    states = np.array([[299, 0], [43, 256]])
    one_hot = np.eye(300, dtype=np.uint8)[states].reshape(2, -1)
    assert rbm.encode(one_hot).tolist() == states.tolist()
