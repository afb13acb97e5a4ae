"""A gap is asked for: stages until it is reached, budgets that are kept, and a promise that holds on exact models."""

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

import meltpoint as mp
from evaluation.kept import plain
from meltpoint.evaluation import prerequisites, stages
from meltpoint.evaluation.plan import Decision, Planner
from meltpoint.evaluation.prerequisites import Clock
from meltpoint.evaluation.stage import Size
from meltpoint.evaluation.stored import read_run
from meltpoint.results.stages import alpha_of

STIFF = {"gap": 0.003, "budget": "1h"}  # a budget that no clock matters for
PLANNED = {
    "gap": 0.0001,
    "budget": "1h",
    "evidence": False,
}  # out of reach for the stages that `planned` allows
STEPS = (40, 120, 80, 400)


def rbm(seed=0, scale=4.0):
    rng = np.random.default_rng(seed)
    return mp.RBM(rng.normal(0, scale, (10, 6)), rng.normal(0, 1, 10), rng.normal(0, 1, 6))


def bits(n=80, seed=1):
    return np.random.default_rng(seed).integers(0, 2, (n, 10))


def numbers(report):
    """What was found, without what was asked for, the verdict and the timing."""
    content = report.to_dict()
    return {name: content[name] for name in content if name not in ("settings", "seconds", "verdict")}


@pytest.fixture(scope="module")
def stiff():
    seen = []
    return mp.evaluate(rbm(), bits(), watch=seen.append, **STIFF), seen


def plan(patch, all_steps=STEPS):
    """Stages of these steps, as long as there is time: tests must not depend on what the planner likes."""

    def decide(planner, index, seconds):
        enough = index == 0 or seconds > 0
        if planner.reached or index >= len(all_steps) or not enough:
            return None
        return Decision(Size(all_steps[index], 20, 2, 64), planner.base)

    patch.setattr(Planner, "decide", decide)


@pytest.fixture
def planned(monkeypatch):
    plan(monkeypatch)
    return mp.evaluate(rbm(), bits(), **PLANNED)


def stopping(task):
    """A progress callback that presses Ctrl-C once, in the task whose name begins so."""
    pressed = []

    def progress(name, done, total):
        if name.startswith(task) and not pressed:
            pressed.append(name)
            raise KeyboardInterrupt

    return progress


@pytest.mark.slow
def test_twenty_exact_models_lie_where_they_are_said_to_lie():
    missed = reached = 0
    for seed in range(20):
        rng = np.random.default_rng([seed, 7])
        model, target = rbm(seed, rng.uniform(0.5, 3)), rng.uniform(0.005, 0.1)
        report = mp.evaluate(
            model, bits(seed=seed), bits(seed=seed + 99), base="data", gap=target, budget="1h", seed=seed
        )
        low, high = report.between
        missed += not low <= report.exact.value <= high
        reached += (high - low) / 2 <= target
    # Promised are 99%: five of twenty would be missed once in 600,000 runs of this test.
    assert missed < 5
    assert reached == 20


@pytest.mark.slow
def test_the_target_is_reached_and_the_best_stage_is_reported(stiff):
    report, seen = stiff
    assert tuple(seen) == report.stages
    s = report.settings
    (best,) = (stage for stage in seen if stage.steps == s.steps)  # widths of reports have the evidence too
    assert Size(s.steps, s.examples, s.chains, s.ais_chains) == Size(
        best.steps, best.examples, best.chains, best.ais_chains
    )
    assert (best.conservative, best.optimistic) == (report.conservative.value, report.optimistic.value)
    low, high = report.between
    assert best.half_width <= (high - low) / 2 <= 0.003
    assert s.tolerance == s.gap == 0.003
    assert report.verdict.trusted
    text = " ".join(str(report).split())
    assert "to ± 0.003 nats" in text
    assert f"{best.steps:,} steps of {best.examples} × {best.chains} and {best.ais_chains:,} chains" in text


def test_a_later_stage_that_is_worse_does_not_replace_a_better_one(planned):
    widths = [stage.half_width for stage in planned.stages]
    assert [stage.steps for stage in planned.stages] == list(STEPS)
    assert planned.settings.steps == STEPS[int(np.argmin(widths))]
    low, high = planned.between
    assert (high - low) / 2 == min(widths)
    assert not planned.interrupted
    assert not planned.verdict.trusted


