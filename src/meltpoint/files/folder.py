"""Folders for output."""

from pathlib import Path

from meltpoint.errors import InputError


def make_folder(path: Path) -> None:
    """Create a folder, with its parents, unless it is there."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise InputError(
            found=f"{path}, which cannot be created ({problem.strerror})",
            expected="a folder to write to",
            remedy="choose another folder, or change the permissions",
        ) from problem
