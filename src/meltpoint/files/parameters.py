"""The parameters of a model by name, and back.

Layer l counts from 1, and weights are (lower layer, upper layer):

    RBM     weights, visible_bias, hidden_bias
    DBM     visible_bias, weights_l, hidden_bias_l
    DBN     directed_l_weights, directed_l_visible_bias, directed_l_recognition_bias,
            top_weights, top_visible_bias, top_hidden_bias
"""

from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from meltpoint.errors import InputError
from meltpoint.models import KINDS, Model
from meltpoint.models.model import Arrays

__all__ = ["KINDS", "Arrays", "Model", "from_arrays", "names_of", "to_arrays", "units_of"]


def to_arrays(model: Model) -> tuple[str, Arrays]:
    """Kind of a model, and its parameters by the names they have in a file."""
    if not isinstance(model, Model):
        raise InputError(
            found=f"an object of type {type(model).__name__}",
            expected="an RBM, a DBM or a DBN",
            remedy="save arrays with numpy.savez",
        )
    return model.kind, model.arrays()


def units_of(model: Model) -> str:
    """Names of the kinds of units, layer by layer; empty where all are Bernoulli."""
    names = [unit.name for unit in model.units]
    return "" if set(names) == {"bernoulli"} else ",".join(names)


def names_of(kind: str, names: set[str]) -> list[str]:
    """Names of the parameters a file of this kind must have, its depth taken from the names it has."""
    return KINDS[kind].array_names(names)


def from_arrays(kind: str, arrays: Sequence[NDArray[Any]], units: str = "") -> Model:
    """The model of this kind with these parameters, in the order of `names_of`."""
    return KINDS[kind].from_arrays(arrays, units.split(",") if units else ())
