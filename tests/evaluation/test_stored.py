"""Runs as they lie on the disk say what the run itself said; parts together are the run with all their chains."""

import json
import shutil

import numpy as np
import pytest

import meltpoint as mp
from evaluation.kept import DEEP, MODEL, SETTINGS, STACK, TRAIN, evaluate, plain
from meltpoint.errors import RunWarning
from meltpoint.evaluation.stored import merge_runs, read_run
from meltpoint.runs.files import read_sealed, write_sealed


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    for part in range(3):
        evaluate(run=folder / str(part), part=part)
    return folder


@pytest.mark.parametrize("part", [0, 1, 2])
def test_a_stored_run_says_what_the_run_itself_said(runs, part):
    assert plain(mp.read_run(runs / str(part)).report()) == plain(evaluate(part=part))


@pytest.mark.slow
@pytest.mark.parametrize(
    "changes",
    [
        {"particles": 1},
        {"particles": 7},
        {"particles": 7, "schedule": "linear"},
        {"base": "uniform", "confidence": 0.9},
        {"base": mp.data_rates(TRAIN), "steps": np.linspace(0, 1, 20) ** 2, "tolerance": 0.01},
        {"model": DEEP},
        {"model": STACK},
        {"gap": 0.5, "budget": "1h", **dict.fromkeys(SETTINGS)},
        {"model": DEEP, "gap": 1.0, "budget": "1h", **dict.fromkeys(SETTINGS)},
    ],
    ids=lambda changes: " ".join(changes),
)
def test_so_does_a_run_of_any_kind(tmp_path, changes):
    report = evaluate(run=tmp_path, **changes)
    stored = mp.read_run(tmp_path)
    assert stored.complete
    assert plain(stored.report()) == plain(report)
    written = json.loads((tmp_path / "report.json").read_text())
    again = stored.report().to_dict()
    assert {**written, "seconds": None} == {**again, "seconds": None}


def test_an_interrupted_run_says_what_the_interrupted_call_said(tmp_path):
    def press(task, done, total):
        if task == "AIS and RAISE" and done > 0.7 * total:
            raise KeyboardInterrupt

    report = evaluate(run=tmp_path, progress=press, threads=1, steps=2000)
    assert report.interrupted
    assert plain(mp.read_run(tmp_path).report()) == plain(report)
    assert not (tmp_path / "report.json").exists()


def test_particles_are_chosen_after_the_chains_were_run(runs, copies):
    alone = evaluate(run=copies / "0", particles=1)
    assert plain(alone) == plain(evaluate(particles=1))
    assert plain(mp.read_run(copies / "0").report()) == plain(alone)


@pytest.fixture
def copies(runs, tmp_path):
    for path in runs.iterdir():
        shutil.copytree(path, tmp_path / path.name)
    return tmp_path


def test_parts_together_are_one_larger_run(runs, tmp_path):
    merged = merge_runs([runs / "0", runs / "1"], tmp_path / "both")
    assert plain(merged) == plain(evaluate(chains=10, ais_chains=600))
    assert merged.particles == 601
    assert plain(read_run(tmp_path / "both").report()) == plain(merged)
    assert not {"part-2"} & {path.name for path in (tmp_path / "both").iterdir()}


def test_the_order_of_the_folders_does_not_matter(runs):
    one, other = (merge_runs([runs / name for name in order]) for order in ("02", "20"))
    assert plain(one) == plain(other)


@pytest.mark.slow
def test_what_is_joined_can_be_joined_again(runs, tmp_path):
    merge_runs([runs / "2", runs / "0"], tmp_path / "two")
    assert read_run(tmp_path / "two").specification.parts == (0, 2)
    assert plain(merge_runs([tmp_path / "two", runs / "1"])) == plain(evaluate(chains=15, ais_chains=900))


@pytest.mark.slow
def test_deep_models_are_joined_without_the_model(tmp_path):
    for part in (0, 1):
        evaluate(DEEP, run=tmp_path / str(part), part=part)
    assert plain(merge_runs([tmp_path / "0", tmp_path / "1"])) == plain(
        evaluate(DEEP, chains=10, ais_chains=600)
    )


def test_the_same_chains_twice_are_refused(runs, copies):
    with pytest.raises(mp.InputError, match=r"part 1 both in .* and in .*, with the same chains"):
        merge_runs([runs / "0", runs / "1", copies / "1"])


def test_other_runs_are_refused(runs, tmp_path):
    evaluate(run=tmp_path / "other", part=1, seed=1)
    with pytest.raises(mp.InputError, match=r"a run with seed=1 in .*other, expected seed=0"):
        merge_runs([runs / "0", tmp_path / "other"])


