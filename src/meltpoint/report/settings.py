"""What was asked for: every setting of an evaluation, with its default."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Settings:
    """Settings of an evaluation. The defaults stand here and nowhere else; the command reads them too.

    `base` is where annealing starts ("auto": data rates if there is training data, else the model's, and again from
    another base that found more of log Z), `schedule` how its `steps` are spaced. RAISE is run for `examples` test
    examples with `chains` chains each, AIS with `ais_chains` (0 here: as many as RAISE has in all), all of which are
    `particles` unless a smaller number is given. `tolerance` is the gap that counts as agreement. With a `gap` or a
    `budget` in seconds the sizes are chosen in stages. With `evidence` other starts are asked for missed modes.
    """

    base: str = "auto"
    schedule: str = "friction"
    steps: int = 3000
    examples: int = 100
    chains: int = 4
    ais_chains: int = 0
    particles: int | None = None
    seed: int = 0
    precision: str = "mixed"
    tolerance: float = 1.0
    confidence: float = 0.99
    gap: float | None = None
    budget: float | None = None
    evidence: bool = True


DEFAULTS = Settings()

BUDGET_OF_GAP = "30m"
"""What a run to a gap may take if nothing is said."""
