"""What arguments of commands name: models, examples in a file or a data set, and files to be written."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from meltpoint.errors import InputError, Progress

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from meltpoint.data.dataset import Binarize, Dataset
    from meltpoint.models.model import Model

    Examples: TypeAlias = NDArray[Any]

Split: TypeAlias = Literal["train", "test"]

_NUMBERS: dict[str, type[int] | type[float]] = {
    "temperature": float,
    "beta": float,
    "states": int,
    "base": int,
    "unpacked": int,
}

_STREAMS: dict[Split, tuple[int, int]] = {"test": (9, 0), "train": (9, 1)}
"""Streams of the stochastic binarisation, apart from those of the named data sets."""


def load_model(path: Path, options: list[str] | None) -> "Model":
    """The model in a file, read as the `--option NAME=VALUE`s say."""
    from meltpoint.formats.format import MissingOptionError
    from meltpoint.formats.load import load

    given = _named_values(options)
    try:
        return load(path, **given)
    except MissingOptionError as problem:
        raise InputError(
            found=problem.found,
            expected=f"--option {problem.expected}",
            remedy=problem.remedy,
        ) from None


def load_several(paths: list[str], options: list[str] | None, names: list[str] | None) -> "dict[str, Model]":
    """Models by name; the options are for the files of foreign formats among them."""
    from meltpoint.evaluation.several import named_sources
    from meltpoint.formats import zoo
    from meltpoint.formats.registry import takes_options

    files = {name: Path(str(path)) for name, path in named_sources(paths, names).items()}
    return {
        name: load_model(path, options if options and takes_options(zoo.path_of(path)) else None)
        for name, path in files.items()
    }


def _named_values(options: list[str] | None) -> dict[str, Any]:
    given: dict[str, Any] = {}
    for text in options or ():
        name, equals, value = text.partition("=")
        name = name.strip().replace("-", "_")
        if not equals or not value.strip() or name in given:
            raise InputError(
                found=f"--option {text}{', the second of its name' if name in given else ''}",
                expected="NAME=VALUE, once for each name",
                remedy="for example --option temperature=1",
            )
        try:
            given[name] = _NUMBERS.get(name, str)(value.strip())
        except ValueError:
            raise InputError(
                found=f"--option {text}", expected=f"a number as {name}", remedy="correct it"
            ) from None
    return given


def read_test_and_train(
    test: str,
    train: str | None,
    binarize: str | None,
    seed: int,
    progress: Progress,
    model: "Model",
    alphabet: str | None = None,
    outside: str = "refuse",
) -> "tuple[Examples, Examples | None]":
    """Test examples, and training examples if they are named or belong to the same data set.

    Grey values are binarised for a model of bits; other models take the values as they are.
    """
    if _is_data_set(test) and train in (None, test):
        dataset = _load(test, binarize, seed, progress)
        return dataset.test, dataset.train
    examples = _read(test, "test", binarize, seed, progress, model, alphabet, outside)
    if train is None:
        return examples, None
    return examples, _read(train, "train", binarize, seed, progress, model, alphabet, outside)


def read_train(
    source: str,
    binarize: str | None,
    seed: int,
    progress: Progress,
    *,
    model: "Model | None" = None,
    alphabet: str | None = None,
    outside: str = "refuse",
) -> "Examples":
    """Training examples (example, pixel) from a file, or those of the data set of this name."""
    return _read(source, "train", binarize, seed, progress, model, alphabet, outside)


def check_output(path: Path | None, *suffixes: str) -> None:
    """Refuse a file that cannot be written there, before the work is done; None is no file."""
    if path is None:
        return
    if path.suffix.lower() not in suffixes:
        raise InputError(
            found=f"{path} as an output file",
            expected=f"a name that ends in {' or '.join(suffixes)}",
            remedy="rename it",
        )
    folder = path.resolve().parent
    if not folder.is_dir():
        raise InputError(
            found=f"no folder {folder} for {path.name}",
            expected="an existing folder",
            remedy="create it, or choose another",
        )
    if path.is_dir() or not os.access(folder, os.W_OK):
        raise InputError(
            found=f"{path}, which {'is a folder' if path.is_dir() else 'must not be written'}",
            expected="a path that can be written to",
            remedy="choose another path, or change the permissions",
        )


def _read(
    source: str,
    split: Split,
    binarize: str | None,
    seed: int,
    progress: Progress,
    model: "Model | None",
    alphabet: str | None,
    outside: str,
) -> "Examples":
    if _is_data_set(source):
        dataset = _load(source, binarize, seed, progress)
        return dataset.train if split == "train" else dataset.test
    from meltpoint.data.read import read
    from meltpoint.layers import BERNOULLI

    examples = read(source, alphabet=alphabet, outside=outside)  # pyright: ignore[reportArgumentType]
    if binarize is None and model is not None and model.units[0] != BERNOULLI:
        return examples
    return _binarized(examples, source, _known(binarize), seed, _STREAMS[split])


def _is_data_set(source: str) -> bool:
    """Whether this can only be the name of a data set: one word, and no file of that name."""
    return source.replace("-", "").isalnum() and not Path(source).exists()


def _load(name: str, binarize: str | None, seed: int, progress: Progress) -> "Dataset":
    from meltpoint.data.catalogue import load

    return load(name, binarize=_known(binarize) or "stochastic", seed=seed, progress=progress)


def _known(binarize: str | None) -> "Binarize | None":
    if binarize is None or binarize == "stochastic" or binarize == "threshold":
        return binarize
    raise InputError(
        found=f"--binarize {binarize}",
        expected="stochastic or threshold",
        remedy="leave it out for binary data",
    )


def _binarized(
    array: "Examples", source: str, binarize: "Binarize | None", seed: int, stream: tuple[int, int]
) -> "Examples":
    low, high = array.min(initial=0), array.max(initial=0)
    # What is not grey goes on as it is: the model's own check says what is wrong with it, if anything.
    if not low >= 0 or array.ndim != 2 or ((array == 0) | (array == 1)).all():
        return array
    found = f"{source} with values from {low:g} to {high:g}"
    if binarize is None:
        raise InputError(
            found=found,
            expected="only 0 and 1",
            remedy="these are grey values: add --binarize stochastic (a seeded draw, the usual choice) or "
            "--binarize threshold",
        )
    if 1 < high < 128 or high > 255:
        raise InputError(
            found=found,
            expected="grey values from 0 to 1, or from 0 to 255",
            remedy="divide by the value of white first",
        )
    from meltpoint.data.dataset import stochastic, threshold

    white = 255.0 if high > 1 else 1.0
    return threshold(array, white) if binarize == "threshold" else stochastic(array, white, seed, stream)


def read_training(data: str, takes_rates: bool, progress: Progress) -> "Examples":
    """Training examples: zeros and ones, or grey values from 0 to 1 that are drawn anew in every epoch.

    Units that do not take rates have other values, which are taken as they are.
    """
    import numpy as np

    from meltpoint.data.catalogue import load, names
    from meltpoint.data.read import read

    if data in names() and not Path(data).exists():
        dataset = load(data, progress=progress)
        return dataset.train if dataset.images.binary else dataset.grey_train
    array = read(data)
    high = array.max(initial=0)
    if not (takes_rates and np.issubdtype(array.dtype, np.integer) and high > 1):
        return array
    if not 128 <= high <= 255:
        raise InputError(
            found=f"{data} with whole numbers up to {high}",
            expected="zeros and ones, or grey values up to 255",
            remedy="for numbered states add --visible potts; grey values of another scale divide by that of white",
        )
    return array.astype(np.float32) / np.float32(255)
