"""Damaged files either load or raise an InputError that names them: never anything else."""

import struct
import zipfile
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formats.crafted import EXAMPLES, MODELS, VALID, zipped
from meltpoint.datasets import read
from meltpoint.errors import InputError
from meltpoint.formats.load import load, read_array
from meltpoint.formats.models import read_note, save

FUZZ = settings(max_examples=min(60, settings().max_examples), deadline=None)
EDITS = st.lists(
    st.tuples(
        st.sampled_from(["change", "change", "change", "number", "insert", "remove", "truncate"]),
        st.floats(0, 1),
        st.integers(0, 255),
        st.integers(1, 9),
    ),
    min_size=1,
    max_size=4,
)


@pytest.fixture(scope="module")
def saved(folder):
    """The bytes of a model file of each kind."""
    contents = {}
    for kind, model in MODELS.items():
        save(model, folder / f"{kind}.npz", note="a note")
        contents[kind] = (folder / f"{kind}.npz").read_bytes()
    return contents


def damage(content, edits):
    """Bytes changed, cut out or put in at places given as fractions of the length."""
    content = bytearray(content)
    for kind, place, value, length in edits:
        position = int(place * len(content))
        if kind == "change":
            content[position : position + 1] = bytes([value])
        elif kind == "number":
            content[position : position + 4] = struct.pack("<I", value << 24 | value)
        elif kind == "insert":
            content[position:position] = bytes([value]) * length
        elif kind == "remove":
            del content[position : position + length]
        else:
            del content[position:]
    return bytes(content)


class NamesTheFile(suppress):
    """Lets an InputError pass that names the file; any other error fails the test."""

    def __init__(self, path):
        super().__init__(InputError)
        self.path = path

    def __exit__(self, kind, problem, trace):
        return super().__exit__(kind, problem, trace) and self.path.name in str(problem)


def loads_or_says_why(path, content):
    path.write_bytes(content)
    for reader in (read_array, load, read_note, lambda file: read_array(file, "a")):
        with NamesTheFile(path):
            reader(path)


@pytest.mark.parametrize("name", VALID)
@FUZZ
@given(edits=EDITS)
def test_a_damaged_array_loads_or_says_why(folder, name, edits):
    loads_or_says_why(folder / "damaged.mat", damage(VALID[name], edits))


@pytest.mark.filterwarnings("ignore::meltpoint.errors.DataWarning")
@pytest.mark.parametrize("name", EXAMPLES)
@FUZZ
@given(edits=EDITS)
def test_a_damaged_file_of_examples_loads_or_says_why(folder, name, edits):
    path = folder / "damaged.csv"
    path.write_bytes(damage(EXAMPLES[name], edits))
    for arguments in ({}, {"alphabet": "protein", "outside": "drop"}):
        with NamesTheFile(path):
            read(path, **arguments)


@pytest.mark.parametrize("kind", MODELS)
@FUZZ
@given(edits=EDITS)
def test_a_damaged_model_loads_or_says_why(folder, saved, kind, edits):
    loads_or_says_why(folder / "damaged.npz", damage(saved[kind], edits))


@pytest.mark.parametrize("kind", MODELS)
@FUZZ
@given(entry=st.integers(0, 9), edits=EDITS)
def test_a_model_damaged_beneath_its_checksums_loads_or_says_why(folder, saved, kind, entry, edits):
    (folder / "whole.npz").write_bytes(saved[kind])
    with zipfile.ZipFile(folder / "whole.npz") as archive:
        entries = {name.removesuffix(".npy"): archive.read(name) for name in archive.namelist()}
    name = list(entries)[entry % len(entries)]
    entries[name] = damage(entries[name], edits)
    loads_or_says_why(folder / "damaged.npz", zipped(entries))


@FUZZ
@given(content=st.binary(max_size=300))
def test_bytes_at_random_load_or_say_why(folder, content):
    loads_or_says_why(folder / "random.bin", content)


@pytest.mark.parametrize("name", [name for name in VALID if name not in ("csv", "text", "mat mixed")])
def test_every_truncation_of_an_array_is_refused(folder, name):
    for length in range(1, len(VALID[name])):
        (folder / "cut.bin").write_bytes(VALID[name][:length])
        with pytest.raises(InputError, match=r"cut\.bin"):
            read_array(folder / "cut.bin")


@pytest.mark.parametrize("kind", MODELS)
def test_every_truncation_of_a_model_is_refused(folder, saved, kind):
    for length in range(1, len(saved[kind]), 7):
        (folder / "cut.npz").write_bytes(saved[kind][:length])
        for reader in (load, read_note):
            with pytest.raises(InputError, match=r"cut\.npz"):
                reader(folder / "cut.npz")
