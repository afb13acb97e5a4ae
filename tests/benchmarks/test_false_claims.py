"""False claims of reports on models with exact values: a version of benchmarks/honesty.py that would notice a doubling.

At 99 % too few claims are false to be counted in a test. At 50 % about a tenth are, because the interval is made for
the worst of several doubts, and a report is wrong for the same reasons.
"""

import importlib
import math
from pathlib import Path

import pytest

import meltpoint as mp

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
MODELS = {
    "weak": 40,
    "strong": 40,
    "mixture": 40,
    "far-unit": 40,
    "dbm": 40,
    "far-ones": 20,
    "patterns": 15,
}
SIZES = {"steps": 100, "examples": 20, "chains": 2, "ais_chains": 60, "schedule": "linear"}

# Of 235 reports 26 were outside, 17 had a false certificate, and 1 was trusted though AIS was blind. With other random
# numbers and unchanged rates more than these are seen 2, 1 and 1 times in 1,000; with twice the rate of intervals that
# are outside 97 times in 100, of false certificates 74. The last one is for what becomes worse by far.
MOST_OUTSIDE, MOST_CERTIFICATES, MOST_BLIND = 40, 30, 5


def outside(between, exact):
    return not between[0] - 1e-9 <= exact <= between[1] + 1e-9


def narrower(between, factor):
    middle, half = (between[0] + between[1]) / 2, (between[1] - between[0]) / 2
    return middle - factor * half, middle + factor * half


@pytest.mark.slow
def test_false_claims_have_not_become_twice_as_many(monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS)
    families = importlib.import_module("honesty_models").FAMILIES
    found, certified, blind = [], 0, 0
    for family, count in MODELS.items():
        for seed in range(700, 700 + count):
            subject = families[family](seed)
            report = mp.evaluate(
                subject.model,
                subject.test,
                subject.train,
                seed=seed,
                exact=False,
                threads=1,
                confidence=0.5,
                **SIZES,
            )
            assert -math.inf < report.between[0] <= report.between[1] < math.inf
            found.append((report.between, subject.mean_log_prob))
            certified += report.log_z_certificate.bound > subject.log_z + 1e-9
            too_high = report.log_z.value < subject.log_z - 0.1 - 4 * report.log_z.stderr
            blind += report.verdict.trusted and too_high
    wrong = sum(outside(*each) for each in found)
    assert wrong <= MOST_OUTSIDE
    assert certified <= MOST_CERTIFICATES
    assert blind <= MOST_BLIND
    # What would be noticed: intervals of half the width.
    assert sum(outside(narrower(between, 0.5), exact) for between, exact in found) > MOST_OUTSIDE
