"""Arrays come back from every format as they were stored."""

import gzip
import struct

import numpy as np
import pytest
import scipy.io
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import meltpoint as mp
from formats.crafted import mat, mat_variable
from meltpoint.errors import InputError
from meltpoint.formats.load import read_array, split_name
from meltpoint.formats.mat import read_variables
from meltpoint.formats.source import Source
from meltpoint.formats.tables import IDX_TYPES

NUMBERS = hnp.boolean_dtypes() | hnp.integer_dtypes() | hnp.unsigned_integer_dtypes() | hnp.floating_dtypes()
# The first example pays for imports; a busy machine is no failure.
UNHURRIED = settings(deadline=None)
SHAPES = hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=5)


def idx_bytes(array):
    """The idx form of an array, written independently of the reader."""
    codes = {np.dtype(dtype).newbyteorder("="): code for code, dtype in IDX_TYPES.items()}
    code = codes[array.dtype.newbyteorder("=")]
    lengths = struct.pack(f">{array.ndim}I", *array.shape)
    return bytes([0, 0, code, array.ndim]) + lengths + array.astype(array.dtype.newbyteorder(">")).tobytes()


def same(found, stored):
    assert found.shape == stored.shape
    assert found.dtype == stored.dtype.newbyteorder("=")
    np.testing.assert_array_equal(found, stored)


@UNHURRIED
@given(array=NUMBERS.flatmap(lambda dtype: hnp.arrays(dtype, SHAPES)), fortran=st.booleans())
def test_npy_round_trip(folder, array, fortran):
    np.save(folder / "a.npy", np.asfortranarray(array) if fortran and array.ndim else array)
    same(read_array(folder / "a.npy"), array)


@UNHURRIED
@given(array=NUMBERS.flatmap(lambda dtype: hnp.arrays(dtype, SHAPES)), compressed=st.booleans())
def test_npz_round_trip(folder, array, compressed):
    write = np.savez_compressed if compressed else np.savez
    write(folder / "a.npz", only=array)
    same(read_array(folder / "a.npz"), array)
    write(folder / "a.npz", first=array, second=np.zeros(1))
    same(read_array(folder / "a.npz", "first"), array)
    same(read_array(f"{folder / 'a.npz'}:first"), array)


@UNHURRIED
@given(
    array=hnp.arrays(
        st.sampled_from(list(IDX_TYPES.values())).map(np.dtype),
        hnp.array_shapes(min_dims=1, max_dims=4, min_side=0, max_side=5),
    ),
    zipped=st.booleans(),
)
def test_idx_round_trip_with_images_flattened(folder, array, zipped):
    path = folder / "t10k-images-idx3-ubyte"
    path.write_bytes(gzip.compress(idx_bytes(array)) if zipped else idx_bytes(array))
    flat = array.reshape(len(array), int(np.prod(array.shape[1:]))) if array.ndim > 2 else array
    same(read_array(path), flat)


@UNHURRIED
@given(
    array=hnp.arrays(
        st.sampled_from(["u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f4", "f8"]).map(np.dtype),
        hnp.array_shapes(min_dims=2, max_dims=4, min_side=0, max_side=5),
    ),
    compressed=st.booleans(),
    name=st.from_regex("[a-z][a-z0-9_]{0,30}", fullmatch=True),
)
def test_mat_round_trip_and_scipy_agrees(folder, array, compressed, name):
    scipy.io.savemat(folder / "a.mat", {name: array, "Other": np.zeros((1, 1))}, do_compression=compressed)
    with Source(folder / "a.mat") as source:
        found = read_variables(source, [name])[name]
    same(found, array)
    same(found, scipy.io.loadmat(folder / "a.mat")[name])


def test_a_mat_file_from_a_big_endian_machine(tmp_path):
    """Written by hand after MathWorks' description, SciPy being the judge that it is right."""
    name = struct.pack(">HH4s", 4, 1, b"data")
    numbers = struct.pack(">II6h", 3, 12, *range(6)) + bytes(4)
    variable = struct.pack(">IIII", 6, 8, 6, 0) + struct.pack(">IIii", 5, 8, 2, 3) + name + numbers
    header = b"MATLAB 5.0 MAT-file".ljust(124) + b"\x01\x00MI"
    (tmp_path / "a.mat").write_bytes(header + struct.pack(">II", 14, len(variable)) + variable)
    assert read_array(tmp_path / "a.mat").tolist() == [[0, 2, 4], [1, 3, 5]]
    same(read_array(tmp_path / "a.mat"), scipy.io.loadmat(tmp_path / "a.mat")["data"])


