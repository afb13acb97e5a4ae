"""The zoo: ten models, what their names say, and no worse than promised."""

from pathlib import Path

import numpy as np
import pytest

import meltpoint as mp
from meltpoint.formats.models import read_note
from meltpoint.training.recipe import read_recipe

ROOT = Path(__file__).parents[2]
RECIPES = sorted((ROOT / "recipes").glob("*.toml"))


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_every_recipe_has_its_model_and_its_card(path):
    stored = ROOT / "zoo" / f"{path.stem}.npz"
    model = mp.load(stored)
    kind, *sizes = repr(model).replace("-", " ").split()
    recipe = read_recipe(path)
    assert kind.lower() == recipe.model
    assert sizes == ["784", *path.stem.split("-")[1:]]
    assert read_note(stored) == str(recipe)
    card = (ROOT / "zoo" / f"{path.stem}.md").read_text()
    assert str(recipe).splitlines()[0] in card
    assert path.stem in (ROOT / "zoo" / "README.md").read_text()


def test_the_zoo_is_small():
    assert sum(path.stat().st_size for path in (ROOT / "zoo").glob("*.npz")) < 30e6


@pytest.fixture(scope="module")
def mnist(shared):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MELTPOINT_DATA", str(shared / "data"))
        yield mp.datasets.load("mnist")


@pytest.mark.slow
@pytest.mark.parametrize(("name", "low", "high"), [("mnistCD1-20", -175, -155), ("mnistPCD-20", -153, -100)])
def test_small_models_have_the_exact_likelihood_they_should(name, low, high, mnist):
    model = mp.load(ROOT / "zoo" / f"{name}.npz")
    assert low < model.log_f(mnist.test).mean() - mp.exact_log_z(model) < high


@pytest.mark.slow
@pytest.mark.parametrize(("name", "least"), [("mnistPCD-500", -104), ("mnistCD25-500", -91)])
def test_large_models_are_no_worse_than_promised(name, least, mnist):
    model = mp.load(ROOT / "zoo" / f"{name}.npz")
    chosen = np.random.default_rng(0).permutation(len(mnist.test))[:2000]
    # Standard errors below 0.3 nats, where both models lie more than 4 above what is promised.
    sizes = {"steps": 2000, "examples": 300, "chains": 1, "ais_chains": 200}
    report = mp.evaluate(model, mnist.test[chosen], mnist.train, **sizes)
    assert report.conservative.value > least
    assert report.optimistic.value > least
