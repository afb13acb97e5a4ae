"""Evidence files of the UAI competitions: which variables were observed, and in which state.

Two styles are in use: 2014's `t i_1 x_1 … i_t x_t`, and 2010's, which has the number of samples in front. The number
of tokens tells them apart: it is odd in the first, even in the second with one sample.
"""

import os
from pathlib import Path

from meltpoint.errors import InputError, shortened
from meltpoint.formats.bounded import open_regular, reading, size_of

_LARGEST = 1 << 26
_SHOWN = 40


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
    tokens = _tokens(file)
    numbers = [_number(token, file) for token in tokens]
    if len(numbers) % 2 == 0 and numbers:
        samples, *numbers = numbers
        if samples != 1 and not (samples == 0 and numbers == [0]):
            raise InputError(
                found=f"{samples} samples of evidence in {file}",
                expected="one sample",
                remedy="cut the file into one for each sample",
            )
    if not numbers:
        return {}
    count, pairs = numbers[0], numbers[1:]
    if len(pairs) != 2 * count:
        raise InputError(
            found=f"{len(pairs)} numbers after a count of {count} in {file}",
            expected=f"{2 * count}: a variable and its state for each",
            remedy="copy or download it again",
        )
    observed: dict[int, int] = {}
    for variable, state in zip(pairs[::2], pairs[1::2], strict=True):
        if observed.setdefault(variable, state) != state:
            raise InputError(
                found=f"states {observed[variable]} and {state} of variable {variable} in {file}",
                expected="one state for each variable",
                remedy="remove one of them",
            )
    return observed


def _tokens(path: Path) -> list[bytes]:
    try:
        with reading(path, "evidence file"), open_regular(path) as file:
            if size_of(file) > _LARGEST:
                raise ValueError(f"more than {_LARGEST:,} bytes")
            return file.read().split()
    except InputError as problem:
        if path.exists():
            raise
        raise InputError(
            found=f"no file {os.fspath(path)!r}", expected="an existing file", remedy="check the path"
        ) from problem


def _number(token: bytes, path: Path) -> int:
    # Short: int() takes quadratic time on long digits.
    if len(token) < 10 and token.isdigit():
        return int(token)
    raise InputError(
        found=f"{shortened(token[:200].decode('latin-1'), _SHOWN)!r} in {path}",
        expected="whole numbers from 0: a count, then variables and their states",
        remedy="check that this is an evidence file (.evid)",
    )
