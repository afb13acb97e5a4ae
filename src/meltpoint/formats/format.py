"""What a format declares (name, how it is recognised, readers), and the options for what a format leaves open."""

from collections.abc import Callable, Collection
from dataclasses import dataclass, fields
from typing import Any, Literal, TypeAlias, get_args

from numpy.typing import NDArray

from meltpoint.arguments import Count, field_hints, read
from meltpoint.errors import InputError
from meltpoint.formats.source import CEILING, Source
from meltpoint.models import Model

Orientation: TypeAlias = Literal["visible-hidden", "hidden-visible"]


@dataclass(frozen=True)
class Options:
    """What the readers of models and data can be told; None where it was left out."""

    orientation: Orientation | None = None  # axes of the weights
    visible: str | None = None  # kind of units: "bernoulli" or "spin"
    hidden: str | None = None
    weights: str | None = None  # names of the arrays in the file, where they have unusual ones
    visible_bias: str | None = None
    hidden_bias: str | None = None
    units: Literal["spin", "bernoulli"] | None = (
        None  # of a graph whose file does not say: "spin" or "bernoulli"
    )
    temperature: float | None = (
        None  # p ~ exp(-E / temperature) = exp(-beta E), of files that hold an energy E
    )
    beta: float | None = None
    states: Count | None = None  # number of states of every site
    base: Literal[0, 1] | None = None  # number of the first site and state
    alphabet: str | None = None  # "protein", "rna", "dna", or the letters of the states in the model's order
    gap: Literal["state", "masked"] | None = None  # a state like the others, or none
    gauge: Literal["zero-sum"] | None = None  # rows and columns of couplings sum to zero
    update: int | str | None = None  # of the stored updates of training: a number, "first" or "last"
    outside: Literal["refuse", "drop"] | None = (
        None  # sequences with letters outside the alphabet: "refuse" or "drop"
    )
    coupling: str | None = None  # names of the attributes of a NetworkX graph's edges and nodes
    field: str | None = None
    member: str | None = None  # which file of an archive
    unpacked: Count | None = None  # megabytes that a packed file may be unpacked to, 256 by default

    @property
    def ceiling(self) -> int:
        """Bytes that the file may be unpacked to."""
        return CEILING if self.unpacked is None else self.unpacked << 20

    def given(self, *names: str) -> dict[str, Any]:
        """Those of these options that were given, by name."""
        return {name: value for name in names if (value := getattr(self, name)) is not None}

    def require(self, name: str, found: str) -> Any:  # noqa: ANN401
        """The value of an option; where it was left out, the error asks for it, and says what was found."""
        value = getattr(self, name)
        if value is None:
            raise missing_option(name, found)
        return value

    def inverse_temperature(self, where: str, default: float | None = None) -> float:
        """Beta of p ~ exp(-beta E), which energies do not hold, from `beta` or `temperature`."""
        beta, temperature = self.beta, self.temperature
        if beta is None and temperature is None and default is not None:
            return default
        if (beta is None) == (temperature is None):
            without = "without a temperature" if beta is None else "with both temperature and beta"
            raise MissingOptionError(
                found=f"{where}, an energy {without}",
                expected="temperature=T (or beta=1/T): the model is exp(-E / T)",
                remedy="give the temperature that was sampled at or trained for; 1 if E is -log p",
            )
        value = beta if beta is not None else 1 / temperature if temperature else 0.0
        if not 0 < value < float("inf"):
            raise InputError(
                found=f"beta={beta}, temperature={temperature}",
                expected="a positive number",
                remedy="correct it",
            )
        return float(value)


NAMES = tuple(field.name for field in fields(Options))
"""Names of all options."""

_QUESTIONS = {
    "orientation": "say which axis is first: nn.Linear(visible, hidden) and sklearn store hidden-visible, v @ W needs "
    "visible-hidden",
    "units": "spin if the units are -1 and +1, bernoulli if they are 0 and 1",
    "base": "give the number of the first site",
    "gap": "state: 21 states, the gap's field is 0 (CCMpred); masked: the 20 amino acids alone (CCMgen)",
    "states": "21 for proteins with a gap; or are model and data swapped?",
    "alphabet": "say which letters the states have, in which order",
    "update": "say after which update of training",
}
"""How to choose, where a message asks for an option."""


class MissingOptionError(InputError):
    """What a format leaves open was not said: the message asks for an option by its name."""


def missing_option(name: str, found: str, values: str = "") -> MissingOptionError:
    """The error that asks for an option: what is there, the values it may have, how to choose."""
    values = values or " or ".join(
        f'"{value}"' if isinstance(value, str) else str(value)
        for value in get_args(get_args(field_hints(Options)[name])[0])
    )
    return MissingOptionError(
        found=f"{found}, and no {name}", expected=f"{name}={values}", remedy=_QUESTIONS[name]
    )


