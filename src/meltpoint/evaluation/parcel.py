"""A stage as named arrays: what is stored in a run's folder, and what travels to workers, once to each."""

import platform
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meltpoint.annealing.anneal import compile_kernels
from meltpoint.annealing.base import Base
from meltpoint.errors import InputError
from meltpoint.evaluation.compute import Workshop
from meltpoint.evaluation.plan import Stage
from meltpoint.files.parameters import from_arrays, to_arrays
from meltpoint.runs.chunks import read_sealed, write_sealed
from meltpoint.runs.fingerprint import Arrays, fingerprint
from meltpoint.runs.specification import METHOD

_MODEL, _BASE = "model_", "base_"
_NUMBERS = ("chains", "ais_chains", "index", "part")
_TEXTS = ("kind", "base", "seed", "precision")  # a seed may have more than 64 bits


def stage_to_arrays(stage: Stage) -> dict[str, NDArray[Any]]:
    """Arrays by name, from which `stage_from_arrays` makes the same stage."""
    kind, parameters = to_arrays(stage.model)
    texts = zip(_TEXTS, (kind, stage.base.name, str(stage.seed), stage.precision), strict=True)
    return {
        "method": np.array(METHOD),
        **{name: np.array(text) for name, text in texts},
        **{name: np.array(getattr(stage, name)) for name in _NUMBERS},
        "betas": stage.betas,
        "examples": stage.examples,
        "positions": stage.positions,
        **{f"{_MODEL}{name}": array for name, array in parameters.items()},
        **{f"{_BASE}{layer}": bias for layer, bias in enumerate(stage.base.biases)},
    }


def stage_from_arrays(arrays: Arrays) -> Stage:
    """The stage that `stage_to_arrays` described."""
    if int(arrays["method"]) != METHOD:
        raise InputError(
            found=f"version {int(arrays['method'])} of the method",
            expected=f"version {METHOD}, that of the meltpoint on {platform.node() or 'this machine'}",
            remedy="install the same meltpoint on all machines",
        )
    kind, base, seed, precision = (str(arrays[name]) for name in _TEXTS)
    parameters = [array for name, array in arrays.items() if name.startswith(_MODEL)]
    biases = [array for name, array in arrays.items() if name.startswith(_BASE)]
    return Stage(
        model=from_arrays(kind, parameters),
        examples=arrays["examples"],
        positions=arrays["positions"],
        base=Base(base, tuple(biases)),
        betas=arrays["betas"],
        seed=int(seed),
        precision=precision,  # pyright: ignore[reportArgumentType]
        **{name: int(arrays[name]) for name in _NUMBERS},
    )


@dataclass(frozen=True)
class Parcel:
    """A stage on its way to workers: its arrays, or a file that has them.

    Parcels with the same fingerprint are equal, so that a worker opens one of them only.
    """

    fingerprint: str
    content: "dict[str, NDArray[Any]] | Path" = field(compare=False, repr=False)


def parcel_of(stage: Stage, path: Path | None = None) -> Parcel:
    """A stage, packed: to be carried along, or written to a file that the workers read."""
    arrays = stage_to_arrays(stage)
    if path is not None:
        write_sealed(path, arrays)
    return Parcel(fingerprint(arrays), arrays if path is None else path)


def opened(parcel: Parcel) -> Workshop:
    """The stage in a parcel, ready for its tasks; kept for the tasks to come, one for all threads of a worker."""
    with _opening:
        return _open(parcel)


_opening = Lock()


@lru_cache(maxsize=2)
def _open(parcel: Parcel) -> Workshop:
    arrays = parcel.content if isinstance(parcel.content, dict) else _read(parcel.content)
    shop = Workshop(stage_from_arrays(arrays))
    compile_kernels(shop.walk)  # before two threads can begin to
    return shop


def _read(path: Path) -> dict[str, NDArray[Any]]:
    try:
        return read_sealed(path)
    except InputError as problem:
        raise InputError(
            found=f"{problem.found} on a worker ({platform.node()})",
            expected="workers that see the disk of this machine",
            remedy="use a Dask cluster, where the model travels through the network",
        ) from problem
