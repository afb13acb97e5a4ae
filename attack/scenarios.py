"""What is interrupted and resumed: a command, and all the numbers it must give however often it was stopped.

The models and data are those that `command.warm_up` makes.
"""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attack.command import Ended

# Two chunks of AIS and two of RAISE: more of them make the same calls again.
_SMALL = ("--steps", "100", "--examples", "20", "--chains", "4", "--ais-chains", "100", "--seed", "1")


@dataclass(frozen=True)
class Scenario:
    """A command, and what is compared of a finished one, in JSON's types.

    `folders` are those of the campaign's files that it needs, `codes_again` how it may end when called again.
    """

    name: str
    arguments: tuple[str, ...]
    result: Callable[[Path, Ended], Any]
    folders: tuple[str, ...] = ()
    codes_again: tuple[int, ...] = (0, 1)


def _report(_folder: Path, ended: Ended) -> Any:
    try:
        return _without_times(json.loads(ended.out))
    except ValueError:
        return f"not a report: {ended.out[:100]!r}"


def _without_times(value: Any) -> Any:
    """All of a report but what differs from one undisturbed run to the next."""
    if isinstance(value, dict):
        return {
            key: _without_times(value[key]) for key in value if key not in ("seconds", "versions", "seal")
        }
    return [_without_times(item) for item in value] if isinstance(value, list) else value


def _model(folder: Path, _ended: Ended) -> Any:
    return hashlib.sha256((folder / "trained.npz").read_bytes()).hexdigest()


def _traced(folder: Path, ended: Ended) -> Any:
    found = _without_times(json.loads((folder / "trained.trace" / "trace.json").read_text()))
    return [_model(folder, ended), found, sorted(path.name for path in (folder / "trained.trace").iterdir())]


def _cells(folder: Path, _ended: Ended) -> Any:
    found = {
        path.name: _without_times(json.loads(path.read_text())) for path in folder.glob("results/cells/*")
    }
    return found | {path.name: path.read_text() for path in folder.glob("results/*/*.csv")}


def _evaluate(model: str, *options: str) -> tuple[str, ...]:
    fixed = ("--train", "data.npy", "--run", "kept", "--json", *options)
    return ("evaluate", f"{model}.npz", "data.npy", *fixed)


def _train(kind: str, hidden: str, *options: str) -> tuple[str, ...]:
    return ("train", kind, "--data", "data.npy", "--hidden", hidden, "--out", "trained.npz", *options)


EVALUATIONS = (
    Scenario("evaluate rbm", _evaluate("rbm", *_SMALL, "--threads", "2"), _report),
    Scenario("evaluate dbm", _evaluate("dbm", *_SMALL, "--threads", "1"), _report),
    Scenario("evaluate dbn", _evaluate("dbn", *_SMALL, "--threads", "2"), _report),
    Scenario("evaluate ising", _evaluate("ising", *_SMALL, "--threads", "2"), _report),
)
WORKERS = (Scenario("evaluate --workers", _evaluate("rbm", *_SMALL, "--workers", "2"), _report),)
ONE_WORKER = (
    Scenario(
        "evaluate --workers 1", _evaluate("rbm", *_SMALL, "--ais-chains", "50", "--workers", "1"), _report
    ),
)
"""As `WORKERS`: a second worker makes none of these calls, and takes a second to start."""
GAPS = (
    Scenario("evaluate --gap", _evaluate("rbm", "--gap", "0.3", "--budget", "20m", "--seed", "1"), _report),
)
TRAININGS = (
    Scenario("train rbm", _train("rbm", "6", "--epochs", "2", "--batch", "30"), _model),
    Scenario("train dbn", _train("dbn", "6,4", "--epochs", "1", "--batch", "30"), _model),
    Scenario("train dbm", _train("dbm", "6,4", "--epochs", "1", "--batch", "30"), _model),
)
SEVERAL = (
    Scenario(
        "compare",
        (
            "compare",
            "rbm.npz",
            "dbm.npz",
            "data.npy",
            "--train",
            "data.npy",
            "--run",
            "kept",
            "--json",
            *_SMALL,
        ),
        _report,
    ),
    Scenario(
        "trace",
        (
            "trace",
            "dbm.npz",
            "rbm.npz",
            "data.npy",
            "--train",
            "data.npy",
            "--run",
            "kept",
            "--json",
            *_SMALL[:-2],
        ),
        _report,
    ),
)
PAPER = (
    Scenario(
        "paper",
        ("paper", "table2", "--profile", "quick", "--models", ".", "--out", "results", "--threads", "2"),
        _cells,
    ),
)
TRACED = (
    Scenario("train --trace", _train("rbm", "6", "--epochs", "2", "--batch", "30", "--trace"), _traced),
)
OTHERS = (
    Scenario("log-z", ("log-z", "rbm.npz", "--steps", "50", "--chains", "20", "--json"), _report),
    Scenario("convert", ("convert", "large.npz", "trained.npz"), _model),
    Scenario(
        "runs merge", ("runs", "merge", "one", "two", "--out", "both", "--json"), _report, ("one", "two")
    ),
)
FAST = EVALUATIONS + GAPS + TRAININGS + SEVERAL + PAPER + TRACED + OTHERS

MERGED = tuple(
    (*_evaluate("rbm", *_SMALL, "--part", part), "--run", name) for part, name in (("0", "one"), ("1", "two"))
)
"""Commands that make the folders of `runs merge`."""
