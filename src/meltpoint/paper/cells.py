"""Cells: the smallest things that are computed and kept, and those each table and figure is made of."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Literal, TypeAlias

from meltpoint.errors import InputError
from meltpoint.models.checks import check_count
from meltpoint.paper.models import DBMS, DBNS, DEEP, PARAMETERS, RBMS, SMALL, PaperBase, PaperModel

CellMethod: TypeAlias = Literal[
    "exact",
    "log-f",
    "ais",
    "raise",
    "raise-n",
    "csl",
    "configurations",
    "draws",
    "samples",
    "annealed",
    "training",
]

BASES: tuple[PaperBase, ...] = ("uniform", "data")
TABLES = ("table1", "table2")

_BOTH: tuple[CellMethod, ...] = ("ais", "raise")
_SAMPLE_STEPS = 1000
_DRAWS = 20

CURVES: dict[str, list[tuple[PaperModel, PaperBase, tuple[CellMethod, ...]]]] = {
    "log-likelihood-rbms": [(model, "uniform", ("raise",)) for model in RBMS],
    "cd1-500": [(RBMS[2], "uniform", _BOTH), (RBMS[2], "data", _BOTH)],
    "cd1-20-dbr": [(RBMS[0], "data", _BOTH)],
    "omni-pcd-1000": [(RBMS[5], "uniform", _BOTH)],
    "dbn": [(DBMS[0], "uniform", _BOTH), (DBNS[0], "uniform", _BOTH)],
}
"""The paper's figures by the labels of its source: the curves over the number of steps in each."""


@dataclass(frozen=True)
class Cell:
    """One estimate of one model: what a method was asked for. What a method does not use is None.

    `chains` are those of AIS or CSL, of RAISE for each example, or the number of draws or pictures; `forward` are the
    forward chains of RAISE with N = forward + 1 particles. The last five methods are the probabilities of hidden
    configurations, log f of other draws of the test set's pixels, samples of a model, samples of its annealing model,
    and training examples.
    """

    model: str
    method: CellMethod
    base: PaperBase | None = None
    steps: int | None = None
    examples: int | None = None
    chains: int | None = None
    seed: int = 0
    test_examples: int | None = None
    forward: int | None = None

    @property
    def name(self) -> str:
        """A name no other cell has, fit for a file.

        >>> Cell("mnistCD1-20", "ais", "data", steps=100, chains=10).name
        'mnistCD1-20.ais.data.steps100.chains10.seed0'
        """
        numbers = {
            "steps": self.steps,
            "examples": self.examples,
            "chains": self.chains,
            "forward": self.forward,
            "seed": self.seed,
            "of": self.test_examples,
        }
        parts = [self.model, self.method, self.base]
        parts += [f"{label}{number}" for label, number in numbers.items() if number is not None]
        return ".".join(part for part in parts if part)


@dataclass(frozen=True)
class Profile:
    """How much to compute: linear steps of the tables, of the curves and of the paper's own parameters; chains.

    The paper's own parameters with `long_steps` may have numbers of chains of their own.
    `test_examples` is how many of the test set are used at all (None: every one).
    """

    name: str
    steps: int
    curve: tuple[int, ...]
    long_steps: int
    examples: int
    chains: int
    ais_chains: int
    test_examples: int | None
    seed: int = 0
    long_chains: int | None = None
    long_ais_chains: int | None = None

    @property
    def forward(self) -> int:
        """Forward chains of RAISE with N particles: all its chains but one for each example, at the same cost."""
        return self.examples * (self.chains - 1)


PROFILES = {
    "full": Profile(
        name="full",
        steps=10_000,
        curve=(10, 30, 100, 300, 1_000, 3_000, 10_000),
        long_steps=100_000,
        examples=100,
        chains=10,
        ais_chains=1_000,
        test_examples=None,
    ),
    "quick": Profile(
        name="quick",
        steps=300,
        curve=(10, 30, 100, 300),
        long_steps=3_000,
        examples=50,
        chains=2,
        ais_chains=100,
        test_examples=500,
    ),
}
PROFILES["paper"] = replace(PROFILES["full"], name="paper", long_chains=50, long_ais_chains=5_000)
"""As `full`, with the paper's numbers of chains for its own parameters."""


def profile_of(name: str, steps: int | None = None) -> Profile:
    """The profile of that name, with another number of steps for the tables if one is given.

    >>> profile_of("full", steps=100).curve
    (10, 30, 100)
    """
    if name not in PROFILES:
        raise InputError(
            found=f"--profile {name}",
            expected=f"one of {', '.join(PROFILES)}",
            remedy="quick takes minutes, full and paper hours",
        )
    profile = PROFILES[name]
    if steps is None or steps == profile.steps:
        return profile
    steps = check_count(steps, "steps", "10,000 give the numbers of the documentation")
    curve = (*(k for k in PROFILES["full"].curve if k < steps), steps)
    return replace(profile, name=f"{name}-{steps}", steps=steps, curve=curve, long_steps=10 * steps)