def test_the_best_stage_is_reported_wherever_it_stands(monkeypatch):
    plan(monkeypatch, (40, 400, 60))
    report = mp.evaluate(rbm(), bits(), **PLANNED)
    widths = [stage.half_width for stage in report.stages]
    assert np.argmin(widths) == 1  # not the last: 400 steps are better than 60 by far
    assert report.settings.steps == 400
    assert report.conservative.value == report.stages[1].conservative


def test_each_stage_uses_its_share_of_alpha(planned):
    """The interval of the second stage, from its errors, with the part of 1 - confidence that is the second's."""
    best = int(np.argmin([stage.half_width for stage in planned.stages]))
    alpha = alpha_of(best, 0.01)
    assert alpha < 0.01
    low, high = planned.between
    assert high == pytest.approx(planned.optimistic.value + planned.optimistic.margin(alpha / 4))
    assert low <= planned.conservative.value - planned.conservative.margin(alpha / 4)
    assert planned.certificate.confidence == 0.99


def test_stages_share_neither_chains_nor_the_choice_of_examples(monkeypatch):
    plan(monkeypatch)
    ran, original = [], stages.run_stage

    def spy(stage, *rest):
        ran.append(stage)
        return original(stage, *rest)

    monkeypatch.setattr(stages, "run_stage", spy)
    mp.evaluate(rbm(), bits(200), **PLANNED)
    assert len({stage.seed for stage in ran}) == len(ran) == len(STEPS)
    assert not np.array_equal(ran[0].positions, ran[1].positions)
    assert [stage.number for stage in ran] == list(range(len(ran)))


def test_what_is_measured_decides(monkeypatch):
    """The planner hears what was measured, how much wider the interval is than predicted, and what is affordable."""
    heard = []

    def listening(planner, measured, sigmas, affordable):
        heard.append((planner, measured, affordable))

    monkeypatch.setattr(Planner, "_next", listening)
    report = mp.evaluate(rbm(), bits(), **STIFF)
    assert report.stages[0].half_width > 0.003
    ((planner, measured, affordable),) = heard
    assert measured.steps == report.stages[0].steps
    assert 1 <= measured.widening <= 3
    low, high = report.between
    assert planner._known == pytest.approx((high - low) / 2)
    assert 0 < affordable < np.inf
    assert planner._overhead > 0  # other starts were asked


@pytest.mark.slow
def test_too_small_a_budget_is_an_answer_too():
    report = mp.evaluate(rbm(), bits(), budget=0.001)
    assert report.settings.gap is None
    assert report.settings.tolerance == 1
    assert len(report.stages) == 1
    assert not report.interrupted


@pytest.mark.slow
def test_agreement_is_not_enough(monkeypatch):
    plan(monkeypatch)
    report = mp.evaluate(rbm(), bits(), **PLANNED, tolerance=5.0)
    assert report.verdict.reason == "target"
    assert not report.verdict.trusted
    assert mp.evaluate(rbm(), bits(), gap=5.0, budget="1h").verdict.reason == "agree"


@pytest.mark.slow
def test_progress_says_how_close_the_numbers_are(planned):
    heard = []
    mp.evaluate(rbm(), bits(), progress=lambda *said: heard.append(said[0]), **PLANNED)
    first = planned.stages[0]
    assert f"stage 1, {first.steps:,} steps" in heard
    assert any(
        f"RAISE {first.conservative:.2f}, AIS {first.optimistic:.2f}, effective" in task for task in heard
    )


@pytest.mark.slow
def test_the_base_is_chosen_by_its_pilot():
    model, train = rbm(scale=1.0), np.tile(bits(2), (20, 1))
    kept = {
        base.name: mp.friction_schedule(model, train, base=base).pilot.kept
        for base in (mp.data_rates(train), mp.uniform())
    }
    report = mp.evaluate(model, bits(), train, gap=0.5, budget="1h")
    assert report.settings.base == max(kept, key=kept.__getitem__)
    assert report.pilot.chain_steps == 2 * 128_000
    other = min(kept, key=kept.__getitem__)
    assert mp.evaluate(model, bits(), train, base=other, gap=0.5).settings.base == other


@pytest.mark.parametrize("size", ["steps", "chains", "examples", "ais_chains"])
def test_sizes_are_chosen_or_given(size):
    with pytest.raises(mp.InputError, match=f"found {size} together with a gap or a budget"):
        mp.evaluate(rbm(), bits(), gap=0.1, **{size: 10})


