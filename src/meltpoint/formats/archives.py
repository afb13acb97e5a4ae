"""NumPy's `.npz` and MATLAB's `.mat` (version 5 to 7) with named arrays."""

from meltpoint.errors import InputError
from meltpoint.formats import mat, named_arrays, npz
from meltpoint.formats.options import Options
from meltpoint.formats.source import Source
from meltpoint.models import Model

NAME = ".npz or .mat file with named arrays"
OPTIONS = named_arrays.OPTIONS

_ZIP = (b"PK\x03\x04", b"PK\x05\x06")
_MAT5 = (b"\x00\x01IM", b"\x01\x00MI")


def is_mat(source: Source) -> bool:
    """Whether it is a .mat file, not packed in another."""
    return source.content is None and source.head[124:128] in _MAT5


def recognises(source: Source) -> bool:
    """Any zip file, and MATLAB's: zips with a layout of their own are asked first."""
    return source.head.startswith(_ZIP) or is_mat(source)


def read(source: Source, options: Options) -> Model:
    """The model whose parameters are the named arrays."""
    if not source.head.startswith(_ZIP):
        names = mat.variable_names(source.path)
        if "hidpen" in names:
            raise InputError(
                found=f"{source.name} with the variables {', '.join(sorted(names))}",
                expected="an RBM: vishid, visbiases, hidbiases, and no second hidden layer",
                remedy="read them with meltpoint.formats.arrays.read_array and build the model from them",
            )
        return named_arrays.model(source, mat.read_variables(source.path, names), options)
    with source.open() as file:
        arrays = npz.read_npz(file, source.path, kinds="biufUS")
    return named_arrays.model(
        source, {name: array for name, array in arrays.items() if array.dtype.kind in "biuf"}, options
    )
