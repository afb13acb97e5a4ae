"""All formats, the one detector, and models and data from a file: it is opened once, and recognised by its content."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from numpy.typing import NDArray

from meltpoint.arguments import public
from meltpoint.errors import InputError
from meltpoint.formats import (
    couplings_text,
    dimod,
    hdf5,
    mat,
    models,
    npz,
    potts,
    rbms,
    sequences,
    tables,
    torch_file,
    uai,
)
from meltpoint.formats.download import path_of
from meltpoint.formats.format import (
    Format,
    MissingOptionError,
    Options,
    Table,
    parse_options,
    refuse_unused,
    unknown_file,
)
from meltpoint.formats.source import Source, reading
from meltpoint.models import Model

FORMATS: list[Format] = [
    models.FORMAT,
    npz.SKOPS,
    torch_file.TORCH,
    rbms.JULIA,
    rbms.RBMS,
    hdf5.FORMAT,
    npz.NPZ,
    mat.FORMAT,
    potts.MI3,
    npz.NPY,
    tables.IDX,
    tables.PARQUET,
    dimod.BINARY,
    sequences.FASTA,
    uai.FORMAT,
    couplings_text.LINES,
    potts.CCM,
    dimod.TEXT,
    couplings_text.MATRIX,
    tables.TEXT,
    torch_file.SAFETENSORS,
    potts.PLMC,
]
"""In the order in which they are asked: those with a signature or a layout of their own first."""

Wanted = Literal["model", "data"]


@public
def load(path: str | os.PathLike[str], **options: Any) -> Model:  # noqa: ANN401
    """The model in a file of any format in docs/formats.md, recognised by its content.

    Parameters
    ----------
    path
        The file: meltpoint's own .npz, Salakhutdinov's .mat, arrays with names (.npz, .mat, .h5, .safetensors,
        PyTorch's .pt, skops), UAI, J/h text, plmc, CCMpred, dimod, rbms, RestrictedBoltzmannMachines.jl; gzip and
        tar around them. Or `zoo:NAME`, one of the trained models that come with the source.
    options
        What the format leaves open, asked for by name where it is needed: orientation, visible, hidden, weights,
        visible_bias, hidden_bias, units, temperature or beta, states, base, alphabet, gap, gauge, update, member,
        unpacked (`meltpoint.formats.format.Options` says what they mean).

    >>> load("mnist.png")
    Traceback (most recent call last):
    meltpoint.errors.InputError: found no file 'mnist.png', expected an existing file: check the path
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "chain.uai"
    ...     _ = file.write_text("MARKOV 2  2 2  1  2 0 1  4  1 2 2 1")
    ...     load(file)
    FactorGraph 2, 1 factor
    """
    given = parse_options(options)
    with recognised(path_of(path), "model", given, given.member) as (source, format):
        assert format.model is not None, "models were wanted"
        return format.model(source, given)


def read_array(
    path: str | os.PathLike[str], name: str | None = None, *, unpacked: int | None = None
) -> NDArray[Any]:
    r"""The array in a .npy, .npz, .mat, .csv or MNIST idx file (.gz too), with the values as stored.

    In files that hold several, name the array, or write it behind a colon: `data.npz:test`. Images of an idx
    file and batches (case, pixel, batch) of a .mat file become (example, pixel). A packed file may be unpacked to 256
    megabytes, or `unpacked`.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "test.csv"
    ...     _ = file.write_text("left,right\n0,1\n1,1")
    ...     read_array(file)
    array([[0., 1.],
           [1., 1.]])
    """
    found = read_examples(path, name, parse_options({"unpacked": unpacked}))
    if not isinstance(found, Table):
        return found
    if found.words:
        raise InputError(
            found=f"columns that are not numbers in {os.fspath(path)!r}: {', '.join(found.words)}",
            expected="numbers alone",
            remedy="drop or convert them first, or read the file with meltpoint.datasets.read, which leaves them out",
        )
    return found.values


def read_examples(path: str | os.PathLike[str], name: str | None, options: Options) -> Table | NDArray[Any]:
    """As `read_array`, but sequences become states, and a table comes with the names of its columns."""
    file, name = split_name(path) if name is None else (Path(path), name)
    with recognised(file, "data", options, name) as (source, format):
        assert format.data is not None, "data were wanted"
        if source.name != str(file):  # the name was that of a file in an archive
            name = None
        if name is not None and not format.has_names:
            raise InputError(
                found=f"name {name!r} for {source.name}, whose one array has no name",
                expected="no name",
                remedy="leave the name out",
            )
        return format.data(source, options, name)


def split_name(path: str | os.PathLike[str]) -> tuple[Path, str | None]:
    """A path and the array's name behind its last colon, None if there is none.

    A file that exists under the whole path is meant as it is; the colon of a drive letter separates nothing.

    >>> split_name("data.npz:test")[1]
    'test'
    >>> split_name("C:/data.npz")[1] is None
    True
    """
    whole = os.fspath(path)
    head, _, tail = whole.rpartition(":")
    is_drive = len(head) == 1 and head.isalpha() and not Path(head).is_file()
    in_folders = ("/" in tail or "\\" in tail) and not Path(head).is_file()
    if not head or not tail or is_drive or in_folders or Path(whole).exists():
        return Path(whole), None
    return Path(head), tail


def detect(source: Source, wanted: Wanted) -> Format | None:
    """The format of a file that is to hold a model or data, None if it is of none."""
    return next((format for format in _formats_of(wanted) if format.recognises(source)), None)


def _formats_of(wanted: Wanted) -> list[Format]:
    return [format for format in FORMATS if getattr(format, wanted) is not None]


@contextmanager
def recognised(
    path: Path, wanted: Wanted, options: Options, member: str | None = None
) -> Iterator[tuple[Source, Format]]:
    """A file that is open, and its format; of a tar archive the one file that was named, or is what is wanted.

    Whatever goes wrong in it is an InputError that names the file.
    """
    with Source(path, ceiling=options.ceiling) as whole, reading(path, f"{wanted} file"):
        source = _member(whole, wanted, member)
        if source is not whole:
            whole.closing.enter_context(source)
        format = _format_of(source, wanted)
        taken = format.options if source is whole else {*format.options, "member"}
        refuse_unused(options, taken, f"{source.name}, {format.name}")
        with reading(path, format.name):
            yield source, format


def takes_options(name: str | os.PathLike[str]) -> bool:
    """Whether a model file leaves something open; an archive may."""
    path = path_of(name)
    with Source(path) as source, reading(path, "model file"):
        format = detect(source, "model")
        return format is None or bool(format.options)


def _member(source: Source, wanted: Wanted, name: str | None) -> Source:
    """The file itself, or the one in a tar archive that was named or is what is wanted."""
    names: list[str] = []
    found: dict[str, Source] = {}
    for member in source.members():
        names.append(own := member.name.removeprefix(f"{source.path}:"))
        if name in (own, own.rpartition("/")[2]) or (name is None and detect(member, wanted) is not None):
            found[own] = member
    if not names:
        return source
    if name in found:  # without its folders a name is enough where there is one such file
        found = {name: found[name]}
    if len(found) != 1:
        expected = "member=NAME, the file that is the model"
        if wanted == "data":
            expected = f"the name of the one with the examples behind a colon, {source.path}:NAME"
        raise MissingOptionError(
            found=f"{source.name}, an archive with {', '.join(found or names)}"
            + (f" but not one {name!r}" if name else ""),
            expected=expected,
            remedy="name one of them",
        )
    return found.popitem()[1]


def _format_of(source: Source, wanted: Wanted) -> Format:
    format = detect(source, wanted)
    if format is not None:
        return format
    expected = "a model in one of the formats of docs/formats.md"
    if wanted == "data":
        expected = f"one of these: {', '.join(format.name for format in _formats_of(wanted))}"
    elif (other := detect(source, "data")) is not None:
        raise InputError(
            found=f"{source.name}, a {other.name}", expected=expected, remedy="are model and data swapped?"
        )
    suffix = source.path.suffix.lower()
    if named := [format.name for format in _formats_of(wanted) if suffix in format.suffixes]:
        expected = f"{' or '.join(named)}, as its name says"
    raise unknown_file(source, expected)