@UNHURRIED
@given(
    dense=hnp.arrays(
        np.float64, hnp.array_shapes(min_dims=2, max_dims=2, max_side=6), elements=st.floats(-9, 9)
    )
)
def test_sparse_mat_variables_are_written_out(folder, dense):
    scipy.io.savemat(folder / "a.mat", {"data": scipy.sparse.csc_array(dense)})
    same(read_array(folder / "a.mat"), dense)


@UNHURRIED
@given(batches=hnp.arrays(np.uint8, hnp.array_shapes(min_dims=3, max_dims=3, min_side=2, max_side=5)))
def test_mat_batches_are_unrolled_batch_after_batch(folder, batches):
    scipy.io.savemat(folder / "a.mat", {"testbatchdata": batches})
    expected = np.concatenate([batches[:, :, batch] for batch in range(batches.shape[2])])
    same(read_array(folder / "a.mat"), expected)


@UNHURRIED
@given(
    table=hnp.arrays(
        np.float64,
        hnp.array_shapes(min_dims=2, max_dims=2, max_side=6),
        elements=st.floats(allow_nan=False, width=64),
    ),
    separator=st.sampled_from([",", ";", " ", "\t", ", ", "  "]),
    header=st.sampled_from([None, "plain", "quoted", "comment"]),
    ending=st.sampled_from(["\n", "\r\n"]),
    bom=st.booleans(),
    last=st.booleans(),
)
def test_csv_round_trip(folder, table, separator, header, ending, bom, last):
    lines = [separator.join(repr(float(value)) for value in row) for row in table]
    names = [f"pixel{column}" for column in range(table.shape[1])]
    if header == "plain":
        lines.insert(0, separator.join(names))
    if header == "quoted":
        lines.insert(0, separator.join(f'"{name}"' for name in names))
    if header == "comment":
        lines = ["# " + separator.join(names), "", *lines]
    text = ending.join(lines) + (ending if last else "")
    (folder / "a.csv").write_bytes(text.encode("utf-8-sig" if bom else "utf-8"))
    np.testing.assert_array_equal(read_array(folder / "a.csv"), table)


def test_csv_with_quoted_numbers_and_blank_lines(tmp_path):
    (tmp_path / "a.csv").write_text('\n"a","b"\n"1","0"\n\n0 , 1  # the last\n')
    assert read_array(tmp_path / "a.csv").tolist() == [[1, 0], [0, 1]]


@pytest.mark.parametrize("name", ["data.npz", "data.txt", "data.mat", "data", "data.npy.gz"])
def test_the_content_decides_not_the_suffix(tmp_path, name):
    array = np.arange(6).reshape(2, 3)
    np.save(tmp_path / "x.npy", array)
    (tmp_path / name).write_bytes((tmp_path / "x.npy").read_bytes())
    same(read_array(tmp_path / name), array)


def test_a_text_that_has_a_mat_mark_where_mat_files_have_theirs(tmp_path):
    names = "p" * 126 + "IM"
    (tmp_path / "a.csv").write_text(f"{names}\n3\n")
    assert read_array(tmp_path / "a.csv").tolist() == [[3]]


@pytest.mark.parametrize(
    ("written", "path", "name"),
    [
        ("data.npz:test", "data.npz", "test"),
        ("C:\\data.npz:test", "C:\\data.npz", "test"),
        ("C:/some/data.npz", "C:/some/data.npz", None),
        ("C:data.npz", "C:data.npz", None),
        ("data.npz", "data.npz", None),
        ("data.npz:", "data.npz:", None),
        (":test", ":test", None),
        ("one:two/data.npz", "one:two/data.npz", None),
        ("one:two/data.npz:test", "one:two/data.npz", "test"),
    ],
)
def test_split_name(written, path, name):
    found_path, found_name = split_name(written)
    assert (str(found_path), found_name) == (path, name)


def test_a_file_whose_name_has_a_colon(tmp_path):
    np.savez(tmp_path / "run.npz", x=np.zeros(1))
    with (tmp_path / "run.npz:x").open("wb") as file:
        np.savez(file, y=np.ones(2))
    assert read_array(f"{tmp_path / 'run.npz'}:x").tolist() == [1, 1]
    assert read_array(f"{tmp_path / 'run.npz:x'}:y").tolist() == [1, 1]
    assert read_array(tmp_path / "run.npz", "x").tolist() == [0]


