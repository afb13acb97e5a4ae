"""Cells: the smallest things that are computed and kept, and those each table and figure is made of."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import meltpoint as mp
from reproduce.models import BASES, DBMS, DBNS, DEEP, PARAMETERS, RBMS, SMALL, PaperModel

TABLES = ("table1", "table2")
CURVES: dict[str, list[tuple[PaperModel, str, tuple[str, ...]]]] = {
    "log-likelihood-rbms": [(model, "uniform", ("raise",)) for model in RBMS],
    "cd1-500": [(RBMS[2], base, ("ais", "raise")) for base in BASES],
    "cd1-20-dbr": [(RBMS[0], "data", ("ais", "raise"))],
    "omni-pcd-1000": [(RBMS[5], "uniform", ("ais", "raise"))],
    "dbn": [(model, "uniform", ("ais", "raise")) for model in (DBMS[0], DBNS[0])],
}
"""The paper's figures by the labels of its source: the curves over the number of steps in each."""


@dataclass(frozen=True)
class Cell:
    """One estimate of one model: a method and its settings. What a method does not use is None.

    `method` is exact, log-f, ais, raise, raise-n, csl, configurations (the probabilities of hidden ones), draws (log f
    of other draws of the test set's pixels), samples (of the model), annealed (of its annealing model) or training
    (examples). `chains` are those of AIS or CSL, of RAISE for each example, or the number of draws or pictures;
    `forward` are the forward chains of RAISE with N = forward + 1 particles.
    """

    model: str
    method: str
    base: str | None = None
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
        labels = ("steps", "examples", "chains", "forward", "seed")
        numbers = {label: getattr(self, label) for label in labels} | {"of": self.test_examples}
        parts = [f"{label}{number}" for label, number in numbers.items() if number is not None]
        return ".".join(part for part in (self.model, self.method, self.base, *parts) if part)


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
    long_chains: int | None = None
    long_ais_chains: int | None = None
    seed: int = 0

    @property
    def forward(self) -> int:
        """Forward chains of RAISE with N particles: all its chains but one for each example, at the same cost."""
        return self.examples * (self.chains - 1)


_CURVE = (10, 30, 100, 300, 1_000, 3_000, 10_000)
PROFILES = {
    "quick": Profile("quick", 300, _CURVE[:4], 3_000, 50, 2, 100, 500),
    "full": Profile("full", 10_000, _CURVE, 100_000, 100, 10, 1_000, None),
    # As `full`, with the paper's numbers of chains for its own parameters.
    "paper": Profile("paper", 10_000, _CURVE, 100_000, 100, 10, 1_000, None, 50, 5_000),
}


def profile_of(name: str, steps: int | None = None) -> Profile:
    """The profile of that name, with another number of steps for the tables if one is given.

    >>> profile_of("full", steps=100).curve
    (10, 30, 100)
    """
    if name not in PROFILES:
        expected, remedy = f"one of {', '.join(PROFILES)}", "quick takes minutes, full and paper hours"
        raise mp.InputError(found=f"--profile {name}", expected=expected, remedy=remedy)
    profile = PROFILES[name]
    if steps is None or steps == profile.steps:
        return profile
    if steps < 1:
        remedy = "10,000 give the numbers of the documentation"
        raise mp.InputError(found=f"--steps {steps}", expected="a number from 1 on", remedy=remedy)
    curve = (*(k for k in _CURVE if k < steps), steps)
    return replace(profile, name=f"{name}-{steps}", steps=steps, curve=curve, long_steps=10 * steps)


@dataclass(frozen=True)
class Plan:
    """The cells of every table and figure under one profile; `parameters` says whether the paper's own are there."""

    profile: Profile
    parameters: bool

    def cell(self, model: PaperModel, method: str, base: str | None = None, steps: int | None = None) -> Cell:
        """The cell of a method, with the sizes of the profile."""
        p = self.profile
        longest = steps == p.long_steps
        sizes: dict[str, dict[str, Any]] = {
            "ais": {"chains": (longest and p.long_ais_chains) or p.ais_chains},
            "raise": {"examples": p.examples, "chains": (longest and p.long_chains) or p.chains},
            # One chain melts each example, the others run forward.
            "raise-n": {"examples": p.examples, "chains": 1, "forward": p.forward},
            # As many Gibbs moves as AIS makes.
            "csl": {"base": "data", "steps": p.steps, "examples": p.examples, "chains": p.ais_chains},
            "draws": {"chains": 20},
            "configurations": {"test_examples": None},
        }
        chosen = {"base": base, "steps": steps, "test_examples": p.test_examples, **sizes.get(method, {})}
        return Cell(model.name, method, seed=p.seed, **chosen)

    def pictures(self, figure: str) -> list[Cell]:
        """The samples and examples a figure shows beside its curves."""
        p, small, omniglot = self.profile, SMALL[0].name, RBMS[5].name
        if figure == "cd1-20-dbr":
            samples = Cell(small, "samples", steps=1000, chains=10, seed=p.seed)
            return [samples, Cell(small, "annealed", "data", steps=10, chains=10, seed=p.seed)]
        if figure == "omni-pcd-1000":
            training = Cell(omniglot, "training", chains=32, seed=p.seed)
            return [training, Cell(omniglot, "annealed", "uniform", p.steps, chains=32, seed=p.seed)]
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
        cells = [
            cell for model, steps in rows for base in model.bases for cell in self.row(model, base, steps)
        ]
        if table == "table2":
            return cells
        exact = [self.cell(model, "exact") for model in SMALL]
        csl = [self.cell(model, "csl") for model, steps in rows if steps == self.profile.steps]
        draws = [self.cell(PARAMETERS, "draws")] if self.parameters else []
        return [*exact, *cells, *csl, self.cell(SMALL[0], "configurations"), *draws]

    def row(
        self,
        model: PaperModel,
        base: str,
        steps: int,
        methods: Iterable[str] = ("ais", "raise", "raise-n"),
    ) -> list[Cell]:
        """AIS and RAISE with one and with N particles, and what they rest on."""
        log_f = [self.cell(model, "log-f")] if model in DEEP else []
        return log_f + [self.cell(model, method, base, steps) for method in methods]

    def figure(self, name: str) -> list[Cell]:
        curve = self.profile.curve
        cells = [cell for m, base, how in CURVES[name] for k in curve for cell in self.row(m, base, k, how)]
        exact = [self.cell(SMALL[0], "exact")] if name == "cd1-20-dbr" else []
        return [*cells, *exact, *self.pictures(name)]

    def all(self) -> list[list[Cell]]:
        """Every cell, in groups: tables before figures, what takes longest at the end of the tables."""
        table1, long_steps = self.table("table1"), self.profile.long_steps
        return [
            [cell for cell in table1 if cell.steps != long_steps],
            self.table("table2"),
            [cell for cell in table1 if cell.steps == long_steps],
            [cell for name in CURVES for cell in self.figure(name)],
        ]


def unique(groups: Iterable[Iterable[Cell]]) -> list[Cell]:
    return list(dict.fromkeys(chain.from_iterable(groups)))
