"""A piece is what was written, or it is not taken for one."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from meltpoint.errors import InputError
from meltpoint.fingerprint import fingerprint
from meltpoint.runs.files import read_sealed, write_sealed

ARRAYS = {"log_weights": np.linspace(-3, 2, 20), "seconds": np.array(0.25), "kind": np.array("RBM")}

any_array = hnp.arrays(
    st.sampled_from(["u1", "<i8", "<f8", ">f4", "<U3"]), hnp.array_shapes(min_dims=0, max_dims=3, max_side=3)
)


@settings(
    max_examples=min(40, settings().max_examples), suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.dictionaries(st.from_regex("[a-e_]{1,4}", fullmatch=True), any_array, max_size=3))
def test_what_was_written_comes_back(tmp_path, arrays):
    write_sealed(tmp_path / "piece.npz", arrays, "run", "name")
    read = read_sealed(tmp_path / "piece.npz", "run", "name")
    assert list(read) == list(arrays)
    for name, array in arrays.items():
        np.testing.assert_array_equal(read[name], array)
    assert fingerprint(read) == fingerprint(arrays)


@pytest.mark.parametrize("context", [("another run", "name"), ("run", "another name"), ("runname",), ()])
def test_a_piece_from_elsewhere_is_refused(tmp_path, context):
    write_sealed(tmp_path / "piece.npz", ARRAYS, "run", "name")
    with pytest.raises(InputError, match="belongs elsewhere"):
        read_sealed(tmp_path / "piece.npz", *context)


@pytest.mark.slow
def test_no_cut_and_no_changed_byte_goes_unnoticed(tmp_path):
    path = tmp_path / "piece.npz"
    write_sealed(path, ARRAYS, "run")
    whole = path.read_bytes()
    for at in range(len(whole)):
        path.write_bytes(whole[:at])
        with pytest.raises(InputError):
            read_sealed(path, "run")
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x11]) + whole[at + 1 :])
        try:
            read = read_sealed(path, "run")
        except InputError:
            continue
        # A byte that no reader looks at, such as a time stamp: the arrays are still those that were written.
        assert fingerprint(read) == fingerprint(ARRAYS)


def test_fingerprints_tell_apart_what_differs():
    base = fingerprint({"a": np.zeros(4), "b": np.ones(2)}, "x")
    others = [
        fingerprint({"a": np.zeros(4), "b": np.ones(2)}, "y"),
        fingerprint({"a": np.zeros(4), "b": np.ones(2)}),
        fingerprint({"a": np.zeros(4, np.float32), "b": np.ones(2)}, "x"),
        fingerprint({"a": np.zeros((2, 2)), "b": np.ones(2)}, "x"),
        fingerprint({"c": np.zeros(4), "b": np.ones(2)}, "x"),
        fingerprint({"a": np.zeros(4), "b": np.array([1, 1 + 2**-52])}, "x"),
    ]
    assert len({base, *others}) == 7
    assert base == fingerprint({"a": np.zeros(8)[::2], "b": np.ones(2, ">f8")}, "x")
