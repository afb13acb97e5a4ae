import json
import math
import threading
import time
from contextlib import contextmanager
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import meltpoint as mp
from meltpoint.annealing.schedule import as_betas
from meltpoint.backends import tiles
from meltpoint.estimators.limits import certified_log_z
from meltpoint.kernels import compiling

QUICK = {"steps": 20, "schedule": "linear", "chains": 3, "ais_chains": 40}


def rbm(visible=6, hidden=4, seed=0, scale=1.0):
    rng = np.random.default_rng(seed)
    return mp.RBM(
        rng.normal(0, scale, (visible, hidden)), rng.normal(0, scale, visible), rng.normal(0, scale, hidden)
    )


def dbm(seed=0):
    rng = np.random.default_rng(seed)
    shapes = [(6, 4), (4, 3)]
    return mp.DBM([rng.normal(size=shape) for shape in shapes], [rng.normal(size=n) for n in (6, 4, 3)])


def dbn(seed=0):
    rng = np.random.default_rng(seed)
    return mp.DBN([(rng.normal(size=(6, 4)), rng.normal(size=6), rng.normal(size=4))], rbm(4, 3, seed))


def bits(n=30, width=6, seed=1):
    return np.random.default_rng(seed).integers(0, 2, (n, width), np.uint8)


def plain(report):
    """Everything but the timing, as JSON."""
    made = report.to_dict()
    del made["seconds"]
    return json.dumps(made, allow_nan=False)


@pytest.mark.parametrize("particles", [None, 8, 1])
@pytest.mark.parametrize("model", [rbm(), dbm(), dbn()], ids=repr)
def test_the_report_is_made_of_what_the_estimators_say(model, particles):
    test, train = bits(), bits(50, seed=2)
    report = mp.evaluate(model, test, train, examples=10, seed=3, particles=particles, **QUICK)
    base = mp.data_rates(train, model)
    log_z = mp.ais_log_z(model, base=base, steps=20, chains=40, seed=3)
    positions = report.per_example.positions
    how = {"base": base, "steps": 20, "chains": 3, "seed": 3}
    prob = mp.raise_log_prob(model, test[positions], forward=log_z, particles=particles, **how)
    alone = mp.raise_log_prob(model, test[positions], **how)
    log_f = model.log_f(test) if isinstance(model, mp.RBM) else model.log_f(test, seed=3)

    assert len(set(positions.tolist())) == 10
    assert report.log_z.value == log_z.value
    assert report.ess == log_z.ess
    assert report.optimistic.value == log_f.mean() - log_z.value
    assert report.particles == prob.particles == (particles or 41)
    np.testing.assert_array_equal(report.per_example.log_prob, prob.values)
    np.testing.assert_array_equal(report.per_example.log_weights, alone.log_weights)
    assert report.conservative.value == pytest.approx(
        np.mean(prob.values - log_f[positions]) + log_f.mean(), abs=1e-12
    )
    assert report.gap.value == report.optimistic.value - report.conservative.value
    if particles == 1 and isinstance(model, mp.RBM):  # two ends with no chain in common
        ends = math.hypot(report.optimistic.stderr, report.conservative.stderr)
        assert report.gap.stderr == pytest.approx(ends, rel=1e-12)
    assert report.exact.value == pytest.approx(log_f.mean() - mp.exact_log_z(model), abs=1e-12)
    if particles == 1:
        assert report.certificate.bound == pytest.approx(prob.values.mean() - math.log(100) / 10, abs=1e-12)
        assert report.certified_estimate == pytest.approx(prob.values.mean(), abs=1e-12)
    assert report.log_z_certificate.bound == certified_log_z(log_z.log_weights, report.evidence, 0.01).bound
    assert (report.model, report.test_examples) == (repr(model), 30)


