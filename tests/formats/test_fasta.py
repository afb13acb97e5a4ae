"""Alignments become states: alphabets, insertions, letters outside, and files that are none."""

import gzip

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import meltpoint as mp
from meltpoint.datasets import read
from meltpoint.errors import DataWarning
from meltpoint.formats.sequences import ALPHABETS

PROTEIN = ALPHABETS["protein"]


def written(path, *sequences, ending="\n", width=10**9):
    lines = []
    for k, sequence in enumerate(sequences):
        lines += [f">name {k}", *(sequence[low : low + width] for low in range(0, len(sequence), width))]
    path.write_bytes((ending.join(lines) + ending).encode())
    return path


@given(
    states=st.lists(st.lists(st.integers(0, 20), min_size=7, max_size=7), min_size=1, max_size=6),
    ending=st.sampled_from(["\n", "\r\n"]),
    width=st.sampled_from([3, 60]),
    packed=st.booleans(),
)
def test_states_come_back(folder, states, ending, width, packed):
    file = written(
        folder / "a.fasta", *("".join(PROTEIN[s] for s in row) for row in states), ending=ending, width=width
    )
    if packed:
        file.write_bytes(gzip.compress(file.read_bytes()))
    np.testing.assert_array_equal(read(file, alphabet="protein"), states)


def test_insertions_of_a2m_are_left_out(tmp_path):
    file = written(tmp_path / "a.a2m", "AC-Y", "Aw.C-yyY.", "ACDeY")
    assert read(file).tolist() == [[1, 2, 0, 20], [1, 2, 0, 20], [1, 2, 3, 20]]


def test_a_file_of_lower_case_letters_has_no_insertions(tmp_path):
    assert read(written(tmp_path / "a.fa", "acg-", "ttta")).tolist() == [[1, 2, 3, 0], [4, 4, 4, 1]]


@pytest.mark.parametrize(
    ("sequences", "alphabet", "letters"),
    [
        (["ACGT-"], None, "-ACGT"),
        (["ACGU-"], None, "-ACGU"),
        (["ACGY-"], None, PROTEIN),
        (["ACGT-"], "protein", PROTEIN),
        (["ACGT-"], "TGCA-", "TGCA-"),
    ],
)
def test_alphabets(tmp_path, sequences, alphabet, letters):
    states = read(written(tmp_path / "a.fasta", *sequences), alphabet=alphabet)
    assert states.tolist() == [[letters.index(letter) for letter in sequence] for sequence in sequences]


def test_letters_outside_are_counted_and_refused_or_dropped(tmp_path):
    file = written(tmp_path / "a.fasta", "ACDE", "AXXE", "ABDE", "Y---")
    with pytest.raises(
        mp.InputError, match=r"2 of 4 sequences of .*a.fasta: X \(2\), B \(1\).*outside='drop'"
    ):
        read(file)
    with pytest.warns(DataWarning, match="2 of 4 sequences have letters outside"):
        assert read(file, outside="drop").tolist() == [[1, 2, 3, 4], [20, 0, 0, 0]]
    with pytest.raises(mp.InputError, match="in every sequence"):
        read(written(tmp_path / "b.fasta", "XX"), outside="drop")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b">a\nACD\n>b\nAC\n", "sequence 2 has 2 columns and 1 others have 3"),
        (b">a\n>b\n", "sequence 1 has 0 columns"),
        (b">a", "sequence 1 has 0 columns"),
    ],
)
def test_what_is_not_aligned_is_refused(tmp_path, content, message):
    (tmp_path / "a.fasta").write_bytes(content)
    with pytest.raises(mp.InputError, match=message):
        read(tmp_path / "a.fasta")


def test_wrong_arguments(tmp_path):
    file = written(tmp_path / "a.fasta", "ACD")
    with pytest.raises(mp.InputError, match="alphabet='AAC'"):
        read(file, alphabet="AAC")
    with pytest.raises(mp.InputError, match="outside='keep'"):
        read(file, outside="keep")
    (tmp_path / "a.csv").write_text("0,1\n1,0\n")
    with pytest.raises(mp.InputError, match=r"alphabet for .*a.csv, text table"):
        read(tmp_path / "a.csv", alphabet="protein")


def test_a_family_in_shared(shared):
    states = read(shared / "data/others/potts/PF00072_test.fasta")
    assert states.shape[1] == 112
    assert states.max() == 20
