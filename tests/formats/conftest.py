"""Files to read, and a folder that outlives the examples of a property test."""

from pathlib import Path

import pytest

FILES = Path(__file__).parent / "files"


@pytest.fixture(scope="session")
def files() -> Path:
    """Files that other libraries wrote (make_files.py)."""
    return FILES


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("files")
