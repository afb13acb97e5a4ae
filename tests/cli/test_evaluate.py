import json
import os
import pickle
import re
import shutil

import numpy as np
import pytest

import meltpoint as mp

QUICK = ("--steps", 50, "--ais-chains", 40)


@pytest.mark.slow
def test_the_report_goes_to_stdout_and_nothing_else(run, folder):
    result = run("evaluate", "model.npz", "test.npy", "--train", "train.npy", *QUICK)
    assert result.exit_code == 0
    assert result.stderr == ""
    lines = result.stdout.splitlines()
    assert lines[0] == "RBM 9-4 (model.npz) on 20 test examples of test.npy, nats per example"
    assert max(map(len, lines)) <= 79
    expected = mp.evaluate(
        mp.load(folder / "model.npz"),
        np.load(folder / "test.npy"),
        np.load(folder / "train.npy"),
        steps=50,
        ais_chains=40,
    )
    assert lines[1:9] == str(expected).splitlines()[1:9]


def test_json(run, folder):
    arguments = ("--base", "uniform", "--chains", 3, "--examples", 5, "--seed", 7, "--tolerance", 2.5)
    result = run("evaluate", "model.npz", "test.npy", *arguments, *QUICK, "--threads", 1, "--json")
    assert result.exit_code == 0
    assert result.stderr == ""
    settings = json.loads(result.stdout)["settings"]
    assert settings == {
        "base": "uniform",
        "schedule": "friction",
        "steps": 50,
        "examples": 5,
        "chains": 3,
        "ais_chains": 40,
        "seed": 7,
        "precision": "mixed",
        "tolerance": 2.5,
        "confidence": 0.99,
        "particles": None,
        "gap": None,
        "budget": None,
        "evidence": True,
        "exact": None,
    }


def test_without_evidence_agreement_has_exit_code_1(run, folder):
    arguments = ("evaluate", "model.npz", "test.npy", "--base", "uniform", *QUICK, "--json", "--no-exact")
    checked, unchecked = run(*arguments), run(*arguments, "--no-evidence")
    assert (checked.exit_code, unchecked.exit_code) == (0, 1)
    assert json.loads(checked.stdout)["evidence"]["starts"] > 1
    assert json.loads(unchecked.stdout)["evidence"] is None
    assert json.loads(unchecked.stdout)["verdict"]["reason"] == "unchecked"


def test_what_is_not_to_be_trusted_is_printed_with_exit_code_1(run, folder):
    rng = np.random.default_rng(0)
    mp.save(mp.RBM(rng.normal(0, 2, (9, 40)), np.zeros(9), np.zeros(40)), folder / "hard.npz")
    arguments = ("evaluate", "hard.npz", "test.npy", "--base", "uniform", "--steps", 1, "--no-exact")
    text, machine = run(*arguments), run(*arguments, "--json")
    assert (text.exit_code, machine.exit_code) == (1, 1)
    verdict = json.loads(machine.stdout)["verdict"]
    assert verdict["trusted"] is False
    # Keywords of Python are options of the command.
    assert verdict["sentence"].endswith("Raise `steps`, or `ais_chains`.")
    said = verdict["sentence"].replace("`steps`", "--steps").replace("`ais_chains`", "--ais-chains")
    assert said in " ".join(text.stdout.split())


@pytest.mark.slow
def test_a_figure(run, folder):
    result = run("evaluate", "model.npz", "test.npy", "--plot", "figure.pdf", *QUICK)
    assert result.exit_code == 0
    assert result.stderr == "figure: figure.pdf\n"
    assert (folder / "figure.pdf").read_bytes().startswith(b"%PDF")


@pytest.fixture
def digits_model(folder):
    mp.save(mp.RBM(np.zeros((64, 2)), np.zeros(64), np.zeros(2)), folder / "digits.npz")


def test_a_data_set_brings_its_training_examples(run, digits_model):
    result = run("evaluate", "digits.npz", "digits", *QUICK, "--json")
    report = json.loads(result.stdout)
    assert (report["test_examples"], report["settings"]["base"]) == (297, "data")
    by_hand = mp.datasets.load("digits")
    assert (
        report["examples"]
        == mp.evaluate(mp.load("digits.npz"), by_hand.test, by_hand.train, steps=50, ais_chains=40).to_dict()[
            "examples"
        ]
    )


