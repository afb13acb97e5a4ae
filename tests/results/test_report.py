import json
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from meltpoint.estimators.conventions import ConventionCheck
from meltpoint.results.report import PerExample, Report
from meltpoint.results.stages import StageSummary, alpha_of
from meltpoint.statistics.estimate import Estimate
from results.made import made

numbers = st.floats(allow_nan=True, allow_infinity=True)


def back(report):
    return json.loads(json.dumps(report.to_dict(), allow_nan=False))


def test_to_dict_is_json_with_every_number():
    read = back(made())
    assert read == made().to_dict()
    assert read["conservative"] == {
        "value": -86.473,
        "stderr": 0.03,
        "direction": "conservative",
        "covers": "noise",
    }
    assert read["verdict"]["reason"] == "agree"
    assert read["settings"]["steps"] == 10_000
    assert read["exact"] is None
    assert read["interrupted"] is False
    assert read["examples"] == {
        "positions": [5, 2, 8, 1],
        "log_prob": [-88.0] * 4,
        "stderr": [0.2] * 4,
        "log_f": [363.1] * 4,
    }
    assert {
        "certificate",
        "certified_estimate",
        "log_z_certificate",
        "particles",
        "between",
        "ess",
        "seconds",
        "versions",
        "log_z",
    } <= set(read)


@pytest.mark.slow
@given(numbers, numbers.map(abs), numbers)
def test_any_report_is_json(value, stderr, other):
    estimate = Estimate(value, stderr, "exact", "")
    per = PerExample(
        np.arange(2),
        np.array([value, other]),
        np.array([stderr, 0]),
        np.array([other, 0]),
        *np.zeros((2, 2, 1)),
    )
    report = made(
        exact=estimate,
        gap=estimate,
        ess=other,
        log_f_error=stderr,
        control_variate_gain=value,
        certified_estimate=other,
        between=(value, other),
        stages=(StageSummary(1, 2, 3, 4, 5, value, other, value, stderr, other),),
        per_example=per,
    )
    read = back(report)
    assert read["exact"]["value"] == (value if np.isfinite(value) else None)
    assert read["between"] == [v if np.isfinite(v) else None for v in (value, other)]
    assert read["certified_estimate"] == (other if np.isfinite(other) else None)
    assert read["stages"][0]["half_width"] == (stderr if np.isfinite(stderr) else None)
    assert read["examples"]["log_prob"] == [v if np.isfinite(v) else None for v in (value, other)]


def test_an_interruption_is_stored_whatever_the_number_of_examples():
    assert back(made())["interrupted"] is False
    assert back(made(interrupted=True))["interrupted"] is True  # all examples of an earlier stage
    assert back(made(examples=5))["interrupted"] is False


def test_the_number_of_particles_is_that_which_was_found():
    read = back(made(particles=7))
    assert read["particles"] == 7
    assert read["settings"]["particles"] is None  # all that there are


def test_the_short_form_is_one_line():
    assert repr(made()) == "Report(RBM 784-500: -86.47 ± 0.03 to -86.35 ± 0.02, agree)"


def test_a_report_is_frozen():
    with pytest.raises(FrozenInstanceError):
        made().gap = None


@given(st.floats(1e-6, 0.5))
def test_stages_share_alpha(alpha):
    parts = [alpha_of(stage, alpha) for stage in range(60)]
    assert min(parts) > 0
    assert sum(parts) == pytest.approx(alpha, rel=1e-9)
    assert sum(parts) <= alpha * (1 + 1e-12)


def test_an_older_version_s_report_is_read_with_what_it_has():
    content = back(made())
    for name in ("densities", "log_f_exact", "degrees_of_freedom", "log_weights"):
        del content[name]
    content["unit"] += " (log density relative to Lebesgue measure)"
    finding = content["evidence"]["findings"][0]
    for name in ("lacking", "stderr", "log_weights"):
        del finding[name]
    again = Report.from_dict(content)
    assert again.densities
    assert not again.log_f_exact
    assert again.gap == made().gap
    assert again.evidence.findings[0].lacking == pytest.approx(0.01)
    assert again.per_example.log_weights.shape == (4, 0)


def test_a_check_of_conventions_survives_json():
    check = ConventionCheck(
        -4.0, {"negated": -1.0, "spins": float("nan")}, "negated", "the sign is another", "negate"
    )
    again = Report.from_dict(back(made(conventions=check))).conventions
    assert again is not None
    assert repr(again) == repr(check)
