"""Settings: what was given is kept, what was left out has its default; budgets as people write them."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import meltpoint as mp
from meltpoint.arguments import Budget, read
from meltpoint.defaults import Settings
from meltpoint.errors import InputError
from meltpoint.evaluation.settings import TO_BE_CHOSEN, candidate_bases, resolve_settings

TRAIN = np.eye(3)


def resolve(test_examples=500, train=None, **given):
    return resolve_settings(test_examples, train, given)


def test_defaults():
    settings, betas = resolve()
    assert settings == replace(Settings(), base="model", ais_chains=400)
    assert betas is None
    assert resolve(train=TRAIN)[0].base == "data"
    assert resolve(test_examples=30)[0].examples == 30
    assert resolve(test_examples=30)[0].ais_chains == 120


sizes = st.none() | st.integers(1, 400)


@given(
    sizes,
    sizes,
    sizes,
    sizes,
    st.none() | st.floats(1e-6, 1e6),
    st.floats(0.01, 0.999),
    st.integers(0, 2**70),
)
def test_what_is_given_is_kept_and_the_rest_has_its_default(
    steps, chains, examples, ais_chains, tolerance, confidence, seed
):
    given_ones = {"steps": steps, "chains": chains, "examples": examples, "ais_chains": ais_chains}
    given_ones |= {"tolerance": tolerance, "confidence": confidence, "seed": seed}
    settings, betas = resolve(**given_ones)
    for name, value in given_ones.items():
        if value is not None:
            assert getattr(settings, name) == value
        elif name != "ais_chains":
            assert getattr(settings, name) == getattr(Settings(), name)
    if ais_chains is None:
        assert settings.ais_chains == settings.examples * settings.chains
    assert (settings.gap, settings.budget, betas) == (None, None, None)


GAPS, BUDGETS = st.floats(1e-6, 1e6), st.floats(1e-3, 1e6)


@given(st.tuples(GAPS, st.none() | BUDGETS) | st.tuples(st.none(), BUDGETS), st.none() | st.floats(1e-6, 1e6))
def test_with_a_gap_or_a_budget_stages_choose_the_sizes(target, tolerance):
    gap, budget = target
    settings, betas = resolve(gap=gap, budget=budget, tolerance=tolerance)
    assert (settings.steps, settings.examples, settings.chains, settings.ais_chains) == (0, 0, 0, 0)
    assert settings.gap == gap
    assert settings.budget == (1800.0 if budget is None else budget)
    expected = next(value for value in (tolerance, gap, Settings().tolerance) if value is not None)
    assert settings.tolerance == expected
    assert betas is None


@pytest.mark.parametrize(
    ("given_ones", "names"),
    [
        ({"gap": 0.1}, ("model", "uniform")),
        ({"gap": 0.1, "train": TRAIN}, ("data", "uniform")),
        ({"budget": 5, "train": TRAIN}, ("data", "uniform")),
        ({"gap": 0.1, "train": TRAIN, "base": "model"}, ("model",)),
        ({"gap": 0.1, "train": TRAIN, "schedule": "linear"}, ("data",)),  # no pilot to choose by
        ({"train": TRAIN}, ("data",)),
    ],
)
def test_bases_to_choose_from(given_ones, names):
    settings, _ = resolve(**given_ones)
    assert candidate_bases(settings, given_ones.get("train")) == names
    assert (settings.base == TO_BE_CHOSEN) == (len(names) > 1)


def test_betas_of_ones_own():
    settings, betas = resolve(steps=[0, 0.25, 1])
    assert (settings.steps, settings.schedule) == (2, "given")
    np.testing.assert_array_equal(betas, [0, 0.25, 1])


@given(st.integers(1, 500), st.integers(1, 500))
def test_each_particle_but_one_is_an_ais_chain(particles, ais_chains):
    if particles - 1 <= ais_chains:
        assert resolve(particles=particles, ais_chains=ais_chains)[0].particles == particles
    else:
        with pytest.raises(InputError, match=f"expected at most {ais_chains + 1}"):
            resolve(particles=particles, ais_chains=ais_chains)


@pytest.mark.parametrize(
    ("budget", "seconds"),
    [("30m", 1800), ("2h", 7200), ("90s", 90), ("1h30m", 5400), ("1H 30M 5S", 5405), ("45", 45), (2.5, 2.5)],
)
def test_seconds(budget, seconds):
    assert read(Budget, budget, "budget") == seconds


@given(st.integers(0, 99), st.integers(0, 59), st.integers(1, 59))
def test_hours_minutes_and_seconds_add_up(hours, minutes, seconds):
    assert read(Budget, f"{hours}h{minutes}m{seconds}s", "budget") == 3600 * hours + 60 * minutes + seconds


@pytest.mark.parametrize(
    "budget", ["", "soon", "30 minutes", "m30", "1m1h", "-5m", "0s", 0, -1, True, float("nan"), float("inf")]
)
def test_what_is_no_time(budget):
    with pytest.raises(InputError, match="expected a length of time such as '30m'"):
        read(Budget, budget, "budget")


@pytest.mark.parametrize("function", [mp.compare, mp.trace])
@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        ("step", r"\. Did you mean 'steps'\?"),
        ("sed", r"\. Did you mean 'seed'\?"),
        ("zzzz", ""),
    ],
)
def test_a_keyword_that_is_not_declared_is_refused(function, wrong, hint):
    """As Python refuses it for any function, before the models are read."""
    refused = rf"^{function.__name__}\(\) got an unexpected keyword argument '{wrong}'{hint}$"
    with pytest.raises(TypeError, match=refused):
        function(["no.npz", "none.npz"], TRAIN, **{wrong: 10})


@pytest.mark.parametrize("name", ["gap", "budget", "part", "names"])
def test_trace_has_not_all_keywords_of_evaluate(name):
    with pytest.raises(TypeError, match=f"unexpected keyword argument '{name}'"):
        mp.trace(["no.npz"], TRAIN, **{name: 1})
