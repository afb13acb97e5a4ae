"""The models of the paper: their values in its tables, the files they are read from, and their data sets."""

import hashlib
import itertools
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Literal, TypeAlias

import numpy as np

from meltpoint.annealing.base import Base, data_rates, uniform
from meltpoint.datasets.catalogue import load as load_data
from meltpoint.datasets.dataset import Dataset
from meltpoint.errors import InputError, Progress
from meltpoint.formats.models import load as load_model
from meltpoint.models import Model

PaperBase: TypeAlias = Literal["uniform", "data"]

PAPER_STEPS = 100_000
"""Linear steps of the paper's tables, with 100 examples of 50 chains each and 5,000 AIS chains."""

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


@dataclass(frozen=True)
class PaperValues:
    """A row of the paper's tables; for each base distribution RAISE, AIS and the gap. None is a dash."""

    bases: dict[PaperBase, tuple[float, float, float]]
    exact: float | None = None
    csl: float | None = None


PAPER_VALUES = {
    "mnistCD1-20": PaperValues(
        {"uniform": (-165.33, -164.51, 0.82), "data": (-164.11, -164.50, -0.39)}, -164.50, -185.74
    ),
    "mnistPCD-20": PaperValues(
        {"uniform": (-150.58, -150.04, 0.54), "data": (-150.17, -150.10, 0.07)}, -150.11, -152.13
    ),
    "mnistCD1-500": PaperValues(
        {"uniform": (-150.78, -106.52, 44.26), "data": (-124.77, -124.09, 0.68)}, csl=-566.91
    ),
    "mnistPCD-500": PaperValues(
        {"uniform": (-101.07, -99.99, 1.08), "data": (-101.26, -101.28, -0.02)}, csl=-138.76
    ),
    "mnistCD25-500": PaperValues(
        {"uniform": (-88.51, -86.42, 2.09), "data": (-86.39, -86.35, 0.04)}, csl=-145.26
    ),
    "omniPCD-1000": PaperValues(
        {"uniform": (-100.47, -100.45, 0.02), "data": (-100.46, -100.46, 0.00)}, csl=-144.25
    ),
    "MNIST DBM": PaperValues({"uniform": (-85.69, -85.72, -0.03), "data": (-85.74, -85.67, 0.07)}),
    "Omniglot DBM": PaperValues({"uniform": (-104.48, -110.86, -6.38), "data": (-102.64, -103.27, -0.63)}),
    "MNIST DBN": PaperValues({"uniform": (-84.67, -84.49, 0.18)}),
    "Omniglot DBN": PaperValues({"uniform": (-100.78, -100.45, 0.33)}),
}
"""The rows by the names they have in the paper."""

PAPER_VALUES["mnistvh_CD25.mat"] = PAPER_VALUES["mnistCD25-500"]


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
