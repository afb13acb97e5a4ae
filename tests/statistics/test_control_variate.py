"""The subset estimator over all subsets and all noise: its expectation and its variance, enumerated."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from meltpoint.statistics.control_variate import control_variate_mean, subset_error

N = 5
reals = st.floats(-1, 1)
populations = st.tuples(
    arrays(np.float64, N, elements=reals),  # values
    arrays(np.float64, N, elements=reals),  # control
    arrays(np.float64, N, elements=st.floats(0, 1)),  # standard deviations of the values' noise
)


def outcomes(population: tuple, n: int, *, known: bool = True) -> tuple[np.ndarray, np.ndarray]:
    """Means and standard errors for every subset of n and every sign of noise ±sigma, equally probable."""
    values, control, sigma = population
    results = []
    for subset in map(list, itertools.combinations(range(N), n)):
        errors = sigma[subset] if known else np.full(n, np.nan)
        for signs in itertools.product((-1, 1), repeat=n):
            noisy = values[subset] + np.array(signs) * sigma[subset]
            results.append(control_variate_mean(noisy, control[subset], control, errors))
    means, errors = np.array(results).T
    return means, errors


def close(value: float) -> object:
    return pytest.approx(value, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("n", range(1, N + 1))
@settings(max_examples=min(30, settings().max_examples))
@given(population=populations)
def test_mean_is_unbiased(n, population) -> None:
    means, _ = outcomes(population, n)
    assert means.mean() == close(population[0].mean())


@pytest.mark.parametrize("n", range(2, N + 1))
@settings(max_examples=min(30, settings().max_examples))
@given(population=populations)
def test_squared_error_is_unbiased_for_the_variance(n, population) -> None:
    means, errors = outcomes(population, n)
    assert np.mean(errors**2) == close(means.var())


@pytest.mark.parametrize("n", range(2, N + 1))
@settings(max_examples=min(30, settings().max_examples))
@given(population=populations)
def test_unknown_noise_makes_the_error_larger_never_smaller(n, population) -> None:
    means, errors = outcomes(population, n, known=False)
    assert np.mean(errors**2) >= means.var() - 1e-12
    assert np.isfinite(errors).all()


def test_the_enumeration_would_notice_a_wrong_formula() -> None:
    """Without the finite population, or without the share of the noise, the variance comes out wrong."""
    population = (np.array([1.0, 4.0, 2.0, 8.0, 5.0]), np.zeros(N), np.array([0.5, 1.0, 1.5, 2.0, 2.5]))
    n = 3
    means, errors = outcomes(population, n)
    own = np.mean(population[2] ** 2) / n
    without_population = np.mean(outcomes(population, n, known=False)[1] ** 2)
    without_noise = np.mean(errors**2) - n / N * own
    with_all_noise = np.mean(errors**2) + (1 - n / N) * own
    for wrong in (without_population, without_noise, with_all_noise):
        assert abs(wrong - means.var()) > 0.1


@given(populations)
def test_the_whole_population_leaves_only_the_noise(population) -> None:
    values, control, sigma = population
    mean, error = control_variate_mean(values, control, control, sigma)
    assert mean == close(values.mean())
    assert error == pytest.approx(np.sqrt(np.mean(sigma**2) / N), rel=1e-12)


@given(populations, st.integers(1, N), reals)
def test_a_perfect_control_leaves_nothing(population, n, offset) -> None:
    _, control, _ = population
    values = control + offset
    mean, error = control_variate_mean(values[:n], control[:n], control, np.zeros(n))
    assert mean == close(values.mean())
    assert np.isnan(error) if n == 1 else error == pytest.approx(0, abs=1e-15)


@given(populations, st.integers(2, N), reals)
def test_only_differences_of_the_control_matter(population, n, offset) -> None:
    values, control, sigma = population
    plain = control_variate_mean(values[:n], control[:n], control, sigma[:n])
    moved = control_variate_mean(values[:n], control[:n] + offset, control + offset, sigma[:n])
    assert moved[0] == close(plain[0])
    assert moved[1] == close(plain[1])


@given(arrays(np.float64, 4, elements=reals), st.floats(0, 10), st.integers(4, 1000), st.integers(1, 1000))
def test_a_larger_population_has_a_larger_error_where_examples_differ_more_than_noise(
    values, noise, population, more
) -> None:
    small = subset_error(values, np.full(4, noise), population)
    large = subset_error(values, np.full(4, noise), population + more)
    spread = np.std(values, ddof=1)
    assert (large >= small - 1e-12) if spread >= noise else (large <= small + 1e-12)


def test_one_example() -> None:
    one, error = np.array([3.0]), np.array([0.2])
    assert np.isnan(subset_error(one, error, 10))
    assert subset_error(one, error, 1) == pytest.approx(0.2, rel=1e-15)
    assert np.isnan(subset_error(one, np.array([np.nan]), 1))


def test_one_unknown_error_makes_all_unknown() -> None:
    values, errors = np.array([1.0, 2.0, 4.0]), np.array([0.1, np.nan, 0.1])
    assert subset_error(values, errors, 6) == pytest.approx(np.std(values, ddof=1) / np.sqrt(3), rel=1e-15)
