"""Small files that promise much, nest deeply or would run programs: refused quickly and in little memory."""

import gzip
import io
import os
import pickle
import resource
import struct
import tarfile
import time
import tracemalloc
import zipfile
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import meltpoint as mp
from formats.crafted_models import VALID, deep
from formats.test_hostile import Payload

MEMORY = 100e6
SECONDS = 5.0


def refused(path, content, match=None, **options):
    path.write_bytes(content)
    tracemalloc.start()
    begun = sum(os.times()[:4])  # of processors, also of the process that reads HDF5
    try:
        with pytest.raises(mp.InputError, match=match) as caught:
            mp.load(path, **options)
        assert tracemalloc.get_traced_memory()[1] < MEMORY
        assert sum(os.times()[:4]) - begun < SECONDS
    finally:
        tracemalloc.stop()
    assert path.name in str(caught.value)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) <= 500


def zipped(**entries):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in entries.items():
            archive.writestr(name.replace("__", "/").replace("_dot_", "."), content)
    return file.getvalue()


def torch_zip(state):
    return zipped(archive__data_dot_pkl=state, archive__data__0=bytes(16))


@cache
def bomb():
    """A hundred megabytes in a tenth of one."""
    return gzip.compress(bytes(100_000_000))


HUGE = {
    "uai variables": (b"MARKOV 2000000000 2", {}),
    "uai factors": (b"MARKOV 1 2 2000000000 1 0", {}),
    "uai scope": (b"MARKOV 1 2 1 2000000000 0", {}),
    "uai table": (b"MARKOV 2 60000 60000 1 2 0 1 3600000000 1", {}),
    "uai sparse table": (b"SPARSEMARKOV 4 60000 60000 60000 60000 1 4 0 1 2 3 0.5 0", {}),
    "couplings sites": (b"h 0 0 1\nh 0 1 1\nJ 0 4000000000 0 0 1\n", {}),
    "couplings states": (b"h 0 0 1\nJ 0 1 2000000000 2000000000 1\n", {}),
    "couplings ising": (b"h 0 1\nJ 0 4000000000 1\n", {"units": "spin"}),
    "couplings number": (b"h 0 0 1\nh 99999999999999999999999 0 1\n", {}),
    "coo": (b"# vartype=SPIN\n0 1e400 1\n", {"beta": 1.0}),
    "bqm": (b"DIMODBQM\x02\x00" + struct.pack("<I", 2**32 - 1) + b"{}", {"beta": 1.0}),
    "bqm shape": (
        b"DIMODBQM\x02\x00\x60\x00\x00\x00"
        + b'{"shape": [4000000000, 1], "dtype": "float64", "itype": "int32", "ntype": "int32", "vartype": "SPIN"}'[
            :96
        ],
        {"beta": 1.0},
    ),
    "safetensors": (struct.pack("<Q", 2**60) + b'{"a":', {}),
    "safetensors shape": (
        struct.pack("<Q", 66) + b'{"W": {"dtype": "F64", "shape": [1000000000], "data_offsets": [0,0]}}',
        {},
    ),
    "msgpack": (b"\x81\xa6format\xdd\xff\xff\xff\xff" + b"ccm-1", {"gap": "state"}),
    "msgpack deep": (b"\x81\xa6format" + b"\x91" * 100_000 + b"ccm-1", {"gap": "state"}),
    "json deep": (deep(100_000), {"beta": 1.0}),
    "skops deep": (lambda: zipped(schema_dot_json=b'{"a":' * 100_000 + b"1" + b"}" * 100_000), {}),
    "skops large": (lambda: zipped(schema_dot_json=b" " * 30_000_000), {}),
    "torch large": (lambda: torch_zip(b"\x80\x02" + b"N" * 10_000_000 + b"."), {}),
    "gzip": (bomb, {}),
    "gzip of gzip": (lambda: gzip.compress(bomb()), {}),
    "names": (zipped(**{"\x1b]0;owned\x07" + "n" * 3000 + "_dot_npy": b"\x93NUMPY"}), {}),
}


@pytest.mark.parametrize("name", HUGE)
def test_what_promises_the_world_takes_little(tmp_path, name):
    content, options = HUGE[name]
    refused(tmp_path / "huge.bin", content() if callable(content) else content, **options)


def test_a_gzip_bomb_is_called_one(tmp_path):
    content = gzip.compress(b"MARKOV" + b" " * 20_000_000)
    refused(tmp_path / "a.gz", content, r"more than 16,777,216 bytes.*unpacked=", unpacked=16)