@pytest.mark.parametrize("model", [rbm(), dbm(), dbn()], ids=repr)
def test_the_error_of_an_estimated_log_f_enters_the_optimistic_side_only(model, monkeypatch):
    monkeypatch.setattr("meltpoint.models.dbm.ENUMERATED", 0)
    monkeypatch.setattr("meltpoint.models.dbn.ENUMERATED", 0)
    report = mp.evaluate(model, bits(), bits(), **QUICK)
    estimated = not isinstance(model, mp.RBM)
    assert (report.log_f_error > 0) == estimated
    assert report.optimistic.stderr == pytest.approx(math.hypot(report.log_z.stderr, report.log_f_error))
    assert report.exact.stderr == report.log_f_error
    assert ("log f" in str(report)) == estimated


def test_the_bracket_closes_on_the_exact_value():
    # Seven standard errors: a false alarm once in 10^11 runs if the errors were exact, and they nearly are.
    report = mp.evaluate(rbm(10, 8), bits(100, 10), bits(100, 10), steps=500, ais_chains=400)
    for estimate in (report.optimistic, report.conservative):
        assert abs(estimate.value - report.exact.value) < 7 * estimate.stderr
        assert estimate.stderr < 0.05
    assert report.verdict.trusted


def test_few_steps_from_afar_leave_a_gap_around_the_exact_value():
    report = mp.evaluate(rbm(12, 8, scale=4), bits(50, 12), base="uniform", steps=2, chains=2, particles=1)
    assert report.conservative.value < report.exact.value - 1
    assert report.optimistic.value > report.exact.value + 1
    assert report.verdict.reason == "gap"
    assert "data base rates" in report.verdict.sentence


def test_more_particles_are_a_better_model():
    how = {"base": "uniform", "steps": 2, "chains": 2}
    found = [
        mp.evaluate(rbm(12, 8, scale=4), bits(50, 12), particles=particles, **how)
        for particles in (1, 6, None)
    ]
    assert [report.particles for report in found] == [1, 6, 101]
    # Two nats and more, where the errors are a few tenths.
    assert found[0].conservative.value < found[1].conservative.value - 1
    assert found[1].conservative.value < found[2].conservative.value - 1
    assert len({report.optimistic for report in found}) == 1
    assert len({report.per_example.log_weights.tobytes() for report in found}) == 1
    for report in found:
        assert report.between[0] <= report.exact.value <= report.between[1]


def test_results_do_not_depend_on_threads_or_on_the_day():
    runs = [mp.evaluate(rbm(), bits(), seed=5, threads=threads, **QUICK) for threads in (1, 2, 2)]
    assert plain(runs[0]) == plain(runs[1]) == plain(runs[2])
    assert plain(runs[0]) != plain(mp.evaluate(rbm(), bits(), seed=6, **QUICK))


def test_numpy_numbers_are_numbers():
    report = mp.evaluate(
        rbm(),
        bits(),
        bits(),
        steps=np.int64(9),
        chains=np.int32(2),
        seed=np.int64(1),
        tolerance=np.float32(0.5),
    )
    json.dumps(report.to_dict(), allow_nan=False)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (
            {},
            {
                "base": "model",
                "steps": 3000,
                "schedule": "friction",
                "chains": 4,
                "examples": 30,
                "ais_chains": 120,
                "seed": 0,
                "particles": None,
                "gap": None,
                "budget": None,
            },
        ),
        ({"train": bits()}, {"base": "data"}),
        ({"train": bits(), "base": "uniform"}, {"base": "uniform"}),
        ({"base": mp.data_rates(bits())}, {"base": "data"}),
        ({"examples": 7, "chains": 2}, {"examples": 7, "ais_chains": 14}),
        ({"schedule": "linear", "steps": 5}, {"steps": 5, "schedule": "linear"}),
        ({"steps": as_betas(5) ** 2}, {"steps": 5, "schedule": "given"}),
        ({"particles": 5}, {"particles": 5}),
        ({"tolerance": 0.5, "confidence": 0.9}, {"tolerance": 0.5, "confidence": 0.9}),
    ],
    ids=str,
)
def test_settings_say_what_was_done(arguments, expected):
    few = {"steps": 20} if arguments else {}
    report = mp.evaluate(rbm(), bits(), **(few | arguments))
    assert {name: getattr(report.settings, name) for name in expected} == expected


