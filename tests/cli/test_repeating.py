"""The call and the command that a report gives repeat the evaluation, whatever was asked for."""

import json
import shlex

import numpy as np
import pytest

import meltpoint as mp
from meltpoint.results.citation import command_line, python_call

CHOICES = {
    "nothing": [],
    "exact": ["--exact"],
    "not exact": ["--no-exact"],
    "precision": ["--precision", "float64"],
    "confidence": ["--confidence", "0.9"],
    "all": [
        "--no-exact",
        "--precision",
        "float64",
        "--confidence",
        "0.9",
        "--no-evidence",
        "--tolerance",
        "2",
    ],
}


@pytest.mark.parametrize("choice", CHOICES)
def test_what_a_report_says_to_repeat_it_gives_it_again(run, folder, choice):
    given = [
        "model.npz",
        "test.npy",
        "--steps",
        "20",
        "--ais-chains",
        "30",
        "--base",
        "uniform",
        *CHOICES[choice],
    ]
    first = run("evaluate", *given, "--json").stdout
    report = mp.Report.from_dict(json.loads(first))
    assert (report.exact is None) == ("--no-exact" in given)
    command = shlex.split(command_line(report))
    assert command[:2] == ["meltpoint", "evaluate"]
    names = {"test": np.load(folder / "test.npy")}
    exec(python_call(report), names)
    without = {"seconds": None, "names": None}
    for again in (json.loads(run(*command[1:], "--json").stdout), names["report"].to_dict()):
        assert {**again, **without} == {**json.loads(first), **without}
