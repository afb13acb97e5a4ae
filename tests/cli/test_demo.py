import re

import numpy as np
import pytest

import meltpoint as mp

FILES = {"model.npz", "closing-in.png", "report.html"}


@pytest.mark.slow
def test_the_demo_brackets_the_exact_value(run, tmp_path, monkeypatch):
    sweep, reports = mp.sweep, []
    monkeypatch.setattr(
        mp, "sweep", lambda *given, **named: reports.extend(sweep(*given, **named)) or reports
    )
    result = run("demo", "--out", "here/demo")
    assert result.exit_code == 0
    assert {path.name for path in (tmp_path / "here" / "demo").iterdir()} == FILES
    assert (tmp_path / "here/demo/closing-in.png").read_bytes().startswith(b"\x89PNG")

    assert "Not to be trusted" not in (tmp_path / "here/demo/report.html").read_text()
    assert (tmp_path / "here/demo/report.html").as_uri() in result.stderr

    # What the figure is about: with few steps AIS alone is far too high, and RAISE too low.
    few = reports[1]
    assert few.optimistic.value > few.exact.value + 1 > few.conservative.value + 2

    row = r"(-[\d.]+) (?:± ([\d.]+)|\(exact\))$"
    labels = (r"conservative \(RAISE, N = 1,001\)", "exact", "optimistic \\(AIS\\)")
    low, exact, high = (re.search(rf"^{label} +{row}", result.stdout, re.M) for label in labels)
    # Six standard errors: noise may put either estimate on the wrong side, but not far.
    assert float(low[1]) <= float(exact[1]) + 6 * float(low[2])
    assert float(high[1]) >= float(exact[1]) - 6 * float(high[2])
    assert float(high[1]) - float(low[1]) < 0.1
    assert "Agree:" in result.stdout

    # The next command it names does what it says.
    command = re.search(r"Next: meltpoint (.*)", result.stderr)[1].split()
    assert "RBM 64-20 (model.npz) on 297 test examples" in run(*command, "--steps", 100).stdout
    model = mp.load("here/demo/model.npz")
    digits = mp.datasets.load("digits").test
    assert float(exact[1]) == pytest.approx(np.mean(model.log_f(digits)) - mp.exact_log_z(model), abs=6e-4)


def test_a_folder_that_cannot_be_made_is_found_at_once(run, tmp_path):
    (tmp_path / "taken").write_text("")
    result = run("demo", "--out", "taken")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "found a file where a folder should be" in result.stderr


def test_an_interrupted_demo_leaves_no_figure(run, tmp_path, monkeypatch):
    def press(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(mp, "train_rbm", press)
    result = run("demo")
    assert (result.exit_code, result.stdout) == (130, "")
    assert not list((tmp_path / "demo").iterdir())
