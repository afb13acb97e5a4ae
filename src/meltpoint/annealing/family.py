"""The path from the base distribution to the model: parameters linear in beta (paper, Eq. 9)."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meltpoint.annealing.kernels.ordered import sum_rows
from meltpoint.models.bipartite import Bipartite, softplus, sum_softplus
from meltpoint.models.checks import Bits, Floats


@dataclass(frozen=True)
class Family:
    """The distributions f_beta(e) = f_0(e)^(1-beta) f_1(e)^beta of a target and a base of independent units."""

    target: Bipartite
    base_even: Floats
    base_odd: Floats

    @cached_property
    def log_z_base(self) -> float:
        """Log normaliser of the base distribution over both sides, exact."""
        return float(softplus(self.base_even).sum() + softplus(self.base_odd).sum())

    def even_bias(self, beta: float) -> Floats:
        """Biases (even unit,) at beta."""
        return self.base_even + beta * (self.target.even_bias - self.base_even)

    def odd_bias(self, beta: float) -> Floats:
        """Biases (odd unit,) at beta."""
        return self.base_odd + beta * (self.target.odd_bias - self.base_odd)

    def log_f(self, beta: float, even: NDArray[Any]) -> Floats:
        """Log unnormalised probability (chain,) of even states at beta, the odd side summed out."""
        field = beta * self.target.odd_field(even) + self.odd_bias(beta)
        return even @ self.even_bias(beta) + sum_softplus(field)

    def log_f_by_rows(self, beta: float, even: Bits) -> Floats:
        """The same for states of zeros and ones, to the same bits however many chains there are."""
        return sum_rows(even, self.even_bias(beta)) + self.odd_log_f_by_rows(beta, even)

    def odd_log_f_by_rows(self, beta: float, even: Bits) -> Floats:
        """The odd units' part (chain,) of it."""
        two = self.target
        field = np.zeros((len(even), two.n_odd))
        for block in two.blocks:
            rows, columns = two.even_slices[block.even_layer], two.odd_slices[block.odd_layer]
            field[:, columns] += sum_rows(even[:, rows], block.weights)
        return sum_softplus(beta * field + self.odd_bias(beta))
