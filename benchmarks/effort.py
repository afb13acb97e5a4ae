"""How long and how often things are measured."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Sizes:
    """Few and many steps in tiles of so many chains; few and many chains at so many steps."""

    steps: tuple[int, int]
    tile: int
    chains: tuple[int, int]
    chains_steps: int


@dataclass(frozen=True)
class Effort:
    """Rounds, seconds per measurement, and sizes."""

    rounds: int
    chains: int  # enough for the competitors' matrix products to be efficient
    bound_chains: int
    steps: int  # of one call; a few hundred, as steps of a usual run are small
    large_steps: int  # the same for models of more than half a million weights
    usual_steps: (
        int  # as many as `evaluate` has: for small models, whose few hundred steps end as threads begin
    )
    tiny_steps: int
    reference_seconds: float  # the NumPy reference
    bound_seconds: float  # the dense bound before a call, and again after it
    scaling_rounds: int
    large: Sizes
    small: Sizes
    memory_steps: int
    memory_chains: int
    starts: int
    graph_work: float  # site updates of a call, in those of a lattice
    lattice_side: int  # of the lattice whose memory is measured


FULL = Effort(
    rounds=5,
    chains=1_000,
    bound_chains=5_000,
    steps=300,
    large_steps=100,
    usual_steps=3_000,
    tiny_steps=3_000,
    reference_seconds=0.6,
    bound_seconds=0.4,
    scaling_rounds=3,
    large=Sizes(steps=(1_000, 100_000), tile=8, chains=(100, 10_000), chains_steps=1_000),
    small=Sizes(steps=(1_000, 100_000), tile=64, chains=(100, 10_000), chains_steps=1_000),
    memory_steps=10_000,
    memory_chains=5_000,
    starts=3,
    graph_work=4e8,
    lattice_side=1_000,
)

QUICK = Effort(
    rounds=2,
    chains=64,
    bound_chains=64,
    steps=20,
    large_steps=5,
    usual_steps=20,
    tiny_steps=50,
    reference_seconds=0.02,
    bound_seconds=0.01,
    scaling_rounds=1,
    large=Sizes(steps=(20, 100), tile=8, chains=(20, 100), chains_steps=10),
    small=Sizes(steps=(100, 1_000), tile=64, chains=(100, 1_000), chains_steps=10),
    memory_steps=100,
    memory_chains=1_000,
    starts=1,
    graph_work=2e6,
    lattice_side=100,
)
