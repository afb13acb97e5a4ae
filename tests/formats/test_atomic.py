"""A file is written whole or not at all."""

import errno
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from meltpoint.errors import InputError, SystemFailure
from meltpoint.formats.atomic import atomic_write


def write(path, data=b"new", then=lambda _file: None):
    with atomic_write(path) as file:
        file.write(data)
        then(file)


def names(folder):
    return [path.name for path in folder.iterdir()]


@settings(max_examples=20, deadline=None)  # each example waits for the disk
@given(data=st.binary(max_size=1000), old=st.none() | st.binary(max_size=10))
def test_what_was_written_is_what_is_there_and_nothing_else(folder, data, old):
    path = folder / "target.bin"
    path.unlink(missing_ok=True)
    if old is not None:
        path.write_bytes(old)
    write(path, data)
    assert path.read_bytes() == data
    assert names(folder) == ["target.bin"]


def test_the_target_is_untouched_until_the_block_ends(tmp_path):
    path = tmp_path / "target.bin"
    path.write_bytes(b"old")
    with atomic_write(path) as file:
        file.write(b"new")
        file.flush()
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"


@pytest.mark.parametrize(
    "problem", [RuntimeError(), KeyboardInterrupt(), InputError(found="a", expected="b", remedy="c")]
)
def test_a_failure_inside_the_block_keeps_the_old_file_and_passes_through(tmp_path, problem):
    def fail(_file):
        raise problem

    path = tmp_path / "target.bin"
    path.write_bytes(b"old")
    with pytest.raises(type(problem)) as caught:
        write(path, b"half", then=fail)
    assert caught.value is problem
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == ["target.bin"]


@pytest.mark.parametrize("broken", ["fsync", "replace", "write"])
def test_a_full_disk_keeps_the_old_file(tmp_path, monkeypatch, broken):
    def full(*_args):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    path = tmp_path / "target.bin"
    path.write_bytes(b"old")
    if broken == "fsync":
        monkeypatch.setattr(os, "fsync", full)
    if broken == "replace":
        monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(
        SystemFailure, match=r"no space left on the disk while writing .*target\.bin.*free some"
    ):
        write(path, b"half", then=full if broken == "write" else lambda _file: None)
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == ["target.bin"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_disk_that_refuses_every_byte(tmp_path):
    def onto_a_full_disk(file):
        full = os.open("/dev/full", os.O_WRONLY)
        os.dup2(full, file.fileno())
        os.close(full)

    with pytest.raises(SystemFailure, match="no space left"):
        write(tmp_path / "target.bin", then=onto_a_full_disk)
    assert names(tmp_path) == []


def test_the_bytes_reach_the_disk_before_the_name(tmp_path, monkeypatch):
    calls = []
    fsync, replace = os.fsync, Path.replace

    def recording_fsync(descriptor):
        calls.append("folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file")
        fsync(descriptor)

    def recording_replace(self, target):
        calls.append("rename")
        return replace(self, target)

    monkeypatch.setattr(os, "fsync", recording_fsync)
    monkeypatch.setattr(Path, "replace", recording_replace)
    write(tmp_path / "target.bin")
    assert calls == (["file", "rename", "folder"] if os.name == "posix" else ["file", "rename"])


def test_a_missing_folder_is_named_with_a_remedy(tmp_path):
    with pytest.raises(InputError, match=r"folder that does not exist while writing .*nowhere.*create"):
        write(tmp_path / "nowhere" / "target.bin")


def test_a_file_in_place_of_the_folder(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(InputError, match=r"file where a folder should be"):
        write(tmp_path / "file" / "target.bin")


def test_a_folder_or_a_device_is_never_replaced(tmp_path):
    (tmp_path / "target").mkdir()
    for path in (tmp_path / "target", Path(os.devnull)):
        with pytest.raises(InputError, match="not a regular file while writing"):
            write(path)
    assert not Path(os.devnull).is_file()
    assert names(tmp_path) == ["target"]


def test_a_path_that_no_system_knows(tmp_path):
    for name in ("a\0b", "n" * 5000):
        with pytest.raises(InputError, match="while writing"):
            write(tmp_path / name)


def test_a_read_only_file_is_not_replaced(tmp_path, monkeypatch):
    path = tmp_path / "target.bin"
    path.write_bytes(b"old")
    # The superuser may write anywhere, so the answer of the system is stood in for.
    monkeypatch.setattr(os, "access", lambda *_args: False)
    with pytest.raises(InputError, match="no permission"):
        write(path)
    assert path.read_bytes() == b"old"


@pytest.mark.skipif(os.name != "posix", reason="permissions and links as POSIX has them")
def test_permissions_are_kept_and_new_files_follow_the_umask(tmp_path):
    old, new = tmp_path / "old", tmp_path / "new"
    old.write_bytes(b"old")
    old.chmod(0o604)
    umask = os.umask(0o027)
    try:
        write(old)
        write(new)
    finally:
        os.umask(umask)
    assert stat.S_IMODE(old.stat().st_mode) == 0o604
    assert stat.S_IMODE(new.stat().st_mode) == 0o640


@pytest.mark.skipif(os.name != "posix", reason="permissions and links as POSIX has them")
def test_a_link_keeps_pointing_to_its_target(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    target, link = tmp_path / "elsewhere" / "target.bin", tmp_path / "link.bin"
    target.write_bytes(b"old")
    link.symlink_to(target)
    write(link)
    assert link.is_symlink()
    assert target.read_bytes() == b"new"


@pytest.mark.skipif(os.name != "posix", reason="permissions and links as POSIX has them")
def test_a_link_that_is_not_followed_is_replaced_and_its_target_left_alone(tmp_path):
    target, link = tmp_path / "target.bin", tmp_path / "link.bin"
    target.write_bytes(b"old")
    link.symlink_to(target)
    with atomic_write(link, follow_links=False) as file:
        file.write(b"new")
    assert not link.is_symlink()
    assert (link.read_bytes(), target.read_bytes()) == (b"new", b"old")


KILLED = """
import os, signal, sys
from meltpoint.formats.atomic import atomic_write
with atomic_write(sys.argv[1]) as file:
    file.write(b"half")
    file.flush()
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.skipif(os.name != "posix", reason="Windows has no SIGKILL")
def test_what_a_killed_writer_left_is_removed_by_the_next_and_what_is_being_written_is_not(tmp_path):
    for _ in range(2):
        subprocess.run([sys.executable, "-c", KILLED, tmp_path / "target.bin"], check=False)
    (left,) = names(tmp_path)  # the second has removed what the first left
    (tmp_path / ".meltpoint-folder.tmp").mkdir()
    (tmp_path / ".meltpoint-link.tmp").symlink_to("/nowhere")
    with atomic_write(tmp_path / "other.bin") as outer:
        outer.write(b"outer")
        write(tmp_path / "inner.bin")
    assert left not in names(tmp_path)
    assert sorted(names(tmp_path)) == [
        ".meltpoint-folder.tmp",
        ".meltpoint-link.tmp",
        "inner.bin",
        "other.bin",
    ]
    assert (tmp_path / "other.bin").read_bytes() == b"outer"
