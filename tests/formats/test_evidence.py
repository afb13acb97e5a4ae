"""Evidence files in both styles."""

import pytest

from meltpoint.errors import InputError
from meltpoint.formats.uai import read_evidence


@pytest.mark.parametrize(
    ("text", "observed"),
    [
        ("", {}),
        ("\n", {}),
        ("0\n", {}),
        ("1 0\n", {}),
        ("0 0", {}),
        ("1 3 1", {3: 1}),
        ("1\n1 3 1", {3: 1}),
        ("2 0 1 7 0", {0: 1, 7: 0}),
        ("1\n2 0 1 7 0", {0: 1, 7: 0}),
        ("2 4 1 4 1", {4: 1}),
    ],
)
def test_both_styles(tmp_path, text, observed):
    (tmp_path / "a.evid").write_text(text)
    assert read_evidence(tmp_path / "a.evid") == observed


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("2 0 1", "2 numbers after a count of 2"),
        ("2 1 0 1 1 1 1", "6 numbers after a count of 2"),
        ("2 1 0 1 1 0 0 1", "2 samples of evidence"),
        ("1 x 0", "'x' in"),
        ("1 -1 0", "'-1' in"),
        ("2 4 1 4 0", "states 1 and 0 of variable 4"),
        ("9" * 5000, "whole numbers"),
    ],
)
def test_what_is_refused(tmp_path, text, message):
    (tmp_path / "a.evid").write_text(text)
    with pytest.raises(InputError, match=message) as caught:
        read_evidence(tmp_path / "a.evid")
    assert "a.evid" in str(caught.value)


def test_no_file(tmp_path):
    with pytest.raises(InputError, match="no file"):
        read_evidence(tmp_path / "none.evid")


def test_the_competition_s_files_observe_nothing(shared):
    paths = sorted((shared / "data/others/uai").glob("*.evid"))
    assert [read_evidence(path) for path in paths] == [{}] * 4
