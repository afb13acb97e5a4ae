"""What arguments may be: the types and ranges of public signatures, and the one check of all of them.

A public function is decorated by `public`: each argument is read as its parameter is declared. Settings, options of the
command and of training are declared with the same types. Arrays and models are left to the functions, which know their
shapes.
"""

import difflib
import math
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, wraps
from inspect import Parameter, Signature, signature
from numbers import Integral, Real
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    ParamSpec,
    TypeAlias,
    TypeVar,
    Union,
    Unpack,
    cast,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from meltpoint.errors import InputError, described
from meltpoint.progress import shown_progress

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True)
class Range:
    """Whole or real numbers from `low` to `high`, without the two where they are `exclusive`."""

    low: float
    high: float
    whole: bool = True
    exclusive: bool = False

    def __str__(self) -> str:
        if self.exclusive:
            return (
                "a finite number above 0"
                if self.high == math.inf
                else f"a number between {self.low} and {self.high}"
            )
        if self.low < -_NO_LIMIT / 2:
            return "a whole number" if self.whole else "a finite number"
        if not self.whole:
            return f"a number from {self.low:g} to {self.high:g}"
        return f"a whole number from {self.low} on" + (
            f", at most {self.high:,}" if self.high < _NO_LIMIT else ""
        )

    def read(self, value: Any) -> int | float:  # noqa: ANN401
        """The number as Python's own, or ValueError."""
        if isinstance(value, bool) or not isinstance(value, Integral if self.whole else Real):
            raise ValueError("another type")
        number = int(cast("Any", value)) if self.whole else float(value)
        if not (self.low < number < self.high if self.exclusive else self.low <= number <= self.high):
            raise ValueError("out of range")
        return number


@dataclass(frozen=True)
class Doc:
    """What the command's help says of an option."""

    text: str


class Duration:
    """A length of time in seconds, or as text.

    >>> Duration().read("1h30m"), Duration().read("90s"), Duration().read(45)
    (5400.0, 90.0, 45.0)
    """

    def __str__(self) -> str:
        return "a length of time such as '30m', '2h', '90s' or '1h30m', or a number of seconds"

    def read(self, value: Any) -> float:  # noqa: ANN401
        """Seconds, or ValueError."""
        if isinstance(value, str):
            match = _DURATION.fullmatch(value.strip().lower().replace(" ", ""))
            parts = match.groups() if match else ()
            value = sum(float(part) * unit for part, unit in zip(parts, (3600, 60, 1), strict=False) if part)
        return _POSITIVE.read(value)


_DURATION = re.compile(r"(?:(\d+(?:\.\d+)?)h)?(?:(\d+(?:\.\d+)?)m)?(?:(\d+(?:\.\d+)?)s?)?", re.ASCII)
_NO_LIMIT, _LARGEST = 2**63, 1e300
_LONGEST_PATH, _LONGEST_NAME = 4096, 255  # characters, and bytes of each part
_POSITIVE = Range(0, math.inf, whole=False, exclusive=True)

Count: TypeAlias = Annotated[int, Range(1, 10**8)]
Several: TypeAlias = Annotated[int, Range(2, 10**8)]
Number: TypeAlias = Annotated[int, Range(0, 10**6)]
Seed: TypeAlias = Annotated[int, Range(0, 2**256)]
Threads: TypeAlias = Annotated[int, Range(1, 10**4)]
Positive: TypeAlias = Annotated[float, _POSITIVE]
Confidence: TypeAlias = Annotated[float, Range(0, 1, whole=False, exclusive=True)]
Share: TypeAlias = Annotated[float, Range(0, 1, whole=False)]
Budget: TypeAlias = Annotated[str | float, Duration()]

_REMEDIES = {
    "ais_chains": "1,000 are usual",
    "base": "'data' (with train) usually gives the smallest gap",
    "chains": "the paper uses 50 for each example of RAISE; 1,000 are usual for AIS",
    "steps": "1,000 steps are a quick look, 10,000 a good answer for most models; or pass an array of betas",
    "budget": "half an hour is usual",
    "confidence": "0.99 is usual",
    "examples": "100 are usual",
    "gap": "0.1 is a good answer",
    "part": "the first part is 0, the next one 1",
    "particles": "1 is the paper's estimator; leave it out for all AIS chains",
    "schedule": "'friction' needs fewer steps; for betas of your own pass them as steps",
    "seed": "0 is as good as any",
    "threads": "leave it out for all cores",
    "tolerance": "1 is usual",
    "binarize": "for a new draw in each epoch load it either way and call .epoch(seed, number)",
    "workers": "as many as there are cores, or leave it out for threads",
}
"""What to do about a wrong value, where that is more than to leave it out."""

