"""The parameters of a model by name, and back.

Layer l counts from 1, and weights are (lower layer, upper layer):

    RBM     weights, visible_bias, hidden_bias
    DBM     visible_bias, weights_l, hidden_bias_l
    DBN     directed_l_weights, directed_l_visible_bias, directed_l_recognition_bias,
            top_weights, top_visible_bias, top_hidden_bias
"""

from collections.abc import Sequence
from typing import Any, TypeAlias

from numpy.typing import NDArray

from meltpoint.errors import InputError
from meltpoint.models.dbm import DBM
from meltpoint.models.dbn import DBN
from meltpoint.models.rbm import RBM

Model: TypeAlias = RBM | DBM | DBN
Arrays: TypeAlias = dict[str, NDArray[Any]]

KINDS = ("RBM", "DBM", "DBN")


def to_arrays(model: Model) -> tuple[str, Arrays]:
    """Kind of a model, and its parameters by the names they have in a file."""
    match model:
        case RBM():
            return "RBM", _rbm_arrays(model)
        case DBM():
            arrays: Arrays = {"visible_bias": model.biases[0]}
            for layer, weights in enumerate(model.weights, start=1):
                arrays[f"weights_{layer}"] = weights
                arrays[f"hidden_bias_{layer}"] = model.biases[layer]
            return "DBM", arrays
        case DBN():
            arrays = {}
            for layer, directed in enumerate(model.directed, start=1):
                arrays[f"directed_{layer}_weights"] = directed.weights
                arrays[f"directed_{layer}_visible_bias"] = directed.visible_bias
                arrays[f"directed_{layer}_recognition_bias"] = directed.recognition_bias
            return "DBN", arrays | _rbm_arrays(model.top, "top_")
        case _:
            raise InputError(
                found=f"an object of type {type(model).__name__}",
                expected="an RBM, a DBM or a DBN",
                remedy="save arrays with numpy.savez",
            )


def _rbm_arrays(rbm: RBM, prefix: str = "") -> Arrays:
    return {
        f"{prefix}weights": rbm.weights,
        f"{prefix}visible_bias": rbm.visible_bias,
        f"{prefix}hidden_bias": rbm.hidden_bias,
    }


def names_of(kind: str, names: set[str]) -> list[str]:
    """Names of the parameters a file of this kind must have, its depth taken from the names it has."""
    match kind:
        case "RBM":
            return ["weights", "visible_bias", "hidden_bias"]
        case "DBM":
            depth = sum(name.startswith("weights_") for name in names)
            own = ("weights", "hidden_bias")
            return ["visible_bias", *(f"{name}_{layer}" for layer in range(1, depth + 1) for name in own)]
        case _:
            depth = sum(name.startswith("directed_") and name.endswith("_weights") for name in names)
            own = ("weights", "visible_bias", "recognition_bias")
            directed = [f"directed_{layer}_{name}" for layer in range(1, depth + 1) for name in own]
            return [*directed, "top_weights", "top_visible_bias", "top_hidden_bias"]


def from_arrays(kind: str, arrays: Sequence[NDArray[Any]]) -> Model:
    """The model of this kind with these parameters, in the order of `names_of`."""
    match kind:
        case "RBM":
            return RBM(*arrays)
        case "DBM":
            return DBM(weights=arrays[1::2], biases=[arrays[0], *arrays[2::2]])
        case _:
            directed = zip(arrays[:-3:3], arrays[1:-3:3], arrays[2:-3:3], strict=True)
            return DBN(directed=list(directed), top=RBM(*arrays[-3:]))
