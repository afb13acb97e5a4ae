"""Options and their defaults; recipes as text and back."""

import inspect
from dataclasses import fields
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import meltpoint as mp
from meltpoint.errors import InputError
from meltpoint.training import settings
from meltpoint.training.recipe import MODEL_NAMES, Recipe, read_recipe
from meltpoint.training.settings import TrainingSettings

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
    st.sampled_from(sorted(MODEL_NAMES)),
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
        ('model = "rbm"\ndata = "mnist"\nvalidation = "all"', "validation='all'"),
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


NOT_OPTIONS = {"data", "validation", "progress", "on_epoch", "checkpoint"}
DEFAULTS = {"rbm": settings.RBM_DEFAULTS, "dbn": settings.DBN_DEFAULTS, "dbm": settings.DBM_DEFAULTS}


@pytest.mark.parametrize("model", MODEL_NAMES)
def test_functions_take_the_options_of_a_recipe_with_the_defaults_of_the_settings(model):
    parameters = inspect.signature(getattr(mp, f"train_{model}")).parameters
    options = [name for name in parameters if name not in NOT_OPTIONS]
    Recipe(model, "digits", None, dict.fromkeys(options, 1))
    stage = [field.name for field in fields(TrainingSettings)]
    assert [name for name in options if name in stage] == stage  # passed on in this order
    given = {name: parameters[name].default for name in stage}
    if model == "rbm":  # whose learning rate depends on the visible units
        given["learning_rate"] = settings.RBM_DEFAULTS.learning_rate
    assert given == vars(DEFAULTS[model])


@pytest.mark.parametrize(
    ("n_examples", "batch", "epochs"),
    [(60_000, 100, 30), (1500, 100, -(-settings.LEAST_UPDATES // 15)), (30, 100, settings.LEAST_UPDATES)],
)
def test_few_examples_get_more_epochs(n_examples, batch, epochs):
    assert TrainingSettings(batch=batch).n_epochs(n_examples) == epochs
    assert TrainingSettings(batch=batch, epochs=7).n_epochs(n_examples) == 7


def test_options_may_differ_from_stage_to_stage():
    options = vars(TrainingSettings(method="cd"))
    first, second, third = settings.settings_of_stages(3, *(options | {"epochs": [3, None, 5]}).values())
    assert (first.epochs, second.epochs, third.epochs, third.method) == (3, None, 5, "cd")
    with pytest.raises(InputError, match="one for each stage"):
        settings.settings_of_stages(2, *(options | {"epochs": [3, 4, 5]}).values())


def test_the_learning_rate_falls_to_zero_or_stays():
    linear = TrainingSettings(learning_rate=0.4, schedule="linear")
    assert [linear.rate(share) for share in (0.0, 0.5, 1.0)] == [0.4, 0.2, 0.0]
    assert TrainingSettings(learning_rate=0.4, schedule="constant").rate(0.7) == 0.4