@dataclass(frozen=True)
class Plan:
    """The cells of every table and figure under one profile; `parameters` says whether the paper's own are there."""

    profile: Profile
    parameters: bool

    def exact(self, model: PaperModel) -> Cell:
        """The exact value, by enumeration."""
        return self._cell(model, "exact")

    def log_f(self, model: PaperModel) -> Cell:
        """The unnormalised probabilities of the test set, where they must be estimated."""
        return self._cell(model, "log-f")

    def ais(self, model: PaperModel, base: PaperBase, steps: int) -> Cell:
        """AIS with so many steps."""
        p = self.profile
        chains = (p.long_ais_chains if steps == p.long_steps else None) or p.ais_chains
        return self._cell(model, "ais", base=base, steps=steps, chains=chains)

    def raise_(self, model: PaperModel, base: PaperBase, steps: int) -> Cell:
        """RAISE with so many steps, as in the paper: one particle."""
        p = self.profile
        chains = (p.long_chains if steps == p.long_steps else None) or p.chains
        return self._cell(model, "raise", base=base, steps=steps, examples=p.examples, chains=chains)

    def raise_n(self, model: PaperModel, base: PaperBase, steps: int) -> Cell:
        """RAISE with N particles: one chain melts each example, the others run forward."""
        p = self.profile
        return replace(self.raise_(model, base, steps), method="raise-n", chains=1, forward=p.forward)

    def csl(self, model: PaperModel) -> Cell:
        """CSL with as many Gibbs moves as AIS makes."""
        p = self.profile
        return self._cell(model, "csl", base="data", steps=p.steps, examples=p.examples, chains=p.ais_chains)

    def configurations(self) -> Cell:
        """The probabilities of all hidden configurations of mnistCD1-20."""
        return Cell(SMALL[0].name, "configurations", seed=self.profile.seed)

    def draws(self) -> Cell:
        """log f of the paper's own parameters on other draws of the test set's pixels."""
        return self._cell(PARAMETERS, "draws", chains=_DRAWS)

    def pictures(self, name: str) -> list[Cell]:
        """The samples and examples a figure shows beside its curves."""
        seed = self.profile.seed
        if name == "cd1-20-dbr":
            return [
                Cell(SMALL[0].name, "samples", steps=_SAMPLE_STEPS, chains=10, seed=seed),
                Cell(SMALL[0].name, "annealed", "data", steps=10, chains=10, seed=seed),
            ]
        if name == "omni-pcd-1000":
            return [
                Cell(RBMS[5].name, "training", chains=32, seed=seed),
                Cell(RBMS[5].name, "annealed", "uniform", self.profile.steps, chains=32, seed=seed),
            ]
        return []

    def rows(self, table: str) -> list[tuple[PaperModel, int]]:
        """The models of a table with their numbers of steps: the paper's own parameters have few and many."""
        p = self.profile
        if table == "table2":
            return [(model, p.steps) for model in DEEP]
        own = [(PARAMETERS, p.steps), (PARAMETERS, p.long_steps)] if self.parameters else []
        return [*((model, p.steps) for model in RBMS), *own]

    def table(self, table: str) -> list[Cell]:
        """The cells of a table: RBMs in the first, deep models in the second."""
        rows = self.rows(table)
        cells = [c for model, steps in rows for base in bases_of(model) for c in self.row(model, base, steps)]
        if table == "table2":
            return cells
        shallow = [model for model, steps in rows if steps == self.profile.steps]
        draws = [self.draws()] if self.parameters else []
        return [*map(self.exact, SMALL), *cells, *map(self.csl, shallow), self.configurations(), *draws]

    def row(self, model: PaperModel, base: PaperBase, steps: int) -> Iterator[Cell]:
        """AIS and RAISE with one and with N particles, and what they rest on."""
        if model in DEEP:
            yield self.log_f(model)
        yield self.ais(model, base, steps)
        yield self.raise_(model, base, steps)
        yield self.raise_n(model, base, steps)

    def figure(self, name: str) -> list[Cell]:
        """The cells of one figure."""
        cells = [
            cell
            for model, base, methods in CURVES[name]
            for steps in self.profile.curve
            for cell in self.row(model, base, steps)
            if cell.method in (*methods, "log-f")
        ]
        exact = [self.exact(SMALL[0])] if name == "cd1-20-dbr" else []
        return [*cells, *exact, *self.pictures(name)]

    def all(self) -> list[list[Cell]]:
        """Every cell, in groups: tables before figures, what takes longest at the end of the tables."""
        table1, long_steps = self.table("table1"), self.profile.long_steps
        figures = [cell for name in CURVES for cell in self.figure(name)]
        return [
            [cell for cell in table1 if cell.steps != long_steps],
            self.table("table2"),
            [cell for cell in table1 if cell.steps == long_steps],
            figures,
        ]

    def _cell(self, model: PaperModel, method: CellMethod, **asked: Any) -> Cell:  # noqa: ANN401
        return Cell(
            model.name,
            method,
            seed=self.profile.seed,
            test_examples=self.profile.test_examples,
            **asked,
        )


def bases_of(model: PaperModel) -> tuple[PaperBase, ...]:
    """The base distributions of a model's row: the paper has no data base rates for DBNs."""
    return BASES[:1] if model in DBNS else BASES


def unique(groups: list[list[Cell]]) -> list[Cell]:
    """The cells of all groups, each once."""
    return list(dict.fromkeys(chain.from_iterable(groups)))
