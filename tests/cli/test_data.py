import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from meltpoint import datasets
from meltpoint.cli.app import app
from meltpoint.data import sources


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Runs the command in an empty folder, with an empty cache and no way to the internet."""
    import pooch

    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MELTPOINT_DATA", raising=False)
    monkeypatch.setattr(pooch, "os_cache", lambda project: tmp_path / "cache" / project)
    monkeypatch.setattr(
        "socket.getaddrinfo", lambda *args, **kwargs: (_ for _ in ()).throw(OSError("no network"))
    )
    monkeypatch.setattr("meltpoint.formats.download.time.sleep", lambda seconds: None)
    return lambda *arguments: CliRunner().invoke(app, ["data", *arguments])


def test_list_shows_every_set_and_whether_it_is_here(run):
    result = run("list")
    assert result.exit_code == 0
    assert result.stderr == ""
    header, *lines = result.stdout.splitlines()
    assert header.split() == ["name", "train", "test", "pixels", "what", "files"]
    assert [line.split()[0] for line in lines] == list(datasets.names())
    assert lines[0].split()[1:3] == ["60,000", "10,000"]
    assert lines[0].endswith("to be downloaded, 11.6 MB")
    assert lines[1].endswith("to be downloaded")
    assert lines[2].endswith("built in")


def test_list_for_machines(run, tmp_path, monkeypatch):
    (tmp_path / sources.MNIST[0].name).touch()
    monkeypatch.setenv("MELTPOINT_DATA", str(tmp_path))
    result = run("list", "--json")
    assert result.exit_code == 0
    described = {row["name"]: row for row in json.loads(result.stdout)}
    assert list(described) == list(datasets.names())
    assert described["digits"]["image_shape"] == [8, 8]
    paths = [file["path"] for file in described["mnist"]["files"]]
    assert paths == [str(tmp_path / sources.MNIST[0].name), None]
    assert described["mnist"]["files"][0]["checksum"] == sources.MNIST[0].checksum


def test_fetch_prints_paths(run, shared, monkeypatch):
    monkeypatch.setenv("MELTPOINT_DATA", str(shared / "data"))
    result = run("fetch", "mnist")
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        str(shared / "data" / "mnist" / file.name) for file in sources.MNIST
    ]


def test_fetch_of_a_built_in_set_has_nothing_to_do(run):
    result = run("fetch", "digits")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "nothing to fetch" in result.stderr


@pytest.mark.parametrize("command", ["fetch", "show"])
def test_offline_is_exit_code_2_and_one_message(run, command):
    result = run(command, "mnist")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "could not be reached" in result.stderr
    assert "MELTPOINT_DATA" in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("command", ["fetch", "show"])
def test_an_unknown_name_is_exit_code_2(run, command):
    result = run(command, "mnits")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "did you mean mnist?" in result.stderr


def test_a_mistyped_folder_is_exit_code_2(run, monkeypatch):
    monkeypatch.setenv("MELTPOINT_DATA", "/no/such/folder")
    for arguments in (["list"], ["fetch", "mnist"]):
        result = run(*arguments)
        assert (result.exit_code, result.stdout) == (2, "")
        assert "not a folder" in result.stderr


def test_show_writes_a_picture_and_prints_its_path(run, tmp_path):
    result = run("show", "digits")
    assert (result.exit_code, result.stdout) == (0, "digits.png\n")
    assert "1,500 training" in result.stderr
    assert (tmp_path / "digits.png").read_bytes().startswith(b"\x89PNG")


def test_show_depends_on_seed_and_count_only(run, tmp_path):
    pictures = {}
    for out, *options in (["a.png"], ["b.png"], ["c.png", "--seed", "1"], ["d.png", "--count", "9"]):
        result = run("show", "digits", "--out", out, *options)
        assert (result.exit_code, result.stdout) == (0, f"{out}\n")
        pictures[out] = Path(out).read_bytes()
    assert pictures["a.png"] == pictures["b.png"]
    assert len(set(pictures.values())) == 3


def test_show_more_than_there_are_shows_all(run):
    assert run("show", "bars-and-stripes", "--count", "1000").exit_code == 0


@pytest.mark.parametrize(
    "options", [["--out", "a.jpg"], ["--out", "no/a.png"], ["--count", "0"], ["--seed", "-1"]]
)
def test_wrong_options_are_exit_code_2(run, options):
    result = run("show", "digits", *options)
    assert (result.exit_code, result.stdout) == (2, "")