def test_a_file_comes_before_a_data_set_of_its_name(run, folder, digits_model):
    np.save(folder / "digits.npy", np.zeros((3, 64)))
    shutil.move(folder / "digits.npy", folder / "digits")
    report = json.loads(run("evaluate", "digits.npz", "digits", *QUICK, "--json").stdout)
    assert (report["test_examples"], report["settings"]["base"]) == (3, "model")


@pytest.mark.parametrize("source", ["digits", "train.npz:left"])
def test_training_examples_by_name(run, folder, digits_model, source):
    np.save(folder / "some.npy", np.zeros((3, 64)))
    np.savez(folder / "train.npz", left=np.ones((5, 64)), right=np.zeros(2))
    result = run("evaluate", "digits.npz", "some.npy", "--train", source, *QUICK, "--json")
    assert json.loads(result.stdout)["settings"]["base"] == "data"


@pytest.mark.parametrize(
    ("levels", "scale"), [(np.linspace(0, 1, 180), 1), (np.arange(180), 255), (np.arange(180.0) % 256, 255)]
)
@pytest.mark.parametrize("how", ["stochastic", "threshold"])
def test_grey_values_are_binarised_on_request(run, folder, levels, scale, how):
    np.save(folder / "grey.npy", levels.reshape(20, 9))
    refused = run("evaluate", "model.npz", "grey.npy", *QUICK)
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "add --binarize stochastic" in refused.stderr
    results = [
        json.loads(
            run("evaluate", "model.npz", "grey.npy", "--binarize", how, *QUICK, "--json", "--seed", s).stdout
        )
        for s in (0, 0, 1)
    ]
    assert results[0]["examples"] == results[1]["examples"]
    assert (results[0]["log_z"] == results[2]["log_z"]) is False
    if how == "threshold":
        bits = levels.reshape(20, 9) > scale / 2
        expected = mp.load(folder / "model.npz").log_f(bits[results[0]["examples"]["positions"]])
        np.testing.assert_array_equal(results[0]["examples"]["log_f"], expected)


@pytest.mark.parametrize("top", [16, 127, 256, 1000])
def test_grey_values_whose_white_is_unknown_are_refused(run, folder, top):
    np.save(folder / "grey.npy", np.linspace(0, top, 180).round().reshape(20, 9))
    result = run("evaluate", "model.npz", "grey.npy", "--binarize", "stochastic")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "divide by the value of white first" in result.stderr


