"""A run's folder, open for writing.

specification.json              what the run computes
base.npz, log_f.npz, …          what all parts share
part-0/stage-0/stage.npz        everything the stage's weights depend on
part-0/stage-0/ais-0000000.npz  log weights of the AIS chains from number 0 on
part-0/stage-0/raise-0000000.npz    … of the RAISE examples from number 0 on
report.json                     the report, when the run is finished
lock                            held by the process that writes
"""

import json
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from meltpoint.errors import InputError, RunWarning
from meltpoint.files.atomic import atomic_write
from meltpoint.files.folder import make_folder
from meltpoint.runs.fingerprint import Arrays
from meltpoint.runs.lock import LOCK, locked
from meltpoint.runs.pieces import read_piece, write_piece
from meltpoint.runs.specification import FILE, Specification, read_specification, write_specification

REPORT = "report.json"


class RunFolder:
    """The pieces of one run. What the disk does not take is kept in memory and tried again.

    `read` warns of a damaged piece and calls it missing, so that it is computed again.
    """

    def __init__(self, folder: Path, fingerprint: str) -> None:
        self.folder = folder
        self._fingerprint = fingerprint
        self._waiting: dict[str, Arrays] = {}

    def read(self, name: str) -> dict[str, NDArray[Any]] | None:
        """The piece of this name, None if it has to be computed."""
        if name in self._waiting:
            return dict(self._waiting[name])
        path = self._path(name)
        if not path.exists():
            return None
        try:
            return read_piece(path, self._fingerprint, name)
        except InputError as problem:
            _warn(f"{problem.found}: this piece of the run counts as missing, and is computed again")
            return None

    def write(self, name: str, arrays: Arrays) -> None:
        """Write a piece, and then those that could not be written before, as far as it goes."""
        known = bool(self._waiting)
        self._waiting[name] = arrays
        # The new one first: there may be room for it though there is none for a larger one before it.
        in_turn = [name, *(other for other in self._waiting if other != name)]
        problem = next(
            filter(None, map(self._try, in_turn)), None
        )  # the first that fails is the last that is tried
        if problem and not known:
            _warn(
                f"{problem.found}: {problem.remedy}. Nothing is lost so far: the run goes on, and what is "
                "finished is written as soon as that is possible"
            )

    @property
    def finished(self) -> bool:
        """Whether the report was written."""
        return (self.folder / REPORT).is_file()

    def finish(self, report: dict[str, Any]) -> None:
        """Write the report."""
        try:
            with atomic_write(self.folder / REPORT) as file:
                file.write(json.dumps(report, indent=2, allow_nan=False).encode() + b"\n")
        except InputError as problem:
            _warn(f"{problem.found}: {problem.remedy}, and call again: the report is made again")

    def close(self) -> None:
        """Try once more to write what could not be written."""
        problems = [problem for name in list(self._waiting) if (problem := self._try(name))]
        if problems:
            n, first = len(problems), problems[0]
            _warn(
                f"{first.found}: {first.remedy}. {n:,} finished piece{'s' if n > 1 else ''} of the run could not "
                "be written; calling again computes them again, and no others"
            )

    def _path(self, name: str) -> Path:
        return self.folder / f"{name}.npz"

    def _try(self, name: str) -> InputError | None:
        """Write a piece that waits; if that is not possible it waits on."""
        try:
            make_folder(self._path(name).parent)
            write_piece(self._path(name), self._waiting[name], self._fingerprint, name)
        except InputError as problem:
            return problem
        del self._waiting[name]
        return None


@contextmanager
def open_run(path: str | os.PathLike[str], specification: Specification) -> Iterator[RunFolder]:
    """A run's folder to write to: a new one, or that of a run with this very specification, to continue it."""
    folder = Path(path)
    _check_usable(folder)
    make_folder(folder)
    with locked(folder):
        _sweep(folder)
        if (folder / FILE).exists():
            found = read_specification(folder)
            _check_continued(specification, found, folder)
            if specification.judgement != found.judgement:  # what is asked for now
                write_specification(specification, folder)
        else:
            write_specification(specification, folder)
        run = RunFolder(folder, specification.fingerprint)
        try:
            yield run
        finally:
            run.close()


def _check_usable(folder: Path) -> None:
    if folder.exists() and not folder.is_dir():
        raise InputError(
            found=f"{folder}, which is a file", expected="a folder for the run", remedy="choose another name"
        )
    if not folder.is_dir() or (folder / FILE).exists():
        return
    strangers = [entry.name for entry in folder.iterdir() if entry.name != LOCK and not _is_temporary(entry)]
    if strangers:
        raise InputError(
            found=f"{sorted(strangers)[0]} in {folder}, which is not a run's folder",
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


def _sweep(folder: Path) -> None:
    """Remove what a killed writer left half written."""
    for path in folder.rglob(".meltpoint-*.tmp"):
        path.unlink(missing_ok=True)


def _is_temporary(path: Path) -> bool:
    return path.name.startswith(".meltpoint-") and path.suffix == ".tmp"


def _warn(text: str) -> None:
    warnings.warn(text, RunWarning, stacklevel=3)
