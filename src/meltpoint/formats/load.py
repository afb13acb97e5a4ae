"""A model from a file of any known format, recognised by its content."""

import os
from typing import Any

from meltpoint.formats import zoo
from meltpoint.formats.options import parse_options
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
        unpacked (`meltpoint.formats.options.Options` says what they mean).

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
