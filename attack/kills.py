"""Kill -9 at random moments, again and again, and then let it finish: the same numbers, and nothing left behind."""

from typing import Any

from attack.campaign import Campaign, leftovers
from attack.command import Process, run
from attack.scenarios import FAST, WORKERS, Scenario

_MOST_KILLS = 6
_SLOW_ROUND = 10


def reference(campaign: Campaign, scenario: Scenario) -> tuple[Any, float] | None:
    """What the command gives when nothing goes wrong, and the seconds it takes."""
    with campaign.folder() as folder:
        ended = run(scenario.arguments, folder)
        if not campaign.check(ended.complaint(0, 1) or leftovers(folder), f"{scenario.name}, undisturbed"):
            return None
        return scenario.result(folder, ended), ended.seconds


def compare(campaign: Campaign, scenario: Scenario, folder: Any, expected: Any, what: str) -> None:
    """Let an interrupted command finish, and compare its numbers."""
    ended = run(scenario.arguments, folder)
    if campaign.check(ended.complaint(0, 1) or leftovers(folder), what):
        same = scenario.result(folder, ended) == expected
        campaign.check("" if same else "other numbers than without an interruption", what)


def attack(campaign: Campaign) -> None:
    """Kill commands until the time is over."""
    known: dict[str, tuple[Any, float] | None] = {}
    while campaign.going_on:
        # Worker processes take seconds to start.
        slow = WORKERS if campaign.counts["rounds"] % _SLOW_ROUND == _SLOW_ROUND - 1 else ()
        for scenario in (*FAST, *slow):
            if scenario.name not in known:
                known[scenario.name] = reference(campaign, scenario)
            if (found := known[scenario.name]) is None or not campaign.going_on:
                continue
            expected, seconds = found
            with campaign.folder() as folder:
                for _ in range(campaign.random.randint(1, _MOST_KILLS)):
                    process = Process(scenario.arguments, folder)
                    killed = process.kill_after(campaign.random.uniform(0, 1.2 * seconds))
                    ended = process.wait()
                    killed = killed and ended.code == -9  # or it ended just before
                    campaign.counts["kills"] += killed
                    what = f"{scenario.name}, killed"
                    if (
                        not campaign.check(ended.complaint(*((-9,) if killed else (0, 1))), what)
                        or not killed
                    ):
                        break
                compare(campaign, scenario, folder, expected, f"{scenario.name}, after kills")
            campaign.counts["runs"] += 1
        campaign.counts["rounds"] += 1
