"""A report as ArviZ's DataTree."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from meltpoint.extras import require
from meltpoint.results.report import Report

if TYPE_CHECKING:
    from xarray import DataTree  # pyright: ignore[reportMissingImports]


def to_arviz(report: Report) -> DataTree:
    """Weights and examples by the names and axes that ArviZ uses: RAISE's chains are independent draws."""
    from_dict = require("arviz_base", "report.to_arviz()").from_dict
    per = report.per_example

    def as_draws(values: np.ndarray) -> np.ndarray:
        """(example, chain) as (chain, draw, example), with one chain."""
        return values.T[np.newaxis]

    groups = {
        "log_likelihood": {"log_prob": per.log_prob[np.newaxis, np.newaxis]},
        "sample_stats": {
            "log_weight": as_draws(per.log_weights),
            "log_reverse_weight": as_draws(per.log_reverse_weights),
        },
        "constant_data": {"ais_log_weight": report.ais_log_weights, "log_f": per.log_f},
    }
    if not per.log_weights.size:
        del groups["sample_stats"]
    examples = ["example"]
    attributes = {"model": report.model, "inference_library": "meltpoint", "verdict": str(report.verdict)}
    return from_dict(
        groups,
        coords={"example": per.positions},
        dims={
            "log_prob": examples,
            "log_weight": examples,
            "log_reverse_weight": examples,
            "ais_log_weight": ["ais_chain"],
            "log_f": examples,
        },
        attrs={"/": attributes},
    )
