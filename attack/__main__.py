"""`python -m attack`: all campaigns, or those that are named, side by side, and one table of what they have found."""

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

from attack import arguments, cluster, faults, files, folders, kills, others
from attack.campaign import Campaign, new_folder, place
from attack.command import rehearse, warm_up
from attack.lanes import Plan, run_lanes
from attack.ledger import Ledger
from attack.scenarios import FAST, MERGED, ONE_WORKER
from attack.table import table

CAMPAIGNS = {
    "kill": Plan(kills.attack, 4, ("kills", 1_000)),
    "fault": Plan(faults.attack, 12, commands=frozenset(each.name for each in FAST + ONE_WORKER)),
    "fuzz": Plan(files.attack, 2, ("files", 20_000)),
    "hostile-folder": Plan(folders.attack, 6, ("folders", 1_500)),
    "hostile-checkpoint": Plan(folders.attack_checkpoints, 2, ("checkpoints", 500)),
    "arguments": Plan(arguments.attack, 1, ("wrong calls", 2_000)),
    "concurrency": Plan(others.attack_concurrency, 1, ("races", 50)),
    "dask": Plan(cluster.attack, 1, ("disturbances", 50), "dask"),
    "dask-command": Plan(
        cluster.attack_command, 1, ("kills", 100), "dask", frozenset({"evaluate --cluster"})
    ),
    "soak": Plan(others.attack_soak, lane="soak"),
    "dask-soak": Plan(cluster.attack_soak, lane="dask-soak"),
}
"""Campaigns. Their shares are about the processor time that their targets take."""

_MORE_LANES = 2  # than cores: a lane waits while a process starts or ends, and where a try does


def attack(
    names: list[str], seconds: float, seed: int, stop: bool = False, lanes: int = 2, failed_before: int = 0
) -> bool:
    """Run campaigns side by side for some seconds, or to their first failures; prints the table.

    `failed_before` calls of each command are left out of `fault`. Gives whether anything has failed.
    """
    with tempfile.TemporaryDirectory(prefix="attack-files-", dir=place()) as folder:
        own = Path(folder)
        made, kept = own / "files", own / "ledger"
        made.mkdir()
        kept.mkdir()
        warm_up(made)
        ledger = Ledger(kept)
        rehearse(MERGED, made)
        for scenario in FAST:
            with new_folder(made, scenario.folders) as rehearsal:
                rehearse([scenario.arguments], rehearsal)
        until = time.monotonic() + seconds
        campaigns = {name: Campaign(name, seed, until, made, ledger, stop, failed_before) for name in names}
        plans = {name: CAMPAIGNS[name] for name in names}
        run_lanes(plans, campaigns, lanes)
        print(table(plans, ledger))
        return any(ledger.failures(name) for name in names)


def main() -> int:
    """Attack, print the table; 1 if anything was found."""
    parser = argparse.ArgumentParser(prog="attack", description=__doc__)
    parser.add_argument("campaigns", nargs="*", choices=[[], *CAMPAIGNS], help="all without any")
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--lanes", type=int, default=(os.cpu_count() or 1) + _MORE_LANES, help="campaigns side by side"
    )
    parser.add_argument("--stop", action="store_true", help="end a campaign at its first failure")
    parser.add_argument(
        "--failed-before",
        type=int,
        default=0,
        metavar="N",
        help="leave out the first N calls of each command, which an earlier run of this seed let fail",
    )
    chosen = parser.parse_args()
    begun = time.monotonic()
    found = attack(
        chosen.campaigns or list(CAMPAIGNS),
        chosen.seconds,
        chosen.seed,
        chosen.stop,
        chosen.lanes,
        chosen.failed_before,
    )
    print(f"seed {chosen.seed}, {chosen.lanes} lanes, {time.monotonic() - begun:.0f} s")
    return int(found)


if __name__ == "__main__":
    sys.exit(main())
