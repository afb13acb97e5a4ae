"""The program needs nothing of meltpoint but its public names."""

import ast
import doctest
from importlib import import_module
from pathlib import Path

import pytest

import meltpoint as mp

FILES = sorted((Path(__file__).resolve().parents[2] / "reproduce").glob("*.py"))


def test_it_uses_public_names_alone():
    assert len(FILES) > 5
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom):
                assert not (node.module or "").startswith("meltpoint"), (path.name, node.module)
            if isinstance(node, ast.Import):
                named = [(alias.name, alias.asname) for alias in node.names if "meltpoint" in alias.name]
                assert named in ([], [("meltpoint", "mp")]), (path.name, named)
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "mp":
                assert node.attr in mp.__all__, (path.name, node.attr)


@pytest.mark.parametrize("name", ["cells", "page"])
def test_its_examples_run(name):
    assert doctest.testmod(import_module(f"reproduce.{name}")) == (0, 1 + (name == "cells"))
