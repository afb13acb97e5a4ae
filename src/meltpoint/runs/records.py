"""Records as arrays: frozen dataclasses of plain values, arrays, tuples and other records, to disk and to workers.

The arrays of a record are named by its fields, those of a record inside it by "field.field", the elements of a tuple
by "field.0", "field.1", …. None has no arrays. What is read is checked against the type hints of the fields: the
names, the types, and the axes that a hint mentions. In

    log_weights: Annotated[Floats, "example", "chain"]

axes of one name have one length within a record. A record may check more in its `__post_init__`.
"""

import types
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import lru_cache
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from meltpoint.errors import InputError, shortened
from meltpoint.fingerprint import Arrays

R = TypeVar("R")

_VALUE = "value"
"""Name of the array of what is no record."""

_KINDS = {
    np.floating: "f",
    np.integer: "iu",
    np.unsignedinteger: "u",
    np.signedinteger: "i",
    np.bool_: "b",
    np.str_: "U",
}
_PLAIN = {bool: "b", int: "iuU", float: "fiu", str: "U"}  # an int of more than 64 bits is written as text
_MOST_ELEMENTS = 100_000


def to_arrays(value: Any, *, skip_models: bool = False) -> dict[str, NDArray[Any]]:  # noqa: ANN401
    """The arrays of a record, or of a plain value.

    What is no record, array or plain value, such as a model, is an error, unless it is skipped.

    >>> from meltpoint.annealing.blocks import Segment
    >>> {name: array.tolist() for name, array in to_arrays(Segment(np.array([0.0, 1.0]))).items()}
    {'betas': [0.0, 1.0], 'reversed_sweeps': False}
    """
    return dict(_flattened("", value, skip_models))


def from_arrays(kind: type[R], arrays: Arrays, lengths: Mapping[str, int] | None = None) -> R:
    """The record of a type that `to_arrays` described, or an InputError if the arrays are not those of this type.

    `lengths` are those of axes that are known.

    >>> from meltpoint.annealing.blocks import Segment
    >>> from_arrays(Segment, {"betas": np.array([0.0, 1.0]), "reversed_sweeps": np.array(True)}).reversed_sweeps
    True
    """
    reader, wanted = _Reader(arrays, dict(lengths or {})), getattr(kind, "__name__", str(kind))
    try:
        value = reader.fields(kind, "") if is_dataclass(kind) else reader.take(kind, _VALUE)
    except InputError:
        raise
    except (ValueError, TypeError, LookupError, ArithmeticError) as problem:
        raise _wrong(f"{type(problem).__name__} ({problem})", f"the values of {wanted}") from problem
    if reader.unread:
        raise _wrong(f"an array {shortened(min(reader.unread), 60)}", f"the arrays of {wanted}")
    return value


def join_records(records: Sequence[R]) -> R:
    """One record of several whose fields are all arrays, with the rows of each after those of the one before."""
    first = records[0]
    columns = ([getattr(record, field.name) for record in records] for field in fields(first))  # pyright: ignore[reportArgumentType]
    return type(first)(*map(np.concatenate, columns))


def _flattened(name: str, value: Any, skip_models: bool) -> Iterator[tuple[str, NDArray[Any]]]:  # noqa: ANN401
    if isinstance(value, np.ndarray):
        yield name or _VALUE, value
    elif isinstance(value, bool | int | float | str | np.generic):
        array = np.array(value)
        yield name or _VALUE, np.array(str(value)) if array.dtype.hasobject else array
    elif isinstance(value, tuple | Mapping):
        yield name or _VALUE, np.array(len(value))
        for k, element in enumerate(value.items() if isinstance(value, Mapping) else value):
            yield from _flattened(f"{name or _VALUE}.{k}", element, skip_models)
    elif is_dataclass(value) and not (_is_other(value) if name else _is_model(value)):
        if name:
            yield name, np.array(True)
        for field in fields(value):
            if field.init:
                inner = f"{name}.{field.name}" if name else field.name
                yield from _flattened(inner, getattr(value, field.name), skip_models)
    elif value is not None and not skip_models:
        raise TypeError(f"{name or 'it'} is a {type(value).__name__}, which has no arrays")


def _is_other(value: Any) -> bool:  # noqa: ANN401
    """Whether an object is not described by its fields: models have arrays of their own, bases may be distributions."""
    return hasattr(value, "n_visible") or hasattr(value, "draw")


