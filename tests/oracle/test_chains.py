"""The oracle agrees with itself: the paper's identities hold on it, and its mutants do not."""

import numpy as np
import pytest

from oracle import chains, zoo
from oracle.tables import all_states, code, marginal

SIZES = [[2, 2], [3, 3], [2, 2, 2], [2, 2, 1, 2]]


def random_path(seed: int, sizes: list[int]) -> chains.Path:
    rng = np.random.default_rng(seed)
    return chains.path(tuple(rng.normal(0, 1, size) for size in sizes), zoo.layers(rng, sizes))


def test_states_are_numbered_by_their_digits() -> None:
    assert all_states(2).tolist() == [[0, 0], [0, 1], [1, 0], [1, 1]]
    assert (code(all_states(5)) == np.arange(32)).all()


def test_marginal_of_two_units() -> None:
    table = np.array([1.0, 2.0, 4.0, 8.0])
    assert marginal(table, np.array([True, False])).tolist() == [3.0, 12.0]
    assert marginal(table, np.array([False, True])).tolist() == [5.0, 10.0]


@pytest.mark.parametrize("sizes", SIZES)
def test_gibbs_leaves_the_distribution_invariant_and_is_reversed_by_the_other_order(sizes: list[int]) -> None:
    path = random_path(1, sizes)
    for beta in (0.0, 0.3, 1.0):
        p, transition = path.p(beta), path.gibbs(beta)
        np.testing.assert_allclose(p @ transition, p, rtol=1e-12)
        other_order = chains.resample(p, path.even) @ chains.resample(p, ~path.even)
        np.testing.assert_allclose(chains.reversal(transition, p), other_order, rtol=1e-10, atol=1e-300)


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("schedule", zoo.SCHEDULES)
def test_the_papers_equations_are_identities(sizes: list[int], schedule: str) -> None:
    path, betas = random_path(2, sizes), zoo.SCHEDULES[schedule]
    p_ann = chains.p_ann(path, betas)
    assert chains.ais_weight(path, betas) == pytest.approx(path.z(1) / path.z(0), rel=1e-12)
    assert p_ann.sum() == pytest.approx(1, rel=1e-12)
    np.testing.assert_allclose(chains.raise_weight(path, betas), p_ann, rtol=1e-12)
    np.testing.assert_allclose(chains.heated_raise_weight(path, betas), p_ann, rtol=1e-12)


@pytest.mark.parametrize("sizes", SIZES)
def test_heating_alone_estimates_the_ratio_of_unnormalised_probabilities(sizes: list[int]) -> None:
    path = random_path(3, sizes)
    start = path.rows(path.p(0.0)) / marginal(path.p(0.0), path.visible)[:, np.newaxis]  # p_0(h | v)
    heated = chains.heat(path, zoo.SCHEDULES["uneven"], start).sum(axis=1)
    f_model, f_base = (marginal(np.exp(path.log_f(beta)), path.visible) for beta in (1.0, 0.0))
    np.testing.assert_allclose(heated, f_model / f_base, rtol=1e-12)


def reversal_as_printed(path: chains.Path, betas: np.ndarray, k: int) -> np.ndarray:
    """Mutant: Algorithm 2 to the letter draws x_{k-1} from the reversal of T_{k-1}."""
    return chains.proper_reversal(path, betas, k - 1)


def blocks_not_reversed(path: chains.Path, betas: np.ndarray, k: int) -> np.ndarray:
    """Mutant: temperatures backwards, but each move still "h, then v"."""
    return path.gibbs(betas[k])


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("weigh", [chains.raise_weight, chains.heated_raise_weight])
@pytest.mark.parametrize("mutant", [reversal_as_printed, blocks_not_reversed])
def test_mutants_miss_the_annealing_model(sizes: list[int], weigh, mutant) -> None:
    path, betas = random_path(4, sizes), zoo.SCHEDULES["linear"]
    expected = chains.p_ann(path, betas)
    assert np.abs(weigh(path, betas, mutant) / expected - 1).max() > 0.01
    np.testing.assert_allclose(weigh(path, betas), expected, rtol=1e-12)


@pytest.mark.parametrize("sizes", SIZES)
def test_a_normalisation_test_is_blind_to_the_block_order(sizes: list[int]) -> None:
    path, betas = random_path(4, sizes), zoo.SCHEDULES["linear"]
    assert chains.raise_weight(path, betas, blocks_not_reversed).sum() == pytest.approx(1, rel=1e-12)
