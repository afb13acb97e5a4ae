"""What is measured: models, base distributions, and one timed call of an estimator on them."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal
from unittest.mock import patch

import numpy as np
from scipy.special import logit

from meltpoint import datasets
from meltpoint.annealing.base import Base, uniform
from meltpoint.estimators import chain_batches
from meltpoint.estimators.ais import ais_log_z
from meltpoint.estimators.base_rates import data_rates
from meltpoint.estimators.pilot import FrictionSchedule, friction_schedule
from meltpoint.estimators.raise_ import raise_log_prob
from meltpoint.formats.load import load
from meltpoint.layers.unit import States
from meltpoint.models import Model
from meltpoint.models.dbm import DBM
from meltpoint.models.dbn import DBN
from meltpoint.models.rbm import RBM

SHARED = Path(__file__).resolve().parents[2] / "shared"
PAPER_MODEL = SHARED / "models" / "mnistvh_CD25.mat"
ZOO = Path(__file__).resolve().parents[1] / "zoo"


@dataclass(frozen=True)
class Case:
    """An estimator on a model, and how many times the dense bound it is asked to reach."""

    name: str
    model: Model
    base: Base
    asked: float | None = None
    estimator: Literal["AIS", "RAISE"] = "AIS"
    examples: States | None = None  # RAISE: one chain each, repeated if there are too few
    friction: FrictionSchedule | None = None  # linear steps without
    usual_steps: bool = False  # as many as `evaluate` has, in place of a few hundred

    def run(self, chains: int, steps: int, threads: int) -> "Timing":
        """Time one call of the public function; nothing is kept between calls but the compiled kernels."""
        watch = Watch(self.estimator, time.perf_counter())
        spaced = self.friction.betas(steps) if self.friction else steps
        options = {"base": self.base, "steps": spaced, "threads": threads, "progress": watch}
        with watch.noting_kernels():
            if self.estimator == "AIS":
                value = ais_log_z(self.model, chains=chains, **options).value
            else:
                assert self.examples is not None
                start = self.examples[np.arange(chains) % len(self.examples)]
                value = float(raise_log_prob(self.model, start, chains=1, **options).values.mean())
        end = time.perf_counter()
        return Timing(chains * steps, watch.setup, end - watch.prepared, value)


@dataclass(frozen=True)
class Timing:
    """Chain-steps of one call, the seconds before its first and after it, and the estimate."""

    chain_steps: int
    setup: float
    seconds: float
    value: float

    @property
    def rate(self) -> float:
        """Chain-steps per second once the call is set up."""
        return self.chain_steps / self.seconds


@dataclass
class Watch:
    """A progress callback that notes when the preparations were over and the chains set out."""

    task: str
    start: float
    prepared: float = 0.0

    def __call__(self, task: str, _done: float, _total: float) -> None:
        if task != self.task:
            self.prepared = time.perf_counter()

    @contextmanager
    def noting_kernels(self) -> Iterator[None]:
        """Notes when kernels are there, too: progress tells of them only where they are compiled."""
        compile_kernels = chain_batches.compile_kernels

        def noted(*arguments: Any) -> None:
            compile_kernels(*arguments)
            self.prepared = time.perf_counter()

        with patch.object(chain_batches, "compile_kernels", noted):
            yield

    @property
    def setup(self) -> float:
        """Seconds of preparations."""
        return self.prepared - self.start


def all_cases() -> list[Case]:
    """The cases of the throughput table, the paper's model first."""
    half = symmetric_rbm
    return [
        *paper_cases(),
        *deep_cases(),
        Case("random 784 x 500, half on", half(784, 500), uniform(), 0.9),
        Case("random 1000 x 1000, half on", half(1000, 1000), uniform(), 1.4),
        Case("random 784 x 20, half on", half(784, 20), uniform(), 1.4),
        Case("random 784 x 20, half on, usual steps", half(784, 20), uniform(), 1.4, usual_steps=True),
        Case("random 2000 x 500, half on", half(2000, 500), uniform(), 1.4),
        Case("DBM 784-500-1000, half on", symmetric_dbm(784, 500, 1000), uniform()),
        Case("top RBM of a DBN 784-500-2000, half on", half(500, 2000), uniform()),
    ]


