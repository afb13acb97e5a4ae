"""Files as people have them: tables with a header, an index or labels, sparse matrices, packed tables."""

import gzip
import importlib.util

import numpy as np
import pytest
import scipy.sparse

import meltpoint as mp
from meltpoint.datasets import read
from meltpoint.errors import DataWarning

BITS = np.random.default_rng(3).integers(0, 2, (12, 4))
HEADER = "a,b,c,d"


def csv(table, header=None):
    lines = [",".join(map(str, row)) for row in table]
    return "\n".join([header, *lines] if header else lines) + "\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (csv(BITS), None),
        (csv(BITS, HEADER), None),
        (
            csv(np.c_[np.arange(12), BITS], "," + HEADER),
            r"left out column 0 \(an index\); 4 columns are examples",
        ),
        (csv(np.c_[np.arange(12), BITS], "Unnamed: 0," + HEADER), r"column 'Unnamed: 0' \(an index\)"),
        (csv(np.c_[np.arange(1, 13), BITS]), r"column 0 \(an index\)"),
        (csv(np.c_[np.arange(12) + 900, BITS], "id," + HEADER), r"column 'id' \(an index\)"),
        (csv(np.c_[np.arange(12) % 10, BITS], "label," + HEADER), r"column 'label' \(labels\)"),
        (csv(np.c_[BITS, np.arange(12) % 2], HEADER + ",class"), r"column 'class' \(labels\)"),
        (csv(np.c_[BITS, np.arange(12) % 10]), r"column 4 \(labels: the others are 0 and 1\)"),
        (csv([[*row, "cat"] for row in BITS], HEADER + ",kind"), r"'kind' \(not numbers\)"),
        (csv([["cat", *row] for row in BITS]), r"'column 0' \(not numbers\)"),
        (
            csv([[k, *row, "cat"] for k, row in enumerate(BITS)], "," + HEADER + ",kind"),
            r"'kind' \(not numbers\), column 0 \(an index\)",
        ),
        ("12 4 2\n" + csv(BITS).replace(",", " "), None),
    ],
    ids=[
        *(
            "plain",
            "header",
            "index",
            "unnamed",
            "index from 1",
            "ids",
            "labels",
            "class",
            "labels without a name",
        ),
        *("words", "words without a name", "index and words", "alignment in numbers"),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_tables(tmp_path, text, said, packed):
    file = tmp_path / "table.csv"
    file.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
    if said is None:
        np.testing.assert_array_equal(read(file), BITS)
        return
    with pytest.warns(DataWarning, match=said):
        np.testing.assert_array_equal(read(file), BITS)


def test_three_rows_of_states_are_no_index(tmp_path):
    (tmp_path / "a.csv").write_text("0,2\n1,0\n2,1\n")
    assert read(tmp_path / "a.csv").tolist() == [[0, 2], [1, 0], [2, 1]]


@pytest.mark.parametrize("kind", [scipy.sparse.csr_matrix, scipy.sparse.csc_array, scipy.sparse.coo_array])
@pytest.mark.parametrize("compressed", [False, True])
def test_sparse_matrices_of_scipy(tmp_path, kind, compressed):
    scipy.sparse.save_npz(tmp_path / "a.npz", kind(BITS), compressed=compressed)
    np.testing.assert_array_equal(read(tmp_path / "a.npz"), BITS)


def test_sparse_matrices_that_are_refused(tmp_path):
    scipy.sparse.save_npz(tmp_path / "a.npz", scipy.sparse.bsr_array(BITS))
    with pytest.raises(mp.InputError, match=r"'bsr'.*matrix.tocsr\(\)"):
        read(tmp_path / "a.npz")
    scipy.sparse.save_npz(
        tmp_path / "a.npz", scipy.sparse.coo_array(([1.0], ([0], [0])), shape=(10**6, 10**6))
    )
    with pytest.raises(mp.InputError, match=r"a sparse matrix of shape .* a small file"):
        read(tmp_path / "a.npz")
    arrays = {"format": np.array(b"csr"), "shape": np.array([3, 4]), "data": np.ones(2)}
    np.savez(tmp_path / "a.npz", indices=np.array([0, 9]), indptr=np.array([0, 1, 2, 2]), **arrays)
    with pytest.raises(mp.InputError, match="damaged"):
        read(tmp_path / "a.npz")


def test_a_packed_table_that_unpacks_to_too_much(tmp_path):
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(b"0,1\n" * 5_000_000))
    with pytest.raises(
        mp.InputError, match=r"more than 16,777,216 bytes.*allow more megabytes with unpacked="
    ):
        read(tmp_path / "a.csv.gz", unpacked=16)
    assert len(read(tmp_path / "a.csv.gz")) == 5_000_000


@pytest.mark.skipif(
    importlib.util.find_spec("pyarrow") is None, reason="needs pyarrow, of meltpoint[parquet]"
)
def test_parquet(tmp_path):
    import pyarrow
    import pyarrow.parquet

    columns = {
        "id": np.arange(12) + 5,
        **{name: BITS[:, k] for k, name in enumerate("abcd")},
        "kind": ["x"] * 12,
    }
    pyarrow.parquet.write_table(pyarrow.table(columns), tmp_path / "a.parquet")
    with pytest.warns(DataWarning, match=r"'kind' \(not numbers\), column 'id' \(an index\)"):
        np.testing.assert_array_equal(read(tmp_path / "a.parquet"), BITS)


@pytest.mark.skipif(importlib.util.find_spec("pyarrow") is not None, reason="pyarrow is there")
def test_parquet_without_pyarrow(tmp_path):
    (tmp_path / "a.parquet").write_bytes(b"PAR1" + bytes(100) + b"PAR1")
    with pytest.raises(mp.InputError, match=r"pip install 'meltpoint\[parquet\]'"):
        read(tmp_path / "a.parquet")


def test_a_path_in_place_of_a_name(tmp_path):
    (tmp_path / "a.csv").write_text("0,1\n")
    with pytest.raises(mp.InputError, match=r"read a file with meltpoint.datasets.read"):
        mp.datasets.load(str(tmp_path / "a.csv"))
