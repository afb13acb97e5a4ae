"""Campaigns side by side: processes that divide their time among campaigns, and take their tries from one ledger.

A few more lanes than there are cores work on everything that uses a processor; a cluster that is being killed mostly
waits and has a lane of its own, and so has each soak, which lasts as long as everything else and pauses between
evaluations.
"""

import os
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from attack.campaign import Campaign
from attack.ledger import Ledger

Attack = Callable[[Campaign], Iterator[None]]
"""A campaign's tries, one for each step of the iterator; it ends when there is nothing left to try."""


@dataclass(frozen=True)
class Plan:
    """What a campaign shall do: its tries, its share of a lane's time, and how many of what are enough.

    Without a `target` it ends by itself. `commands` are those of which every call on files shall fail. `lane` is a lane
    of its own, None for all common ones.
    """

    attack: Attack
    share: float = 1.0
    target: tuple[str, int] | None = None
    lane: str | None = None
    commands: frozenset[str] = frozenset()

    def is_reached(self, name: str, ledger: Ledger) -> bool:
        """Whether enough was tried: then the others get the time, as long as they have not had enough."""
        if self.target is None or ledger.total(name, self.target[0]) < self.target[1]:
            return False
        counts = ledger.counts(name)
        tried = [counts.get(what, {}) for what in ("faults in commands", "calls that were not made again")]
        calls = counts.get("of commands", {})
        return all(
            command in calls and sum(each.get(command, 0) for each in tried) >= calls[command]
            for command in self.commands
        )


def run_lanes(plans: Mapping[str, Plan], campaigns: Mapping[str, Campaign], n_common: int) -> None:
    """Run all campaigns, in as many common lanes as are asked for and those of their own, until all have ended."""
    common = [name for name, plan in plans.items() if plan.lane is None]
    lanes = [common] * n_common if common else []
    for lane in dict.fromkeys(plan.lane for plan in plans.values() if plan.lane is not None):
        lanes.append([name for name, plan in plans.items() if plan.lane == lane])
    started = {_fork(names, plans, campaigns): names for names in lanes}
    while started:
        pid, status = os.wait()
        if (names := started.pop(pid, None)) is not None:
            ended = os.waitstatus_to_exitcode(status)
            campaigns[names[0]].check(
                f"it ended with {ended}" if ended else "", f"the lane of {', '.join(names)}"
            )


def _fork(names: list[str], plans: Mapping[str, Plan], campaigns: Mapping[str, Campaign]) -> int:
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        run_lane({name: plans[name] for name in names}, campaigns)
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def run_lane(plans: Mapping[str, Plan], campaigns: Mapping[str, Campaign]) -> None:
    """Make one try after the other, always of the campaign that has had least of its share, until the time is over."""
    running = {name: plan.attack(campaigns[name]) for name, plan in plans.items()}
    spent = dict.fromkeys(running, 0.0)
    while name := _next(running, spent, plans, campaigns):
        begun, used = time.monotonic(), _processor_seconds()
        try:
            next(running[name])
        except StopIteration:
            del running[name]
        except Exception as problem:
            traceback.print_exc()
            campaigns[name].check(f"{type(problem).__name__}: {problem}", "the campaign itself")
            del running[name]
        spent[name] += time.monotonic() - begun
        campaigns[name].ledger.spend(name, _processor_seconds() - used)
    for each in running.values():
        each.close()  # pyright: ignore[reportAttributeAccessIssue]  they are generators


def _processor_seconds() -> float:
    """Processor time of this process and of those it has waited for."""
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system


def _next(
    running: Iterable[str],
    spent: Mapping[str, float],
    plans: Mapping[str, Plan],
    campaigns: Mapping[str, Campaign],
) -> str | None:
    """Which campaign is to make a try: one that has not reached its target, if there is any.

    A lane of its own ends there: those of the common lanes may not have had enough.
    """
    able = [name for name in running if campaigns[name].going_on]
    wanted = [name for name in able if not plans[name].is_reached(name, campaigns[name].ledger)]
    more = [name for name in able if plans[name].lane is None]
    return min(wanted or more, key=lambda name: spent[name] / plans[name].share, default=None)
