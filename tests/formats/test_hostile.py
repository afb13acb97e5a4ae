"""Files that are missing, foreign or hostile: an InputError that names them, and no harm done."""

import gzip
import os
import pickle
import struct
import tracemalloc
import warnings
import zipfile

import numpy as np
import pytest
import scipy.io
import scipy.sparse

import meltpoint as mp
from formats.crafted import ARRAY, VALID, idx, mat, mat_variable, npy, written, zipped
from meltpoint.errors import InputError
from meltpoint.formats.load import load, read_array
from meltpoint.formats.models import read_note

READERS = (read_array, load, read_note)


def refuses(path, content, match, readers=(read_array,)):
    path.write_bytes(content)
    for reader in readers:
        with pytest.raises(InputError, match=match) as caught:
            reader(path)
        assert path.name in str(caught.value)


def peak_memory(function, *args):
    """Bytes taken at the worst moment; the function must raise InputError."""
    tracemalloc.start()
    try:
        with pytest.raises(InputError) as caught:
            function(*args)
        return tracemalloc.get_traced_memory()[1], str(caught.value)
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("reader", READERS)
def test_a_path_without_a_file(tmp_path, reader):
    (tmp_path / "empty.npz").write_bytes(b"")
    for name, message in [
        ("missing.npz", r"no file '.*missing\.npz'"),
        ("empty.npz", r"empty\.npz', an empty file"),
        ("", "a folder"),
        ("a\0b", "a\\\\x00b"),
        ("empty.npz/inside.npz", r"inside\.npz"),
    ]:
        with pytest.raises(InputError, match=message):
            reader(tmp_path / name)
    with pytest.raises(InputError, match=r"no file '.*missing\.npz', expected an existing file"):
        reader(f"{tmp_path}/missing.npz")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no pipes with a name")
def test_a_pipe_is_refused_and_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="not a regular file"):
        read_array(tmp_path / "pipe")


def test_a_file_that_may_not_be_read(tmp_path, monkeypatch):
    (tmp_path / "secret.npy").write_bytes(VALID["npy"])

    def forbidden(*_args, **_kwargs):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("meltpoint.formats.source.os.open", forbidden)
    with pytest.raises(InputError, match=r"secret\.npy', which cannot be opened .*Permission denied"):
        read_array(tmp_path / "secret.npy")


@pytest.mark.parametrize(
    ("content", "match"),
    [
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "a PNG image"),
        (b"\xff\xd8\xff\xe0\0\x10JFIF", "a JPEG image"),
        (b"%PDF-1.7\n%\xe2\xe3", "a PDF document"),
        (pickle.dumps(ARRAY), "a Python pickle.*never opened"),
        ("0,1\n".encode("utf-16"), "text in UTF-16"),
        (b"\x00\x01\x02\x03" * 40, "a file of unknown format"),
    ],
)
def test_foreign_files_are_named(tmp_path, content, match):
    refuses(tmp_path / "data.bin", content, match, READERS)


@pytest.mark.parametrize(
    ("content", "match"),
    [
        (b"\x89HDF\r\n\x1a\n", r"an HDF5 file.*mp\.load"),
        (bytes(512) + b"\x89HDF\r\n\x1a\n", "an HDF5 file"),
        (
            b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(512) + b"\x89HDF\r\n\x1a\n",
            r"MATLAB 7\.3 \(HDF5\).*-v7",
        ),
    ],
)
def test_data_in_hdf5_files_are_refused_with_a_way_out(tmp_path, content, match):
    refuses(tmp_path / "data.bin", content, match, (read_array, read_note))


def test_a_mat_file_of_version_4(tmp_path):
    content = written(scipy.io.savemat, {"a": ARRAY}, format="4")
    refuses(tmp_path / "old.mat", content, r"no \.mat file of version 5 to 7.*-v7", READERS)


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("Dear reader,\nthis is no table.\n", "'this' in line 2 of .*expected a number"),
        ("a,b\n0,1\n0,one\n", "'one' in line 3 of"),
        ("\n# note\na,b\n0,1\n0,\n", "an empty cell in line 5 of"),
        ("0 1\n1 1\n1\n", "1 values in line 3 of .*expected 2"),
        ("0;1\n0,5;1\n", "'0,5' in line 2 of"),
        ("pixel1,pixel2\n", "without a line of numbers"),
        ("# nothing\n\n", "without a line of numbers"),
        ("0,1\n" * 2000 + "0,\0\n", "line 2001 of|truncated or damaged"),
    ],
)
def test_text_that_is_no_table_says_where(tmp_path, text, match):
    refuses(tmp_path / "data.csv", text.encode(), match)


