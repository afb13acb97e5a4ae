"""The table of an attack: what was tried, of each command, what was found, and which targets were not reached."""

from collections.abc import Mapping

from attack.lanes import Plan
from attack.ledger import Ledger

_WIDTH = 20


def table(plans: Mapping[str, Plan], ledger: Ledger) -> str:
    """Counts, targets and failures of every campaign."""
    lines = [f"{'campaign':<{_WIDTH}} {'failures':>8} {'processor':>9}   tries"]
    missed = []
    for name, plan in plans.items():
        counts, failures = ledger.counts(name), ledger.failures(name)
        totals = [
            f"{sum(parts.values()):,} {what}" for what, parts in sorted(counts.items()) if not _is_plan(what)
        ]
        lines.append(
            f"{name:<{_WIDTH}} {sum(failures.values()):>8} {ledger.seconds(name):>7.0f} s   {', '.join(totals)}"
        )
        lines += [f"    {line}" for line in (*_parts(counts), *ledger.notes(name))]
        lines += [f"    {n:>6} x {text}" for text, n in sorted(failures.items(), key=lambda each: -each[1])]
        missed += [f"{name}: {text}" for text in _missed(name, plan, ledger)]
    lines += ["", "All targets were reached." if not missed else "Targets that were not reached:"]
    return "\n".join([*lines, *(f"    {text}" for text in missed)])


def _is_plan(what: str) -> bool:
    return what in ("of", "of commands", "faults in commands")


def _parts(counts: Mapping[str, Mapping[str, int]]) -> list[str]:
    """A line for every count that has parts: commands, operations."""
    lines = []
    for what, parts in sorted(counts.items()):
        of = counts.get({"faults": "of", "faults in commands": "of commands"}.get(what, ""), {})
        if set(parts) - {""} and what not in ("of", "of commands"):
            shown = [
                f"{part} {n:,}" + (f" of {of[part]:,}" if part in of else "") for part, n in parts.items()
            ]
            lines.append(f"{what}: {', '.join(shown)}")
    return lines


def _missed(name: str, plan: Plan, ledger: Ledger) -> list[str]:
    missed = []
    if plan.target is not None and (tried := ledger.total(name, plan.target[0])) < plan.target[1]:
        missed.append(f"{tried:,} of {plan.target[1]:,} {plan.target[0]}")
    faults, planned = ledger.total(name, "faults"), ledger.total(name, "of")
    if faults < planned:
        missed.append(f"{faults:,} of {planned:,} calls were made to fail")
    counted = ledger.counts(name).get("of commands", {})
    if uncounted := sorted(plan.commands - set(counted)):
        missed.append(f"no call of {', '.join(uncounted)}")
    return missed
