"""Runs with `gap=` take the decisions and find the numbers that they did (gap_pins.json), killed or not."""

import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from evaluation import gap_pins
from evaluation.kept import plain
from meltpoint.evaluation.plan import Planner

PINS = json.loads(gap_pins.FILE.read_text())
EXACT = ("verdict", "base", "sizes")
QUICK = ("rbm, uniform",)  # the others take more than half a second


class Killed(BaseException):
    """Ends a run as a signal does: nothing that it would write is written."""


@cache
def report_of(name):
    return gap_pins.run(name)


def named(*names):
    return [pytest.param(name, marks=[] if name in QUICK else pytest.mark.slow) for name in names]


@pytest.mark.parametrize("name", named(*gap_pins.CASES))
def test_the_same_seed_takes_the_same_decisions_and_finds_the_same_numbers(name):
    found, expected = gap_pins.numbers(report_of(name)), PINS[name]
    assert {key: found[key] for key in EXACT} == {key: expected[key] for key in EXACT}
    assert found.keys() == expected.keys()
    for key in found.keys() - set(EXACT):
        # Rounding may differ between machines; another draw changes a number by far more.
        np.testing.assert_allclose(found[key], expected[key], rtol=0, atol=1e-7, err_msg=key)


def test_all_cases_are_pinned_and_planned():
    assert PINS.keys() == gap_pins.CASES.keys()
    assert sum(len(pin["sizes"]) > 1 for pin in PINS.values()) > len(PINS) / 2


@pytest.mark.slow
@pytest.mark.parametrize("name", ["dbm, data", "dbn, uniform", "strong rbm, base chosen"])
@pytest.mark.parametrize("moment", ["in the first stage", "in the last stage", "before the last decision"])
def test_a_run_that_was_killed_goes_on_to_the_same_decisions(name, moment, tmp_path, monkeypatch):
    whole, last = report_of(name), len(PINS[name]["sizes"]) - 1
    with monkeypatch.context() as patch:
        kill(patch, moment, last)
        with pytest.raises(Killed):
            gap_pins.run(name, run=tmp_path)
    assert not (tmp_path / "report.json").exists()
    decided = {path.name: path.read_bytes() for path in tmp_path.glob("part-0/decision-*")}
    assert len(decided) == {"in the first stage": 1, "in the last stage": last + 1}.get(moment, last)
    assert plain(gap_pins.run(name, run=tmp_path)) == plain(whole)
    assert {
        path.name: path.read_bytes() for path in tmp_path.glob("part-0/decision-*")
    }.items() >= decided.items()


def kill(patch, moment, last):
    """Let a run end there."""
    if moment == "before the last decision":
        decide = Planner.decide

        def undecided(planner, index, seconds):
            if index == last:
                raise Killed
            return decide(planner, index, seconds)

        patch.setattr(Planner, "decide", undecided)
        return
    replace, tasks = Path.replace, 0
    stage = 1 if moment == "in the first stage" else last + 1

    def unwritten(self, target):
        nonlocal tasks
        name = Path(target)
        decisions = len(list(name.parent.parent.glob("decision-*")))
        if name.name.startswith(("ais-", "raise-")) and decisions == stage:
            tasks += 1
            if tasks > 1:  # one task of the stage is kept
                raise Killed
        return replace(self, target)

    patch.setattr(Path, "replace", unwritten)