def test_a_zip_file_without_arrays(tmp_path):
    with zipfile.ZipFile(tmp_path / "book.xlsx", "w") as archive:
        archive.writestr("xl/workbook.xml", "<xml/>")
    refuses(tmp_path / "book.xlsx", (tmp_path / "book.xlsx").read_bytes(), "without an array of numbers")


def test_a_gzip_file_without_idx_data(tmp_path):
    (tmp_path / "data.csv.gz").write_bytes(gzip.compress(b"0,1\n"))
    assert read_array(tmp_path / "data.csv.gz").tolist() == [[0, 1]]
    refuses(tmp_path / "data.csv.gz", gzip.compress(b""), "a file of unknown format")


HUGE = {
    "npy": npy((10**18,)),
    "npy whose size overflows": npy((2**62, 4)),
    "npy with two negative axes": npy((-2, -3), data=bytes(48)),
    "npy of nothing, far too wide": npy((0, 10**30)),
    "npy with 100 axes": npy((1,) * 30 + (0,) * 70),
    "npz": zipped({"a": npy((10**18,))}),
    "npz stored": zipped({"a": npy((10**10,))}, zipfile.ZIP_STORED),
    "idx": idx((2**32 - 1, 2**32 - 1, 2**32 - 1)),
    "idx just out of reach": idx((1000, 1000, 1000), bytes(100)),
    "idx with 255 axes": idx((2**32 - 1,) * 255),
    "idx gz": gzip.compress(idx((10**9, 10**9), bytes(100))),
    "mat": mat(mat_variable((2**31 - 1, 2**31 - 1), parts=[(9, None, bytes(8))])),
    "mat whose numbers claim 4 GB": mat(mat_variable((2**29, 1), parts=[(9, 2**32 - 8, bytes(8))])),
    "mat that claims 4 GB": mat(mat_variable((1, 1), parts=[(9, None, bytes(8))]), claimed=2**32 - 8),
    "mat compressed": mat(mat_variable((2**29, 1), parts=[(9, 2**32 - 8, bytes(8))]), compressed=True),
    "mat compressed that claims 4 GB": mat(mat_variable((1, 1)), claimed=2**32 - 8, compressed=True),
    "mat sparse": mat(
        mat_variable((2**31 - 1, 1), 5, [(5, None, b""), (5, None, struct.pack("<2i", 0, 0)), (9, None, b"")])
    ),
    "mat sparse with too many columns": mat(
        mat_variable((1, 2**28), 5, [(5, None, b""), (5, None, struct.pack("<2i", 0, 0)), (9, None, b"")])
    ),
}


@pytest.mark.parametrize("name", HUGE)
def test_a_header_that_promises_the_world_takes_no_memory(tmp_path, name):
    (tmp_path / "huge.bin").write_bytes(HUGE[name])
    memory, message = peak_memory(read_array, tmp_path / "huge.bin")
    assert memory < 2e6
    assert "huge.bin" in message


def test_a_gzip_bomb_is_unpacked_no_further_than_its_header(tmp_path):
    (tmp_path / "bomb.gz").write_bytes(gzip.compress(idx((10,), bytes(20_000_000))))
    memory, message = peak_memory(read_array, tmp_path / "bomb.gz")
    assert memory < 2e6
    assert "promises 10 bytes, there are more" in message


def test_a_zip_bomb_is_unpacked_no_further_than_its_header(tmp_path):
    (tmp_path / "bomb.npz").write_bytes(zipped({"a": npy((10,), data=bytes(20_000_000))}))
    memory, message = peak_memory(read_array, tmp_path / "bomb.npz")
    assert memory < 4e6
    assert "promises 80 bytes, there are more" in message


def test_a_mat_bomb_is_unpacked_no_further_than_its_tag(tmp_path):
    variable = mat_variable((1, 1), parts=[(9, None, bytes(8))]) + bytes(20_000_000)
    bomb = mat(variable, claimed=72, compressed=True)
    (tmp_path / "bomb.mat").write_bytes(bomb)
    memory, message = peak_memory(read_array, tmp_path / "bomb.mat")
    assert memory < 2e6
    assert "does not end after the 72 bytes it promises" in message


def test_a_mat_bomb_that_promises_nothing(tmp_path):
    (tmp_path / "bomb.mat").write_bytes(mat(bytes(20_000_000), claimed=0, compressed=True))
    memory, message = peak_memory(read_array, tmp_path / "bomb.mat")
    assert memory < 2e6
    assert "promises 0 bytes" in message