def test_a_tar_archive_whose_header_promises_more_than_it_has(tmp_path):
    info = tarfile.TarInfo("model.txt")
    info.size = 2**33
    refused(tmp_path / "a.tar", info.tobuf() + b"h 0 0 1\n", "truncated|model.txt|no file")


def reduced(value):
    return pickle.dumps(value, protocol=2)


class Loop:
    """Reduces to a call that is not on the list."""

    def __reduce__(self):
        return print, ("called",)


def global_call(module, name, arguments=b")"):
    return b"\x80\x02c" + f"{module}\n{name}\n".encode() + arguments + b"R."


@pytest.mark.parametrize(
    ("state", "match"),
    [
        (reduced(Loop()), "a call of __builtin__.print|a call of builtins.print"),
        (global_call("os", "system", b"X\x02\x00\x00\x00ls\x85"), "a call of os.system"),
        (global_call("torch._utils", "_rebuild_tensor_v2"), "a call of torch._utils._rebuild_tensor_v2"),
        (global_call("collections", "OrderedDict", b"K\x01\x85"), "a call of collections.OrderedDict"),
        (b"\x80\x02]K\x01a.", "something else than a dictionary"),
        (b"\x80\x02}(K\x01\x85K\x02u.", "a key of type tuple"),
        (b"\x80\x02X\x01\x00\x00\x00aQ.", "a reference to something else than a storage"),
        (b"\x80\x02}q\x00X\x01\x00\x00\x00ah\x00s.", "more than 10000 entries"),
        (b"\x80\x02}", "too early|damaged"),
        (b"\x80\x02h\x07.", "damaged"),
        (b"\x80\x02.", "damaged"),
        (b"\x80\x02t.", "damaged"),
        (b"\x80\x02(.", "something else|damaged"),
        (b"\x80\x02}.", "without an array of numbers"),
    ],
)
def test_a_pickle_that_would_do_more_is_refused(tmp_path, state, match, capsys):
    refused(tmp_path / "a.pt", torch_zip(state), match)
    assert capsys.readouterr().out == ""


def test_nothing_of_a_torch_file_is_executed(tmp_path):
    trace = tmp_path / "executed"
    content = torch_zip(pickle.dumps({"W": Payload(trace)}, protocol=2))
    refused(tmp_path / "a.pt", content, "a call of os.makedirs")
    assert not trace.exists()
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        pickle.loads(archive.read("archive/data.pkl"))  # the payload is live
    assert trace.exists()


def tensor(shape, strides, offset=0, count=4, key="0"):
    """The opcodes of a dictionary with one tensor of four floats."""

    def number(n):
        return b"J" + struct.pack("<i", n)

    def numbers(values):
        return b"(" + b"".join(map(number, values)) + b"t"

    def text(value):
        return b"X" + struct.pack("<I", len(value)) + value.encode()

    storage = (
        b"(" + text("storage") + b"ctorch\nFloatStorage\n" + text(key) + text("cpu") + number(count) + b"tQ"
    )
    rebuild = b"ctorch._utils\n_rebuild_tensor_v2\n("
    return (
        b"\x80\x02}"
        + text("W")
        + rebuild
        + storage
        + number(offset)
        + numbers(shape)
        + numbers(strides)
        + b"\x89}tRs."
    )


@pytest.mark.parametrize(
    "state",
    [
        tensor([2, 3], [3, 1]),
        tensor([4], [1], offset=1),
        tensor([2**30, 2**30], [0, 0]),
        tensor([-1], [1]),
        tensor([2], [-1], offset=3),
        tensor([2, 2], [1]),
        tensor([4], [1], key="1"),
        tensor([2] * 9, [0] * 9),
    ],
)
def test_a_tensor_that_reaches_beyond_its_numbers(tmp_path, state):
    refused(tmp_path / "a.pt", torch_zip(state), "damaged|a small file|besides")


def test_a_tensor_within_its_numbers_is_read(tmp_path):
    (tmp_path / "a.pt").write_bytes(torch_zip(tensor([2, 2], [2, 1])))
    with pytest.raises(mp.InputError, match=r"no visible_bias, hidden_bias in .*with the arrays W"):
        mp.load(tmp_path / "a.pt")


def test_links_and_numbers_outside_an_hdf5_file_are_not_followed(tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "secret.h5", "w") as file:
        file["W"] = np.ones((3, 2))
    np.zeros(6).tofile(tmp_path / "secret.raw")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["b"], file["c"] = np.ones(3), np.ones(2)
        file["W"] = h5py.ExternalLink(str(tmp_path / "secret.h5"), "/W")
    refused(tmp_path / "a.h5", (tmp_path / "a.h5").read_bytes(), "no weights")
    with h5py.File(tmp_path / "a.h5", "a") as file:
        del file["W"]
        file["W"] = h5py.SoftLink("/W")
    refused(tmp_path / "a.h5", (tmp_path / "a.h5").read_bytes(), "no weights")
    with h5py.File(tmp_path / "a.h5", "a") as file:
        del file["W"]
        file.create_dataset("W", (3, 2), "f8", external=[(str(tmp_path / "secret.raw"), 0, 48)])
    refused(tmp_path / "a.h5", (tmp_path / "a.h5").read_bytes(), "not in this file")


