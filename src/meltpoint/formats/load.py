"""A model from a file of any known format, recognised by its content."""

import os
import tarfile
from collections.abc import Collection
from typing import Any, Protocol

from meltpoint.errors import InputError
from meltpoint.formats import (
    archives,
    bqm,
    bqm_text,
    ccm,
    couplings_text,
    dca_matrix,
    hdf5,
    mat,
    mi3,
    models,
    npz,
    plmc,
    rbms_hdf5,
    rbms_julia,
    safetensors,
    skops_file,
    torch_file,
    uai,
    zoo,
)
from meltpoint.formats.bounded import reading
from meltpoint.formats.formats import detect
from meltpoint.formats.options import MissingOptionError, Options, parse_options, refuse_unused
from meltpoint.formats.packed import is_tar, members_named, tar_members
from meltpoint.formats.source import Source, open_source
from meltpoint.models import Model


class Importer(Protocol):
    """What the file of each format has."""

    @property
    def NAME(self) -> str:  # noqa: N802
        """What the format is called in messages."""
        ...

    @property
    def OPTIONS(self) -> Collection[str]:  # noqa: N802
        """Options that say something about the format."""
        ...

    def recognises(self, source: Source, /) -> bool:
        """Whether the content is of this format."""
        ...

    def read(self, source: Source, options: Options, /) -> Model:
        """The model in it."""
        ...


FORMATS: tuple[Importer, ...] = (
    skops_file,
    torch_file,
    rbms_julia,
    rbms_hdf5,
    hdf5,
    archives,
    mi3,
    bqm,
    uai,
    couplings_text,
    ccm,
    bqm_text,
    dca_matrix,
    safetensors,
    plmc,
)
"""All importers in the order in which they are asked: those with a signature or a layout of their own first."""

_MODELS = "a model in one of the formats of docs/formats.md"
_OWN_MAT = {"vishid", "visbiases", "hidbiases"}


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
        visible_bias, hidden_bias, units, temperature or beta, states, base, alphabet, gap, gauge, update, member
        (`meltpoint.formats.options.Options` says what they mean).

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
    source = open_source(zoo.path_of(path))
    with reading(source.path, "model file"):
        if is_own(source):
            refuse_unused(given, (), f"{source.name}, a model file of meltpoint or of Salakhutdinov's code")
            return models.load(source.path)
        if is_tar(source.head):
            source = _member(source, given)
        elif given.member is not None:
            refuse_unused(given, set(vars(given)) - {"member"}, f"{source.name}, which is no archive")
        importer = recognised(source)
    if importer is None:
        raise _unknown(source)
    used = importer.OPTIONS if given.member is None else {*importer.OPTIONS, "member"}
    refuse_unused(given, used, f"{source.name}, {importer.NAME}")
    with reading(source.path, importer.NAME):
        return importer.read(source, given)


def recognised(source: Source) -> Importer | None:
    """The format of a foreign file, None if it is of none."""
    return next((importer for importer in FORMATS if importer.recognises(source)), None)


def is_own(source: Source) -> bool:
    """Whether a file leaves nothing open: one of meltpoint's own, or of Salakhutdinov's code."""
    if source.content is not None:
        return False
    if source.head.startswith(b"PK\x03\x04"):
        return "meltpoint_kind" in npz.entry_names(source.path)
    names = set(mat.variable_names(source.path)) if archives.is_mat(source) else set()
    return names >= _OWN_MAT and "hidpen" not in names


def _member(source: Source, options: Options) -> Source:
    """The file of a tar archive that was named, or the only one that is a model."""
    with source.open() as file, tarfile.open(fileobj=file, mode="r:") as archive:
        members = tar_members(archive)
        names = [member.name for member in members]
        if options.member is not None:
            chosen = members_named(members, options.member)
        else:
            chosen = [
                member for member in members if recognised(_opened(source, archive, member)) is not None
            ]
        if len(chosen) != 1:
            several = ", ".join(member.name for member in chosen) or ", ".join(names) or "no files"
            raise MissingOptionError(
                found=f"{source.name} with {several}"
                + (f" but not one {options.member!r}" if options.member else ""),
                expected="member=NAME, the file that is the model",
                remedy="name one of them" if names else "check how the archive was made",
            )
        return _opened(source, archive, chosen[0])


def _opened(source: Source, archive: tarfile.TarFile, member: tarfile.TarInfo) -> Source:
    extracted = archive.extractfile(member)
    # A header may promise more than the archive has.
    content = extracted.read(min(member.size, source.size)) if extracted else b""
    return Source(source.path, f"{source.path}:{member.name}", content)


def _unknown(source: Source) -> InputError:
    """What lies there instead of a model."""
    if source.content is None:
        try:
            format = detect(source.path)
        except InputError as problem:
            return InputError(found=problem.found, expected=_MODELS, remedy=problem.remedy)
        found = f"{source.name}, a {format.value}"
    else:
        found = f"{source.name}, packed data of unknown format"
    return InputError(found=found, expected=_MODELS, remedy="are model and data swapped?")