def test_a_compressed_variable_without_its_sum(tmp_path):
    content = bytearray(VALID["mat compressed"])
    size = int.from_bytes(content[132:136], "little") - 4
    content[132:136] = size.to_bytes(4, "little")
    refuses(tmp_path / "data.mat", bytes(content[: 136 + size]), "does not end after the")


@pytest.mark.parametrize("shape", [(-1, 2), (-1, -2), (1, 1), (2, 2)])
def test_a_mat_variable_whose_shape_is_not_that_of_its_numbers(tmp_path, shape):
    variable = mat_variable(shape, parts=[(9, None, bytes(16))])
    refuses(tmp_path / "data.mat", mat(variable), "truncated or damaged")


@pytest.mark.parametrize(
    ("indices", "starts", "values"),
    [
        ([-1], [0, 1], [7.0]),
        ([2], [0, 1], [7.0]),
        ([0], [0, 2], [7.0]),
        ([0, 1], [0, 2], [7.0]),
        ([0], [1, 1], [7.0]),
        ([0], [0, -1], [7.0]),
        ([0], [0], [7.0]),
        ([0], [], [7.0]),
    ],
)
def test_a_sparse_matrix_that_points_outside_itself(tmp_path, indices, starts, values):
    parts = [(5, None, np.array(indices, "<i4").tobytes()), (5, None, np.array(starts, "<i4").tobytes())]
    variable = mat_variable((2, 1), 5, [*parts, (9, None, np.array(values, "<f8").tobytes())])
    refuses(tmp_path / "data.mat", mat(variable), "truncated or damaged")


def test_data_that_compress_as_well_as_data_can_are_still_read(tmp_path):
    zeros = np.zeros((4000, 784))
    np.savez_compressed(tmp_path / "zeros.npz", zeros)
    assert (read_array(tmp_path / "zeros.npz") == zeros).all()
    (tmp_path / "zeros.gz").write_bytes(gzip.compress(idx((4000, 784), bytes(4000 * 784)), 9))
    assert read_array(tmp_path / "zeros.gz").shape == (4000, 784)


def test_too_little_memory_is_said_in_words(tmp_path, monkeypatch):
    (tmp_path / "data.npy").write_bytes(VALID["npy"])

    def exhausted(*_args):
        raise MemoryError

    monkeypatch.setattr("meltpoint.formats.npz.read_promised", exhausted)
    with pytest.raises(InputError, match=r"data\.npy, too large for the memory of this machine"):
        read_array(tmp_path / "data.npy")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "times"), [(b"0,", 100_000_000), (b">a\nA\n", 20_000_000), (b"0\n", 100_000_000)]
)
def test_small_gzip_files_of_data_become_no_large_arrays(tmp_path, line, times):
    (tmp_path / "a.gz").write_bytes(gzip.compress(line * times, 1))
    with pytest.raises(InputError, match="a small file"):
        read_array(tmp_path / "a.gz")


def test_a_zip_compressed_otherwise_is_refused(tmp_path):
    content = zipped({"a": VALID["npy"]}, zipfile.ZIP_LZMA)
    refuses(tmp_path / "data.npz", content, "compressed neither by numpy.savez nor by")


def test_a_wrong_sum_is_found(tmp_path):
    for name in ("npz", "npz compressed", "idx gz", "mat compressed"):
        content = bytearray(VALID[name])
        position = content.index(np.float64(5).tobytes()) if name == "npz" else len(content) // 2
        position = {"idx gz": len(content) - 6, "mat compressed": len(content) - 1}.get(name, position)
        content[position] ^= 1
        refuses(tmp_path / "data.bin", bytes(content), "truncated or damaged")


@pytest.mark.parametrize(
    ("array", "match"),
    [
        (np.array([1 + 2j]), "values of type complex128"),
        (np.array(["a"]), "values of type <U1"),
        (np.zeros(2, [("x", "f8")]), r"values of type \[\('x', '<f8'\)\]"),
        (np.array(["2020-01-01"], "M8[D]"), "values of type datetime64"),
        (np.zeros(2, [("é", "f8"), ("日", "f8")]), "a structured array"),
    ],
)
def test_arrays_of_something_else_than_numbers(tmp_path, array, match):
    with warnings.catch_warnings(action="ignore"):  # of names that only version 3 of the format can hold
        refuses(tmp_path / "data.npy", written(np.save, array), match)
        refuses(tmp_path / "data.npz", written(np.savez, a=array), match)


