import dataclasses
import hashlib
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from meltpoint.errors import InputError
from meltpoint.formats import download as fetch
from meltpoint.formats.download import RemoteFile, cached_path, download, obtain

SOURCE = Path(fetch.__file__).parents[2]
DAMAGES = [
    lambda body: body[:-1],
    lambda body: b"!" + body[1:],
    lambda body: b"another file",
    lambda body: b"",
]
FETCH = """
import sys
from pathlib import Path
from meltpoint.formats.download import RemoteFile, download
name, folder, size, checksum, url, target = sys.argv[1:]
print(download(RemoteFile(name, folder, int(size), checksum, (url,)), Path(target), pause=0))
"""


def start_fetching(file: RemoteFile, folder: Path) -> subprocess.Popen[bytes]:
    arguments = [file.name, file.folder, str(file.size), file.checksum, file.urls[0], str(folder)]
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", FETCH, *arguments],
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def test_a_download_is_the_file(web, tmp_path):
    path = download(web.file(web.sends()), tmp_path / "new" / "folder")
    assert path == tmp_path / "new" / "folder" / "data.bin"
    assert path.read_bytes() == web.body


def test_a_server_that_says_no_length_is_believed_by_the_checksum(web, tmp_path):
    assert download(web.file(web.sends(promised=None)), tmp_path).read_bytes() == web.body


def test_md5_is_a_checksum_too(web, tmp_path):
    file = dataclasses.replace(
        web.file(web.sends()), checksum="md5:" + hashlib.md5(web.body).hexdigest(), size=None
    )
    assert download(file, tmp_path).read_bytes() == web.body
    other = dataclasses.replace(file, checksum="md5:" + "0" * 32)
    with pytest.raises(InputError, match=r"expected data\.bin, md5:0000"):
        download(other, tmp_path, pause=0)


