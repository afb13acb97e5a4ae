"""Certificates for log Z hold for every unbiased estimator: enumerated, with mutants beside them."""

import itertools
import math
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.stats import binom

from meltpoint.errors import InputError
from meltpoint.statistics.certificate import Certificate, _best_product, certify_log_z
from meltpoint.statistics.log_space import log_mean_exp

confidences = st.floats(0.01, 0.999)
two_points = st.tuples(st.floats(0.01, 0.99), st.floats(0.01, 100), st.floats(0.01, 100))


@given(st.floats(-1e6, 1e6), st.floats(0.5, 1 - 1e-9))
def test_prints_no_more_than_it_certifies(bound, confidence) -> None:
    shown = re.fullmatch(
        r"log Z > (-?\d+\.\d\d) with ([\d.]+)% confidence", str(Certificate(bound, confidence, "log Z"))
    )
    assert bound - 0.01 - 1e-9 <= float(shown[1]) <= bound + 1e-9
    assert 0 < float(shown[2]) < 100
    assert float(shown[2]) == pytest.approx(100 * confidence, rel=1e-11)


@pytest.mark.parametrize(
    ("confidence", "shown"), [(0.99, "99%"), (0.999, "99.9%"), (0.9, "90%"), (0.07, "7%")]
)
def test_confidence_in_words(confidence, shown) -> None:
    assert f" with {shown} confidence" in str(certify_log_z(np.zeros(1), confidence))


@pytest.mark.parametrize("confidence", [0.0, 1.0, -0.1, 99, math.nan])
def test_confidence_is_a_probability(confidence) -> None:
    with pytest.raises(InputError, match="between 0 and 1"):
        certify_log_z(np.zeros(1), confidence)


def log_z_violation(q: float, x: float, y: float, chains: int, confidence: float, certify) -> float:
    """Probability of claiming too much of Z = q x + (1 - q) y from chains that are x with probability q."""
    log_z, total = math.log(q * x + (1 - q) * y), 0.0
    for outcome in itertools.product((True, False), repeat=chains):
        if certify(np.log(np.where(outcome, x, y)), confidence).bound > log_z + 1e-12:
            total += math.prod(q if high else 1 - q for high in outcome)
    return total


@settings(max_examples=min(50, settings().max_examples))
@given(two_points, st.integers(1, 7), confidences)
def test_log_z_claims_too_much_no_more_often_than_said(weights, chains, confidence) -> None:
    assert log_z_violation(*weights, chains, confidence, certify_log_z) <= 1 - confidence + 1e-12


def best_of_all_groupings(log_weights: np.ndarray, confidence: float) -> Certificate:
    """A mutant: the number of groups that looks best once the weights are known, at no price for the choice."""
    cost = -math.log1p(-confidence)
    bounds = [_best_product(log_weights, groups, cost) for groups in range(1, len(log_weights) + 1)]
    return Certificate(max(bounds), confidence, "log Z")


def best_single_group(log_weights: np.ndarray, confidence: float) -> Certificate:
    """A mutant: any one of the chains, the largest, as if it had been chosen before."""
    return Certificate(float(log_weights.max()) + math.log1p(-confidence), confidence, "log Z")


@pytest.mark.slow
@pytest.mark.parametrize("mutant", [best_of_all_groupings, best_single_group])
def test_a_choice_made_after_the_fact_is_rejected(mutant) -> None:
    worst = max(
        log_z_violation(q, x, 0.001, 7, 0.5, mutant) for q in (0.18, 0.26, 0.34, 0.42) for x in (1.0, 50.0)
    )
    assert worst > 0.5
    assert log_z_violation(0.07, 14.0, 0.001, 7, 0.5, certify_log_z) <= 0.5


@pytest.mark.slow
@pytest.mark.parametrize("spread", [0.3, 1.0, 2.0, 3.0])
def test_log_z_is_certified_closer_than_by_any_order_statistic(spread) -> None:
    """The mean bound of 400 chains, against order statistics of group means with the best order in hindsight."""
    rng = np.random.default_rng(0)
    weights = rng.normal(-(spread**2) / 2, spread, (40, 400))
    ours = np.mean([certify_log_z(row, 0.99).bound for row in weights])
    for groups in (1, 5, 10, 20, 40, 100, 400):
        means = np.sort(log_mean_exp(weights.reshape(40, groups, -1)), axis=1).mean(axis=0)
        prices = [order_price(groups, order, 0.01) for order in range(1, groups + 1)]
        assert ours > np.max(means - prices)


def order_price(groups: int, order: int, d: float) -> float:
    """log a such that the order-th least of the group means exceeds a Z with probability at most d (Markov)."""
    return -brentq(lambda log_p: binom.sf(groups - order, groups, math.exp(log_p)) - d, -50, -1e-12)


def test_dictionary() -> None:
    assert certify_log_z(np.zeros(1), 0.5).to_dict() == {
        "bound": math.log(0.5),
        "confidence": 0.5,
        "quantity": "log Z",
    }