def test_complex_numbers_and_doubled_variables_in_a_mat_file(tmp_path):
    refuses(
        tmp_path / "data.mat", written(scipy.io.savemat, {"a": ARRAY + 1j}), "complex numbers in .*data.mat:a"
    )
    content = VALID["mat"] + VALID["mat"][128:]
    refuses(tmp_path / "data.mat", content, "variable 'a' is there twice")


class Payload:
    """Unpickling it creates a folder: harm that can be seen."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return os.makedirs, (self.path, 0o777, True)


def pickled(kind, array):
    header = {"meltpoint_kind": np.array("RBM"), "meltpoint_version": np.array(1)}
    return {
        "data.npy": lambda: written(np.save, array, allow_pickle=True),
        "data.npz": lambda: written(np.savez, a=array),
        "model.npz": lambda: written(
            np.savez, **header, weights=array, visible_bias=array, hidden_bias=array
        ),
        "data.pkl": lambda: pickle.dumps(array, protocol=0),
        "data": lambda: pickle.dumps(array),
    }[kind]()


@pytest.mark.parametrize("name", ["data.npy", "data.npz", "model.npz", "data.pkl", "data"])
def test_a_pickle_is_never_executed(tmp_path, name):
    trace, path = tmp_path / "executed", tmp_path / name
    path.write_bytes(pickled(name, np.array([[Payload(trace)]], dtype=object)))
    for reader in READERS[:2]:
        with pytest.raises(InputError, match=name):
            reader(path)
    for entry in ("a", "weights", "meltpoint_kind"):
        with pytest.raises(InputError, match=name):
            read_array(path, entry)
    assert not trace.exists()
    # The payload is live: NumPy, told to trust the file, runs it.
    found = np.load(path, allow_pickle=True)
    if isinstance(found, np.lib.npyio.NpzFile):
        with found:
            [found[entry] for entry in found.files]
    assert trace.exists()


def sparse_mat(shape, name=b"data"):
    """A sparse variable without a number in it."""
    starts = np.zeros(shape[1] + 1, "<i4").tobytes()
    return mat_variable(shape, 5, [(5, None, b""), (5, None, starts), (9, None, b"")], name)


def test_a_small_sparse_file_becomes_no_large_array(tmp_path):
    (tmp_path / "small.mat").write_bytes(mat(sparse_mat((130_000_000, 1))))
    memory, message = peak_memory(read_array, tmp_path / "small.mat")
    assert memory < 2e6
    assert "a sparse matrix of shape (130000000, 1)" in message
    assert "full(...)" in message


@pytest.mark.parametrize("units", [6_000_000, 200_000])
def test_a_small_file_becomes_no_model_of_many_units(tmp_path, units):
    zeros = scipy.sparse.csc_array((units, 1))
    parameters = {"vishid": zeros, "visbiases": zeros, "hidbiases": np.zeros((1, 1))}
    scipy.io.savemat(tmp_path / "small.mat", parameters, do_compression=True)
    memory, message = peak_memory(load, tmp_path / "small.mat")
    assert memory < 100e6
    assert "small file" in message


@pytest.mark.slow
def test_a_zip_that_holds_far_more_than_its_size_is_refused_before_it_is_unpacked(tmp_path):
    path = tmp_path / "bomb.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("a.npy", "w") as entry:
        entry.write(npy((300_000_000,), descr="|u1"))
        for _ in range(300):
            entry.write(bytes(1_000_000))
    memory, message = peak_memory(read_array, path)
    assert memory < 2e6
    assert "a small file whose arrays take 300,000,000 bytes" in message
    assert "save them uncompressed" in message


@pytest.mark.slow
def test_many_arrays_of_one_small_file_count_together(tmp_path):
    path = tmp_path / "bomb.npz"
    entries = {f"a{k}": npy((20_000_000,), descr="|u1", data=bytes(20_000_000)) for k in range(5)}
    path.write_bytes(zipped(entries))
    with pytest.raises(InputError, match="a small file whose arrays take"):
        mp.load(path, unpacked=64)


HOSTILE_NAME = "\x1b]0;owned\x07" + "n" * 3000


@pytest.mark.parametrize("reader", READERS[:2])
def test_names_in_a_file_are_escaped_and_shortened_in_messages(tmp_path, reader):
    path = tmp_path / "data.npz"
    path.write_bytes(zipped({HOSTILE_NAME: npy((1,), data=bytes(8)), "b": npy((1,), data=bytes(8))}))
    with pytest.raises(InputError) as caught:
        reader(path)
    assert "\\x1b]0;owned\\x07nnn" in str(caught.value)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) <= 500