@pytest.mark.parametrize("gap", [0, -1, float("nan"), float("inf"), True])
def test_a_gap_is_a_number_of_nats(gap):
    with pytest.raises(mp.InputError, match="expected a finite number above 0"):
        mp.evaluate(rbm(), bits(), gap=gap)


# Interruptions.


@pytest.mark.slow
@pytest.mark.parametrize("stage", [2, 3])
def test_ctrl_c_in_a_later_stage_gives_the_best_complete_one_and_says_so(tmp_path, planned, stage):
    run = tmp_path / "run"
    report = mp.evaluate(rbm(), bits(), run=run, progress=stopping(f"stage {stage}"), **PLANNED)
    assert report.interrupted
    assert report.to_dict()["interrupted"] is True
    assert report.stages == planned.stages[: stage - 1]
    best = min(report.stages, key=lambda found: found.half_width)
    assert report.settings.steps == best.steps
    assert report.conservative.value == best.conservative
    assert "interrupted" in str(report)
    assert not (run / "report.json").exists()
    assert not read_run(run).complete
    assert plain(read_run(run).report()) == plain(report)
    assert plain(mp.evaluate(rbm(), bits(), run=run, **PLANNED)) == plain(planned)
    assert read_run(run).complete
    assert json.loads((run / "report.json").read_text())["interrupted"] is False


def test_ctrl_c_in_the_first_stage_is_that_of_any_run(tmp_path, monkeypatch):
    decision = Decision(Size(40, 20, 2, 4000), "uniform")
    monkeypatch.setattr(Planner, "decide", lambda *_: decision)
    with pytest.raises(KeyboardInterrupt):
        mp.evaluate(rbm(), bits(), run=tmp_path / "run", progress=stopping("stage 1"), **PLANNED)


@pytest.mark.slow
@pytest.mark.parametrize("pilots", [0, 1])
def test_a_run_stopped_between_base_and_schedule_goes_on_to_the_bit(tmp_path, monkeypatch, pilots):
    plan(monkeypatch)
    arguments = {"train": bits(30, seed=2), "run": tmp_path / "run", **PLANNED}
    whole = mp.evaluate(rbm(), bits(), **(arguments | {"run": None}))
    assert whole.pilot.chain_steps == 2 * 128_000  # of both bases
    run_pilot, left = prerequisites.run_pilot, [pilots]

    def interrupted(*values, **options):
        if not left[0]:
            raise KeyboardInterrupt
        left[0] -= 1
        return run_pilot(*values, **options)

    monkeypatch.setattr(prerequisites, "run_pilot", interrupted)
    with pytest.raises(KeyboardInterrupt):
        mp.evaluate(rbm(), bits(), **arguments)
    kept = {path.stem for path in (tmp_path / "run").glob("*.npz")}
    assert kept >= ({"base-data", "schedule-data", "base-uniform"} if pilots else {"base-data"})
    assert "schedule-uniform" not in kept
    monkeypatch.setattr(prerequisites, "run_pilot", run_pilot)
    assert plain(mp.evaluate(rbm(), bits(), **arguments)) == plain(whole)
    assert plain(read_run(tmp_path / "run").report()) == plain(whole)


# What may change from call to call.


@pytest.mark.slow
def test_a_run_that_is_called_again_takes_the_same_decisions(tmp_path, stiff):
    arguments = {**STIFF, "run": tmp_path / "run"}
    assert plain(mp.evaluate(rbm(), bits(), **arguments)) == plain(stiff[0])
    # With a millisecond to spend it would have stopped earlier: what was decided counts.
    again = mp.evaluate(rbm(), bits(), **{**arguments, "budget": 0.001})
    assert numbers(again) == numbers(stiff[0])


@pytest.mark.slow
def test_a_larger_budget_goes_on(tmp_path, planned):
    run = tmp_path / "run"
    short = mp.evaluate(rbm(), bits(), run=run, **{**PLANNED, "budget": 0.001})
    assert short.stages == planned.stages[:1]
    assert plain(mp.evaluate(rbm(), bits(), run=run, **PLANNED)) == plain(planned)


