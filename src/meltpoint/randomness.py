"""Seeds and what they are for: two purposes never share a stream of random numbers."""

from enum import IntEnum

import numpy as np

from meltpoint.arguments import Seed, read


class Purpose(IntEnum):
    """What randomness is used for. The numbers are part of the method: changing one changes results."""

    AIS = 1
    RAISE = 2
    SAMPLE = 3
    ANNEALING_SAMPLE = 4
    BASE_RATES = 5
    EXAMPLES = 6
    RECOGNITION = 7
    LOG_F = 8
    TRAINING = 9
    PILOT = 10
    CSL = 11
    STAGE = 12
    EVIDENCE = 13
    ANNEALED_LOG_F = 14


def check_seed(seed: int, name: str = "seed") -> int:
    """The seed as an int, or an error."""
    return read(Seed, seed, name)


def sequence(seed: int, purpose: Purpose, *key: int) -> np.random.SeedSequence:
    """The seed sequence of one purpose and key."""
    return np.random.SeedSequence(check_seed(seed), spawn_key=(int(purpose), *key))


def generator(seed: int, purpose: Purpose, *key: int) -> np.random.Generator:
    """A NumPy generator of one purpose and key."""
    return np.random.default_rng(sequence(seed, purpose, *key))
