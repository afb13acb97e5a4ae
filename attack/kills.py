"""Kill -9 at random moments, again and again, and then let it finish: the same numbers, and nothing left behind."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from attack.campaign import Campaign, leftovers
from attack.command import Process, run
from attack.scenarios import FAST, WORKERS, Scenario

_MOST_KILLS = 6
ORDER = FAST * 2 + WORKERS  # worker processes take seconds to start


def reference(campaign: Campaign, scenario: Scenario) -> tuple[Any, float] | None:
    """What the command gives when nothing goes wrong, and the seconds it takes; computed once for all campaigns."""

    def undisturbed() -> Any:
        with campaign.folder(*scenario.folders) as folder:
            ended = run(scenario.arguments, folder)
            complaint = ended.complaint(0, 1) or leftovers(folder)
            if not campaign.check(complaint, f"{scenario.name}, undisturbed"):
                return None
            return scenario.result(folder, ended), ended.seconds

    found = campaign.ledger.once(f"reference {scenario.name}", undisturbed)
    return None if found is None else (found[0], found[1])


def compare(campaign: Campaign, scenario: Scenario, folder: Path, expected: Any, what: str) -> None:
    """Let an interrupted command finish, and compare its numbers."""
    ended = run(scenario.arguments, folder)
    if campaign.check(ended.complaint(*scenario.codes_again) or leftovers(folder), what):
        campaign.same(scenario.result(folder, ended), expected, what)


def attack(campaign: Campaign, scenarios: tuple[Scenario, ...] = ORDER) -> Iterator[None]:
    """Kill commands, one after the other in a fixed order."""
    for number in campaign.tries():
        kill(campaign, scenarios[number % len(scenarios)])
        yield


def kill(campaign: Campaign, scenario: Scenario) -> None:
    """Kill a command several times, let it finish, and compare."""
    found = reference(campaign, scenario)
    if found is None:
        return
    expected, seconds = found
    with campaign.folder(*scenario.folders) as folder:
        for _ in range(campaign.random.randint(1, _MOST_KILLS)):
            process = Process(scenario.arguments, folder)
            killed = process.kill_after(campaign.random.uniform(0, 1.2 * seconds))
            ended = process.wait()
            killed = killed and ended.code == -9  # or it ended just before
            campaign.count("kills", scenario.name, int(killed))
            allowed = (-9,) if killed else scenario.codes_again
            if not campaign.check(ended.complaint(*allowed), f"{scenario.name}, killed") or not killed:
                break
        compare(campaign, scenario, folder, expected, f"{scenario.name}, after kills")
    campaign.count("runs", scenario.name)
