"""A campaign: tries until the time is over or all is tried, and what they have found."""

import random
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attack.ledger import Ledger

_MEMORY = Path("/dev/shm")
_ENOUGH = 1 << 30  # bytes


def place() -> str | None:
    """Where folders are made: in memory if there is room, where syncing takes no time; None for the usual place."""
    try:
        return str(_MEMORY) if shutil.disk_usage(_MEMORY).free > _ENOUGH else None
    except OSError:
        return None


@dataclass
class Campaign:
    """One campaign as one process sees it: several may work on it, each with tries of its own.

    `random` is seeded anew for every try: the seed and the number of a try say what it does, in whichever process.
    `files` are the models and data to use, `until` the moment at which the time is over (of time.monotonic). With
    `stop` it ends at the first failure. `failed_before` calls of each command have failed in an earlier run of the
    same seed, and are left out.
    """

    name: str
    seed: int
    until: float
    files: Path
    ledger: Ledger
    stop: bool = False
    failed_before: int = 0

    def __post_init__(self) -> None:
        self.seed_with(0)

    @property
    def going_on(self) -> bool:
        """Whether there is time for another try; there always is for the first."""
        if self.stop and self.ledger.failures(self.name):
            return False
        return time.monotonic() < self.until or not self.ledger.counts(self.name)

    @property
    def seconds(self) -> float:
        """Seconds that are left."""
        return max(0.0, self.until - time.monotonic())

    def tries(self) -> Iterator[int]:
        """Numbers of tries that nobody else makes, without end."""
        while True:
            number = self.ledger.take(self.name)
            self.seed_with(number)
            yield number

    def seed_with(self, *what: object) -> None:
        """Begin the random numbers of a try."""
        self.random = random.Random(f"{self.name} {self.seed} {what}")

    def count(self, what: str, of: str = "", n: int = 1) -> None:
        """Count something, of a command say."""
        self.ledger.count(self.name, what, of, n)

    def check(self, complaint: str, what: str) -> bool:
        """Count a failure if there is something to complain about; gives whether all was well."""
        if complaint:
            failure = f"{what}: {complaint}"
            if self.ledger.fail(self.name, failure):  # told at once: a campaign may take an hour
                print(f"{self.name}: {failure}", file=sys.stderr, flush=True)
        return not complaint

    def same(self, found: Any, expected: Any, what: str) -> bool:
        """Count a failure if numbers are not those of an undisturbed run."""
        return self.check("" if found == expected else "other numbers than without a disturbance", what)

    def folder(self, *folders: str) -> AbstractContextManager[Path]:
        """A new folder with the models and data, and with the named folders of `files`; removed in the end."""
        return new_folder(self.files, folders)


@contextmanager
def new_folder(files: Path, folders: Sequence[str] = ()) -> Iterator[Path]:
    """A new folder with all files of another and those of its folders that are named; removed in the end."""
    path = Path(tempfile.mkdtemp(prefix="attack-", dir=place()))
    try:
        for file in files.iterdir():
            if file.is_file():
                shutil.copy(file, path)
        for name in folders:
            shutil.copytree(files / name, path / name)
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def leftovers(folder: Path) -> str:
    """Files that no finished call may leave behind, empty if there are none."""
    found = [path.relative_to(folder) for path in folder.rglob(".meltpoint-*.tmp")]
    found += [path.relative_to(folder) for path in folder.rglob("*.lock")]
    found += [path.relative_to(folder) for path in (folder / "tmp").glob("*")]
    return f"left {', '.join(map(str, found))}" if found else ""