@pytest.mark.slow
def test_each_call_counts_what_earlier_ones_have_spent(tmp_path, monkeypatch, planned):
    monkeypatch.setattr(Clock, "elapsed", property(lambda _: 10.0))  # of every call
    run = tmp_path / "run"

    def stages(budget):
        return len(mp.evaluate(rbm(), bits(), run=run, **{**PLANNED, "budget": budget}).stages)

    assert stages(5) == 1
    assert stages(15) == 1  # 10 of them were spent before, and 10 are now
    assert stages(25) == 1
    assert stages(1000) == len(STEPS)


@pytest.mark.slow
def test_a_smaller_gap_goes_on_and_a_larger_one_destroys_nothing(tmp_path, monkeypatch, planned):
    run, first = tmp_path / "run", planned.stages[0]
    easy = mp.evaluate(rbm(), bits(), run=run, gap=first.half_width + 1, budget="1h", evidence=False)
    assert easy.stages == planned.stages[:1]
    assert easy.verdict.reason != "target"
    assert plain(mp.evaluate(rbm(), bits(), run=run, **PLANNED)) == plain(planned)
    chunks = {path: path.read_bytes() for path in run.rglob("stage-*/*.npz")}
    again = mp.evaluate(rbm(), bits(), run=run, gap=first.half_width + 1, budget="1h", evidence=False)
    assert numbers(again) == numbers(planned)
    assert again.settings.gap == first.half_width + 1
    assert {path: path.read_bytes() for path in run.rglob("stage-*/*.npz")} == chunks
    assert numbers(read_run(run).report()) == numbers(planned)


@pytest.mark.slow
def test_a_larger_gap_leaves_a_stage_that_was_begun_for_a_smaller_one(tmp_path, planned):
    run, first = tmp_path / "run", planned.stages[0]
    mp.evaluate(rbm(), bits(), run=run, progress=stopping("stage 2"), **PLANNED)
    computed = []
    easy = mp.evaluate(
        rbm(),
        bits(),
        run=run,
        gap=first.half_width + 1,
        budget="1h",
        evidence=False,
        progress=lambda task, *_: computed.append(task),
    )
    assert easy.stages == planned.stages[:1]
    assert not any(task.startswith("stage 2") for task in computed)
    assert plain(mp.evaluate(rbm(), bits(), run=run, **PLANNED)) == plain(planned)


@pytest.mark.slow
def test_a_run_killed_between_stages_is_not_finished(tmp_path, monkeypatch, planned):
    class Killed(BaseException):
        pass

    run, decide = tmp_path / "run", Planner.decide

    def killed(planner, index, seconds):
        if index:
            raise Killed
        return decide(planner, index, seconds)

    monkeypatch.setattr(Planner, "decide", killed)
    with pytest.raises(Killed):
        mp.evaluate(rbm(), bits(), run=run, **PLANNED)
    stored = read_run(run)
    assert not stored.complete
    assert stored.report().interrupted
    assert stored.report().stages == planned.stages[:1]
    # The same for a run that was finished, and then asked for more.
    monkeypatch.setattr(Planner, "decide", decide)
    mp.evaluate(rbm(), bits(), run=run, gap=100.0, budget="1h")
    assert read_run(run).complete
    monkeypatch.setattr(Planner, "decide", killed)
    with pytest.raises(Killed):
        mp.evaluate(rbm(), bits(), run=run, **PLANNED)
    assert not read_run(run).complete


def test_particles_may_change_in_a_run_of_stages(tmp_path, planned):
    run = tmp_path / "run"
    alone = mp.evaluate(rbm(), bits(), run=run, particles=1, **{**PLANNED, "budget": 0.001})
    assert alone.particles == 1
    assert alone.certificate.quantity.startswith("mean log p_ann")
    together = mp.evaluate(rbm(), bits(), run=run, **{**PLANNED, "budget": 0.001})
    assert together.particles == 65
    assert together.stages[0].half_width < alone.stages[0].half_width
    assert replace(together.stages[0]) == planned.stages[0]


def test_workers_are_as_fast_as_they_were_seen_to_be(monkeypatch):
    rates, learn = [], Planner.learn

    def learning(planner, *found):
        learn(planner, *found)
        rates.append((planner._rate, planner.run.spent.steps / planner.run.spent.seconds))

    plan(monkeypatch)
    monkeypatch.setattr(Planner, "learn", learning)
    with ThreadPoolExecutor(1) as executor:  # one worker, whatever this process could do
        mp.evaluate(rbm(), bits(), executor=executor, threads=64, **PLANNED)
    assert rates
    assert all(rate == seen for rate, seen in rates)
