"""Annealing on the enumerated joint state: transition matrices, the annealing model, expectations of weights.

Everything follows the equations of the paper's text. A transition matrix is (from, to) and its rows sum to 1;
conditionals are read off the table of the joint distribution, so that no sigmoid can hide a mistake. An
expectation over chains is exact: a row vector times matrices.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from oracle.tables import Layers, Table, all_states, code, independent, marginal

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Path:
    """The geometric path (Eq. 9) between two enumerated models; units of even layers form the even side."""

    log_f_base: Table
    log_f_model: Table
    layer_of_unit: NDArray[np.int64]

    @property
    def visible(self) -> Mask:
        """Units of layer 0."""
        return self.layer_of_unit == 0

    @property
    def even(self) -> Mask:
        """Units of layers 0, 2, 4, …"""
        return self.layer_of_unit % 2 == 0

    def log_f(self, beta: float) -> Table:
        """log f_beta (joint state,)."""
        return (1 - beta) * self.log_f_base + beta * self.log_f_model

    def z(self, beta: float) -> float:
        """The normaliser."""
        return float(np.exp(self.log_f(beta)).sum())

    def p(self, beta: float) -> Table:
        """The distribution (joint state,)."""
        return np.exp(self.log_f(beta)) / self.z(beta)

    def rows(self, table: Table) -> Table:
        """A table (joint state,) split by visible state: (visible state, joint state)."""
        visible = code(all_states(self.visible.size)[:, self.visible])
        return np.where(visible == np.arange(2 ** self.visible.sum())[:, np.newaxis], table, 0.0)

    def gibbs(self, beta: float, frozen: Mask | None = None) -> Table:
        """T_beta: the odd side given the even side, then the even side (what is not frozen) given the odd."""
        moved = self.even if frozen is None else self.even & ~frozen
        return resample(self.p(beta), ~self.even) @ resample(self.p(beta), moved)


@dataclass(frozen=True)
class BlockPath(Path):
    """A path whose moves redraw these blocks of units (block, unit), one after the other."""

    blocks: tuple[Mask, ...]

    def gibbs(self, beta: float, frozen: Mask | None = None) -> Table:
        """T_beta: block after block given all other units."""
        transition = np.eye(self.log_f_base.size)
        for block in self.blocks:
            moved = block if frozen is None else block & ~frozen
            transition = transition @ resample(self.p(beta), moved)
        return transition


def path(base_biases: tuple[Table, ...], model: Layers) -> Path:
    """The path from independent units with these biases to a model."""
    return Path(independent(base_biases, model.values).log_f(), model.log_f(), model.layer_of_unit)


def resample(p: Table, moved: Mask) -> Table:
    """Transition matrix that draws the `moved` units from their conditional distribution given the others."""
    others = code(all_states(moved.size)[:, ~moved])
    joint = np.where(others[:, np.newaxis] == others, p, 0.0)
    return joint / joint.sum(axis=1, keepdims=True)


def reversal(transition: Table, p: Table) -> Table:
    """T~(x' | x) = T(x | x') p(x') / p(x), as a matrix (from x, to x')."""
    return transition.T * p / p[:, np.newaxis]


def p_ann(path: Path, betas: Table) -> Table:
    """The annealing model (visible state,): start at p_0, make the moves T_1 … T_K, look at v (Eq. 11)."""
    distribution = path.p(betas[0])
    for beta in betas[1:]:
        distribution = distribution @ path.gibbs(beta)
    return marginal(distribution, path.visible)


def ais_weight(path: Path, betas: Table) -> float:
    """E[AIS weight] / Z_0 by Algorithm 1."""
    row = path.p(betas[0])
    for beta, following in pairwise(betas):
        row = row * np.exp(path.log_f(following) - path.log_f(beta))
        row = row @ path.gibbs(following)
    return float(row.sum())


Reverse = Callable[[Path, Table, int], Table]
"""Gives the matrix that draws x_{k-1} from x_k, for a path, betas and k."""


def proper_reversal(path: Path, betas: Table, k: int) -> Table:
    """The reversal of T_k, as in the equation for q_rev."""
    return reversal(path.gibbs(betas[k]), path.p(betas[k]))


def raise_weight(path: Path, betas: Table, reverse: Reverse = proper_reversal) -> Table:
    """E[RAISE weight] (visible state,) by Eq. 12: h_K ~ p_K(h | v), x_{k-1} ~ T~_k( · | x_k)."""
    rows = path.rows(np.exp(path.log_f(1.0))) / path.z(0.0)  # p_K(h | v) f_K(v) / Z_0 = f_K(v, h) / Z_0
    return _melt(path, betas, rows, reverse)


def _melt(path: Path, betas: Table, rows: Table, reverse: Reverse) -> Table:
    for k in range(len(betas) - 1, 0, -1):
        rows = rows @ reverse(path, betas, k)
        rows = rows * np.exp(path.log_f(betas[k - 1]) - path.log_f(betas[k]))
    return rows.sum(axis=1)


def heated_raise_weight(path: Path, betas: Table, reverse: Reverse = proper_reversal) -> Table:
    """E[RAISE weight] (visible state,) where p_1(h | v) is intractable: h is heated first, with v frozen (Eq. 13)."""
    rows = heat(path, betas, path.rows(path.p(0.0)))  # p_0(h | v) p_0(v) = p_0(v, h)
    return _melt(path, betas, rows, reverse)


def heat(path: Path, betas: Table, rows: Table) -> Table:
    """Weighted rows (example, joint state) after h'_{k+1} ~ T~_k( · | h'_k) with v frozen, for k = 0 … K-1."""
    for beta, following in pairwise(betas):
        rows = rows @ reversal(path.gibbs(beta, path.visible), path.p(beta))
        rows = rows * np.exp(path.log_f(following) - path.log_f(beta))
    return rows
