"""The models of the paper: its values for them (`paper.csv`), the files they are read from, and their data sets."""

import csv
import hashlib
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

import meltpoint as mp

Bits: TypeAlias = NDArray[Any]

BASES = ("uniform", "data")
PAPER_STEPS = 100_000
"""Linear steps of the paper's tables, with 100 examples of 50 chains each and 5,000 AIS chains."""

_STEP_WORK = 50_000  # what a step of a chain costs besides its pairs of units, counted in them


@dataclass(frozen=True, eq=False)
class PaperModel:
    """A model of the paper, with the values its tables have, by column."""

    name: str
    label: str
    data: str
    values: dict[str, float]

    @property
    def bases(self) -> list[str]:
        """The base distributions of its row: the paper has no data base rates for DBNs."""
        return [base for base in BASES if f"{base} AIS" in self.values]


def _read_models() -> dict[str, PaperModel]:
    with Path(__file__).with_name("paper.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return {
        (name := row.pop("name")): PaperModel(
            name,
            row.pop("label"),
            row.pop("data"),
            {key: float(value) for key, value in row.items() if value},
        )
        for row in rows
    }


MODELS = _read_models()
PARAMETERS = MODELS["mnistvh_CD25"]
"""The paper's own parameters of mnistCD25-500, as Salakhutdinov published them; not part of this project."""

RBMS = [model for model in MODELS.values() if "CSL" in model.values and model is not PARAMETERS]
SMALL = [model for model in RBMS if "exact" in model.values]
DBMS = [model for name, model in MODELS.items() if "DBM" in name]
DBNS = [model for name, model in MODELS.items() if "DBN" in name]
DEEP = DBMS + DBNS


@dataclass(frozen=True, eq=False)
class LoadedModel:
    """A model with its data set and the digests of both."""

    model: Any
    model_digest: str
    data: mp.datasets.Dataset
    data_digest: str

    def base(self, name: str | None) -> mp.Base:
        return self._data_rates if name == "data" else mp.uniform()

    @cached_property
    def _data_rates(self) -> mp.Base:
        return mp.data_rates(self.data.train, self.model)

    @property
    def work(self) -> int:
        """Time for one step of one chain, in pairs of units."""
        sizes = self.model.layer_sizes
        annealed = sizes[-2:] if isinstance(self.model, mp.DBN) else sizes
        return sum(a * b for a, b in pairwise(annealed)) + _STEP_WORK


def load_data(name: str) -> tuple[mp.datasets.Dataset, str]:
    data = mp.datasets.load(name)
    digest = hashlib.sha256(np.packbits(data.test).tobytes() + np.packbits(data.train).tobytes())
    return data, digest.hexdigest()


@dataclass(frozen=True)
class Inputs:
    """The folder of models, the file of the paper's own parameters if there is one, and what has been read of them."""

    folder: Path
    given_parameters: Path | None = None
    _loaded: dict[str, Any] = field(default_factory=dict)

    def __getitem__(self, name: str) -> LoadedModel:
        if name not in self._loaded:
            path, data = self._path(name), MODELS[name].data
            if data not in self._loaded:
                self._loaded[data] = load_data(data)
            digest = hashlib.sha256(path.read_bytes())
            self._loaded[name] = LoadedModel(mp.load(path), digest.hexdigest(), *self._loaded[data])
        return self._loaded[name]

    @cached_property
    def parameters(self) -> Path | None:
        """The file with the paper's own parameters: as given, or among the models; None if it is not there."""
        path = self.given_parameters or self.folder / PARAMETERS.label
        if path.is_file():
            return path
        if self.given_parameters is None:
            return None
        raise mp.InputError(
            found=f"no file {path}",
            expected=f"{PARAMETERS.label}, the paper's own parameters",
            remedy="leave --parameters out, and the tables have one row less",
        )

    def _path(self, name: str) -> Path:
        if name == PARAMETERS.name and self.parameters is not None:
            return self.parameters
        path = self.folder / f"{name}.npz"
        if not path.is_file():
            raise mp.InputError(
                found=f"no {path}",
                expected=f"{name}.npz in the folder of models",
                remedy="run this in a checkout of meltpoint, whose folder zoo has the models, or name another "
                f"with --models; meltpoint train --recipe recipes/{name}.toml trains this one",
            )
        return path
