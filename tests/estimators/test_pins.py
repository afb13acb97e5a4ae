"""Every seed gives the numbers it gave before units, sweeps and backends became parts (pins.json)."""

import json
from pathlib import Path

import numpy as np
import pytest

from estimators import pins

PINS = json.loads((Path(__file__).parent / "pins.json").read_text())


@pytest.fixture(scope="module")
def found():
    return pins.numbers()


@pytest.mark.slow
def test_all_that_is_pinned_is_computed(found) -> None:
    assert list(found) == list(PINS)


@pytest.mark.parametrize("name", PINS)
def test_the_numbers_are_those_that_were_pinned(found, name) -> None:
    # NumPy's exponentials differ in the last bit between processors; a chain that went another way would be far off.
    np.testing.assert_allclose(found[name], np.array(PINS[name]), rtol=1e-12, atol=1e-12)
