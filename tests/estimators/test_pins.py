"""Every seed gives the numbers it gave before units, sweeps and backends became parts (pins.json).

Log f of deep models was pinned anew when its proposals came to be settled in float32 (method 4), and DBNs when their
products got a fixed order (method 5).
"""

import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from estimators import pins

PINS = json.loads((Path(__file__).parent / "pins.json").read_text())


@cache
def computed(part: str) -> dict[str, np.ndarray]:
    return {f"{part}: {name}": array for name, array in pins.PARTS[part]().items()}


@pytest.mark.slow
def test_all_that_is_pinned_is_computed() -> None:
    assert [name for part in pins.PARTS for name in computed(part)] == list(PINS)


@pytest.mark.parametrize("name", PINS)
def test_the_numbers_are_those_that_were_pinned(name) -> None:
    # NumPy's exponentials differ in the last bit between processors; a chain that went another way would be far off.
    # Proposals for log f of deep models are settled in float32, so that last bit is larger there.
    tolerance = 1e-5 if name in ("dbm: log f", "deep dbm: log f", "dbn: log f") else 1e-12
    found = computed(name.split(": ")[0])
    np.testing.assert_allclose(found[name], np.array(PINS[name]), rtol=tolerance, atol=tolerance)
