"""Files that no format is for, called by their names as far as they have one."""

from meltpoint.errors import InputError
from meltpoint.formats.source import Source

_HDF5 = "save(..., '-v7') in MATLAB, numpy.save from h5py; models in HDF5 are read by mp.load"
# A pickle can run any program when it is opened, so it is only ever named.
_PICKLE = ("a Python pickle", "save arrays with numpy.save or numpy.savez: pickles are never opened")
_NO_MAT = ("no .mat file of version 5 to 7", "save it again in MATLAB with save(..., '-v7')")
_UNKNOWN = ("a file of unknown format", "check the path, or save the data with numpy.save")
_CONVERT = "convert it, or check the path"
_FOREIGN = (
    (0, b"MATLAB 7.3", "a MATLAB 7.3 (HDF5) file", _HDF5),
    (0, b"\x89HDF\r\n\x1a\n", "an HDF5 file", _HDF5),
    (512, b"\x89HDF\r\n\x1a\n", "an HDF5 file", _HDF5),
    *((0, b"\x80" + bytes([version]), *_PICKLE) for version in (2, 3, 4, 5)),
    (0, b"\x89PNG\r\n\x1a\n", "a PNG image", _CONVERT),
    (0, b"\xff\xd8\xff", "a JPEG image", _CONVERT),
    (0, b"GIF8", "a GIF image", _CONVERT),
    (0, b"%PDF", "a PDF document", _CONVERT),
    (0, b"BZh", "a bzip2 file", _CONVERT),
    (0, b"\xfd7zXZ\x00", "an xz file", _CONVERT),
    (0, b"\xff\xfe", "text in UTF-16", _CONVERT),
    (0, b"\xfe\xff", "text in UTF-16", _CONVERT),
)
"""Where the signatures of other files stand, what the files are, and what to do."""


def unknown_file(source: Source, expected: str) -> InputError:
    """The error for a file of no format."""
    suffix = source.path.suffix.lower()
    description, remedy = next(
        (what for at, signature, *what in _FOREIGN if source.head[at:].startswith(signature)),
        _NO_MAT if suffix == ".mat" else _UNKNOWN,
    )
    if suffix in {".pkl", ".pickle"}:
        description, remedy = _PICKLE
    return InputError(found=f"{source.name}, {description}", expected=expected, remedy=remedy)
