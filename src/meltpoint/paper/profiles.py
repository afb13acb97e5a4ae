"""How much to spend: the numbers of steps, examples and chains of all tables and figures."""

from dataclasses import dataclass, replace

from meltpoint.errors import InputError
from meltpoint.estimators.checks import check_count


@dataclass(frozen=True)
class Profile:
    """Linear steps of the tables, of the curves and of the paper's own parameters; examples and chains.

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
    seed: int = 0


PROFILES = {
    "full": Profile(
        name="full",
        steps=10_000,
        curve=(10, 30, 100, 300, 1_000, 3_000, 10_000),
        long_steps=100_000,
        examples=100,
        chains=10,
        ais_chains=1_000,
        test_examples=None,
    ),
    "quick": Profile(
        name="quick",
        steps=300,
        curve=(10, 30, 100, 300),
        long_steps=3_000,
        examples=50,
        chains=2,
        ais_chains=100,
        test_examples=500,
    ),
}


def profile_of(name: str, steps: int | None = None) -> Profile:
    """The profile of that name, with another number of steps for the tables if one is given.

    >>> profile_of("full", steps=100).curve
    (10, 30, 100)
    """
    if name not in PROFILES:
        raise InputError(
            found=f"--profile {name}",
            expected=f"one of {', '.join(PROFILES)}",
            remedy="quick takes minutes, full hours",
        )
    profile = PROFILES[name]
    if steps is None or steps == profile.steps:
        return profile
    steps = check_count(steps, "steps", "10,000 give the numbers of the documentation")
    curve = (*(k for k in PROFILES["full"].curve if k < steps), steps)
    return replace(profile, name=f"{name}-{steps}", steps=steps, curve=curve, long_steps=10 * steps)