def spoil(folder):
    """Files that cannot be used."""
    rng = np.random.default_rng(0)
    whole = (folder / "model.npz").read_bytes()
    (folder / "cut.npz").write_bytes(whole[: len(whole) // 2])
    (folder / "cut.npy").write_bytes((folder / "test.npy").read_bytes()[:200])
    (folder / "photo.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(50))
    (folder / "noise.npz").write_bytes(rng.bytes(500))
    (folder / "empty.npy").write_bytes(b"")
    (folder / "model.pkl").write_bytes(pickle.dumps({"weights": [1]}))
    np.savez(
        folder / "pickled.npz", weights=np.array([{"a": 1}], dtype=object), meltpoint_kind=np.array("RBM")
    )
    np.savez(folder / "pickle_inside.npz", test=np.array([Trap()], dtype=object))
    np.savez(folder / "two.npz", a=np.zeros((2, 9)), b=np.zeros((2, 9)))
    np.save(folder / "wide.npy", np.zeros((2, 10)))
    np.save(folder / "none.npy", np.zeros((0, 9)))
    np.save(folder / "nan.npy", np.full((2, 9), np.nan))
    np.save(folder / "spins.npy", np.array([[-1, 1, 1] * 3]))
    np.save(folder / "cube.npy", np.zeros((2, 3, 3)))
    weights = np.zeros((9, 4))
    weights[0, 0] = np.inf
    np.savez(
        folder / "infinite.npz",
        meltpoint_kind=np.array("RBM"),
        meltpoint_version=np.array(1),
        weights=weights,
        visible_bias=np.zeros(9),
        hidden_bias=np.zeros(4),
    )


class Trap:
    """Fails the test when it is unpickled."""

    def __reduce__(self):
        return pytest.fail, ("a pickle was opened",)


MODEL, TEST = "model.npz", "test.npy"


@pytest.mark.parametrize(
    ("arguments", "found", "remedy"),
    [
        ((MODEL, "wide.npy"), "test with 10 columns", "is the label column still in?"),
        ((MODEL, "none.npy"), "test without a single example", "check how the file was cut or filtered"),
        ((MODEL, "nan.npy"), "NaN in test", "drop or fill the missing values"),
        ((MODEL, "spins.npy"), "values from -1 to 1", "these are spins"),
        ((MODEL, "cube.npy"), "test of shape (2, 3, 3)", "flatten each example"),
        ((MODEL, "two.npz"), "2 arrays in two.npz: a, b", "two.npz:a"),
        ((MODEL, "two.npz:c"), "no array 'c' in two.npz", "check the name"),
        ((MODEL, "missing.npy"), "no file 'missing.npy'", "check the path"),
        ((MODEL, "digit"), "a data set named 'digit'", "did you mean digits?"),
        ((MODEL, TEST, "--train", "faces"), "a data set named 'faces'", "choose one of these"),
        ((MODEL, "."), "a folder", "name a file"),
        ((MODEL, "cut.npy"), "cut.npy, truncated or damaged", "copy, download or save it again"),
        ((MODEL, "empty.npy"), "an empty file", "copy, download or save it again"),
        ((MODEL, "photo.png"), "a PNG image", "convert it"),
        ((MODEL, "model.pkl"), "a Python pickle", "pickles are never opened"),
        ((MODEL, "pickle_inside.npz"), "pickled Python objects, which are never opened,", "numpy.savez"),
        (
            ("infinite.npz", TEST),
            "1 NaN or infinite value in weights in infinite.npz",
            "did training diverge?",
        ),
        (("missing.npz", TEST), "no file 'missing.npz'", "check the path"),
        (("cut.npz", TEST), "cut.npz, truncated or damaged", "copy, download or save it again"),
        (("noise.npz", TEST), "a file of unknown format", "check the path"),
        (("pickled.npz", TEST), "no meltpoint_version in pickled.npz", "meltpoint.save"),
        (("model.pkl", TEST), "a Python pickle", "pickles are never opened"),
        ((TEST, MODEL), "a .npy file", "are model and data swapped?"),
        ((MODEL, TEST, "--base", "data"), "base='data' without training data", "base='model'"),
        ((MODEL, TEST, "--base", "best"), "base='best'", "usually gives the smallest gap"),
        ((MODEL, TEST, "--train", "wide.npy"), "train with 10 columns", "is the label column still in?"),
        ((MODEL, TEST, "--steps", 0), "steps=0", "1,000 steps are a quick look"),
        ((MODEL, TEST, "--chains", 0), "chains=0", "the paper uses 50"),
        ((MODEL, TEST, "--ais-chains", 0), "ais_chains=0", "1,000 are usual"),
        ((MODEL, TEST, "--examples", 21), "examples=21 with a test set of 20", "leave it out"),
        ((MODEL, TEST, "--examples", 0), "examples=0", "100 are usual"),
        ((MODEL, TEST, "--seed", -1), "seed=-1", "0 is as good as any"),
        ((MODEL, TEST, "--tolerance", 0), "tolerance=0.0", "1 is usual"),
        ((MODEL, TEST, "--threads", 0), "threads=0", "all cores"),
        ((MODEL, TEST, "--binarize", "soft"), "--binarize soft", "leave it out for binary data"),
        ((MODEL, TEST, "--plot", "figure.gif"), "figure.gif as an output file", "rename it"),
        ((MODEL, TEST, "--plot", "no/figure.png"), "no folder", "create it"),
        ((MODEL, TEST, "--plot", "model.npz/figure.png"), "no folder", "create it"),
    ],
    ids=lambda value: " ".join(map(str, value)) if isinstance(value, tuple) else "",
)
def test_bad_input_is_one_sentence_and_exit_code_2(run, folder, arguments, found, remedy):
    spoil(folder)
    before = {path: path.read_bytes() for path in folder.iterdir()}
    result = run("evaluate", *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("meltpoint: found ")
    assert ", expected " in result.stderr
    assert result.stderr.count("\n") == 1
    assert found in result.stderr
    assert remedy in result.stderr.partition(", expected ")[2]
    assert {path: path.read_bytes() for path in folder.iterdir()} == before


def test_an_output_that_cannot_be_written_is_found_before_the_work(run, folder, monkeypatch):
    def never(*arguments, **options):
        pytest.fail("the evaluation was begun")

    monkeypatch.setattr("meltpoint.evaluation.evaluate.evaluate", never)
    monkeypatch.setattr("os.access", lambda path, mode: mode != os.W_OK)
    result = run("evaluate", "model.npz", "test.npy", "--plot", "figure.png")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "change the permissions" in result.stderr


def test_a_figure_that_cannot_replace_a_folder(run, folder):
    (folder / "figure.png").mkdir()
    result = run("evaluate", "model.npz", "test.npy", "--plot", "figure.png")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "figure.png, which is a folder" in result.stderr


def test_the_html_report(run, folder):
    result = run("evaluate", "model.npz", "test.npy", "--base", "uniform", *QUICK, "--html", "report.html")
    assert result.exit_code == 0
    assert result.stderr == "report: report.html\n"
    page = (folder / "report.html").read_text()
    assert "RBM 9-4 (model.npz) on 20 test examples of test.npy" in page
    assert "meltpoint evaluate model.npz test.npy --base uniform --steps 50" in page


def test_an_html_report_that_cannot_be_written_is_found_at_once(run, folder):
    result = run("evaluate", "model.npz", "test.npy", *QUICK, "--html", "report.pdf")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "expected a name that ends in .html or .htm" in result.stderr


def test_the_html_report_of_a_run_is_that_of_the_evaluation(run, folder):
    arguments = ("evaluate", "model.npz", "test.npy", "--train", "train.npy", *QUICK)
    assert run(*arguments, "--run", "night", "--html", "first.html").exit_code == 0
    assert run("runs", "show", "night", "--html", "second.html").stderr == "report: second.html\n"
    first, second = ((folder / name).read_text() for name in ("first.html", "second.html"))

    def without_time(page):
        return re.sub(r"<dt>run</dt><dd>[^<]*</dd>", "", page)

    assert without_time(first) != first
    assert without_time(first) == without_time(second)
    assert "<h2" in first
    assert "Samples of the model beside data" in first


def test_a_model_that_seems_misread_is_not_to_be_trusted(tmp_path, run):
    rng = np.random.default_rng(0)
    data = (rng.random((200, 8)) < np.linspace(0.05, 0.95, 8)).astype(np.uint8)
    rates = np.log(np.linspace(0.05, 0.95, 8)) - np.log1p(-np.linspace(0.05, 0.95, 8))
    np.save(tmp_path / "data.npy", data)
    for sign, code in ((1, 0), (-1, 1)):
        mp.save(mp.RBM(np.zeros((8, 2)), sign * rates, np.zeros(2)), tmp_path / "model.npz")
        done = run("evaluate", tmp_path / "model.npz", tmp_path / "data.npy", "--steps", "50")
        assert done.exit_code == code
        assert ("Is the model read as it was meant?" in done.stdout) == (code == 1)


@pytest.mark.slow
def test_all_commands_agree_on_a_model_that_seems_misread(folder, run):
    """Its log Z is exact and the verdict trusts it: the conventions alone speak against it."""
    rates = np.linspace(0.05, 0.95, 8)
    np.save(folder / "data.npy", (np.random.default_rng(0).random((200, 8)) < rates).astype(np.uint8))
    for name, sign in (("meant", 1), ("misread", -1)):
        bias = sign * (np.log(rates) - np.log1p(-rates))
        mp.save(mp.RBM(np.zeros((8, 2)), bias, np.zeros(2)), folder / f"{name}.npz")
    mp.save(mp.RBM(np.zeros((8, 2)), np.zeros(8), np.zeros(2)), folder / "flat.npz")
    quick = ("--steps", "50")
    for name, code in (("meant", 0), ("misread", 1)):
        model = f"{name}.npz"
        runs = [f"{name}-{part}" for part in (0, 1)]
        for part, kept in enumerate(runs):
            assert run("evaluate", model, "data.npy", *quick, "--run", kept, "--part", part).exit_code == code
        compared = run("compare", model, "flat.npz", "data.npy", *quick)
        commands = {
            "compare": compared,
            "trace": run("trace", model, "data.npy", *quick),
            "merge": run("runs", "merge", *runs),
        }
        assert {command: done.exit_code for command, done in commands.items()} == dict.fromkeys(
            commands, code
        )
        assert "Order known" in compared.stdout
        assert ("Is the model read as it was meant?" in compared.stdout) == (code == 1)
        assert ("misread (misread)" in commands["trace"].stdout) == (code == 1)
