"""A disk that fails at the n-th call: a sentence and an exit code, and the next call gives the same numbers."""

import builtins
import errno
import io
import os
import resource
import signal
from collections.abc import Callable
from typing import Any

from attack.campaign import Campaign
from attack.command import run
from attack.kills import compare, reference
from attack.scenarios import EVALUATIONS, TRAININGS, Scenario

OPERATIONS = ("open", "rename", "fsync", "unlink", "mkdir", "close of a lock", "write")
_CODES = (errno.ENOSPC, errno.EIO, errno.EROFS, errno.EACCES)
_PATCHED = {
    "open": [(os, "open"), (io, "open"), (builtins, "open")],
    "rename": [(os, "replace"), (os, "rename")],
    "fsync": [(os, "fsync")],
    "unlink": [(os, "unlink"), (os, "remove")],
    "mkdir": [(os, "mkdir")],
    "close of a lock": [(os, "close")],
}


def failing(operation: str, nth: int, code: int, forever: bool, folder: str) -> Callable[[], None]:
    """Makes the n-th operation on a file in `folder` fail in this process, and all after it if `forever`."""

    def begin() -> None:
        if operation == "write":
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (nth * 97, resource.RLIM_INFINITY))
            return
        left = nth

        def wrap(function: Callable[..., Any]) -> Callable[..., Any]:
            def wrapped(*arguments: Any, **options: Any) -> Any:
                nonlocal left
                if _concerns(arguments, folder):
                    left -= 1
                    if left == 0 or (forever and left < 0):
                        raise OSError(code, os.strerror(code))
                return function(*arguments, **options)

            return wrapped

        for module, name in _PATCHED[operation]:
            setattr(module, name, wrap(getattr(module, name)))

    return begin


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


def attack(campaign: Campaign, scenarios: tuple[Scenario, ...] = EVALUATIONS + TRAININGS) -> None:
    """Let operation after operation fail until the time is over."""
    known: dict[str, Any] = {}
    while campaign.going_on:
        for scenario in scenarios:
            if scenario.name not in known:
                known[scenario.name] = reference(campaign, scenario)
            if known[scenario.name] is None or not campaign.going_on:
                continue
            expected = known[scenario.name][0]
            operation = campaign.random.choice(OPERATIONS)
            nth = int(campaign.random.choice((1, 2, 3, campaign.random.randint(1, 60))))
            code, forever = campaign.random.choice(_CODES), campaign.random.random() < 0.3
            what = f"{scenario.name}, failing {operation}"
            with campaign.folder() as folder:
                fault = failing(operation, nth, code, forever, str(folder))
                ended = run(scenario.arguments, folder, fault)
                campaign.counts["faults"] += 1
                if campaign.check(ended.complaint(0, 1, 2, 3), what) and ended.code in (0, 1):
                    same = scenario.result(folder, ended) == expected
                    campaign.check("" if same else "other numbers", what)
                compare(campaign, scenario, folder, expected, f"{what}, next call")