def broken_addresses(web):
    body = web.body
    return {
        "broke off": web.sends(body[: len(body) // 2]),
        "answered 404 Not Found": web.answers(404),
        "answered 500 Internal Server Error": web.answers(500),
        f"sent {len(body) - 1000:,} bytes with sha256:": web.sends(promised=len(body) - 1000),
        f"sent more than {len(body):,} bytes": web.sends(body + b"!", promised=len(body) + 1),
        f"sent {len(body):,} bytes with sha256:": web.sends(body[:-1] + b"!"),
        "sent 0 bytes with sha256:": web.sends(b"", promised=0),
        "sent 26 bytes with sha256:": web.sends(b"<html>Please log in</html>", promised=26),
        "could not be reached": web.dead(),
    }


KINDS = range(9)


@pytest.mark.parametrize("kind", KINDS)
def test_a_broken_download_leaves_nothing_and_says_why(web, tmp_path, kind):
    reason, url = list(broken_addresses(web).items())[kind]
    file = web.file(url)
    with pytest.raises(InputError) as caught:
        download(file, tmp_path, pause=0)
    assert f"{url} {reason}" in caught.value.found
    assert caught.value.expected == f"data.bin, {len(web.body):,} bytes with {file.checksum}"
    assert "MELTPOINT_DATA" in caught.value.remedy
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", KINDS)
def test_the_next_address_helps_out(web, tmp_path, kind):
    bad = list(broken_addresses(web).values())[kind]
    assert download(web.file(bad, web.sends()), tmp_path).read_bytes() == web.body
    assert list(tmp_path.iterdir()) == [tmp_path / "data.bin"]


@pytest.mark.parametrize("size", [512_000, None])
def test_a_server_that_never_stops_is_stopped(web, tmp_path, monkeypatch, size):
    monkeypatch.setattr(fetch, "LIMIT_BYTES", 512_000)
    file = dataclasses.replace(web.file(web.never_ends()), size=size)
    with pytest.raises(InputError, match="sent more than 512,000 bytes"):
        download(file, tmp_path, pause=0)
    assert list(tmp_path.iterdir()) == []


def test_a_server_that_falls_silent_is_given_up(web, tmp_path, monkeypatch):
    monkeypatch.setattr(fetch, "TIMEOUT_SECONDS", (5, 0.2))
    over = threading.Event()

    def stalls(request):
        request.send_response(200)
        request.send_header("Content-Length", str(len(web.body)))
        request.end_headers()
        request.wfile.write(web.body[:1000])
        over.wait(10)

    try:
        with pytest.raises(InputError, match=r"data.bin (did not answer in time|could not be reached)"):
            download(web.file(web.at(stalls)), tmp_path, pause=0)
    finally:
        over.set()


def test_every_address_is_tried_again_before_giving_up(web, tmp_path):
    file = web.file(web.answers(503), web.answers(503))
    with pytest.raises(InputError):
        download(file, tmp_path, pause=0)
    assert web.visits == ["/0/data.bin", "/1/data.bin"] * 2


def test_a_hiccup_is_survived(web, tmp_path):
    url = web.sends()
    [(path, serve)] = web.behaviours.items()
    web.behaviours[path] = lambda request: serve(request) if len(web.visits) > 1 else request.send_error(503)
    assert download(web.file(url), tmp_path, pause=0).read_bytes() == web.body
    assert len(web.visits) == 2


def test_progress_counts_bytes_up_to_the_size(web, tmp_path):
    calls = []
    download(web.file(web.sends()), tmp_path, lambda *call: calls.append(call))
    assert {what for what, _, _ in calls} == {"some-set: data.bin"}
    assert {total for _, _, total in calls} == {len(web.body)}
    done = [done for _, done, _ in calls]
    assert done == sorted(done)
    assert done[-1] == len(web.body)
    assert len(done) > 3


def test_a_progress_callback_that_fails_stops_the_download_cleanly(web, tmp_path):
    def interrupt(what, done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        download(web.file(web.sends()), tmp_path, interrupt)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_made_is_named(web, tmp_path):
    (tmp_path / "taken").write_text("a file")
    with pytest.raises(InputError, match="taken"):
        download(web.file(web.sends()), tmp_path / "taken")


@pytest.mark.slow
def test_two_processes_at_once_both_get_the_file(web, tmp_path):
    both_are_here = threading.Barrier(2, timeout=60)
    url = web.sends()
    [(path, serve)] = web.behaviours.items()

    def wait_for_both(request):
        both_are_here.wait()
        serve(request)

    web.behaviours[path] = wait_for_both
    processes = [start_fetching(web.file(url), tmp_path) for _ in range(2)]
    for process in processes:
        out, err = process.communicate(timeout=60)
        assert process.returncode == 0, err
        assert out.decode().strip() == str(tmp_path / "data.bin")
    assert len(web.visits) == 2
    assert list(tmp_path.iterdir()) == [tmp_path / "data.bin"]
    assert (tmp_path / "data.bin").read_bytes() == web.body


def test_a_process_killed_in_the_middle_does_no_harm(web, tmp_path):
    halfway, over = threading.Event(), threading.Event()

    def half(request):
        request.send_response(200)
        request.send_header("Content-Length", str(len(web.body)))
        request.end_headers()
        request.wfile.write(web.body[: len(web.body) // 2])
        halfway.set()
        over.wait(60)

    process = start_fetching(web.file(web.at(half)), tmp_path)
    try:
        assert halfway.wait(60)
        deadline = time.monotonic() + 60
        while not any(path.stat().st_size for path in tmp_path.iterdir()):
            assert time.monotonic() < deadline, "nothing was written"
            time.sleep(0.01)
    finally:
        process.kill()
        process.communicate()
        over.set()
    assert not (tmp_path / "data.bin").exists()
    assert download(web.file(web.sends()), tmp_path).read_bytes() == web.body


def test_a_cached_file_is_not_fetched_again(web, cache):
    file = web.file(web.sends())
    assert obtain(file) == obtain(file) == cached_path(file) == cache / "some-set" / "data.bin"
    assert len(web.visits) == 1


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_cached_file_is_replaced(web, damage):
    file = web.file(web.sends())
    obtain(file).write_bytes(damage(web.body))
    assert obtain(file).read_bytes() == web.body
    assert len(web.visits) == 2


@pytest.mark.parametrize("place", ["data.bin", "some-set/data.bin"])
def test_the_users_own_copy_needs_no_network(web, tmp_path, monkeypatch, place):
    path = tmp_path / "mine" / place
    path.parent.mkdir(parents=True)
    path.write_bytes(web.body)
    monkeypatch.setenv("MELTPOINT_DATA", str(tmp_path / "mine"))
    assert obtain(web.file(web.dead())) == path


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_wrong_copy_of_the_user_is_refused_with_the_right_checksum(web, tmp_path, monkeypatch, damage):
    file = web.file(web.sends())
    (tmp_path / "data.bin").write_bytes(damage(web.body))
    monkeypatch.setenv("MELTPOINT_DATA", str(tmp_path))
    with pytest.raises(InputError) as caught:
        obtain(file)
    assert str(tmp_path / "data.bin") in caught.value.found
    assert file.checksum in caught.value.expected
    assert file.urls[0] in caught.value.remedy
    assert web.visits == []


@settings(max_examples=min(50, settings().max_examples), deadline=None)
@given(st.binary(min_size=1, max_size=200), st.data())
def test_no_cut_and_no_flipped_bit_goes_unnoticed(body, data):
    if data.draw(st.booleans()):
        damaged = body[: data.draw(st.integers(0, len(body) - 1))]
    else:
        bit = data.draw(st.integers(0, 8 * len(body) - 1))
        damaged = (int.from_bytes(body, "big") ^ 1 << bit).to_bytes(len(body), "big")
    file = RemoteFile(
        "data.bin", "", len(body), "sha256:" + hashlib.sha256(body).hexdigest(), ("http://home/",)
    )
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv("MELTPOINT_DATA", folder)
        path = Path(folder) / "data.bin"
        path.write_bytes(damaged)
        with pytest.raises(InputError, match=file.checksum):
            obtain(file)
        path.write_bytes(body)
        assert obtain(file) == path


def test_a_copy_that_may_differ_is_left_to_its_reader(web, tmp_path, monkeypatch):
    file = dataclasses.replace(web.file(web.dead()), only_this=False)
    (tmp_path / "data.bin").write_bytes(b"another edition")
    monkeypatch.setenv("MELTPOINT_DATA", str(tmp_path))
    assert obtain(file) == tmp_path / "data.bin"


def test_what_the_users_folder_lacks_is_downloaded(web, tmp_path, monkeypatch, cache):
    monkeypatch.setenv("MELTPOINT_DATA", str(tmp_path))
    assert obtain(web.file(web.sends())).is_relative_to(cache)


def test_a_mistyped_folder_is_an_error_not_a_download(web, tmp_path, monkeypatch):
    monkeypatch.setenv("MELTPOINT_DATA", str(tmp_path / "dta"))
    with pytest.raises(InputError, match="not a folder"):
        obtain(web.file(web.sends()))
    assert web.visits == []


@pytest.mark.slow
def test_importing_the_data_sets_loads_no_heavy_library():
    heavy = {"pooch", "requests", "sklearn", "matplotlib"}
    code = f"import sys, meltpoint.datasets; print(*{heavy} & set(sys.modules))"
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    assert subprocess.check_output([sys.executable, "-c", code], env=environment).decode().split() == []
