"""Everything that changes while a machine is trained, and the same as named arrays."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meltpoint.training.ascent import Ascent, at_rest
from meltpoint.training.machine import Array, Machine, States, machine_of


@dataclass
class Training:
    """A machine on its way: `batch` batches of epoch `epoch` are done.

    The draws of every batch come from a stream of its own, so there is no generator to remember. `offsets`
    and `chains` have one array for each layer, and for each odd layer; they are empty before the first batch.
    """

    machine: Machine
    ascent: Ascent
    offsets: list[Array] = field(default_factory=list)
    chains: States = field(default_factory=list)
    epoch: int = 0
    batch: int = 0


def started(machine: Machine) -> Training:
    """Training before its first batch."""
    return Training(machine, at_rest(machine))


def latest(training: Training) -> Machine:
    """The machine as it would be handed over now: the average of the last iterates, or the last one."""
    if training.ascent.n_averaged:
        return machine_of(training.ascent.average, training.machine.copies)
    return training.machine


def to_arrays(training: Training) -> dict[str, NDArray[Any]]:
    """Arrays by name, from which `from_arrays` makes the same state to the bit."""
    ascent = training.ascent
    groups: dict[str, Any] = {
        "parameter": training.machine.parameters,
        "velocity": ascent.velocity,
        "average": ascent.average,
        "offset": training.offsets,
        "chain": training.chains,
    }
    arrays = {f"{name}_{i}": array for name, group in groups.items() for i, array in enumerate(group)}
    arrays["copies"] = np.array(training.machine.copies)
    arrays["position"] = np.array([training.epoch, training.batch, ascent.n_averaged])
    return arrays


def from_arrays(arrays: Mapping[str, NDArray[Any]]) -> Training:
    """The state that `to_arrays` described."""

    def group(name: str) -> list[NDArray[Any]]:
        return [arrays[f"{name}_{i}"] for i in range(sum(key.startswith(f"{name}_") for key in arrays))]

    epoch, batch, n_averaged = arrays["position"].tolist()
    machine = machine_of(group("parameter"), tuple(arrays["copies"].tolist()))
    ascent = Ascent(tuple(group("velocity")), tuple(group("average")), n_averaged)
    return Training(machine, ascent, group("offset"), group("chain"), epoch, batch)
