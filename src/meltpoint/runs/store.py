"""Stores of chunks of finished work: a run's folder, or none.

`contents` lists the names of all files and chunks. Nothing outside the folder is read or written: links in it are
neither followed nor written through.
"""

import json
import os
import stat
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import takewhile
from pathlib import Path
from typing import Any, TypeVar

from numpy.typing import NDArray

from meltpoint.errors import InputError, RunWarning, SystemFailure
from meltpoint.fingerprint import Arrays
from meltpoint.formats.atomic import atomic_write, is_temporary, make_folder, remove_abandoned, write_error
from meltpoint.formats.source import open_regular
from meltpoint.runs.contents import LOCK, REPORT
from meltpoint.runs.lock import locked
from meltpoint.runs.sealed import read_sealed, write_sealed
from meltpoint.runs.specification import (
    Specification,
    has_specification,
    read_specification,
    write_specification,
)

T = TypeVar("T")

_NOT_AS_EXPECTED = ValueError, TypeError, LookupError, ArithmeticError, AttributeError
_LARGEST_REPORT = 1 << 28  # bytes; one with 100,000 examples has 10 MB


class RunFolder:
    """The chunks of one run. A chunk that cannot be written is kept in memory, and writing it is tried again.

    `load` warns of a chunk that is damaged, or not what the reader expects, and counts it as missing, so that it is
    computed again; `refused` are the names of those.
    """

    def __init__(self, folder: Path, fingerprint: str) -> None:
        self.folder = folder
        self.refused: set[str] = set()
        self._fingerprint = fingerprint
        self._waiting: dict[str, Arrays] = {}

    def load(self, name: str, load: Callable[[dict[str, NDArray[Any]]], T]) -> T | None:
        """What `load` makes of the arrays of this name, None if they have to be computed.

        A ValueError, LookupError or the like of `load` says that they are not what they should be.
        """
        if name in self._waiting:
            return load(dict(self._waiting[name]))
        path = self._path(name)
        try:
            path.lstat()
        except OSError:
            return None
        try:
            check_inside(path, self.folder)
            arrays = read_sealed(path, self._fingerprint, name)
            try:
                return load(arrays)
            except _NOT_AS_EXPECTED as problem:
                found = problem.found if isinstance(problem, InputError) else str(problem)
                raise InputError(
                    found=f"{path} with {found}", expected="a record of this run", remedy="remove it"
                ) from problem
        except InputError as problem:
            self.refused.add(name)
            text = "counts as missing, and is computed again when the run goes on"
            _warn(f"{problem.found}: this chunk of the run {text}")
            return None

    def write(self, name: str, arrays: Arrays) -> None:
        """Write a chunk, and then those that could not be written before, until one fails."""
        known = bool(self._waiting)
        self._waiting[name] = arrays
        # The new one first: the disk may have space for it though it has none for a larger one before it.
        in_turn = [name, *(other for other in self._waiting if other != name)]
        # The first that fails is the last that is tried.
        problem = next(filter(None, map(self._try, in_turn)), None)
        if problem and not known:
            _warn(
                f"{problem.found}: {problem.remedy}. Nothing is lost so far: the run goes on, and what is "
                "finished is written as soon as that is possible"
            )

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
        problems = [problem for name in list(self._waiting) if (problem := self._try(name))]
        if problems:
            n, first = len(problems), problems[0]
            _warn(
                f"{first.found}: {first.remedy}. {n:,} finished chunk{'s' if n > 1 else ''} of the run could not "
                "be written; calling again computes them again, and no others"
            )

    def _path(self, name: str) -> Path:
        return self.folder / f"{name}.npz"

    def _try(self, name: str) -> InputError | SystemFailure | None:
        """Write a chunk that is kept in memory; if that fails it stays there, and the error is returned."""
        path = self._path(name)
        try:
            check_inside(path, self.folder)
            make_folder(path.parent)
            write_sealed(path, self._waiting[name], self._fingerprint, name)
        except (InputError, SystemFailure) as problem:
            return problem
        del self._waiting[name]
        return None


