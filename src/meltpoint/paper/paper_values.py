"""What the tables of the paper say: 100,000 linear steps, 100 examples with 50 chains each, 5,000 AIS chains."""

from dataclasses import dataclass

from meltpoint.paper.cells import PaperBase

PAPER_STEPS = 100_000


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