def _is_model(value: Any) -> bool:  # noqa: ANN401
    return hasattr(value, "n_visible") and hasattr(value, "path")


class _Reader:
    """Takes values from arrays by their types; `unread` are the names of those that were not taken."""

    def __init__(self, arrays: Arrays, lengths: dict[str, int]) -> None:
        self._arrays, self._lengths = arrays, lengths
        self.unread = set(arrays)

    def fields(self, kind: Any, prefix: str) -> Any:  # noqa: ANN401
        """A record from the arrays of its fields."""
        hints, names = _hints(kind), [field.name for field in fields(kind) if field.init]
        return kind(**{name: self.take(hints[name], f"{prefix}{name}") for name in names})

    def take(self, kind: Any, name: str) -> Any:  # noqa: ANN401
        """The value of this name."""
        axes: tuple[Any, ...] = ()
        if get_origin(kind) is Annotated:
            kind, axes = get_args(kind)[0], get_args(kind)[1:]
        origin = get_origin(kind)
        if origin in (Union, types.UnionType):
            if name not in self._arrays and type(None) in get_args(kind):
                return None
            (kind,) = (each for each in get_args(kind) if each is not type(None))
            return self.take(Annotated[kind, *axes] if axes else kind, name)
        array = self._array(name)
        if origin is np.ndarray:
            self._check(name, array, get_args(get_args(kind)[1])[0], axes)
            return array
        if origin is Literal:
            value = str(self._plain(name, array, "U"))
            if value not in get_args(kind):
                raise _wrong(f"{name} {shortened(value, 60)!r}", f"one of {', '.join(get_args(kind))}")
            return value
        if kind in _PLAIN:
            return kind(self._plain(name, array, _PLAIN[kind]).item())
        if origin is tuple:
            inner = get_args(kind)
            count = self._count(name, array)
            if inner[1:] == (...,):
                inner = inner[:1] * count
            if count != len(inner):
                raise _wrong(f"{count} elements of {name}", f"{len(inner)}")
            return tuple(self.take(each, f"{name}.{k}") for k, each in enumerate(inner))
        if origin in (dict, Mapping):
            pair = tuple[get_args(kind)]
            return dict(self.take(pair, f"{name}.{k}") for k in range(self._count(name, array)))
        self._plain(name, array, "b")
        return self.fields(kind, f"{name}.")

    def _array(self, name: str) -> NDArray[Any]:
        if name not in self._arrays:
            raise _wrong(f"no {name}", "all arrays of the record")
        self.unread.discard(name)
        return self._arrays[name]

    def _count(self, name: str, array: NDArray[Any]) -> int:
        count = int(self._plain(name, array, "iu"))
        if not 0 <= count <= min(_MOST_ELEMENTS, len(self._arrays)):
            raise _wrong(f"{count:,} elements of {name}", "as many as there are arrays")
        return count

    def _plain(self, name: str, array: NDArray[Any], kinds: str) -> NDArray[Any]:
        if array.shape or array.dtype.kind not in kinds:
            raise _wrong(
                f"{name} of type {array.dtype} and shape {array.shape}", f"one value of type {kinds}"
            )
        return array

    def _check(self, name: str, array: NDArray[Any], scalar: Any, axes: tuple[Any, ...]) -> None:  # noqa: ANN401
        kinds = next(
            (k for kind, k in _KINDS.items() if isinstance(scalar, type) and issubclass(scalar, kind)),
            "biufU",
        )
        if array.dtype.kind not in kinds:
            raise _wrong(f"{name} of type {array.dtype}", f"type {' or '.join(kinds)}")
        if not axes:
            return
        if array.ndim != len(axes):
            raise _wrong(f"{name} of shape {array.shape}", f"{len(axes)} axes")
        for axis, length in zip(axes, array.shape, strict=True):
            expected = self._lengths.setdefault(axis, length) if isinstance(axis, str) else axis
            if expected not in (None, length):
                raise _wrong(f"{name} of shape {array.shape}", f"{expected} along the axis {axis!r}")


@lru_cache(maxsize=64)
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind, include_extras=True)


def _wrong(found: str, expected: str) -> InputError:
    return InputError(found=found, expected=expected, remedy="remove the file, and it is computed again")