_WORDS: dict[Any, str] = {
    bool: "True or False",
    str: "text",
    os.PathLike: "a path (names of at most 255 bytes)",
    Mapping: "a dictionary",
    Callable: "a function",
    Iterable: "a list",
}


def read(hint: Any, value: Any, name: str, remedy: str = "") -> Any:  # noqa: ANN401
    """A value as its declared type says, or an InputError that names it.

    >>> read(Count, 3, "chains")
    3
    >>> read(bool, "no", "exact")
    Traceback (most recent call last):
    meltpoint.errors.InputError: found exact='no', expected True or False: correct exact
    """
    try:
        return _read(hint, value)
    except (ValueError, OverflowError):
        raise InputError(
            found=f"{name}={repr(os.fspath(value)) if isinstance(value, os.PathLike) else described(value)}",
            expected=listed(dict.fromkeys(_words(hint))),
            remedy=_REMEDIES.get(name) or remedy or f"correct {name}",
        ) from None


def listed(words: Iterable[str]) -> str:
    """Words with commas, and "or" before the last."""
    *most, last = words
    return f"{', '.join(most)} or {last}" if most else last


def public(function: Callable[P, R]) -> Callable[P, R]:
    """Let a function of the API read its arguments as they are declared, and show progress for True or a tqdm class."""

    @wraps(function)
    def checked(*arguments: P.args, **options: P.kwargs) -> R:
        own = _declared(function)
        for name in options:
            if name not in own.hints and own.closed:
                near = difflib.get_close_matches(name, own.hints, n=1)
                hint = f". Did you mean '{near[0]}'?" if near else ""
                raise TypeError(f"{function.__name__}() got an unexpected keyword argument '{name}'{hint}")
        try:
            bound = own.signature.bind(*arguments, **options)
        except TypeError:
            return function(*arguments, **options)  # Python's own error names the function too
        given = bound.arguments
        for each in (given, given.get(own.rest, {})):
            each.update({name: own.read(name, each[name]) for name in each.keys() & own.hints.keys()})
        with shown_progress(given.get("progress")) as progress:
            if "progress" in given:
                given["progress"] = progress
            return function(*bound.args, **bound.kwargs)

    return checked


@dataclass(frozen=True, eq=False)
class _Declared:
    """A function's signature, the types of what it takes by name, and the name of its further keywords, if any.

    It is `closed` where the names of these are known.
    """

    signature: Signature
    hints: dict[str, Any]
    rest: str
    closed: bool

    def read(self, name: str, value: Any) -> Any:  # noqa: ANN401
        default = getattr(self.signature.parameters.get(name), "default", Parameter.empty)
        usual = f" for {default!r}" if default is not None else ""
        return read(
            self.hints[name], value, name, "" if default is Parameter.empty else f"leave it out{usual}"
        )


@cache
def _declared(function: Callable[..., Any]) -> _Declared:
    own, hints = signature(function), get_type_hints(function, include_extras=True)
    rest = next((each.name for each in own.parameters.values() if each.kind is each.VAR_KEYWORD), "")
    keywords = hints.pop(rest, None)
    closed = keywords is None or get_origin(keywords) is Unpack
    if keywords is not None and closed:
        hints |= get_type_hints(get_args(keywords)[0], include_extras=True)
    hints = {name: Any for name in own.parameters if name != rest} | hints
    hints.pop("return", None)
    hints |= {"progress": Any} if "progress" in hints else {}  # `shown_progress` says what it may be
    return _Declared(own, hints, rest, closed)


def read_fields(record: Any) -> None:  # noqa: ANN401
    """Refuse a record with a field of another type or range than is declared."""
    for name, hint in field_hints(type(record)).items():
        read(hint, getattr(record, name), name)


@cache
def field_hints(record: type) -> dict[str, Any]:
    """The declared types of a record's fields."""
    return get_type_hints(record, include_extras=True)