def tiny_case() -> Case:
    """A model so small that a step is mostly overhead."""
    return Case("random 64 x 32, half on", symmetric_rbm(64, 32), uniform())


@cache
def paper_cases() -> tuple[Case, ...]:
    """mnistCD25-500 where ../shared has it, else a random model with as few units on."""
    if not PAPER_MODEL.is_file():
        model = sparse_rbm(784, 500)
        base = Base("data", (logit(np.full(784, _VISIBLE_RATE)),))
        examples = (np.random.default_rng(1).random((1000, 784)) < _VISIBLE_RATE).astype(np.uint8)
        return (
            Case("random sparse 784 x 500, AIS", model, base),
            Case("random sparse 784 x 500, RAISE", model, base, None, "RAISE", examples),
        )
    os.environ.setdefault("MELTPOINT_DATA", str(SHARED / "data"))
    mnist = datasets.load("mnist")
    model, base = load(PAPER_MODEL), data_rates(mnist.train)
    friction = friction_schedule(model, mnist.train, base=base)
    return (
        Case("mnistCD25-500, base data, AIS", model, base, 3.2),
        Case("mnistCD25-500, base data, RAISE", model, base, 3.2, "RAISE", mnist.test),
        Case("mnistCD25-500, friction steps, AIS", model, base, 3.6, friction=friction),
        Case("mnistCD25-500, friction steps, RAISE", model, base, 3.6, "RAISE", mnist.test, friction),
        Case("mnistCD25-500, base uniform, AIS", model, uniform(), 0.9),
        Case("mnistCD25-500, base uniform, RAISE", model, uniform(), 0.9, "RAISE", mnist.test),
    )


def deep_cases() -> tuple[Case, ...]:
    """The trained DBM and the top RBM of the trained DBN, where ../shared has the data they were trained on."""
    if not PAPER_MODEL.is_file():
        return ()
    train = datasets.load("mnist").train
    dbm, dbn = load(ZOO / "mnistDBM-500-1000.npz"), load(ZOO / "mnistDBN-500-2000.npz")
    assert isinstance(dbn, DBN)
    base = data_rates(train, dbm)
    return (
        Case("mnistDBM-500-1000, base data, AIS", dbm, base, 2.6),
        Case(
            "mnistDBM-500-1000, friction steps, AIS",
            dbm,
            base,
            2.6,
            friction=friction_schedule(dbm, train, base=base),
        ),
        Case("top RBM of mnistDBN-500-2000, base data, AIS", dbn.top, data_rates(train, dbn), 1.5),
    )


def symmetric_rbm(n_visible: int, n_hidden: int) -> RBM:
    """Random weights, and biases that make a state as probable as its complement: half the units are on."""
    weights = _weights(n_visible, n_hidden)
    return RBM(weights, -weights.sum(axis=1) / 2, -weights.sum(axis=0) / 2)


def symmetric_dbm(*sizes: int) -> DBM:
    """The same for a DBM."""
    weights = [_weights(lower, upper) for lower, upper in pairwise(sizes)]
    biases = [np.zeros(size) for size in sizes]
    for k, w in enumerate(weights):
        biases[k] -= w.sum(axis=1) / 2
        biases[k + 1] -= w.sum(axis=0) / 2
    return DBM(weights, biases)


_VISIBLE_RATE, _HIDDEN_RATE = 0.1, 0.35


def sparse_rbm(n_visible: int, n_hidden: int) -> RBM:
    """Random weights, about a tenth of the visible and a third of the hidden units on."""
    weights = _weights(n_visible, n_hidden)
    visible_bias = logit(_VISIBLE_RATE) - _HIDDEN_RATE * weights.sum(axis=1)
    return RBM(weights, visible_bias, logit(_HIDDEN_RATE) - _VISIBLE_RATE * weights.sum(axis=0))


def _weights(rows: int, columns: int) -> np.ndarray:
    return np.random.default_rng(0).normal(scale=1 / np.sqrt(rows + columns), size=(rows, columns))