def test_an_unfinished_run_is_refused(runs, copies):
    (copies / "1/part-1/stage-0/raise-0000008.npz").unlink()
    with pytest.raises(mp.InputError, match=r"an unfinished run in .*1, expected finished ones"):
        merge_runs([runs / "0", copies / "1"])
    shutil.rmtree(copies / "1/part-1")
    with pytest.raises(mp.InputError, match="an unfinished run"):
        merge_runs([runs / "0", copies / "1"])


@pytest.fixture
def enumerated(tmp_path):
    """Two parts of a run with an exact log Z, of a model that is enumerated at once."""
    model = mp.RBM(MODEL.weights[:, :6], MODEL.visible_bias, MODEL.hidden_bias[:6])
    for part in range(2):
        evaluate(model, run=tmp_path / str(part), part=part, exact=True)
    return tmp_path


def test_a_run_with_a_damaged_chunk_is_not_finished(enumerated):
    """A joint report without the exact value would not tell that one is known."""
    (enumerated / "1" / "exact.npz").write_bytes(b"damaged")
    with pytest.warns(RunWarning, match=r"exact.npz"):
        assert not read_run(enumerated / "1").complete
    for first, second in ("01", "10"):
        with (
            pytest.warns(RunWarning, match=r"exact.npz"),
            pytest.raises(mp.InputError, match=r"an unfinished run in .*continue it first"),
        ):
            merge_runs([enumerated / first, enumerated / second])


def test_a_chunk_that_cannot_be_read_any_more_is_not_left_out(enumerated, monkeypatch):
    """The first look at the runs was well, and the second, which copies their chunks, is not."""
    looks = []

    def fails_later(path, *context, **options):
        looks.append(path.name)
        if path.name == "exact.npz" and looks.count(path.name) > 2:
            raise mp.InputError(found=str(path), expected="a disk", remedy="none")
        return read_sealed(path, *context, **options)

    monkeypatch.setattr("meltpoint.runs.store.read_sealed", fails_later)
    with (
        pytest.warns(RunWarning, match=r"exact.npz"),
        pytest.raises(mp.InputError, match=r"an unfinished run in .*continue it first"),
    ):
        merge_runs([enumerated / "0", enumerated / "1"], enumerated / "both")


def test_a_base_measured_elsewhere_is_refused(runs, copies):
    run = read_run(copies / "1")
    path, context = copies / "1/part-1/stage-0/stage.npz", "part-1/stage-0/stage"
    arrays = read_sealed(path, run.specification.fingerprint, context)
    write_sealed(
        path,
        arrays | {"base.biases.0": arrays["base.biases.0"] + 0.1},
        run.specification.fingerprint,
        context,
    )
    # Its chunks are those of the base that it had.
    with pytest.raises(mp.InputError, match="unfinished run in"):
        merge_runs([runs / "0", copies / "1"])


def test_the_joint_run_goes_to_a_new_folder(runs, tmp_path):
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(mp.InputError, match="not a run's folder"):
        merge_runs([runs / "0", runs / "1"], tmp_path)
    with pytest.raises(mp.InputError, match="a run of part 2 in"):
        merge_runs([runs / "0", runs / "1"], runs / "2")


def test_a_run_can_be_read_at_any_moment(copies):
    whole = read_run(copies / "0")
    assert whole.complete
    stage = copies / "0/part-0/stage-0"
    for path in sorted(stage.glob("raise-*"))[1:]:
        path.unlink()
    (stage / "ais-0000000.npz").unlink()
    partial = read_run(copies / "0").report()
    assert partial.interrupted
    assert len(partial.ais_log_weights) == 250
    np.testing.assert_array_equal(partial.per_example.log_weights, whole.report().per_example.log_weights[:8])
    assert partial.particles == 251  # those that are there
    assert "interrupted  after 250 of 300 AIS chains and 8 of 50 examples" in str(partial)
    for path in stage.glob("raise-*"):
        path.unlink()
    with pytest.raises(
        mp.Interrupted, match="of 300 AIS chains, 250 were finished, RAISE had finished no example"
    ):
        read_run(copies / "0").report()
    shutil.rmtree(stage)
    with pytest.raises(mp.InputError, match="no finished chain"):
        read_run(copies / "0").report()


def test_parts_are_counted_from_zero():
    for part in (-1, 0.5, True):
        with pytest.raises(mp.InputError, match="found part="):
            evaluate(MODEL, part=part)