@contextmanager
def at_most(more):
    """Let this process take so many bytes more, lest it takes all that there are."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limits = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + more, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limits)


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs Linux to limit memory")
@pytest.mark.parametrize("user_block", [0, 512])
@pytest.mark.parametrize("later", [0, 1])
def test_free_lists_of_hdf5_that_are_circles(tmp_path, user_block, later):
    """The library follows them without end, and takes memory for each turn."""
    h5py = pytest.importorskip("h5py")
    path = tmp_path / "a.h5"
    with h5py.File(path, "w", userblock_size=user_block) as file:
        file["W"], file["b"], file["c"] = np.ones((3, 2)), np.zeros(3), np.zeros(2)
    assert isinstance(mp.load(path), mp.RBM)
    content = bytearray(path.read_bytes())
    heap = content.index(b"HEAP\0\0\0\0")
    length, first, address = struct.unpack_from("<3Q", content, heap + 8)
    assert first + 32 <= length
    data = user_block + address
    assert struct.unpack_from("<Q", content, data + first)[0] == 1  # the end
    # A block that is its own successor, or the second of two that is.
    struct.pack_into("<2Q", content, data + first, first + 16 * later, 16)
    struct.pack_into("<2Q", content, data + first + 16 * later, first + 16 * later, 16)
    with at_most(1 << 30):
        refused(path, content, "memory")


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs Linux to limit memory")
@pytest.mark.parametrize("user_block", [0, 512])
def test_a_text_of_hdf5_that_claims_to_be_long(tmp_path, user_block):
    """The library takes as much memory as the length says, whatever there is."""
    h5py = pytest.importorskip("h5py")
    path = tmp_path / "a.h5"
    with h5py.File(path, "w", userblock_size=user_block) as file:
        file["visible_type"] = file["hidden_type"] = "Binary"
        file["visible_par"], file["hidden_par"] = np.zeros((3, 1)), np.zeros((2, 1))
        file["weights"] = np.ones((2, 3))
        at = file["visible_type"].id.get_offset()
    assert isinstance(mp.load(path), mp.RBM)
    content = bytearray(path.read_bytes())
    assert struct.unpack_from("<I", content, at)[0] == len("Binary")
    struct.pack_into("<I", content, at, 2**31)
    with at_most(1 << 30):
        refused(path, content, "memory|is no text")


def test_an_hdf5_file_in_circles_or_with_a_large_empty_array(tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["group"] = file["/"]
    refused(tmp_path / "a.h5", (tmp_path / "a.h5").read_bytes(), "objects, or groups nested too deeply")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("W", (30_000, 30_000), "f8", chunks=(100, 100), compression="gzip")
    refused(tmp_path / "a.h5", (tmp_path / "a.h5").read_bytes(), "a small file whose arrays take")


def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(mp.InputError, match="not a regular file"):
        mp.load(tmp_path / "pipe")


NEEDED = {"spin_v2.bqm": {"beta": 1.0}, "binary_v1.bqm": {"beta": 1.0}, "braw": {"gap": "state"}}
CUT = ["plmc", "plmc v1", "rbm.safetensors", "state.pt", "state_legacy.pt", "sklearn.skops", *NEEDED]


@pytest.mark.parametrize("name", CUT)
def test_every_truncation_is_refused(tmp_path, name):
    content = VALID[name]
    # What follows the numbers in a .bqm file, labels, is not needed.
    end = content.index(b"VARS") if b"VARS" in content else len(content)
    for length in range(1, end, max(1, end // 60)):
        (tmp_path / "cut.bin").write_bytes(content[:length])
        with pytest.raises(mp.InputError, match=r"cut\.bin"):
            mp.load(tmp_path / "cut.bin", **NEEDED.get(name, {}))


def memoised(levels=60):
    """The opcodes of a tuple of two of the same tuple, and so on: few bytes, 2**levels leaves."""
    return b"K\x01" + b"".join(b"q%ch%c\x86" % (k, k) for k in range(levels))


STORAGE = (
    b"\x80\x02}X\x01\x00\x00\x00W(X\x07\x00\x00\x00storage%bX\x01\x00\x00\x000X\x03\x00\x00\x00cpuK\x04tQs."
)


@pytest.mark.parametrize(
    ("state", "match"),
    [
        (STORAGE % memoised(), "a storage of type a tuple"),
        (b"\x80\x04" + memoised() + b"X\x01\x00\x00\x00f\x93.", "with a tuple as its module's name"),
        (b"\x80\x02}" + memoised() + b"K\x01s.", "a key of type tuple"),
        (b"\x80\x02" + memoised() + b"Q.", "a reference to something else"),
        (b"\x80\x02" + b"]" * 250_001 + b".", "more than 250,000 instructions"),
    ],
)
def test_shared_objects_of_a_pickle_are_never_written_out(tmp_path, state, match):
    refused(tmp_path / "a.pt", torch_zip(state), match)


def test_storages_of_an_older_torch_file_have_names(tmp_path):
    content = VALID["state_legacy.pt"]
    keys = content.index(b"\x80\x02]")  # the last of the five pickles
    refused(tmp_path / "a.pt", content[:keys] + b"\x80\x02]" + memoised() + b"a.", "no tensor uses")


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs Linux to limit memory")
@pytest.mark.parametrize(
    ("name", "content", "options"),
    [
        (
            "lists",
            b"\x81\xa5ccm-1\xdd" + struct.pack(">I", 16_000_000) + b"\x90" * 16_000_000,
            {"gap": "state"},
        ),
        (
            "maps",
            b"\x81\xa5ccm-1\xdd" + struct.pack(">I", 16_000_000) + b"\x80" * 16_000_000,
            {"gap": "state"},
        ),
        ("skops", zipped(schema_dot_json=b"[" + b"{}," * 700_000 + b"{}]"), {}),
        (
            "dimod",
            b'{"bqm_schema": 1, "quadratic_head": [' + b"[]," * 5_000_000 + b"[]]}",
            {"temperature": 1.0},
        ),
    ],
)
def test_a_document_of_many_objects(tmp_path, name, content, options):
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(content, 1) if name != "skops" else content)
    begun = time.process_time()
    # What is unpacked, twice, and not an object for every byte of it.
    with (
        at_most(int(3 * len(content) + MEMORY)),
        pytest.raises(mp.InputError, match=r"more than [\d,]+ objects"),
    ):
        mp.load(path, **options)
    assert time.process_time() - begun < SECONDS


@pytest.mark.slow
def test_gzip_of_many_members_is_linear(tmp_path):
    member, seconds = gzip.compress(b"h 0 0 1\n"), []
    for n in (10_000, 40_000):
        (tmp_path / "a.gz").write_bytes(member * n)
        begun = time.process_time()
        with pytest.raises(mp.InputError, match="twice"):
            mp.load(tmp_path / "a.gz")
        seconds.append(time.process_time() - begun)
    assert seconds[1] < 8 * seconds[0]


def test_chunks_of_hdf5_that_are_larger_than_their_dataset(tmp_path):
    h5py = pytest.importorskip("h5py")
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file["b"], file["c"] = np.ones(3), np.ones(2)
        file.create_dataset("W", (3, 2), "f8", chunks=(6000, 6000), maxshape=(None, None), compression="gzip")
    refused(path, path.read_bytes(), "a small file whose arrays take")


def dimod(linear):
    return b'{"bqm_schema": 1, "quadratic_head": [], "linear_biases": ' + linear


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs Linux to limit memory")
@pytest.mark.parametrize(
    ("start", "repeated", "times", "end", "options"),  # made in the test: 200 MB each
    [
        (b"MARKOV 100000000 ", b"1 ", 100_000_000, b"", {}),
        (b"", b"0 ", 100_000_000, b"", {"states": 2}),
        (b"", b"h 0 0 1\n", 25_000_000, b"", {}),
        (b"", b"0 1 1\n", 30_000_000, b"", {"temperature": 1.0, "units": "spin"}),
        (dimod(b"["), b"1,", 100_000_000, b"1]}", {"temperature": 1.0}),
    ],
)
def test_small_gzip_files_become_no_large_arrays(tmp_path, start, repeated, times, end, options):
    (tmp_path / "a.gz").write_bytes(gzip.compress(start + repeated * times + end, 1))
    with at_most(1 << 30), pytest.raises(mp.InputError, match=r"a small file|a text table"):
        mp.load(tmp_path / "a.gz", **options)


@pytest.mark.slow
def test_a_string_of_json_without_an_end_is_linear(tmp_path):
    begun = time.process_time()
    refused(tmp_path / "a.json", dimod(b'"' + b'\\"' * 1_000_000), temperature=1.0)
    assert time.process_time() - begun < SECONDS
