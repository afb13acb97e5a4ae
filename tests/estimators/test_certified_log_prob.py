"""Certificates for the mean of log p_N hold however estimates within a group depend on each other: enumerated.

Every weight has two values, so that all outcomes of all chains can be gone through, each with its probability.
"""

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from meltpoint.errors import InputError
from meltpoint.estimators import particles
from meltpoint.estimators.particles import certify_mean_log_prob, particle_log_prob
from meltpoint.statistics.certificate import Certificate, certify_log_z, cost_of

confidences = st.floats(0.01, 0.999)
NO_CHAINS = np.zeros(0)


@dataclass(frozen=True)
class TwoPoint:
    """The first value with probability q, the second otherwise."""

    q: float
    values: tuple

    def outcomes(self) -> list[tuple[float, object]]:
        """Probabilities and values."""
        return [(self.q, self.values[0]), (1 - self.q, self.values[1])]


def p_n(own: TwoPoint, forward: TwoPoint, n: int) -> float:
    """p_N of an example whose (weight, reverse weight) and forward weights have two values."""
    total = 0.0
    for probability, (weight, reverse) in own.outcomes():
        for high in range(n):
            chance = math.comb(n - 1, high) * forward.q**high * (1 - forward.q) ** (n - 1 - high)
            others = high * forward.values[0] + (n - 1 - high) * forward.values[1]
            total += probability * chance * weight * n * reverse / (reverse + others)
    return total


def violation(
    examples: list[TwoPoint],
    forward: TwoPoint,
    chains: int,
    confidence: float,
    certify: Callable = certify_mean_log_prob,
) -> float:
    """Probability of claiming too much of these examples with so many forward chains."""
    total, truths = 0.0, {}
    for outcome in itertools.product(*(own.outcomes() for own in [*examples, *[forward] * chains])):
        drawn = np.array([value for _, value in outcome[: len(examples)]])
        log_forward = np.log(np.array([value for _, value in outcome[len(examples) :]]))
        log_weights, log_reverse = np.log(drawn).T[:, :, np.newaxis]
        certificate, _ = certify(log_weights, log_reverse, log_forward, confidence)
        n = particles_of(certificate)
        if n not in truths:
            truths[n] = float(np.mean([math.log(p_n(own, forward, n)) for own in examples]))
        if certificate.bound > truths[n] + 1e-12:
            total += math.prod(probability for probability, _ in outcome)
    return total


def particles_of(certificate: Certificate) -> int:
    """N, as the certificate says it."""
    _, equals, rest = certificate.quantity.partition("N = ")
    return int(rest.partition(",")[0]) if equals else 1


weights = st.floats(0.01, 100)
estimates = st.builds(lambda q, *w: TwoPoint(q, (w[:2], w[2:])), st.floats(0.01, 0.99), *[weights] * 4)
forwards = st.builds(lambda q, x, y: TwoPoint(q, (x, y)), st.floats(0.01, 0.99), weights, weights)
ALONE = TwoPoint(0.5, (1.0, 1.0))


@given(st.lists(estimates, min_size=1, max_size=5), confidences)
@settings(max_examples=min(40, settings().max_examples))
def test_with_one_particle_it_claims_too_much_no_more_often_than_said(examples, confidence) -> None:
    assert violation(examples, ALONE, 0, confidence) <= 1 - confidence + 1e-12


@pytest.mark.slow
@given(st.lists(estimates, min_size=1, max_size=4), forwards, st.integers(1, 4), confidences)
@settings(max_examples=15)
def test_with_shared_forward_chains_too(examples, forward, chains, confidence) -> None:
    assert violation(examples, forward, chains, confidence) <= 1 - confidence + 1e-12


@given(
    st.lists(estimates, min_size=2, max_size=5),
    forwards,
    st.integers(1, 3),
    st.sampled_from([2, 3, 4]),
    confidences,
)
@settings(max_examples=15)
def test_each_size_of_groups_holds_by_itself(examples, forward, chains, size, confidence) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(particles, "_SCALES", ((size, 1.0),))
        assert violation(examples, forward, chains, confidence) <= 1 - confidence + 1e-12


def as_if_independent(log_weights, log_reverse_weights, forward, confidence):
    """A mutant: all examples share all forward chains, at the price of independent estimates."""
    prob = particle_log_prob(log_weights, log_reverse_weights, forward)
    mean = float(np.mean(prob.values))
    examples = len(log_weights)
    quantity = f"mean log p_N, N = {prob.particles}, of these {examples} examples"
    return Certificate(mean - cost_of(confidence) / examples, confidence, quantity), mean


def price_of_equal_groups(log_weights, log_reverse_weights, forward, confidence):
    """A mutant: 1/G for G groups of unequal size. For five examples in groups of three and two."""
    certificate, mean = certify_mean_log_prob(log_weights, log_reverse_weights, forward, confidence)
    bound = certificate.bound + cost_of(confidence) * (3 / 5 - 1 / 2)
    return Certificate(bound, confidence, certificate.quantity), mean


