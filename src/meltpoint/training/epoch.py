"""What is reported after each epoch."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Bracket:
    """Mean log likelihood of a few examples in nats: RAISE from below, AIS from above."""

    conservative: float
    optimistic: float


@dataclass(frozen=True)
class Epoch:
    """What one epoch of a stage came to.

    `bracket` is measured every few epochs, on validation examples or, if there are none, training examples.
    `gap` is the mean of log f on training examples minus that on validation examples, in nats: it grows when
    the machine learns its training examples by heart. (For a DBM, log f is its mean-field bound.)
    """

    stage: str
    number: int
    of: int
    seconds: float
    gap: float | None
    bracket: Bracket | None
