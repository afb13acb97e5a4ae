"""A folder that outlives the examples of a property test."""

from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("files")
