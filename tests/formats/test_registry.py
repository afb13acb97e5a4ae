"""A format is one file and one line of the registry, and a file is opened once whichever format it has."""

import os
from contextlib import suppress
from importlib.util import find_spec

import numpy as np
import pytest
from typer.testing import CliRunner

import meltpoint as mp
from formats.crafted_models import VALID
from meltpoint.formats import load
from meltpoint.formats.format import Format
from meltpoint.formats.load import read_array

BIASES = b"BIASES\n0.5 -1.0 0.25\n"


def read_biases(source):
    return np.array(source.text.split()[1:], float)


def read_model(source, options):
    units = options.require("units", source.name)
    biases = read_biases(source)
    return mp.RBM(np.zeros((biases.size, 1)), biases, [0.0], visible=units)


TOY = Format(
    "list of biases",
    (".biases",),
    recognises=lambda source: source.head.startswith(b"BIASES"),
    options=("units",),
    model=read_model,
    data=lambda source, options, name: read_biases(source)[None],
)


@pytest.fixture
def toy(monkeypatch, tmp_path):
    monkeypatch.setattr(load, "FORMATS", [TOY, *load.FORMATS])
    (tmp_path / "toy.biases").write_bytes(BIASES)
    return tmp_path / "toy.biases"


def test_a_new_format_is_one_line_of_the_registry(toy, tmp_path):
    model = mp.load(toy, units="bernoulli")
    np.testing.assert_allclose(model.log_f([[1, 0, 1]]), [0.75 + np.log(2)])
    assert read_array(toy).tolist() == [[0.5, -1.0, 0.25]]
    with pytest.raises(mp.InputError, match="no units, expected units="):
        mp.load(toy)
    with pytest.raises(mp.InputError, match=r"gap for .*list of biases, expected only .*: units"):
        mp.load(toy, gap="state")


def test_the_command_evaluates_a_model_of_a_new_format(toy, tmp_path):
    np.save(tmp_path / "test.npy", np.random.default_rng(0).integers(0, 2, (20, 3)))
    from meltpoint.cli.app import app

    arguments = ["evaluate", str(toy), str(tmp_path / "test.npy"), "--option", "units=bernoulli"]
    ended = CliRunner().invoke(app, [*arguments, "--steps", "20", "--chains", "4", "--ais-chains", "20"])
    assert ended.exit_code in (0, 1), ended.output
    assert "RBM 3-1" in " ".join(ended.output.split())  # lines are as long as the screen


@pytest.fixture
def opened(monkeypatch):
    """The paths that were opened, as often as they were."""
    paths, really_open = [], os.open
    monkeypatch.setattr(os, "open", lambda p, *rest, **more: paths.append(p) or really_open(p, *rest, **more))
    return paths


@pytest.mark.parametrize("name", ["own", *(n for n in VALID if find_spec("h5py") or not n.endswith(".h5"))])
def test_a_file_is_opened_once(tmp_path, opened, name):
    path = tmp_path / "model.npz"
    mp.save(mp.RBM([[1.0]], [0.0], [0.0]), path)
    if name != "own":
        path.write_bytes(VALID[name])
    with suppress(mp.InputError):  # which would ask for an option
        mp.load(path, temperature=1.0)
    assert opened.count(path) == 1


def test_an_evaluation_opens_its_files_once(tmp_path, opened):
    from meltpoint.cli.app import app

    model, test = tmp_path / "model.npz", tmp_path / "test.npy"
    mp.save(mp.RBM([[1.0], [0.5]], [0.0, 0.0], [0.0]), model)
    np.save(test, np.random.default_rng(0).integers(0, 2, (20, 2)))
    assert CliRunner().invoke(app, ["evaluate", str(model), str(test), "--steps", "10"]).exit_code in (0, 1)
    assert (opened.count(model), opened.count(test)) == (1, 1)


def test_names_and_suffixes_say_what_there_is():
    names = [format.name for format in load.FORMATS]
    assert len(set(names)) == len(names)
    for format in load.FORMATS:
        assert format.model is not None or format.data is not None
        assert all(suffix[0] in ".-" for suffix in format.suffixes)


def test_a_file_of_no_format_is_told_what_its_name_says(tmp_path):
    (tmp_path / "a.uai").write_bytes(bytes(100))
    with pytest.raises(mp.InputError, match=r"a file of unknown format, expected UAI file, as its name says"):
        mp.load(tmp_path / "a.uai")
    with pytest.raises(mp.InputError, match=r"expected one of these: .*\.npy file.*text table"):
        read_array(tmp_path / "a.uai")
