"""The parameters of a model by name, and back.

Layer l counts from 1, and weights are (lower layer, upper layer):

    RBM     weights, visible_bias, hidden_bias
    DBM     visible_bias, weights_l, hidden_bias_l
    DBN     directed_l_weights, directed_l_visible_bias, directed_l_recognition_bias,
            top_weights, top_visible_bias, top_hidden_bias
    Ising   fields, pairs, couplings, hidden, constant: every coupled pair of sites (pair, 2) once
    Potts   cardinalities, fields, pairs, couplings, hidden, constant: fields and couplings one after the other
    FactorGraph   cardinalities, orders, scopes, values, hidden: scopes and tables one after the other

Where not all units are Bernoulli, the kind says what they are, layer by layer: "RBM:spin,bernoulli".
"""

from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from meltpoint.errors import InputError
from meltpoint.models import KINDS, Model
from meltpoint.models.model import ParameterArrays

__all__ = ["Model", "ParameterArrays", "from_arrays", "is_kind", "names_of", "to_arrays"]


def to_arrays(model: Model) -> tuple[str, ParameterArrays]:
    """Kind of a model, and its parameters by the names they have in a file."""
    if not isinstance(model, Model):
        raise InputError(
            found=f"an object of type {type(model).__name__}",
            expected="a model, such as an RBM or an Ising model",
            remedy="save arrays with numpy.savez",
        )
    arrays = model.arrays()
    if arrays is None:
        raise InputError(
            found=f"{model!r}, a kind of model that has no file format",
            expected="one of the library's own models",
            remedy="save its arrays with numpy.savez",
        )
    return model.kind_and_units, arrays


def is_kind(kind: str) -> bool:
    """Whether there are such models."""
    return kind.partition(":")[0] in KINDS


def names_of(kind: str, names: set[str]) -> list[str]:
    """Names of the parameters a file of this kind must have, its depth taken from the names it has."""
    return KINDS[kind.partition(":")[0]].array_names(names)


def from_arrays(kind: str, arrays: Sequence[NDArray[Any]]) -> Model:
    """The model of this kind with these parameters, in the order of `names_of`."""
    name, _, units = kind.partition(":")
    return KINDS[name].from_arrays(arrays, units.split(",") if units else ())
