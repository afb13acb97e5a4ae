"""Cells: the smallest things that are computed and kept, and those each table and figure is made of."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from meltpoint.paper.profiles import Profile
from meltpoint.paper.subjects import DBMS, DBNS, DEEP, PARAMETERS, RBMS, SMALL, Subject

Method: TypeAlias = Literal[
    "exact", "log-f", "ais", "raise", "csl", "configurations", "samples", "annealed", "training"
]
BaseName: TypeAlias = Literal["uniform", "data"]

_SAMPLE_STEPS = 1000

BASES: tuple[BaseName, ...] = ("uniform", "data")


@dataclass(frozen=True)
class Cell:
    """One estimate of one model: what a method was asked for. What a method does not use is None.

    `chains` are those of AIS or CSL, of RAISE for each example, or the number of pictures. The last four methods
    are the probabilities of hidden configurations, samples of a model, samples of its annealing model, and
    training examples.
    """

    model: str
    method: Method
    base: BaseName | None = None
    steps: int | None = None
    examples: int | None = None
    chains: int | None = None
    seed: int = 0
    test_examples: int | None = None

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
            "seed": self.seed,
            "of": self.test_examples,
        }
        parts = [self.model, self.method, self.base]
        parts += [f"{label}{number}" for label, number in numbers.items() if number is not None]
        return ".".join(part for part in parts if part)


@dataclass(frozen=True)
class Plan:
    """The cells of every table and figure under one profile; `parameters` says whether the paper's own are there."""

    profile: Profile
    parameters: bool

    def exact(self, subject: Subject) -> Cell:
        """The exact value, by enumeration."""
        return Cell(subject.name, "exact", seed=self.profile.seed, test_examples=self.profile.test_examples)

    def log_f(self, subject: Subject) -> Cell:
        """The unnormalised probabilities of the test set, where they must be estimated."""
        return Cell(subject.name, "log-f", seed=self.profile.seed, test_examples=self.profile.test_examples)

    def ais(self, subject: Subject, base: BaseName, steps: int) -> Cell:
        """AIS with so many steps."""
        p = self.profile
        return Cell(
            subject.name,
            "ais",
            base,
            steps,
            chains=p.ais_chains,
            seed=p.seed,
            test_examples=p.test_examples,
        )

    def raise_(self, subject: Subject, base: BaseName, steps: int) -> Cell:
        """RAISE with so many steps."""
        p = self.profile
        return Cell(
            subject.name,
            "raise",
            base,
            steps,
            p.examples,
            p.chains,
            seed=p.seed,
            test_examples=p.test_examples,
        )

    def csl(self, subject: Subject) -> Cell:
        """CSL with as many Gibbs moves as AIS makes."""
        p = self.profile
        return Cell(subject.name, "csl", "data", p.steps, p.examples, p.ais_chains, p.seed, p.test_examples)

    def configurations(self) -> Cell:
        """The probabilities of all hidden configurations of mnistCD1-20."""
        return Cell(SMALL[0].name, "configurations", seed=self.profile.seed)

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

    def both(self, subject: Subject, base: BaseName, steps: int) -> Iterator[Cell]:
        """AIS and RAISE, and what they rest on."""
        if subject in DEEP:
            yield self.log_f(subject)
        yield self.ais(subject, base, steps)
        yield self.raise_(subject, base, steps)

    def table1(self) -> list[Cell]:
        """The RBMs (the paper's table 1)."""
        cells = [self.exact(subject) for subject in SMALL]
        rows = (*RBMS, PARAMETERS) if self.parameters else RBMS
        cells += [c for s in rows for base in BASES for c in self.both(s, base, self.profile.steps)]
        if self.parameters:
            cells += [c for base in BASES for c in self.both(PARAMETERS, base, self.profile.long_steps)]
        return [*cells, *(self.csl(subject) for subject in rows), self.configurations()]

    def table2(self) -> list[Cell]:
        """The deep models (the paper's table 2); it has no data base rates for DBNs."""
        steps = self.profile.steps
        cells = [c for dbm in DBMS for base in BASES for c in self.both(dbm, base, steps)]
        return cells + [c for dbn in DBNS for c in self.both(dbn, "uniform", steps)]

    def figure(self, name: str) -> list[Cell]:
        """The cells of one figure."""
        cells: list[Cell] = []
        for subject, base, methods in CURVES[name]:
            for steps in self.profile.curve:
                kept = [c for c in self.both(subject, base, steps) if c.method in (*methods, "log-f")]
                cells += kept
        if name == "cd1-20-dbr":
            cells.append(self.exact(SMALL[0]))
        return cells + self.pictures(name)

    def all(self) -> list[list[Cell]]:
        """Every cell, in groups: tables before figures, what takes longest at the end of the tables."""
        table1 = self.table1()
        long = [cell for cell in table1 if cell.steps == self.profile.long_steps]
        figures = [cell for name in CURVES for cell in self.figure(name)]
        return [[cell for cell in table1 if cell not in long], self.table2(), long, figures]


_BOTH: tuple[Method, ...] = ("ais", "raise")

CURVES: dict[str, list[tuple[Subject, BaseName, tuple[Method, ...]]]] = {
    "log-likelihood-rbms": [(subject, "uniform", ("raise",)) for subject in RBMS],
    "cd1-500": [(RBMS[2], "uniform", _BOTH), (RBMS[2], "data", _BOTH)],
    "cd1-20-dbr": [(RBMS[0], "data", _BOTH)],
    "omni-pcd-1000": [(RBMS[5], "uniform", _BOTH)],
    "dbn": [(DBMS[0], "uniform", _BOTH), (DBNS[0], "uniform", _BOTH)],
}
"""The paper's figures by the labels of its source: the curves over the number of steps in each."""
