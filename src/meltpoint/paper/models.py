"""The models of the paper: the files they are read from, and their data sets, read when they are first needed."""

import hashlib
import itertools
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np

from meltpoint.annealing.base import Base, data_rates, uniform
from meltpoint.datasets.catalogue import load as load_data
from meltpoint.datasets.dataset import Dataset
from meltpoint.errors import InputError, Progress
from meltpoint.files.models import load as load_model
from meltpoint.models import Model

_STEP_WORK = 50_000  # what a step of a chain costs besides its pairs of units, counted in them


@dataclass(frozen=True)
class PaperModel:
    """A model the paper evaluates: its name, its name in the paper's tables, and its data set."""

    name: str
    label: str
    data: str


RBMS = (
    PaperModel("mnistCD1-20", "mnistCD1-20", "mnist"),
    PaperModel("mnistPCD-20", "mnistPCD-20", "mnist"),
    PaperModel("mnistCD1-500", "mnistCD1-500", "mnist"),
    PaperModel("mnistPCD-500", "mnistPCD-500", "mnist"),
    PaperModel("mnistCD25-500", "mnistCD25-500", "mnist"),
    PaperModel("omniPCD-1000", "omniPCD-1000", "omniglot"),
)
SMALL = RBMS[:2]
"""The RBMs with 20 hidden units, whose exact value is known."""

DBMS = (
    PaperModel("mnistDBM-500-1000", "MNIST DBM", "mnist"),
    PaperModel("omniDBM-1000-1000", "Omniglot DBM", "omniglot"),
)
DBNS = (
    PaperModel("mnistDBN-500-2000", "MNIST DBN", "mnist"),
    PaperModel("omniDBN-1000-1000", "Omniglot DBN", "omniglot"),
)
DEEP = DBMS + DBNS

PARAMETERS = PaperModel("mnistvh_CD25", "mnistvh_CD25.mat", "mnist")
"""The paper's own parameters of mnistCD25-500, as Salakhutdinov published them; not part of this project."""

MODELS = {model.name: model for model in (*RBMS, *DEEP, PARAMETERS)}


@dataclass(frozen=True, eq=False)
class LoadedModel:
    """A model with its data set and the digests of both."""

    model: Model
    model_digest: str
    data: Dataset
    data_digest: str

    def base(self, name: str | None) -> Base:
        """The base distribution of that name."""
        return data_rates(self.data.train, self.model) if name == "data" else uniform()

    @cached_property
    def work(self) -> int:
        """Time for one step of one chain, in pairs of units."""
        return sum(a * b for a, b in itertools.pairwise(self.model.undirected.layer_sizes)) + _STEP_WORK

    @property
    def heated(self) -> bool:
        """Whether RAISE has to heat hidden layers before it melts an example, as in a DBM."""
        return self.model.raise_passes > 1


@dataclass(frozen=True)
class Inputs:
    """The folder of models, the file of the paper's own parameters if there is one, and what has been read of them."""

    folder: Path
    given_parameters: Path | None = None
    progress: Progress | None = None
    _loaded: dict[str, LoadedModel] = field(default_factory=dict)
    _data: dict[str, tuple[Dataset, str]] = field(default_factory=dict)

    def __getitem__(self, name: str) -> LoadedModel:
        """The model of that name."""
        if name not in self._loaded:
            model = MODELS[name]
            path = self._path(model)
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
            self._loaded[name] = LoadedModel(load_model(path), digest, *self._dataset(model.data))
        return self._loaded[name]

    @cached_property
    def parameters(self) -> Path | None:
        """The file with the paper's own parameters: as given, or among the models; None if it is not there."""
        if self.given_parameters is None:
            path = self.folder / PARAMETERS.label
            return path if path.is_file() else None
        if not self.given_parameters.is_file():
            raise InputError(
                found=f"no file {self.given_parameters}",
                expected=f"{PARAMETERS.label}, the paper's own parameters",
                remedy="leave --parameters out, and the tables have one row less",
            )
        return self.given_parameters

    def _path(self, model: PaperModel) -> Path:
        if model == PARAMETERS and self.parameters is not None:
            return self.parameters
        path = self.folder / f"{model.name}.npz"
        if not path.is_file():
            raise InputError(
                found=f"no {path}",
                expected=f"{model.name}.npz in the folder of models",
                remedy="run this in a checkout of meltpoint, whose folder zoo has the models, or name another "
                f"with --models; meltpoint train --recipe recipes/{model.name}.toml trains this one",
            )
        return path

    def _dataset(self, name: str) -> tuple[Dataset, str]:
        if name not in self._data:
            data = load_data(name, progress=self.progress)
            digest = hashlib.sha256(np.packbits(data.test).tobytes() + np.packbits(data.train).tobytes())
            self._data[name] = data, digest.hexdigest()
        return self._data[name]
