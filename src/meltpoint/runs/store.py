"""The folder of a run: sealed records that are read and written by name.

`contents` lists the names. Nothing outside the folder is read or written: links in it are neither followed nor written
through.
"""

import json
import os
import stat
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from numpy.typing import NDArray

from meltpoint.errors import InputError, RunWarning, SystemFailure, printable
from meltpoint.fingerprint import Arrays
from meltpoint.formats.atomic import atomic_write, is_temporary, make_folder, remove_abandoned, write_error
from meltpoint.formats.source import open_regular
from meltpoint.runs.contents import LOCK, REPORT
from meltpoint.runs.files import check_inside, locked, read_sealed, write_sealed
from meltpoint.runs.specification import (
    Specification,
    has_specification,
    read_specification,
    write_specification,
)

T = TypeVar("T")

_WRONG_CONTENT = ValueError, TypeError, LookupError, ArithmeticError, AttributeError
"""What reading arrays raises that are not what they should be; an InputError is a ValueError."""

_LARGEST_REPORT = 1 << 28  # bytes; one with 100,000 examples has 10 MB


class RunFolder:
    """The records of one run. What cannot be written is kept in memory, and writing it is tried again.

    `load` warns of a record that is damaged, or not what the reader expects, and counts it as missing, so that it is
    computed again; `refused` are the names of those.
    """

    def __init__(self, folder: Path, fingerprint: str) -> None:
        self.folder = folder
        self.refused: set[str] = set()
        self._fingerprint = fingerprint
        self._waiting: dict[str, Arrays] = {}

    def load(self, name: str, load: Callable[[dict[str, NDArray[Any]]], T]) -> T | None:
        """What `load` makes of the arrays of this name, None if they have to be computed."""
        if name in self._waiting:
            return load(dict(self._waiting[name]))
        path = self.folder / f"{name}.npz"
        if not os.path.lexists(path):
            return None
        try:
            check_inside(path, self.folder)
            arrays = read_sealed(path, self._fingerprint, name)
        except InputError as problem:
            return self._refuse(name, problem.found)
        try:
            return load(arrays)
        except _WRONG_CONTENT as problem:
            return self._refuse(name, f"{path} with {getattr(problem, 'found', problem)}")

    def _refuse(self, name: str, found: str) -> None:
        self.refused.add(name)
        text = "counts as missing, and is computed again when the run goes on"
        _warn(f"{printable(found)}: this chunk of the run {text}")

    def write(self, name: str, arrays: Arrays) -> None:
        """Write a record, and then those that could not be written before, until one fails."""
        known = bool(self._waiting)
        self._waiting[name] = arrays
        # The new one first: the disk may have space for it though it has none for a larger one before it.
        problem = self._write_waiting([name, *(other for other in self._waiting if other != name)])
        if problem and not known:
            _warn(
                f"{problem.found}: {problem.remedy}. Nothing is lost so far: the run goes on, and what is "
                "finished is written as soon as that is possible"
            )

    def _write_waiting(self, names: list[str]) -> InputError | SystemFailure | None:
        """The first problem ends it: that record and those after it stay in memory."""
        for name in names:
            path = self.folder / f"{name}.npz"
            try:
                check_inside(path, self.folder)
                make_folder(path.parent)
                write_sealed(path, self._waiting[name], self._fingerprint, name)
            except (InputError, SystemFailure) as problem:
                return problem
            del self._waiting[name]
        return None

    def read_report(self) -> dict[str, Any] | None:
        """The report that was written last, None if there is none that can be read."""
        try:
            with open_regular(self.folder / REPORT, follow_links=False) as file:
                content = json.loads(file.read(_LARGEST_REPORT))
        except (OSError, ValueError, RecursionError):
            return None
        return content if isinstance(content, dict) else None

    def finish(self, report: dict[str, Any]) -> None:
        """Write the report."""
        try:
            with atomic_write(self.folder / REPORT, follow_links=False) as file:
                file.write(json.dumps(report, indent=2, allow_nan=False).encode() + b"\n")
        except (InputError, SystemFailure) as problem:
            _warn(f"{problem.found}: {problem.remedy}, and call again: the report is made again")

    def close(self) -> None:
        """Try once more to write what could not be written."""
        problems = list(filter(None, (self._write_waiting([name]) for name in list(self._waiting))))
        if problems:
            n, first = len(problems), problems[0]
            _warn(
                f"{first.found}: {first.remedy}. {n:,} finished chunk{'s' if n > 1 else ''} of the run could not "
                "be written; calling again computes them again, and no others"
            )


@contextmanager
def open_run(path: str | os.PathLike[str], specification: Specification) -> Iterator[RunFolder]:
    """A run's folder to write to: a new one, or that of a run with the same specification, which is continued."""
    folder = Path(path)
    _check_usable(folder)
    make_folder(folder)
    remedy = "choose another folder (for other chains of the same run: part=1, --part 1)"
    with locked(folder / LOCK, f"process at work in {folder}", remedy):
        for below, _, _ in os.walk(folder):  # links are not followed
            remove_abandoned(Path(below))
        found = read_specification(folder) if has_specification(folder) else None
        if found is not None:
            specification.check_continues(found, str(folder))
        if (
            found is None or specification.reporting_settings != found.reporting_settings
        ):  # what is asked for now
            write_specification(specification, folder)
        run = RunFolder(folder, specification.fingerprint)
        try:
            yield run
        finally:
            run.close()


@contextmanager
def reading_run(folder: str | os.PathLike[str]) -> Iterator[None]:
    """Turn what fails inside, where all input comes from a run's folder, into an InputError that names it.

    Records with a valid seal may still hold numbers that make no run: anyone can compute the seal.
    """
    try:
        yield
    except (*_WRONG_CONTENT, MemoryError) as problem:
        if isinstance(problem, InputError):
            raise
        raise InputError(
            found=f"{os.fspath(folder)}, whose chunks make no run ({str(problem) or type(problem).__name__})",
            expected="a folder as it was written",
            remedy="restore it from a copy, or begin the run anew in another folder",
        ) from problem


def _check_usable(folder: Path) -> None:
    """Refuse a path that is neither new, nor an empty folder, nor a run's folder."""
    try:
        mode = folder.stat().st_mode
        foreign = stat.S_ISDIR(mode) and not has_specification(folder)
        names = sorted(path.name for path in folder.iterdir()) if foreign else []
    except FileNotFoundError:
        return
    except (OSError, ValueError) as problem:
        raise write_error(folder, problem) from problem
    if not stat.S_ISDIR(mode):
        raise InputError(
            found=f"{folder}, which is a file", expected="a folder for the run", remedy="choose another name"
        )
    strangers = [name for name in names if name != LOCK and not is_temporary(name)]
    if strangers:
        raise InputError(
            found=f"{strangers[0]} in {folder}, which is not a run's folder",
            expected="a new or empty folder, or a run to continue",
            remedy="choose another folder",
        )


def _warn(text: str) -> None:
    warnings.warn(text, RunWarning, stacklevel=4)
