"""Evidence files of the UAI competitions: which variables were observed, and in which state.

Two styles are in use: 2014's `t i_1 x_1 … i_t x_t`, and 2010's, which has the number of samples in front. The number
of tokens tells them apart: it is odd in the first, even in the second with one sample.
"""

import os
from pathlib import Path

import numpy as np

from meltpoint.errors import InputError
from meltpoint.formats.bounded import reading, size_of
from meltpoint.formats.source import opened
from meltpoint.formats.tokens import numbers

_LARGEST = 1 << 26  # bytes, and numbers


def read_evidence(path: str | os.PathLike[str]) -> dict[int, int]:
    """State of every observed variable, by its number from 0, in a `.evid` file of either style.

    Parameters
    ----------
    path
        The evidence file. An empty one, or one that says 0, observes nothing.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "model.uai.evid"
    ...     _ = file.write_text("2  0 1  7 0")
    ...     read_evidence(file)
    {0: 1, 7: 0}
    """
    file = Path(path)
    with reading(file, "evidence file"), opened(file, may_be_empty=True) as stream:
        if size_of(stream) > _LARGEST:
            raise ValueError(f"more than {_LARGEST:,} bytes")
        values = numbers(stream.read())
    wrong = values[(values < 0) | (values != np.floor(values)) | (values >= _LARGEST)]
    if wrong.size:
        raise _refused(
            f"'{wrong[0]:g}' in {file}", "whole numbers from 0: a count, then variables and their states"
        )
    found = values.astype(np.int64).tolist()
    if len(found) % 2 == 0 and found:
        samples, *found = found
        if samples != 1 and not (samples == 0 and found == [0]):
            raise _refused(f"{samples} samples of evidence in {file}", "one sample: a file for each")
    count, *pairs = found or [0]
    if len(pairs) != 2 * count:
        raise _refused(
            f"{len(pairs)} numbers after a count of {count} in {file}",
            f"{2 * count}: a variable and its state for each",
        )
    observed: dict[int, int] = {}
    for variable, state in zip(pairs[::2], pairs[1::2], strict=True):
        if observed.setdefault(variable, state) != state:
            raise _refused(
                f"states {observed[variable]} and {state} of variable {variable} in {file}",
                "one state for each variable",
            )
    return observed


def _refused(found: str, expected: str) -> InputError:
    return InputError(
        found=found, expected=expected, remedy="check that this is an evidence file (.evid), and whole"
    )
