"""Damaged foreign files load or raise an InputError that names them, whatever was told: never anything else."""

import warnings
from contextlib import suppress
from importlib.util import find_spec

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import meltpoint as mp
from formats.crafted_models import OPTIONS, VALID
from formats.test_fuzz import EDITS, damage
from meltpoint.formats import hdf5, mat, models, rbms
from meltpoint.formats.format import parse_options
from meltpoint.formats.load import FORMATS, detect
from meltpoint.formats.source import Source
from meltpoint.formats.uai import read_evidence

FUZZ = settings(max_examples=20, deadline=None)
HAS_H5PY = find_spec("h5py") is not None
NAMES = [name for name in VALID if HAS_H5PY or not name.endswith(".h5")]
# Where a valid file needs to be told something of its own.
TOLD = {
    "letters": {"alphabet": "-ACG"},
    "square.pt": {"orientation": "visible-hidden"},
    "ising": {"units": "spin"},
}


def detected(path):
    """The format of a model file, None if it is of none."""
    with Source(path) as source:
        return detect(source, "model")


def read(path):
    """Load with the options that the file's format takes."""
    with warnings.catch_warnings(action="ignore", category=UserWarning):  # of files that were cut off
        importer = None
        with suppress(Exception):
            importer = detected(path)
        options = {name: value for name, value in OPTIONS.items() if importer and name in importer.options}
        return mp.load(path, **options)


def loads_or_says_why(path, content):
    path.write_bytes(content)
    for reader in (mp.load, read, read_evidence):
        message = path.name
        try:
            reader(path)
        except mp.InputError as problem:
            message = str(problem)
        assert path.name in message
        assert message.isprintable()
        assert len(message) <= 500


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("module.pt", "legacy pickle")])
def test_the_valid_ones_are_read(folder, name):
    (folder / "valid.bin").write_bytes(VALID[name])
    importer = detected(folder / "valid.bin")
    taken = {*importer.options} & {"temperature", "gap", "states", "update"} if importer else ()
    mp.load(folder / "valid.bin", **{option: OPTIONS[option] for option in taken}, **TOLD.get(name, {}))


def test_every_format_is_among_them(folder):
    seen = set()
    for name in NAMES:
        (folder / "valid.bin").write_bytes(VALID[name])
        with suppress(mp.InputError):
            seen.add(detected(folder / "valid.bin"))
    wanted = {format.name for format in FORMATS if format.model is not None}
    by_h5py = {format.name for format in (hdf5.FORMAT, rbms.RBMS, rbms.JULIA)}
    # Files of meltpoint have tests of their own.
    assert wanted - by_h5py - {models.FORMAT.name, mat.FORMAT.name} <= {
        format.name for format in seen if format
    }


@pytest.mark.parametrize("name", NAMES)
@FUZZ
@given(edits=EDITS)
def test_a_damaged_file_loads_or_says_why(folder, name, edits):
    loads_or_says_why(folder / "damaged.bin", damage(VALID[name], edits))


@FUZZ
@given(content=st.binary(max_size=200), head=st.sampled_from([content[:24] for content in VALID.values()]))
def test_the_head_of_a_format_and_bytes_at_random_load_or_say_why(folder, content, head):
    loads_or_says_why(folder / "random.bin", head + content)


@FUZZ
@given(
    text=st.text("0123456789 .eE+-\n\tJhMARKOVc#", max_size=200),
    first=st.sampled_from(["MARKOV ", "J 0 1 ", "h 0 0 ", "0 1 ", ""]),
)
def test_texts_at_random_load_or_say_why(folder, text, first):
    loads_or_says_why(folder / "random.txt", (first + text).encode())


def test_options_are_all_used_by_some_format():
    told = parse_options(OPTIONS)
    used = set().union(*(format.options for format in FORMATS))
    assert {name for name in vars(told) if name not in ("member", "unpacked", "coupling", "field")} == used
