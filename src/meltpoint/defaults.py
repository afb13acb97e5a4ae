"""All defaults except those of training (`training/settings.py`): evaluate(), log_z(), traces, estimators, samples.

Signatures and commands read them from here.
"""

from dataclasses import dataclass

from meltpoint.arguments import Confidence, Count, Positive, Seed


@dataclass(frozen=True)
class Settings:
    """Settings of an evaluation.

    `base` is where annealing starts ("auto": data rates if there is training data, else the model's, and again from
    another base that found more of log Z), `schedule` how its `steps` are spaced. RAISE is run for `examples` test
    examples with `chains` chains each, AIS with `ais_chains` (0 here: as many as RAISE has in all), all of which are
    `particles` unless a smaller number is given. `tolerance` is the gap that counts as agreement. With a `gap` or a
    `budget` in seconds the sizes are chosen in stages. With `evidence` other starts are asked for missed modes. `exact`
    is whether log Z is computed exactly too; None if that is where it takes less than a second.
    """

    base: str = "auto"
    schedule: str = "friction"
    steps: Count = 3000
    examples: Count = 100
    chains: Count = 4
    ais_chains: Count = 0
    particles: Count | None = None
    seed: Seed = 0
    precision: str = "mixed"
    tolerance: Positive = 1.0
    confidence: Confidence = 0.99
    gap: Positive | None = None
    budget: float | None = None
    evidence: bool = True
    exact: bool | None = None


DEFAULTS = Settings()

BUDGET_OF_GAP = "30m"
"""The budget of a run to a gap if none is given."""


@dataclass(frozen=True)
class LogZSettings:
    """Settings of log_z().

    `base` is where annealing starts ("auto": a short trial from every base chooses), `steps` the number of annealing
    steps and `chains` that of forward chains. `tolerance` is the distance of the two sides that counts as agreement.
    With a `gap` or a `budget` in seconds sizes are chosen in stages.
    """

    base: str = "auto"
    steps: Count = DEFAULTS.steps
    chains: Count = 400
    seed: Seed = DEFAULTS.seed
    precision: str = DEFAULTS.precision
    tolerance: Positive = DEFAULTS.tolerance
    confidence: Confidence = DEFAULTS.confidence
    gap: Positive | None = None
    budget: float | None = None


LOG_Z_DEFAULTS = LogZSettings()

TRACE_STEPS, TRACE_EXAMPLES, TRACE_CHAINS, TRACE_AIS_CHAINS = 2000, 100, 1, 400
"""Sizes at every checkpoint of a trace."""

SWEEP_STEPS = (10, 30, 100, 300, 1000)
"""Numbers of steps of sweep()."""

PATIENCE = 60.0
"""Seconds to wait for a worker of a cluster when there is none."""

AIS_CHAINS, CSL_CHAINS = 1000, 1000
"""Chains of ais_log_z() and csl_log_prob(), which stand alone; those of an evaluation follow from RAISE's."""

SAMPLE_COUNT, SAMPLE_STEPS, SAMPLE_MOVES = 100, 1000, 100
"""How many samples the command draws, and the annealing steps and Gibbs sweeps of each."""
