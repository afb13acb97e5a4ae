"""A campaign: tries until the time is over, and what they have found."""

import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Campaign:
    """Counts and failures of one campaign. `random` is its own generator, `files` the models and data to use.

    With `stop` it ends at the first failure.
    """

    name: str
    seed: int
    seconds: float
    files: Path
    stop: bool = False
    counts: Counter[str] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.random = random.Random(f"{self.name} {self.seed}")
        self._until = time.monotonic() + self.seconds

    @property
    def going_on(self) -> bool:
        """Whether there is time for another try; there always is for the first."""
        if self.stop and self.failures:
            return False
        return time.monotonic() < self._until or not self.counts

    def check(self, complaint: str, what: str) -> bool:
        """Count a failure if there is something to complain about; gives whether all was well."""
        if complaint:
            failure = f"{what}: {complaint}"
            if failure not in self.failures:  # told at once: a campaign may take an hour
                print(f"{self.name}: {failure}", file=sys.stderr, flush=True)
            self.failures[failure] += 1
        return not complaint

    @contextmanager
    def folder(self) -> Iterator[Path]:
        """A new folder with the models and data, removed in the end."""
        path = Path(tempfile.mkdtemp(prefix="attack-"))
        try:
            for file in self.files.iterdir():
                if file.is_file():
                    shutil.copy(file, path)
            yield path
        finally:
            shutil.rmtree(path, ignore_errors=True)


def leftovers(folder: Path) -> str:
    """Files that no finished call may leave behind, empty if there are none."""
    found = [path.relative_to(folder) for path in folder.rglob(".meltpoint-*.tmp")]
    found += [path.relative_to(folder) for path in folder.rglob("*.lock")]
    found += [path.relative_to(folder) for path in (folder / "tmp").glob("*")]
    return f"left {', '.join(map(str, found))}" if found else ""
