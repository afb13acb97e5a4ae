"""Every example in a docstring runs and gives what it says; every public function of the library has one."""

import doctest
import inspect
import pkgutil
from importlib import import_module

import numpy as np
import pytest

import meltpoint

MODULES = [
    module.name for module in pkgutil.walk_packages(meltpoint.__path__, "meltpoint.") if not module.ispkg
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name):
    with np.printoptions():
        outcome = doctest.testmod(import_module(name))
    assert outcome.failed == 0


@pytest.mark.parametrize("name", [name for name in meltpoint.__all__ if name != "datasets"])
def test_public_functions_have_an_example(name):
    value = getattr(meltpoint, name)
    if inspect.isfunction(value):
        assert doctest.DocTestFinder(recurse=False).find(value)[0].examples
