"""Records become arrays and come back; arrays that are not those of a record are refused."""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import meltpoint as mp
from meltpoint.errors import InputError
from meltpoint.layers.unit import Floats
from meltpoint.runs.records import from_arrays, join_records, to_arrays


@dataclass(frozen=True, eq=False)
class Inner:
    number: int
    text: str | None = None


@dataclass(frozen=True, eq=False)
class Record:
    flag: bool
    share: float
    choice: Literal["one", "two"]
    weights: Annotated[Floats, "row", "column"]
    bits: Annotated[NDArray[np.integer], "row"]
    inner: Inner
    missing: Inner | None
    several: tuple[Inner, ...]
    pair: tuple[float, str]
    names: dict[str, str]
    anything: NDArray[Any]


def record(**changes):
    values = {
        "flag": True,
        "share": 0.5,
        "choice": "two",
        "weights": np.arange(6.0).reshape(2, 3),
        "bits": np.array([1, 0]),
        "inner": Inner(2**80, "é"),
        "missing": None,
        "several": (Inner(1), Inner(-2, "")),
        "pair": (1.5, "b"),
        "names": {"model": "a.npz", "test": "b"},
        "anything": np.zeros((0, 2), np.uint8),
    }
    return Record(**(values | changes))


def plain(value):
    if hasattr(value, "__dataclass_fields__"):
        return {name: plain(each) for name, each in vars(value).items()}
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.tolist()
    return [plain(each) for each in value] if isinstance(value, tuple) else value


def test_a_record_comes_back():
    assert plain(from_arrays(Record, to_arrays(record()))) == plain(record())


@given(st.one_of(st.integers(), st.floats(allow_nan=False), st.booleans(), st.text("aé \n", max_size=5)))
def test_a_plain_value_comes_back(value):
    assert from_arrays(type(value), to_arrays(value)) == value


def test_none_comes_back():
    assert from_arrays(float | None, to_arrays(None)) is None
    assert from_arrays(float | None, to_arrays(2.5)) == 2.5


@pytest.mark.parametrize(
    "change",
    [
        {"flag": None},
        {"flag": np.array([True])},
        {"share": np.array("0.5")},
        {"choice": np.array("three")},
        {"weights": np.zeros((2, 3), np.int64)},
        {"weights": np.zeros(6)},
        {"bits": np.array([1, 0, 1])},
        {"inner": None},
        {"inner.number": np.array("no number")},
        {"inner.number": np.array(1.5)},
        {"several": np.array(3)},
        {"several": np.array(-1)},
        {"several": np.array(10**12)},
        {"pair": np.array(3)},
        {"names": np.array(1.0)},
        {"names.0.1": None},
        {"more": np.array(1)},
        {"missing.number": np.array(1)},
    ],
    ids=str,
)
def test_other_arrays_are_refused(change):
    arrays = {name: array for name, array in {**to_arrays(record()), **change}.items() if array is not None}
    with pytest.raises(InputError):
        from_arrays(Record, arrays)


def test_a_record_may_check_itself():
    with pytest.raises(InputError):
        from_arrays(mp.Base, {**to_arrays(mp.Base("name")), "name": np.array("../outside")})


def test_records_are_joined_row_by_row():
    @dataclass(frozen=True, eq=False)
    class Rows:
        values: Floats

    joined = join_records([Rows(np.zeros((1, 2))), Rows(np.ones((2, 2)))])
    np.testing.assert_array_equal(joined.values, [[0, 0], [1, 1], [1, 1]])


def test_what_is_no_record_is_refused_or_skipped():
    model = mp.RBM([[0.0]], [0.0], [0.0])
    with pytest.raises(TypeError, match="RBM, which has no arrays"):
        to_arrays(model)
    assert to_arrays(model, skip_models=True) == {}