def test_at_most_a_hundred_examples_by_default():
    report = mp.evaluate(rbm(), bits(150), steps=1, chains=1, base="uniform")
    assert report.settings.examples == len(report.per_example.log_prob) == 100


@pytest.mark.slow
def test_the_exact_value_is_there_where_it_is_cheap_or_wanted():
    small, large = rbm(24, 20), rbm(24, 21)
    test = bits(3, 24)
    assert mp.evaluate(small, test, **QUICK).exact is not None
    assert mp.evaluate(small, test, exact=False, **QUICK).exact is None
    assert mp.evaluate(large, test, **QUICK).exact is None
    wanted = mp.evaluate(large, test, exact=True, **QUICK).exact
    assert wanted.value == pytest.approx(large.log_f(test).mean() - mp.exact_log_z(large), abs=1e-12)


@pytest.mark.parametrize(
    ("arguments", "unknown"),
    [
        ({"ais_chains": 1}, ["optimistic", "conservative", "gap"]),  # the one chain is in both
        ({"ais_chains": 1, "particles": 1}, ["optimistic", "gap"]),
        ({"examples": 1}, ["conservative", "gap"]),
        ({"chains": 1}, []),  # the spread between examples takes the place of the spread between chains
        ({"chains": 1, "examples": 1, "ais_chains": 1}, ["optimistic", "conservative", "gap"]),
    ],
    ids=str,
)
def test_an_error_that_cannot_be_known_is_not_called_agreement(arguments, unknown):
    report = mp.evaluate(rbm(), bits(), bits(), **{**QUICK, **arguments})
    for side in ("optimistic", "conservative", "gap"):
        assert math.isnan(getattr(report, side).stderr) == (side in unknown)
    assert report.verdict.reason == ("noisy" if unknown else "agree")
    assert ("(error unknown)" in str(report)) == bool(unknown)
    json.dumps(report.to_dict(), allow_nan=False)


def test_a_model_without_weights_has_nothing_to_estimate():
    report = mp.evaluate(
        mp.RBM(np.zeros((3, 2)), np.zeros(3), np.zeros(2)), bits(9, 3), base="uniform", **QUICK
    )
    for estimate in (report.optimistic, report.conservative, report.exact):
        assert estimate.value == pytest.approx(-3 * math.log(2), abs=1e-12)
    assert report.verdict.trusted
    assert report.ess == pytest.approx(40)
    assert "± 0 " not in str(report)
    report.plot()


def test_parameters_beyond_all_measure_are_not_trusted():
    absurd = mp.RBM(np.full((6, 4), 1e39), np.zeros(6), np.zeros(4))
    with np.errstate(all="ignore"):
        report = mp.evaluate(absurd, bits(), bits(), exact=False, **QUICK)
    assert not report.verdict.trusted
    json.dumps(report.to_dict(), allow_nan=False)
    str(report)


def test_progress_is_of_the_whole_and_from_this_thread(monkeypatch):
    monkeypatch.setattr("meltpoint.models.dbm.ENUMERATED", 0)
    heard = []
    here = threading.get_ident()

    def progress(task, done, total):
        assert threading.get_ident() == here
        heard.append((task, done, total))

    mp.evaluate(dbm(), bits(), bits(), progress=progress, **QUICK)
    whole = [(done, total) for task, done, total in heard if task == "AIS and RAISE"]
    chain_steps = 40 * 20 + 30 * 3 * 20 * 2  # RAISE heats a DBM and then melts it
    assert {total for _, total in whole} == {chain_steps}
    assert [done for done, _ in whole] == sorted(done for done, _ in whole)
    assert whole[-1][0] == chain_steps
    assert {task for task, *_ in heard} > {"AIS and RAISE", "unnormalised probabilities", "enumeration"}


