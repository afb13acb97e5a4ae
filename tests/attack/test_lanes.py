"""Campaigns side by side: every try is made once, targets give time to others, and the table hides nothing."""

import os
import sys
import time
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).resolve().parents[2]))  # `attack` is beside `tests`, and not installed

from attack import faults
from attack.campaign import Campaign
from attack.command import Ended
from attack.lanes import Plan, run_lane, run_lanes
from attack.ledger import Ledger
from attack.scenarios import Scenario
from attack.table import table

# The processes that run tests side by side have threads; what is forked here does not use them.
FORKS = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")


@pytest.fixture
def campaign(tmp_path):
    ledger = Ledger(tmp_path)

    def make(name, seconds=60.0, seed=1):
        return Campaign(name, seed, time.monotonic() + seconds, tmp_path, ledger)

    return make


def tries_of(made, n=None):
    """Tries that say that they were made; n of them, or without end."""

    def attack(campaign):
        for number in campaign.tries():
            if number == n:
                return
            made.append((campaign.name, number))
            campaign.count("tries")
            yield

    return attack


def test_a_target_that_is_reached_gives_its_time_to_the_others(campaign):
    made = []
    plans = {"endless": Plan(tries_of(made), 1, ("tries", 3)), "finite": Plan(tries_of(made, 50), 1)}
    campaigns = {"endless": campaign("endless", 0.3), "finite": campaign("finite")}
    run_lane(plans, campaigns)
    names = [name for name, _ in made]
    ended = len(names) - names[::-1].index("finite")
    assert names[:ended].count("endless") == 3
    assert names.count("finite") == 50
    assert set(names[ended:]) == {"endless"}  # what is left of the time is used too


def test_a_lane_of_its_own_ends_where_its_targets_are_reached(campaign):
    made = []
    run_lane({"own": Plan(tries_of(made), 1, ("tries", 3), "a lane")}, {"own": campaign("own")})
    assert len(made) == 3


def test_a_target_of_calls_is_reached_when_each_has_failed(campaign):
    own = campaign("own")
    plan = Plan(tries_of([]), 1, ("kills", 1), commands=frozenset({"evaluate"}))
    own.count("kills")
    assert not plan.is_reached("own", own.ledger)  # its calls are not counted yet
    own.count("of commands", "evaluate", 2)
    own.count("faults in commands", "evaluate")
    assert not plan.is_reached("own", own.ledger)
    own.count("calls that were not made again", "evaluate")
    assert plan.is_reached("own", own.ledger)


def test_shares_divide_the_time(campaign):
    made = []

    def slow(campaign):
        for _ in tries_of(made)(campaign):
            time.sleep(0.002)
            yield

    run_lane({"a": Plan(slow, 3), "b": Plan(slow, 1)}, {name: campaign(name, 0.5) for name in "ab"})
    names = [name for name, _ in made]
    assert names.count("a") > 1.5 * names.count("b") > 0


def test_there_is_always_time_for_one_try(campaign):
    made = []
    run_lane({name: Plan(tries_of(made)) for name in "ab"}, {name: campaign(name, -1.0) for name in "ab"})
    assert made == [("a", 0), ("b", 0)]


@FORKS
def test_lanes_make_every_try_once(campaign, tmp_path):
    def attack(campaign):
        for number in campaign.tries():
            if number >= 40:
                return
            (tmp_path / f"{number} {os.getpid()}").touch()
            time.sleep(0.02)  # a process with much memory takes long to fork
            yield

    run_lanes({"shared": Plan(attack)}, {"shared": campaign("shared")}, 3)
    made = [path.name.split() for path in tmp_path.glob("[0-9]* *")]
    assert sorted(int(number) for number, _ in made) == list(range(40))
    assert len({pid for _, pid in made}) > 1


def test_seed_and_number_say_what_is_tried(campaign):
    def drawn(name, seed):
        one = campaign(name, seed=seed)
        return {number: one.random.random() for number, _ in zip(one.tries(), range(3), strict=False)}

    first = drawn("a", 1)
    one = campaign("a", seed=1)
    for number, value in first.items():
        one.seed_with(number)
        assert one.random.random() == value
    assert set(drawn("b", 1).values()).isdisjoint(first.values())
    one = campaign("a", seed=2)
    one.seed_with(0)
    assert one.random.random() != first[0]


@FORKS
def test_a_campaign_or_lane_that_breaks_is_a_failure(campaign, capfd):
    def broken(_campaign):
        raise KeyError("broken")
        yield

    def dies(_campaign):
        os._exit(7)
        yield

    made = []
    plans = {"broken": Plan(broken), "well": Plan(tries_of(made, 2)), "dies": Plan(dies, lane="own")}
    campaigns = {name: campaign(name, 1.0) for name in plans}
    run_lanes(plans, campaigns, 1)
    ledger = campaigns["well"].ledger
    assert "KeyError" in next(iter(ledger.failures("broken")))
    assert "ended with 7" in next(iter(ledger.failures("dies")))
    assert ledger.total("well", "tries") == 2
    assert not ledger.failures("well")
    assert "KeyError" in capfd.readouterr().err


def test_the_first_to_ask_makes_what_all_get(campaign):
    ledger = campaign("a").ledger
    assert ledger.once("x", lambda: [1, 2]) == ledger.once("x", lambda: pytest.fail("made twice")) == [1, 2]


def test_the_table_says_what_was_not_reached(campaign):
    one = campaign("kill")
    plans = {"kill": Plan(tries_of([]), 1, ("kills", 5), commands=frozenset({"train", "paper"}))}
    one.count("kills", "evaluate rbm", 3)
    one.count("kills", "train dbm", 1)
    one.count("faults", "open", 6)
    one.count("of", "open", 9)
    one.count("of commands", "train", 9)
    shown = table(plans, one.ledger)
    assert "kills: evaluate rbm 3, train dbm 1" in shown
    assert "kill: 4 of 5 kills" in shown
    assert "faults: open 6 of 9" in shown
    assert "6 of 9 calls were made to fail" in shown
    assert "no call of paper" in shown
    assert "All targets" not in shown
    one.count("kills", "train dbm", 1)
    one.count("faults", "open", 3)
    one.count("of commands", "paper", 0)
    assert "All targets were reached." in table(plans, one.ledger)


def test_calls_that_failed_in_an_earlier_run_are_left_out(campaign, monkeypatch):
    """Together both runs let every call fail, in the order of the seed."""

    def count_calls(_arguments, _folder, disk):
        disk._counts[faults.OPERATIONS.index("open")] = 5
        return Ended(0, "", "", 0.0, 0.0, 0, left_processes=False)

    monkeypatch.setattr(faults, "run", count_calls)
    scenario = Scenario("evaluate", (), lambda *_: None)
    whole, rest = campaign("fault"), campaign("rest")
    rest.failed_before = 3
    planned = faults._plan(whole, scenario)
    assert ("open", 5) in planned
    assert faults._plan(rest, scenario) == planned[3:]
    assert whole.ledger.total("fault", "of commands") == len(planned)
    assert rest.ledger.total("rest", "of commands") == len(planned) - 3
