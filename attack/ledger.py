"""What all processes of an attack know together: which tries are taken, what was counted, what has failed.

One small file under a lock: a process that dies loses nothing of what it has found.
"""

import fcntl
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


class Ledger:
    """Tries, counts and failures of all campaigns, in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file = folder / "ledger.json"
        if not self._file.exists():
            self._file.write_text(
                json.dumps({"taken": {}, "counts": {}, "failures": {}, "notes": {}, "seconds": {}})
            )

    def take(self, name: str) -> int:
        """The next number of that name, from 0 on; no two processes get the same."""
        with self._changing() as content:
            number: int = content["taken"].get(name, 0)
            content["taken"][name] = number + 1
            return number

    def count(self, campaign: str, what: str, of: str = "", n: int = 1) -> None:
        """Add to a count; `of` says which part of it, the command say."""
        with self._changing() as content:
            parts = content["counts"].setdefault(campaign, {}).setdefault(what, {})
            parts[of] = parts.get(of, 0) + n

    def fail(self, campaign: str, text: str) -> bool:
        """Count a failure; gives whether it is new."""
        with self._changing() as content:
            failures = content["failures"].setdefault(campaign, {})
            failures[text] = failures.get(text, 0) + 1
            return failures[text] == 1

    def spend(self, campaign: str, seconds: float) -> None:
        """Add to the processor time of a campaign."""
        with self._changing() as content:
            content["seconds"][campaign] = content["seconds"].get(campaign, 0.0) + seconds

    def note(self, campaign: str, text: str) -> None:
        """Keep a line for the table."""
        with self._changing() as content:
            content["notes"].setdefault(campaign, []).append(text)

    def counts(self, campaign: str) -> dict[str, dict[str, int]]:
        """All that was counted: of every kind, for each of its parts."""
        return self._read()["counts"].get(campaign, {})

    def total(self, campaign: str, what: str) -> int:
        """A count over all of its parts."""
        return sum(self.counts(campaign).get(what, {}).values())

    def failures(self, campaign: str) -> dict[str, int]:
        """Failures, and how often each was seen."""
        return self._read()["failures"].get(campaign, {})

    def seconds(self, campaign: str) -> float:
        """Processor time of a campaign."""
        return self._read()["seconds"].get(campaign, 0.0)

    def notes(self, campaign: str) -> list[str]:
        """Lines for the table."""
        return self._read()["notes"].get(campaign, [])

    def once(self, name: str, make: Callable[[], Any]) -> Any:
        """A value that the first process to ask for it makes; the others wait for it, and get the same."""
        path = self._folder / f"once {name.replace('/', '-')}.json"
        with path.open("a+") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.seek(0)
            text = file.read()
            if not text:
                text = json.dumps(make())
                file.write(text)
            return json.loads(text)

    def _read(self) -> dict[str, Any]:
        with self._file.open() as file:
            fcntl.flock(file, fcntl.LOCK_SH)
            return json.load(file)

    @contextmanager
    def _changing(self) -> Iterator[dict[str, Any]]:
        with self._file.open("r+") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            content = json.load(file)
            yield content
            file.seek(0)
            file.write(json.dumps(content))
            file.truncate()