def check_inside(path: Path, folder: Path) -> None:
    """Refuse a path that leaves a folder: by a link in place of a folder below it, by "..", or by beginning anew."""
    try:
        below = path.parent.relative_to(folder)
    except ValueError:
        below = Path("..")
    if ".." in below.parts:
        raise InputError(
            found=f"{path}, a path out of {folder}",
            expected="a name in this folder",
            remedy="restore the folder from a copy, or begin anew in another one",
        )
    # Links in the folder's own path are the caller's, and are followed.
    if Path(os.path.realpath(path.parent)) != Path(os.path.realpath(folder), below):
        inside = takewhile(lambda parent: parent != folder, path.parents)
        link = next((parent for parent in inside if parent.is_symlink()), path.parent)
        raise InputError(
            found=f"{link}, a link out of {folder}",
            expected="a folder",
            remedy="remove the link",
        )


@contextmanager
def open_run(path: str | os.PathLike[str], specification: Specification) -> Iterator[RunFolder]:
    """A run's folder to write to: a new one, or that of a run with the same specification, which is continued."""
    folder = Path(path)
    is_run = has_specification(folder)
    _check_usable(folder, is_run)
    make_folder(folder)
    with locked(folder):
        _remove_abandoned_below(folder)
        if has_specification(folder):
            found = read_specification(folder)
            _check_continued(specification, found, folder)
            if specification.reporting_settings != found.reporting_settings:  # what is asked for now
                write_specification(specification, folder)
        else:
            write_specification(specification, folder)
        run = RunFolder(folder, specification.fingerprint)
        try:
            yield run
        finally:
            run.close()


@contextmanager
def reading_run(folder: str | os.PathLike[str]) -> Iterator[None]:
    """Turn what fails inside, where all input comes from a run's folder, into an InputError that names it.

    Chunks with a valid seal may still hold numbers that make no run: anyone can compute the seal.
    """
    try:
        yield
    except (ValueError, TypeError, LookupError, ArithmeticError, AttributeError, MemoryError) as problem:
        if isinstance(problem, InputError):
            raise
        raise InputError(
            found=f"{os.fspath(folder)}, whose chunks make no run ({str(problem) or type(problem).__name__})",
            expected="a folder as it was written",
            remedy="restore it from a copy, or begin the run anew in another folder",
        ) from problem


def _check_usable(folder: Path, is_run: bool) -> None:
    try:
        mode = folder.stat().st_mode
    except FileNotFoundError:
        return
    except OSError as problem:
        raise write_error(folder, problem) from problem
    if not stat.S_ISDIR(mode):
        raise InputError(
            found=f"{folder}, which is a file", expected="a folder for the run", remedy="choose another name"
        )
    if is_run:
        return
    try:
        names = sorted(entry.name for entry in folder.iterdir())
    except OSError as problem:
        raise write_error(folder, problem) from problem
    strangers = [name for name in names if name != LOCK and not is_temporary(name)]
    if strangers:
        raise InputError(
            found=f"{strangers[0]} in {folder}, which is not a run's folder",
            expected="a new or empty folder, or a run to continue",
            remedy="choose another folder",
        )


def _check_continued(asked: Specification, found: Specification, folder: Path) -> None:
    asked.check_same(found, str(folder))
    if asked.parts != found.parts:
        raise InputError(
            found=f"a run of part {', '.join(map(str, found.parts))} in {folder}",
            expected=f"one of part {', '.join(map(str, asked.parts))}",
            remedy="choose another folder, and join the two with meltpoint runs merge",
        )


def _remove_abandoned_below(folder: Path) -> None:
    """Remove what a killed writer left half written, in the folder and those in it; links are not followed."""
    for below, _, _ in os.walk(folder):
        remove_abandoned(Path(below))


def _warn(text: str) -> None:
    warnings.warn(text, RunWarning, stacklevel=3)