def test_seconds_add_up():
    seconds = mp.evaluate(rbm(), bits(), steps=2000).seconds
    assert {"AIS", "RAISE", "report"} <= set(seconds)
    total = seconds.pop("total")
    assert sum(seconds.values()) == pytest.approx(total)


def test_kernels_are_compiled_before_a_budget_begins(monkeypatch):
    real = compiling.preparing_kernels

    @contextmanager
    def compiles(_progress):
        """A hundred seconds, by the clock, the first time."""
        compiling._spent.seconds = compiling.seconds_compiling() + 100.0
        monkeypatch.setattr(compiling.time, "perf_counter", lambda now=time.perf_counter: now() + 100.0)
        monkeypatch.setattr(tiles, "preparing_kernels", real)
        yield

    monkeypatch.setattr(tiles, "preparing_kernels", compiles)
    report = mp.evaluate(rbm(), bits(), budget=3, exact=False)
    assert report.seconds["compiling kernels"] == pytest.approx(100.0)
    assert 100 < report.seconds["total"] < 110
    assert report.stages[-1].steps > 300  # all of a budget that compiling has used up


@st.composite
def evaluations(draw):
    """A model, a test set and arguments, all tiny."""
    sizes = draw(st.lists(st.integers(1, 4), min_size=2, max_size=4))
    seed = draw(st.integers(0, 2**32))
    rng = np.random.default_rng(seed)
    scale = draw(st.sampled_from([0.0, 0.3, 3.0, 30.0]))
    weights = [rng.normal(0, scale, shape) for shape in pairwise(sizes)]
    biases = [rng.normal(0, scale, size) for size in sizes]
    top = mp.RBM(weights[-1], biases[-2], biases[-1])
    directed = [(weights[k], biases[k], biases[k + 1]) for k in range(len(weights) - 1)]
    model = draw(st.sampled_from([mp.DBM(weights, biases), mp.DBN(directed, top)]))
    if len(sizes) == 2:
        model = draw(st.sampled_from([model, top]))
    n = draw(st.integers(1, 6))
    arguments = {
        "train": rng.integers(0, 2, (5, sizes[0])),
        "base": draw(st.sampled_from(["data", "uniform"])),
        "steps": draw(st.integers(1, 6)),
        "schedule": draw(st.sampled_from(["linear", "linear", "friction"])),
        "chains": draw(st.integers(1, 3)),
        "examples": draw(st.integers(1, n)),
        "ais_chains": draw(st.integers(1, 5)),
        "seed": seed,
        "precision": draw(st.sampled_from(["mixed", "float32", "float64"])),
    }
    arguments["particles"] = draw(st.none() | st.integers(1, arguments["ais_chains"] + 1))
    return model, rng.integers(0, 2, (n, sizes[0])), arguments


@pytest.mark.slow
@settings(max_examples=20)
@given(evaluations())
def test_any_evaluation_has_views_and_can_be_repeated(evaluation):
    model, test, arguments = evaluation
    report = mp.evaluate(model, test, **arguments)
    read = json.loads(json.dumps(report.to_dict(), allow_nan=False))
    assert read["gap"]["value"] == read["optimistic"]["value"] - read["conservative"]["value"]
    assert read["examples"]["positions"] == report.per_example.positions.tolist()
    assert max(map(len, str(report).splitlines())) <= 79
    assert 1 <= report.ess * (1 + 1e-9) <= arguments["ais_chains"] * (1 + 2e-9)
    assert report.certificate.bound < report.certified_estimate
    low, high = report.between
    assert low <= high <= 0
    if report.evidence is None:
        assert low <= report.conservative.value
        assert high >= min(0, report.optimistic.value)
    else:
        mean_log_f = report.optimistic.value + report.log_z.value
        assert low <= max(report.conservative.value, mean_log_f - report.evidence.log_z_ceiling) + 1e-9
    assert not report.interrupted
    assert plain(report) == plain(mp.evaluate(model, test, threads=1, **arguments))