MOVED_BY_FORWARD = TwoPoint(0.5, ((1.0, 1e-9), (1.0, 1e-9)))
FAR_ABOVE_FORWARD = TwoPoint(0.5, ((1.0, 1e12), (1.0, 1e12)))


def test_shared_chains_at_the_price_of_independent_ones_are_rejected() -> None:
    # A forward weight that is almost nothing three times in ten makes the estimates of all examples large.
    examples, forward = [MOVED_BY_FORWARD] * 5, TwoPoint(0.3, (1e-6, 1.0))
    for chains in (1, 2):
        assert violation(examples, forward, chains, 0.9) <= 0.1
    assert violation(examples, forward, 1, 0.9, as_if_independent) == pytest.approx(0.3)


def test_unequal_groups_at_the_price_of_equal_ones_are_rejected(monkeypatch) -> None:
    monkeypatch.setattr(particles, "_SCALES", ((2, 1.0),))
    # Three of five examples in the first group, all moved by its forward chain; the second group's are not.
    examples, forward = [MOVED_BY_FORWARD] * 3 + [FAR_ABOVE_FORWARD] * 2, TwoPoint(0.14, (1e-6, 1.0))
    assert violation(examples, forward, 2, 0.9) <= 0.1
    assert violation(examples, forward, 2, 0.9, price_of_equal_groups) == pytest.approx(0.14)


@given(confidences)
@settings(max_examples=min(30, settings().max_examples))
def test_no_smaller_price_would_do(confidence) -> None:
    """An estimate that is p / d with probability d and almost nothing otherwise is at the edge."""
    d = 1 - confidence
    extremal = TwoPoint(d * 0.999, ((1 / d, 1.0), (1e-9, 1.0)))
    assert violation([extremal], ALONE, 0, confidence) <= d
    assert violation([extremal], ALONE, 0, confidence - 0.009) >= d * 0.999


@given(st.lists(st.floats(-1e4, 1e4), min_size=1, max_size=50), confidences)
def test_the_price_of_one_particle(values, confidence) -> None:
    log_weights = np.array(values)[:, np.newaxis]
    certificate, estimate = certify_mean_log_prob(
        log_weights, np.zeros_like(log_weights), NO_CHAINS, confidence
    )
    assert estimate == pytest.approx(np.mean(values), rel=1e-12, abs=1e-12)
    cost = math.log(1 / (1 - confidence))
    assert certificate.bound == pytest.approx(estimate - cost / len(values), rel=1e-12, abs=1e-9)
    assert certificate.confidence == confidence
    assert certificate.quantity == f"mean log p_ann of these {len(values)} examples"


@given(st.floats(-1e4, 1e4), confidences)
def test_one_example_costs_as_much_as_log_z(value, confidence) -> None:
    one = np.array([[value]])
    certificate, _ = certify_mean_log_prob(one, np.zeros((1, 1)), NO_CHAINS, confidence)
    assert certificate.bound == certify_log_z(one[0], confidence).bound


def test_the_price_of_a_hundred_examples() -> None:
    certificate, _ = certify_mean_log_prob(*np.zeros((2, 100, 3)), NO_CHAINS, 0.99)
    assert certificate.bound == pytest.approx(-0.04605170185988091, rel=1e-12)


def test_the_estimate_is_that_of_groups_with_forward_chains_of_their_own() -> None:
    rng = np.random.default_rng(0)
    reverse, forward = rng.normal(0, 2, (9, 3)), rng.normal(0, 2, 50)
    starts = -reverse
    certificate, estimate = certify_mean_log_prob(starts, reverse, forward, 0.99)
    candidates = {}
    for groups, share in ((9, 0.6), (2, 0.2), (1, 0.2)):
        each, values = 50 // groups, []
        for k, members in enumerate(np.array_split(np.arange(9), groups)):
            own = forward[each * k : each * (k + 1)]
            values.extend(particle_log_prob(starts[members], reverse[members], own).values)
        price = -math.log(0.01 * share) * max(map(len, np.array_split(np.arange(9), groups))) / 9
        candidates[each + 1] = np.mean(values) - price, np.mean(values)
    n = particles_of(certificate)
    assert certificate.bound == pytest.approx(max(candidates.values())[0], rel=1e-12)
    assert (certificate.bound, estimate) == pytest.approx(candidates[n], rel=1e-12)


@pytest.mark.parametrize("confidence", [0.0, 1.0, -0.1, 99, math.nan])
def test_confidence_is_a_probability(confidence) -> None:
    with pytest.raises(InputError, match="between 0 and 1"):
        certify_mean_log_prob(*np.zeros((2, 3, 1)), NO_CHAINS, confidence)
