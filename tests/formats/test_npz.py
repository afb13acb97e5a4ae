"""Small .npz files are written with one call, large ones piece by piece, with the same bytes."""

import io

import numpy as np
import pytest

from meltpoint.formats import npz

ARRAYS = {"a": np.arange(12.0).reshape(3, 4), "b": np.array("text"), "c": np.zeros(0)}


class Counted(io.BytesIO):
    """A file that counts what it is asked to write."""

    writes = 0

    def write(self, data):
        self.writes += 1
        return super().write(data)


@pytest.mark.parametrize("arrays", [ARRAYS, {}], ids=["arrays", "none"])
def test_both_ways_give_the_same_bytes(arrays, monkeypatch):
    at_once, piecewise = Counted(), Counted()
    npz.write_npz(at_once, arrays)
    monkeypatch.setattr(npz, "_AT_ONCE", -1)
    npz.write_npz(piecewise, arrays)
    assert at_once.getvalue() == piecewise.getvalue()
    assert at_once.writes == 1
    assert piecewise.writes > len(arrays)


def test_large_arrays_are_not_doubled_in_memory():
    file = Counted()
    npz.write_npz(file, {"a": np.zeros((1 << 20) + 1, np.uint8)})
    assert file.writes > 1
