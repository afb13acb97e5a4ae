"""What is interrupted and resumed: a command, and all the numbers it must give however often it was stopped."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attack.command import Ended

_SMALL = ("--steps", "300", "--examples", "30", "--chains", "4", "--ais-chains", "200", "--seed", "1")


@dataclass(frozen=True)
class Scenario:
    """A command, and what is compared of a finished one."""

    name: str
    arguments: tuple[str, ...]
    result: Callable[[Path, Ended], Any]


def _report(_folder: Path, ended: Ended) -> Any:
    try:
        report = json.loads(ended.out)
    except ValueError:
        return f"not a report: {ended.out[:100]!r}"
    for timed in ("seconds", "versions"):
        report.pop(timed, None)
    return report


def _model(folder: Path, _ended: Ended) -> Any:
    return hashlib.sha256((folder / "trained.npz").read_bytes()).hexdigest()


def _evaluate(model: str, *options: str) -> tuple[str, ...]:
    fixed = ("--train", "data.npy", "--run", "kept", "--json", *options)
    return ("evaluate", f"{model}.npz", "data.npy", *fixed)


def _train(kind: str, hidden: str, epochs: str) -> tuple[str, ...]:
    return (
        "train",
        kind,
        "--data",
        "data.npy",
        "--hidden",
        hidden,
        "--epochs",
        epochs,
        "--out",
        "trained.npz",
    )


EVALUATIONS = (
    Scenario("evaluate rbm", _evaluate("rbm", *_SMALL, "--threads", "2"), _report),
    Scenario("evaluate dbm", _evaluate("dbm", *_SMALL, "--threads", "1"), _report),
    Scenario("evaluate dbn", _evaluate("dbn", *_SMALL, "--threads", "2"), _report),
)
WORKERS = (Scenario("evaluate --workers", _evaluate("rbm", *_SMALL, "--workers", "2"), _report),)
GAPS = (
    Scenario("evaluate --gap", _evaluate("rbm", "--gap", "0.3", "--budget", "20m", "--seed", "1"), _report),
)
TRAININGS = (
    Scenario("train rbm", _train("rbm", "6", "30"), _model),
    Scenario("train dbn", _train("dbn", "6,4", "20"), _model),
    Scenario("train dbm", _train("dbm", "6,4", "20"), _model),
)
FAST = EVALUATIONS + GAPS + TRAININGS
