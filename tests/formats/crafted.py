"""Files made byte by byte: valid ones to damage, and hostile ones."""

import gzip
import io
import struct
import zipfile
import zlib

import numpy as np
import scipy.io
import scipy.sparse

from meltpoint.models.dbm import DBM
from meltpoint.models.dbn import DBN
from meltpoint.models.rbm import RBM

ARRAY = np.arange(12.0).reshape(3, 4)
TOP = RBM(ARRAY.T, ARRAY[0], ARRAY[0, :3])
MODELS = {
    "rbm": RBM(ARRAY, ARRAY[0, :3], ARRAY[0]),
    "dbm": DBM([ARRAY, ARRAY.T], [ARRAY[0, :3], ARRAY[0], ARRAY[0, :3]]),
    "dbn": DBN([(ARRAY, ARRAY[0, :3], ARRAY[0])], TOP),
}


def written(write, *args, **kwargs):
    file = io.BytesIO()
    write(file, *args, **kwargs)
    return file.getvalue()


def npy(shape, descr="<f8", data=b""):
    header = f"{{'descr': {descr!r}, 'fortran_order': False, 'shape': {shape!r}}}".encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + data


def zipped(entries, compression=zipfile.ZIP_DEFLATED):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as archive:
        for name, data in entries.items():
            archive.writestr(f"{name}.npy", data)
    return file.getvalue()


def idx(shape, data=b""):
    return bytes([0, 0, 8, len(shape)]) + struct.pack(f">{len(shape)}I", *shape) + data


def mat(variable, claimed=None, compressed=False):
    """A .mat file with one variable, whose tag may claim another size than it has."""
    tag = struct.pack("<II", 14, len(variable) if claimed is None else claimed)
    element = tag + variable
    if compressed:
        packed = zlib.compress(element)
        element = struct.pack("<II", 15, len(packed)) + packed
    return b"MATLAB 5.0 MAT-file".ljust(124) + b"\x00\x01IM" + element


def mat_variable(shape, mat_class=6, parts=(), name=b"data"):
    head = struct.pack("<IIII", 6, 8, mat_class, 0) + struct.pack("<II2i", 5, 8, *shape)
    head += struct.pack("<HH4s", 1, len(name), name) if name else struct.pack("<II", 1, 0)
    return head + b"".join(
        struct.pack("<II", kind, len(data) if size is None else size) + data + bytes(-len(data) % 8)
        for kind, size, data in parts
    )


VALID = {
    "npy": written(np.save, ARRAY),
    "npz": written(np.savez, a=ARRAY),
    "npz compressed": written(np.savez_compressed, a=ARRAY),
    "mat": written(scipy.io.savemat, {"a": ARRAY}),
    "mat compressed": written(scipy.io.savemat, {"a": ARRAY}, do_compression=True),
    "mat sparse": written(scipy.io.savemat, {"a": scipy.sparse.csc_array(ARRAY)}),
    "mat mixed": written(scipy.io.savemat, {"c": np.array([ARRAY, "x"], dtype=object), "a": ARRAY}),
    "idx": idx((2, 2, 3), bytes(range(12))),
    "idx gz": gzip.compress(idx((2, 2, 3), bytes(range(12)))),
    "csv": b"a,b,c\n1,2,3\n4,5.5,-6e3\n",
    "text": b"1 2 3\n4 5.5 -6e3\n",
}

EXAMPLES = {
    "table": b",a,b,kind\n0,1,0,cat\n1,0,1,dog\n2,1,1,cat\n",
    "table gz": gzip.compress(b"a,b,c\n1,2,3\n4,5.5,-6e3\n"),
    "fasta": b">first\nAC-DY\n>second\nACwwDDY\n>third\nAXDEY\n",
    "fasta gz": gzip.compress(b">first\nAC-DY\n>second\nACDDY\n"),
    "alignment in numbers": b"2 4 21\n0 1 2 3\n4 5 20 0\n",
    "sparse": written(scipy.sparse.save_npz, scipy.sparse.csr_array(ARRAY)),
    "sparse coordinates": written(scipy.sparse.save_npz, scipy.sparse.coo_array(ARRAY), compressed=False),
}
"""Files that only `datasets.read` takes."""
