"""What arguments of commands name: models, examples in a file or a data set, and files to be written."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from meltpoint.errors import InputError, Progress

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from meltpoint.data.dataset import Binarize, Dataset
    from meltpoint.models.model import Model

    Examples: TypeAlias = NDArray[Any]

Split: TypeAlias = Literal["train", "test"]

LOAD_OPTIONS: dict[str, tuple[type[str] | type[int] | type[float], str]] = {
    "orientation": (str, "Axes of square weights: visible-hidden or hidden-visible."),
    "visible": (str, "Kind of the visible units: bernoulli or spin."),
    "hidden": (str, "Kind of the hidden units: bernoulli or spin."),
    "weights": (str, "Name of the array that holds the weights."),
    "visible_bias": (str, "Name of the array of visible biases."),
    "hidden_bias": (str, "Name of the array of hidden biases."),
    "units": (str, "Units of a graph: spin or bernoulli."),
    "temperature": (float, "T of exp(-E / T), for files that hold an energy."),
    "beta": (float, "1 / T, in place of --temperature."),
    "states": (int, "Number of states of every site."),
    "base": (int, "Number of the first site: 0 or 1."),
    "alphabet": (str, "Letters of the states in order, or protein, rna, dna."),
    "gap": (str, "Whether a gap is a state: state or masked."),
    "gauge": (str, "zero-sum, to move the couplings there."),
    "update": (str, "Which update of training: a number, first, last."),
    "member": (str, "Which file of a tar archive."),
    "unpacked": (int, "Megabytes that a packed file may be unpacked to (256)."),
}
"""Keywords of `load`: their types, and what they leave open."""

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
    from meltpoint.formats.load import takes_options

    files = {name: Path(str(path)) for name, path in named_sources(paths, names).items()}
    return {
        name: load_model(path, options if options and takes_options(path) else None)
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
            given[name] = LOAD_OPTIONS.get(name, (str,))[0](value.strip())
        except ValueError:
            raise InputError(
                found=f"--option {text}", expected=f"a number as {name}", remedy="correct it"
            ) from None
    return given


@dataclass(frozen=True)
class Reading:
    """How examples are read from a file or a data set: grey values by `binarize`, sequences by `alphabet`."""

    progress: Progress
    seed: int = 0
    binarize: str | None = None
    alphabet: str | None = None
    outside: str = "refuse"

    def pair(self, test: str, model: "Model", train: str | None = None) -> "tuple[Examples, Examples | None]":
        """Test examples, and training examples if they are named or belong to the same data set."""
        if _is_data_set(test) and train in (None, test):
            dataset = self._load(test)
            return dataset.test, dataset.train
        return self.read(test, "test", model), None if train is None else self.read(train, "train", model)

    def read(self, source: str, split: Split, model: "Model") -> "Examples":
        """Examples (example, unit) from a file, or those of a data set.

        Grey values are binarised for a model of bits; other models take the values as they are.
        """
        if _is_data_set(source):
            dataset = self._load(source)
            return dataset.train if split == "train" else dataset.test
        from meltpoint.data.read import read
        from meltpoint.layers import BERNOULLI

        examples = read(source, alphabet=self.alphabet, outside=self.outside)  # pyright: ignore[reportArgumentType]
        if self.binarize is None and model.units[0] != BERNOULLI:
            return examples
        return _binarized(examples, source, self._method(), self.seed, _STREAMS[split])

    def _load(self, name: str) -> "Dataset":
        from meltpoint.data.catalogue import load

        return load(name, binarize=self._method() or "stochastic", seed=self.seed, progress=self.progress)

    def _method(self) -> "Binarize | None":
        if self.binarize is None or self.binarize == "stochastic" or self.binarize == "threshold":
            return self.binarize
        raise InputError(
            found=f"--binarize {self.binarize}",
            expected="stochastic or threshold",
            remedy="leave it out for binary data",
        )


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


def _is_data_set(source: str) -> bool:
    """Whether this can only be the name of a data set: one word, and no file of that name."""
    return source.replace("-", "").isalnum() and not Path(source).exists()


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