def test_a_file_named_by_one_letter_is_no_drive(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with (tmp_path / "d").open("wb") as file:
        np.savez(file, a=np.zeros(1), b=np.ones(1))
    assert read_array("d:b").tolist() == [1]


@pytest.mark.parametrize("suffix", [".npz", ".mat"])
def test_several_arrays_need_a_name_and_the_error_lists_them(tmp_path, suffix):
    path = tmp_path / f"data{suffix}"
    arrays = {"train": np.zeros((2, 2)), "test": np.ones((1, 2))}
    scipy.io.savemat(path, arrays) if suffix == ".mat" else np.savez(path, **arrays)
    with pytest.raises(InputError, match=r"2 arrays in .*data.*: train, test, .*data\.\w+:train"):
        read_array(path)
    with pytest.raises(InputError, match=r"no array 'tset' in .*data.*one of its arrays: train, test"):
        read_array(f"{path}:tset")
    assert read_array(path, "test").tolist() == [[1, 1]]


def test_text_cells_and_structs_in_a_mat_file_are_no_arrays(tmp_path):
    path = tmp_path / "a.mat"
    cell = np.array([np.zeros(2), "x"], dtype=object)
    scipy.io.savemat(path, {"label": "text", "cell": cell, "struct": {"a": 1.0}, "data": np.eye(2)})
    assert read_array(path).tolist() == np.eye(2).tolist()
    with pytest.raises(InputError, match="no array 'cell'"):
        read_array(path, "cell")
    scipy.io.savemat(path, {"label": "text"})
    with pytest.raises(InputError, match=r"a\.mat, without an array of numbers"):
        read_array(path)


def test_the_workspace_matlab_keeps_for_itself_is_no_array(tmp_path):
    workspace = mat_variable((1, 8), mat_class=9, parts=[(2, None, bytes(8))], name=b"")
    content = mat(mat_variable((1, 1), parts=[(9, None, bytes(8))]))
    (tmp_path / "a.mat").write_bytes(content + mat(workspace)[128:])
    assert "__function_workspace__" in scipy.io.loadmat(tmp_path / "a.mat")
    assert read_array(tmp_path / "a.mat").tolist() == [[0]]


def test_a_name_for_a_format_without_names(tmp_path):
    np.save(tmp_path / "a.npy", np.zeros(2))
    with pytest.raises(InputError, match=r"name 'x' for .*a\.npy.*leave the name out"):
        read_array(tmp_path / "a.npy", "x")


def test_salakhutdinov_s_binarised_test_images(shared):
    images = read_array(shared / "data/mnist/mnist_test_binarized.mat")
    assert images.shape == (10_000, 784)
    assert set(np.unique(images)) == {0, 1}
    batches = scipy.io.loadmat(shared / "data/mnist/mnist_test_binarized.mat")["testbatchdata"]
    np.testing.assert_array_equal(images[100:200], batches[:, :, 1])


def test_mnist_as_it_is_published(shared):
    images = read_array(shared / "data/mnist/t10k-images-idx3-ubyte.gz")
    labels = read_array(shared / "data/mnist/t10k-labels-idx1-ubyte.gz")
    assert images.shape == (10_000, 784)
    assert images.max() == 255
    assert labels[:5].tolist() == [7, 2, 1, 0, 4]


def test_omniglot_stays_as_stored(shared):
    assert read_array(f"{shared / 'data/omniglot/chardata.mat'}:testdata").shape == (784, 8070)


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
def test_every_version_of_npy(tmp_path, version):
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    with (tmp_path / "a.npy").open("wb") as file:
        np.lib.format.write_array(file, array, version=version)
    np.testing.assert_array_equal(read_array(tmp_path / "a.npy"), array)


@pytest.mark.parametrize(
    "text", ["1,NA,0\n1,0,1\n", "0,NA,1\n1,0,1\n", "1,,0\n1,0,1\n", "NA 1 0 1\n0 1 0 1\n"]
)
def test_a_first_example_with_a_missing_value_is_no_header(tmp_path, text):
    (tmp_path / "a.csv").write_text(text)
    for reader in (read_array, mp.datasets.read):
        with pytest.raises(InputError, match=r"beside numbers in the first line.*an example, .*or names"):
            reader(tmp_path / "a.csv")


@pytest.mark.parametrize("text", [",0,1,2\n5,1,0,1\n", "0,1,2,label\n1,0,1,4\n", "a,b,c,d\n1,0,1,4\n"])
def test_names_of_columns_are_a_header(tmp_path, text):
    (tmp_path / "a.csv").write_text(text)
    assert read_array(tmp_path / "a.csv").shape == (1, 4)
