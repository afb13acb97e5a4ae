"""`python -m attack`: all campaigns, or those that are named, and one table of what they have found."""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from attack import cluster, faults, files, folders, kills, others
from attack.campaign import Campaign
from attack.command import warm_up

CAMPAIGNS: dict[str, tuple[Callable[[Campaign], None], float]] = {
    "kill": (kills.attack, 4),
    "fault": (faults.attack, 4),
    "fuzz": (files.attack, 2),
    "hostile-folder": (folders.attack, 3),
    "hostile-checkpoint": (folders.attack_checkpoints, 1),
    "concurrency": (others.attack_concurrency, 0.5),
    "soak": (others.attack_soak, 0.5),
    "dask": (cluster.attack, 1.5),
    "dask-soak": (cluster.attack_soak, 0.5),
}
"""Campaigns, and their shares of the time."""


def attack(names: list[str], seconds: float, seed: int, stop: bool = False) -> list[Campaign]:
    """Run campaigns one after the other, each for its share of the seconds, or to its first failure."""
    done = []
    with tempfile.TemporaryDirectory(prefix="attack-files-") as folder:
        warm_up(Path(folder))
        for name in names:
            begin, share = CAMPAIGNS[name]
            own = seconds * share / sum(CAMPAIGNS[other][1] for other in names)
            campaign = Campaign(name, seed, own, Path(folder), stop)
            begin(campaign)
            done.append(campaign)
    return done


def table(campaigns: list[Campaign]) -> str:
    """Counts and failures, one line each."""
    lines = [f"{'campaign':<20} {'failures':>8}   tries"]
    for campaign in campaigns:
        counts = ", ".join(f"{n:,} {what}" for what, n in sorted(campaign.counts.items()))
        lines.append(f"{campaign.name:<20} {sum(campaign.failures.values()):>8}   {counts}")
        lines += [f"    {n:>6} x {text}" for text, n in campaign.failures.most_common()]
    return "\n".join(lines)


def main() -> int:
    """Attack, print the table; 1 if anything was found."""
    parser = argparse.ArgumentParser(prog="attack", description=__doc__)
    parser.add_argument("campaigns", nargs="*", choices=[[], *CAMPAIGNS], help="all without any")
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--stop", action="store_true", help="end a campaign at its first failure")
    chosen = parser.parse_args()
    begun = time.monotonic()
    done = attack(chosen.campaigns or list(CAMPAIGNS), chosen.seconds, chosen.seed, chosen.stop)
    print(table(done))
    print(f"seed {chosen.seed}, {time.monotonic() - begun:.0f} s")
    return int(any(campaign.failures for campaign in done))


if __name__ == "__main__":
    sys.exit(main())