def parse_options(given: dict[str, Any]) -> Options:
    """The options by name; unknown names, and values of other types than theirs, are refused."""
    hints = field_hints(Options)
    for name in given:
        if name not in hints:
            raise InputError(
                found=f"option {name!r}", expected=f"one of {', '.join(NAMES)}", remedy="correct its name"
            )
    return Options(**{name: read(hints[name], value, name) for name, value in given.items()})


def refuse_unused(options: Options, used: Collection[str], what: str) -> None:
    """Refuse options that do not apply to this format."""
    if unused := [name for name in options.given(*NAMES) if name not in {*used, "unpacked"}]:
        raise InputError(
            found=f"{', '.join(unused)} for {what}",
            expected=f"only what this format leaves open: {', '.join(sorted(used)) or 'nothing'}",
            remedy="leave the others out",
        )


def refuse(options: Options, names: Collection[str], what: str) -> None:
    """Refuse options that apply to other files of this format only."""
    if given := options.given(*names):
        raise InputError(
            found=f"{', '.join(given)} for {what}", expected="nothing of that kind", remedy="leave it out"
        )


@dataclass(frozen=True, eq=False)
class Table:
    """Numbers (row, column), the columns' names if there is a header, and names of columns that are not numbers."""

    values: NDArray[Any]
    names: tuple[str, ...] | None = None
    words: tuple[str, ...] = ()


@dataclass(frozen=True)
class Format:
    """A format of files; `load.FORMATS` lists them. It has models, data, or both."""

    name: str
    suffixes: tuple[str, ...]  # for messages: a file is recognised by its content
    recognises: Callable[[Source], bool]
    options: Collection[str] = ()  # names of the `Options` for what the format leaves open
    model: Callable[[Source, Options], Model] | None = None
    data: Callable[[Source, Options, str | None], Table | NDArray[Any]] | None = None
    has_names: bool = False  # whether a file may hold several arrays: `data` takes the name of one


def choose(source: Source, name: str | None, names: list[str]) -> str:
    """The array that was asked for, or the only one there is."""
    listed = ", ".join(names) or "none"
    if not names:
        raise InputError(
            found=f"{source.name}, without an array of numbers",
            expected="at least one",
            remedy="check how it was saved",
        )
    if name is None and len(names) > 1:
        raise InputError(
            found=f"{len(names)} arrays in {source.name}: {listed}",
            expected="the name of one of them",
            remedy=f"name it behind a colon, {source.path}:{names[0]}",
        )
    if name is not None and name not in names:
        raise source.refusal(f"no array {name!r}", f"one of its arrays: {listed}", "check the name")
    return names[0] if name is None else name


_HDF5 = (
    "an HDF5 file",
    "save(..., '-v7') in MATLAB, numpy.save from h5py; models in HDF5 are read by mp.load",
)
# A pickle can run any program when it is opened, so it is only ever named.
_PICKLE = ("a Python pickle", "save arrays with numpy.save or numpy.savez: pickles are never opened")
_NO_MAT = ("no .mat file of version 5 to 7", "save it again in MATLAB with save(..., '-v7')")
_UNKNOWN = ("a file of unknown format", "check the path, or save the data with numpy.save")
_CONVERT = "convert it, or check the path"
_FOREIGN = (
    (0, b"MATLAB 7.3", "a MATLAB 7.3 (HDF5) file", _HDF5[1]),
    (0, b"\x89HDF\r\n\x1a\n", *_HDF5),
    (512, b"\x89HDF\r\n\x1a\n", *_HDF5),
    *((0, b"\x80" + bytes([version]), *_PICKLE) for version in (2, 3, 4, 5)),
    (0, b"\x89PNG\r\n\x1a\n", "a PNG image", _CONVERT),
    (0, b"\xff\xd8\xff", "a JPEG image", _CONVERT),
    (0, b"GIF8", "a GIF image", _CONVERT),
    (0, b"%PDF", "a PDF document", _CONVERT),
    (0, b"BZh", "a bzip2 file", _CONVERT),
    (0, b"\xfd7zXZ\x00", "an xz file", _CONVERT),
    (0, b"\xff\xfe", "text in UTF-16", _CONVERT),
    (0, b"\xfe\xff", "text in UTF-16", _CONVERT),
)
"""Where the signatures of other files stand, what the files are, and what to do."""


def unknown_file(source: Source, expected: str) -> InputError:
    """The error for a file of no format, called by its name as far as it has one."""
    suffix = source.path.suffix.lower()
    description, remedy = next(
        (what for at, signature, *what in _FOREIGN if source.head[at:].startswith(signature)),
        _NO_MAT if suffix == ".mat" else _UNKNOWN,
    )
    if suffix in {".pkl", ".pickle"}:
        description, remedy = _PICKLE
    return InputError(found=f"{source.name}, {description}", expected=expected, remedy=remedy)