def help_of(hint: Any) -> str:  # noqa: ANN401
    """What the command's help says of a declared option."""
    return next(each.text for each in hint.__metadata__ if isinstance(each, Doc))


def rule_of(hint: Any) -> Range | Duration | None:  # noqa: ANN401
    """The range of a declared type, None if it has none."""
    if hint in (int, float):
        return Range(-_NO_LIMIT, _NO_LIMIT) if hint is int else Range(-_LARGEST, _LARGEST, whole=False)
    return next(
        (each for each in getattr(hint, "__metadata__", ()) if isinstance(each, Range | Duration)), None
    )


def _read(hint: Any, value: Any) -> Any:  # noqa: ANN401
    """The value as a type says; ValueError for another. Types that are not known here take all values."""
    origin, parts = get_origin(hint), get_args(hint)
    if rule := rule_of(hint):
        return rule.read(value)
    if origin in (Union, UnionType):
        if (
            os.PathLike in [get_origin(part) for part in parts]
            and isinstance(value, str)
            and not _is_path(value)
        ):
            raise ValueError("no path")
        for each in parts:
            try:
                return _read(each, value)
            except (ValueError, OverflowError):
                continue
    elif origin is Annotated:
        return _read(parts[0], value)
    elif origin is tuple:
        return tuple(_read(part, each) for part, each in zip(parts, _elements(value), strict=True))
    elif origin is Sequence:
        elements = [_read(parts[0], each) for each in _elements(value)]
        return value if isinstance(value, tuple) and not rule_of(parts[0]) else elements
    elif _takes(hint, origin or hint, parts, value):
        return bool(value) if hint is bool else value
    raise ValueError("another type")


def _takes(hint: Any, kind: Any, parts: tuple[Any, ...], value: Any) -> bool:  # noqa: ANN401
    """Whether a type without a range takes a value."""
    if hint is Any:
        return True
    if kind is Literal:
        return isinstance(value, str | int) and any(
            type(value) is type(part) and value == part for part in parts
        )
    if kind is bool:
        return type(value).__name__ in ("bool", "bool_") and not hasattr(value, "__len__")
    if kind is Callable:
        return callable(value)
    if kind is os.PathLike:
        return isinstance(value, os.PathLike) and _is_path(os.fspath(value))
    if kind is Mapping and isinstance(value, Mapping) and rule_of(parts[0]):
        return all(
            _read(part, each) is not None
            for pair in value.items()
            for part, each in zip(parts, pair, strict=True)
        )
    if kind is Iterable:
        return isinstance(value, Iterable) and not isinstance(value, str | bytes)
    if getattr(kind, "_is_protocol", False) and kind is not Mapping:
        return all(hasattr(value, name) for name in vars(kind) if not name.startswith("_"))
    return not isinstance(kind, type) or is_typeddict(kind) or isinstance(value, kind)


def _elements(value: Any) -> Sequence[Any]:  # noqa: ANN401
    """The elements of a sequence; text, arrays without axes and what has no order are none."""
    if isinstance(value, str | bytes | Mapping | set) or not hasattr(value, "__getitem__"):
        raise ValueError("no sequence")
    try:
        return [value[k] for k in range(len(value))]
    except (TypeError, LookupError):
        raise ValueError("no sequence") from None


def _is_path(text: str | bytes) -> bool:
    """Whether a file may have this path."""
    if isinstance(text, bytes) or "\0" in text or len(text) > _LONGEST_PATH:
        return False
    return all(len(os.fsencode(part)) <= _LONGEST_NAME for part in text.split("/"))


def _words(hint: Any) -> Iterator[str]:  # noqa: ANN401
    """What is expected of a value of this type."""
    origin, parts = get_origin(hint), get_args(hint)
    if rule := rule_of(hint):
        yield str(rule)
    elif origin in (Annotated, Union, UnionType):
        for each in parts if origin is not Annotated else parts[:1]:
            yield from _words(each)
    elif origin is Literal:
        yield from map(repr, parts)
    elif origin is Sequence:
        yield " ".join(["a sequence", *dict.fromkeys(f"of {word}" for word in _words(parts[0]))])
    elif hint not in (NoneType, Any):
        kind = origin or hint
        name = getattr(kind, "__name__", str(kind))
        yield _WORDS.get(kind) or f"{'an' if name[0] in 'AEIORU' else 'a'} {name}"
