"""A disk that fails at the n-th call: a sentence and an exit code, and the next call gives the same numbers.

What a command does with files is counted first; then each of these calls fails once, in an order drawn at random.
"""

import builtins
import errno
import io
import mmap
import os
import random
import resource
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attack.campaign import Campaign
from attack.command import run
from attack.kills import compare, reference
from attack.scenarios import FAST, ONE_WORKER, Scenario

_CODES = (errno.ENOSPC, errno.EIO, errno.EROFS, errno.EACCES)
_PATCHED = {
    "open": [(os, "open"), (io, "open"), (builtins, "open")],
    "rename": [(os, "replace"), (os, "rename")],
    "fsync": [(os, "fsync")],
    "unlink": [(os, "unlink"), (os, "remove")],
    "mkdir": [(os, "mkdir")],
    "close": [(os, "close")],
}
OPERATIONS = (*_PATCHED, "write")
_SIZES = (1, 97, 300, 1000, 3000)
"""Bytes beyond which no file can grow."""
_ATTEMPTS = 3


@dataclass(frozen=True)
class Fault:
    """The n-th operation fails with an error code, and all after it if `forever`; n = 0: none."""

    operation: str
    nth: int
    code: int
    forever: bool


NONE = Fault("open", 0, 0, False)


class Disk:
    """Counts the operations on files in a folder, in a forked process, and lets one fail.

    `limit` is the size beyond which files cannot grow, None for no limit.
    """

    def __init__(self, folder: Path, fault: Fault = NONE, limit: int | None = None) -> None:
        self._shared = mmap.mmap(-1, 8 * len(OPERATIONS))  # the counts of the child are seen here
        self._counts = memoryview(self._shared).cast("Q")
        self._folder = str(folder)
        self._fault = fault
        self._limit = limit

    @property
    def counts(self) -> dict[str, int]:
        """How many operations of each kind there were."""
        return dict(zip(OPERATIONS, self._counts, strict=True))

    def __call__(self) -> None:
        """Begin, in the process whose operations are meant."""
        if self._limit is not None:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (self._limit, resource.RLIM_INFINITY))
            return
        for operation, places in _PATCHED.items():
            for module, name in places:
                setattr(module, name, self._wrapped(operation, getattr(module, name)))

    def _wrapped(self, operation: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*arguments: Any, **options: Any) -> Any:
            if not _concerns(arguments, self._folder):
                return function(*arguments, **options)
            self.count(operation)
            path = arguments[0]
            mode = arguments[1] if len(arguments) > 1 else options.get("mode", "r")
            if operation == "open" and isinstance(mode, str) and "b" in mode and set(mode) & set("wxa"):
                return io.BufferedWriter(_CountedFile(self, path, mode))
            return function(*arguments, **options)

        return wrapped

    def count(self, operation: str) -> None:
        """Count an operation; OSError if it is the one that fails."""
        at = OPERATIONS.index(operation)
        self._counts[at] += 1
        fault, n = self._fault, self._counts[at]
        if (
            operation == fault.operation
            and fault.nth
            and (n == fault.nth or (fault.forever and n > fault.nth))
        ):
            raise OSError(fault.code, os.strerror(fault.code))


class _CountedFile(io.FileIO):
    """A file whose writes are counted."""

    def __init__(self, disk: Disk, path: Any, mode: str) -> None:
        super().__init__(path, mode.replace("b", ""))
        self._disk = disk

    def write(self, data: Any) -> int:
        self._disk.count("write")
        return super().write(data)


def _concerns(arguments: tuple[Any, ...], folder: str) -> bool:
    if arguments and isinstance(arguments[0], int):  # an open file: what it is is in /proc
        try:
            path = os.readlink(f"/proc/self/fd/{arguments[0]}")
        except OSError:
            return False
    else:
        try:
            path = os.path.abspath(os.fsdecode(arguments[0]))
        except (TypeError, IndexError):
            return False
    return path.startswith(folder) and not path.endswith((".py", ".pyc"))


def attack(campaign: Campaign, scenarios: tuple[Scenario, ...] = FAST + ONE_WORKER) -> Iterator[None]:
    """Let every call fail once, those of one command after those of another, until all have."""
    left = list(scenarios)
    while left:
        for scenario in list(left):
            if fail_next(campaign, scenario):
                yield
            else:
                left.remove(scenario)


def fail_next(campaign: Campaign, scenario: Scenario) -> bool:
    """Let the next call fail that has not failed yet; gives whether there is one."""
    found = reference(campaign, scenario)
    if found is None:
        return False
    plan = campaign.ledger.once(f"{campaign.name} {scenario.name}", lambda: _plan(campaign, scenario))
    number = campaign.ledger.take(f"{campaign.name} {scenario.name}")
    if number >= len(plan):
        return False
    operation, nth = plan[number]
    campaign.seed_with(scenario.name, number)
    if not any(_try(campaign, scenario, operation, nth, found[0]) for _ in range(_ATTEMPTS)):
        campaign.count("calls that were not made again", scenario.name)
    return True


def _plan(campaign: Campaign, scenario: Scenario) -> list[tuple[str, int]]:
    """All that can fail and has not, in an order at random."""
    with campaign.folder(*scenario.folders) as folder:
        disk = Disk(folder)
        campaign.check(run(scenario.arguments, folder, disk).complaint(0, 1), f"{scenario.name}, counted")
    plan = [(operation, n + 1) for operation, count in disk.counts.items() for n in range(count)]
    plan += [("size limit", limit) for limit in _SIZES]
    random.Random(f"{campaign.seed} {scenario.name}").shuffle(plan)
    del plan[: campaign.failed_before]
    for operation in (*OPERATIONS, "size limit"):
        campaign.count("of", operation, sum(operation == each for each, _ in plan))
    campaign.count("of commands", scenario.name, len(plan))
    return plan


def _try(campaign: Campaign, scenario: Scenario, operation: str, nth: int, expected: Any) -> bool:
    """Let one call fail; gives whether the command has made it: which calls threads make may differ."""
    with campaign.folder(*scenario.folders) as folder:
        if operation == "size limit":
            disk, how = Disk(folder, limit=nth), "bytes"
        else:
            code, forever = campaign.random.choice(_CODES), campaign.random.random() < 0.3
            disk = Disk(folder, Fault(operation, nth, code, forever))
            how = errno.errorcode[code] + (" from then on" if forever else "")
        what = f"{scenario.name}, {operation} {nth}, {how}"
        ended = run(scenario.arguments, folder, disk)
        happened = operation == "size limit" or disk.counts[operation] >= nth
        if happened:
            campaign.count("faults", operation)
            campaign.count("faults in commands", scenario.name)
        if campaign.check(ended.complaint(0, 1, 2, 3), what) and ended.code in (0, 1):
            campaign.same(scenario.result(folder, ended), expected, what)
        compare(campaign, scenario, folder, expected, f"{what}, next call")
    return happened
