"""Recipes as text and back."""

from dataclasses import fields
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from meltpoint.errors import InputError
from meltpoint.training.recipe import TRAINERS, Recipe, option_names, read_recipe
from meltpoint.training.settings import Settings

TEXT = st.text(st.characters(exclude_categories=["Cc", "Cs"]))
RECIPES = sorted((Path(__file__).parents[2] / "recipes").glob("*.toml"))
PAPER = [
    "mnistCD1-20",
    "mnistPCD-20",
    "mnistCD1-500",
    "mnistPCD-500",
    "mnistCD25-500",
    "omniPCD-1000",
    "mnistDBM-500-1000",
    "omniDBM-1000-1000",
    "mnistDBN-500-2000",
    "omniDBN-1000-1000",
]


def test_there_is_a_recipe_for_every_model_of_the_paper():
    assert sorted(path.stem for path in RECIPES) == sorted(PAPER)


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_recipes_are_what_their_names_say(path):
    recipe = read_recipe(path)
    assert path.stem.startswith({"mnist": "mnist", "omniglot": "omni"}[recipe.data])
    hidden = recipe.options["hidden"]
    sizes = [int(size) for size in path.stem.split("-")[1:]]
    assert (hidden if isinstance(hidden, list) else [hidden]) == sizes
    if recipe.model == "rbm":
        method = "pcd" if "PCD" in path.stem else "cd"
        assert recipe.options["method"] == method
        if method == "cd":
            assert f"CD{recipe.options['k']}-" in path.stem
    else:
        assert recipe.model.upper() in path.stem


@given(
    st.sampled_from(sorted(TRAINERS)),
    TEXT,
    st.none() | st.integers(0, 100),
    st.dictionaries(
        st.sampled_from(["epochs", "learning_rate", "centred", "method", "hidden"]),
        st.integers() | st.booleans() | st.floats(allow_nan=False) | TEXT | st.lists(st.integers()),
    ),
)
def test_a_recipe_survives_as_text(tmp_path_factory, model, data, validation, options):
    recipe = Recipe(model, data, validation, options)
    path = tmp_path_factory.mktemp("recipes") / "recipe.toml"
    path.write_text(str(recipe), encoding="utf-8")
    assert read_recipe(path) == recipe


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('data = "mnist"', "no model"),
        ('model = "rbm"', "no data"),
        ("model = 3", "no model and no data"),
        ('model = "gan"\ndata = "mnist"', "rbm, dbn or dbm"),
        ('model = "rbm"\ndata = "mnist"\nlearnin_rate = 1', "did you mean learning_rate"),
        ('model = "rbm"\ndata = "mnist"\nsweeps = 3', "options of a rbm"),
        ('model = "rbm"\ndata = "mnist"\nprogress = 3', "options of a rbm"),
        ("this is not TOML", "not TOML"),
    ],
)
def test_what_is_not_a_recipe_is_refused_with_a_remedy(text, message, tmp_path):
    path = tmp_path / "recipe.toml"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        read_recipe(path)


def test_a_recipe_that_is_not_there(tmp_path):
    with pytest.raises(InputError, match="correct the path"):
        read_recipe(tmp_path / "none.toml")


def test_every_setting_can_be_chosen_in_a_recipe():
    for model in TRAINERS:
        assert {field.name for field in fields(Settings)} <= set(option_names(model))
