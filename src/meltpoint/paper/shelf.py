"""Models and data sets, read when they are first needed, with digests of what they hold."""

import hashlib
import itertools
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np

from meltpoint.annealing.base import Base, data_rates, uniform
from meltpoint.datasets.catalogue import load as load_data
from meltpoint.datasets.dataset import Dataset
from meltpoint.errors import Progress
from meltpoint.files.models import load as load_model
from meltpoint.models import Model
from meltpoint.models.checks import Bits
from meltpoint.paper.cells import BaseName, Cell
from meltpoint.paper.store import fingerprint
from meltpoint.paper.subjects import PARAMETERS, SUBJECTS, Subject, model_file, parameters_file
from meltpoint.randomness import Purpose, generator

_STEP_WORK = 50_000  # what a step of a chain costs besides its pairs of units, counted in them


@dataclass(frozen=True)
class Loaded:
    """A model with its data set and the digests of both."""

    model: Model
    model_digest: str
    data: Dataset
    data_digest: str

    def test(self, cell: Cell) -> Bits:
        """The test examples a cell is about: all, or a random choice of as many as it says."""
        if cell.test_examples is None or cell.test_examples >= len(self.data.test):
            return self.data.test
        chooser = generator(cell.seed, Purpose.EXAMPLES, cell.test_examples)
        return self.data.test[chooser.choice(len(self.data.test), size=cell.test_examples, replace=False)]

    def base(self, name: BaseName | None) -> Base:
        """The base distribution of that name."""
        return data_rates(self.data.train, self.model) if name == "data" else uniform()

    @cached_property
    def work(self) -> int:
        """Time for one step of one chain, in pairs of units."""
        return sum(a * b for a, b in itertools.pairwise(self.model.undirected.layer_sizes)) + _STEP_WORK


@dataclass(frozen=True)
class Shelf:
    """The folder of models, the paper's own parameters if they are there, and what has been read of them."""

    models: Path
    given_parameters: Path | None = None
    progress: Progress | None = None
    _loaded: dict[str, Loaded] = field(default_factory=dict)
    _data: dict[str, tuple[Dataset, str]] = field(default_factory=dict)

    @cached_property
    def parameters(self) -> Path | None:
        """The file with the paper's own parameters, if it is there."""
        return parameters_file(self.given_parameters, self.models)

    def path(self, subject: Subject) -> Path:
        """The file of a model."""
        if subject == PARAMETERS and self.parameters is not None:
            return self.parameters
        return model_file(subject, self.models)

    def __getitem__(self, name: str) -> Loaded:
        """The model of that name."""
        if name not in self._loaded:
            subject = SUBJECTS[name]
            path = self.path(subject)
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
            self._loaded[name] = Loaded(load_model(path), digest, *self._dataset(subject.data))
        return self._loaded[name]

    def fingerprint(self, cell: Cell) -> str:
        """What the cell's numbers depend on."""
        loaded = self[cell.model]
        return fingerprint(cell, loaded.model_digest, loaded.data_digest)

    def _dataset(self, name: str) -> tuple[Dataset, str]:
        if name not in self._data:
            data = load_data(name, progress=self.progress)
            digest = hashlib.sha256(np.packbits(data.test).tobytes() + np.packbits(data.train).tobytes())
            self._data[name] = data, digest.hexdigest()
        return self._data[name]
