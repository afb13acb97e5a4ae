"""A model, or data, from a file of any known format, recognised by its content."""

import os
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from meltpoint.errors import InputError
from meltpoint.formats import zoo
from meltpoint.formats.format import Options, Table, parse_options
from meltpoint.formats.registry import recognised
from meltpoint.models import Model


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
    with recognised(zoo.path_of(path), "model", given, given.member) as (source, format):
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
            found=f"{', '.join(found.words)} in {os.fspath(path)!r}, columns that are not numbers",
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
