"""All formats, and the one detector: a file is opened once, and each format is asked whether it is its own."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

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
from meltpoint.formats.format import Format, MissingOptionError, Options, refuse_unused, unknown_file
from meltpoint.formats.source import Source, reading

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


def takes_options(path: Path) -> bool:
    """Whether a model file leaves something open; an archive may."""
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
