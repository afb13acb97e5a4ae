"""How far the mean of a sample may lie from its expectation, with a stated false-alarm probability."""

import math

FALSE_ALARM = 1e-6


def bernstein(n: int, variance: float, reach: float, false_alarm: float = FALSE_ALARM) -> float:
    """Distance that the mean of n independent draws exceeds with at most this probability (Bernstein's inequality).

    `reach` is the largest |draw - expectation|. No asymptotics: it holds for every n, however skewed the draws.
    """
    log_term = math.log(2 / false_alarm) / n
    linear = reach * log_term / 3
    return linear + math.sqrt(linear**2 + 2 * variance * log_term)
