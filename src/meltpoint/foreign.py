"""Arrays as other libraries hold them: tensors, sparse matrices, data frames. Recognised by their attributes.

No library is imported for that: whoever passes a tensor has loaded its library.
"""

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meltpoint.errors import InputError


def as_array(value: Any, name: str, remedy: str = "") -> NDArray[Any]:  # noqa: ANN401
    """The numbers of a tensor, a sparse matrix, a data frame or anything NumPy reads; others are refused.

    What has labels, batches or a path in place of numbers is refused with what to do; `remedy` says it for paths.

    >>> import scipy.sparse
    >>> as_array(scipy.sparse.csr_array([[0, 1], [0, 0]]), "test")
    array([[0, 1],
           [0, 0]])
    """
    if isinstance(value, np.ma.MaskedArray | np.matrix):
        kind = "masked array" if isinstance(value, np.ma.MaskedArray) else "matrix of NumPy's old class"
        raise InputError(
            found=f"{name}, a {kind}",
            expected="a plain array",
            remedy=f"{name}.filled(value) says what stands for masked entries, which have no numbers"
            if isinstance(value, np.ma.MaskedArray)
            else f"pass numpy.asarray({name})",
        )
    if isinstance(value, np.ndarray):
        return value
    if isinstance(value, str | os.PathLike):
        raise InputError(
            found=f"{name}={os.fspath(value)!r}, a path",
            expected="the numbers themselves",
            remedy=remedy or f"read the file first: meltpoint.datasets.read({os.fspath(value)!r})",
        )
    if hasattr(value, "detach"):
        return _tensor(value, name)
    if hasattr(value, "record") and hasattr(value, "variables"):
        raise InputError(
            found=f"{name}, a {type(value).__name__}, whose columns are in an order of their own",
            expected="an array (example, site) with columns in the order of the model's variables",
            remedy=f"{name}.record.sample[:, [{name}.variables.index(v) for v in bqm.variables]]"
            f".repeat({name}.record.num_occurrences, axis=0)",
        )
    if hasattr(value, "toarray") and hasattr(value, "nnz"):
        return np.asarray(value.toarray())
    if hasattr(value, "to_numpy") and hasattr(value, "columns"):
        return _frame(value, name)
    if hasattr(value, "__cuda_array_interface__") and hasattr(value, "get"):  # CuPy
        return np.asarray(value.get())
    if isinstance(value, list | tuple | range):
        return _sequence(value, name)
    _refuse_batches(value, name)
    return _by_numpy(value, name)


def real_array(value: Any, name: str, expected: str = "real numbers") -> NDArray[np.float64]:  # noqa: ANN401
    """A float64 copy of an array of real numbers, of any shape."""
    held = as_array(value, name)
    try:
        if held.dtype.kind not in "biufO":  # NumPy would drop imaginary parts, and read text
            raise TypeError(f"they are of type {held.dtype}")
        return np.array(held, dtype=np.float64, order="C")
    except (TypeError, ValueError, OverflowError) as problem:
        raise InputError(
            found=f"{name} that cannot be read as an array of real numbers",
            expected=expected,
            remedy=f"convert it first ({problem})",
        ) from problem


def _tensor(tensor: Any, name: str) -> NDArray[Any]:  # noqa: ANN401
    """A PyTorch tensor on any device, whether or not it requires a gradient."""
    if getattr(tensor, "is_meta", False):
        raise InputError(
            found=f"{name} on the device 'meta', without numbers",
            expected="a tensor with numbers",
            remedy="load the parameters first",
        )
    plain = tensor.detach()
    if getattr(plain, "is_sparse", False) or "sparse" in str(getattr(plain, "layout", "")):
        plain = plain.to_dense()
    plain = plain.cpu()
    try:
        return np.asarray(plain.numpy())
    except TypeError:  # bfloat16, which NumPy does not have
        return np.asarray(plain.float().numpy())


def _frame(frame: Any, name: str) -> NDArray[Any]:  # noqa: ANN401
    """The columns of a data frame; one that is not numbers is named."""
    array = np.asarray(frame.to_numpy())
    if array.dtype.kind in "biuf":
        return array
    numbers = bool | int | float | np.number | np.bool_
    words = [
        repr(str(title))
        for title, column in zip(frame.columns, array.T, strict=True)
        if not all(isinstance(value, numbers) for value in column)
    ]
    if not words:
        return np.asarray(array, np.float64)
    shown = ", ".join(words[:5])
    raise InputError(
        found=f"{name}, a data frame whose column{'s' if len(words) > 1 else ''} "
        f"{shown}{', …' if len(words) > 5 else ''} {'are' if len(words) > 1 else 'is'} not numbers",
        expected="only columns of numbers, one for each visible unit",
        remedy=f"labels and names are not used: {name}.drop(columns=[{shown}])",
    )


def _sequence(values: list[Any] | tuple[Any, ...] | range, name: str) -> NDArray[Any]:
    """A list of numbers, of rows or of tensors; examples with their labels are refused."""
    if len(values) == 2:
        shapes = [
            shape if isinstance(shape := getattr(value, "shape", ()), tuple) else () for value in values
        ]
        if len(shapes[0]) >= 2 and len(shapes[1]) < len(shapes[0]) and shapes[0][:1] == shapes[1][:1]:
            raise InputError(
                found=f"{name}, a pair of arrays of shapes {shapes[0]} and {shapes[1]}",
                expected="the examples alone",
                remedy=f"labels are not used: pass {name}[0]",
            )
    if values and any(hasattr(value, "detach") for value in values):
        return _by_numpy([as_array(value, name) for value in values], name)
    return _by_numpy(values, name)


def _refuse_batches(value: Any, name: str) -> None:  # noqa: ANN401
    """Refuse a loader of batches or a data set of pairs."""
    if hasattr(value, "dataset") and hasattr(value, "batch_size"):
        raise InputError(
            found=f"{name}, a {type(value).__name__}, which gives batches",
            expected="all examples as one array (example, visible unit)",
            remedy="join its batches: torch.cat([batch[0].flatten(1) for batch in loader]), without [0] if there "
            "are no labels",
        )
    if hasattr(value, "__array__") or hasattr(value, "__array_interface__") or hasattr(value, "__dlpack__"):
        return
    if hasattr(value, "tensors"):
        raise InputError(
            found=f"{name}, a {type(value).__name__} of {len(value.tensors)} tensors",
            expected="the examples alone",
            remedy=f"pass {name}.tensors[0]",
        )
    if hasattr(value, "__getitem__") and hasattr(value, "__len__") and not hasattr(value, "keys"):
        raise InputError(
            found=f"{name}, a {type(value).__name__}",
            expected="all examples as one array (example, visible unit)",
            remedy=f"stack them: numpy.stack([numpy.ravel(x) for x, label in {name}])",
        )


def _by_numpy(value: Any, name: str) -> NDArray[Any]:  # noqa: ANN401
    try:
        return np.asarray(value)
    except (TypeError, ValueError, RuntimeError) as problem:
        raise InputError(
            found=f"{name} that cannot be read as an array of real numbers",
            expected="real numbers",
            remedy=f"convert it first ({problem})",
        ) from problem
