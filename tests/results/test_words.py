import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from meltpoint.estimators.evidence import Evidence
from meltpoint.progress import duration
from meltpoint.results.elements import element, typeset
from meltpoint.results.shown import sample_count
from meltpoint.results.words import (
    between_text,
    bound,
    count,
    interval,
    listed,
    modes_text,
    number,
    percent,
    starts_text,
    with_error,
)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0.0 s"),
        (3.14, "3.1 s"),
        (75, "75 s"),
        (200, "3 min 20 s"),
        (7500, "2 h 5 min"),
        (9.949, "9.9 s"),
        (9.951, "10 s"),
        (119.4, "119 s"),
        (119.6, "2 min 0 s"),
        (3599.6, "1 h 0 min"),
        (90061, "25 h 1 min"),
    ],
)
def test_two_units_at_most(seconds, text):
    assert duration(seconds) == text


@given(st.floats(0, 1e7))
def test_never_sixty_of_a_unit(seconds):
    assert "60 min" not in duration(seconds)
    assert " 60 s" not in duration(seconds)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (count(1, "model"), "1 model"),
        (count(2000, "chain"), "2,000 chains"),
        (listed(["a", "b"], 2), "a, b"),
        (listed(["a", "b", "c"], 2), "a, b and 1 more"),
        (modes_text(Evidence()), "no modes (this kind of model has no search for them)"),
        (modes_text(Evidence(modes=16)), "16 modes (none out of reach)"),
        (modes_text(Evidence(modes=16, far=5, weighed=1)), "16 modes (5 out of reach, weighed in 1 group)"),
        (
            starts_text(Evidence(modes=16, far=9, weighed=3, unweighed=1)),
            "1 base and 3 groups of modes gave weights; the weight of 1 mode out of reach is unknown",
        ),
        (percent(0.99), "99%"),
        (number(-0.001), "0.00"),
        (number(1234.5, 0), "1,234"),
        (number(math.nan), "–"),
        (with_error(1.0, 0.001), "1.00 ± 0.01"),
        (with_error(1.0, math.nan), "1.00"),
        (interval((-86.413, -86.351)), "-86.42 to -86.35"),
        (interval((-math.inf, 1.0)), "below 1.00"),
        (interval((1.0, math.inf)), "above 1.00"),
        (interval((-math.inf, math.inf)), "unknown"),
        (interval(None), ""),
        (bound(-86.0799, up=True), "-86.07"),
        (bound(-86.0799, up=False), "-86.08"),
        (between_text((1.0, math.inf), 2, "surely", "no"), "above 1.00 surely; no upper end is known"),
        (typeset("RBM 784-500 < -86.3"), "RBM 784-500 &lt; −86.3"),
        (
            element("p", "a < b", class_="note", aria_label='"x"'),
            '<p class="note" aria-label="&quot;x&quot;">a &lt; b</p>',
        ),
        (element("img", alt=None), "<img>"),
        (between_text((1.0, 2.0), 2, "surely", "no interval"), "1.00 and 2.00 surely"),
        (between_text((-math.inf, 2.0), 2, "surely", "no"), "below 2.00 surely; no lower end is known"),
        (between_text((-math.inf, math.inf), 2, "surely", "no interval"), "no interval"),
    ],
)
def test_numbers_are_written_alike(text, expected):
    assert text == expected


def test_large_models_show_fewer_samples():
    assert [sample_count(n) for n in (784, 2000, 10**6)] == [16, 8, 0]
