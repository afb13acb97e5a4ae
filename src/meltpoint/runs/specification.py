"""What a run computes. Only runs of the same specification are continued or joined."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from meltpoint.errors import InputError, shortened
from meltpoint.fingerprint import fingerprint
from meltpoint.formats.atomic import atomic_write, write_error
from meltpoint.formats.source import open_regular
from meltpoint.runs.contents import SPECIFICATION as FILE

FORMAT = 2
"""Version of the folder's layout."""

METHOD = 5
"""Version of the method. It changes whenever the same model, data, settings and seed give other weights."""

_LARGEST = 1 << 20  # bytes


@dataclass(frozen=True)
class Specification:
    """A model, data and settings, by their fingerprints and values, and the parts of the chains a run has.

    `reporting_settings` (such as tolerance and confidence) and `versions` change no weight.
    """

    model: str
    test_examples: int
    fingerprints: Mapping[str, str]
    settings: Mapping[str, Any]
    reporting_settings: Mapping[str, Any]
    versions: Mapping[str, str]
    parts: tuple[int, ...]
    method: int = METHOD

    @property
    def fingerprint(self) -> str:
        """A fingerprint of all that determines the numbers, the same for all parts."""
        determining = {
            "method": self.method,
            "fingerprints": dict(self.fingerprints),
            "settings": dict(self.settings),
        }
        return fingerprint({}, json.dumps(determining, sort_keys=True))

    def check_same(self, other: "Specification", where: str) -> None:
        """Refuse to mix with a run of another specification, which was found at `where`."""
        if self.method != other.method:
            remedy = "continue it with the meltpoint that began it"
            raise _other(where, f"version {other.method} of the method", f"version {self.method}", remedy)
        for name in sorted({*self.fingerprints, *other.fingerprints}):
            mine, theirs = self.fingerprints.get(name), other.fingerprints.get(name)
            if mine != theirs:
                what = f"another {name}" if mine and theirs else f"{'no' if mine else 'a'} {name}"
                raise _other(where, what, f"the same {name}" if mine and theirs else "the same arguments")
        for name in sorted({*self.settings, *other.settings}):
            mine, theirs = self.settings.get(name), other.settings.get(name)
            if mine != theirs:
                raise _other(where, f"{name}={theirs!r}", f"{name}={mine!r}")

    def check_continues(self, found: "Specification", where: str) -> None:
        """Refuse to continue a run of another specification or part, which was found at `where`."""
        self.check_same(found, where)
        if self.parts != found.parts:
            raise InputError(
                found=f"a run of part {', '.join(map(str, found.parts))} in {where}",
                expected=f"one of part {', '.join(map(str, self.parts))}",
                remedy="choose another folder, and join the two with meltpoint runs merge",
            )


def write_specification(specification: Specification, folder: Path) -> None:
    """Write a run's specification into its folder."""
    content = {"format": FORMAT, **vars(specification), "parts": list(specification.parts)}
    with atomic_write(folder / FILE, follow_links=False) as file:
        file.write(json.dumps(content, indent=2, default=dict).encode() + b"\n")


def read_specification(folder: Path) -> Specification:
    """The specification in a run's folder."""
    path = folder / FILE
    if not has_specification(folder):
        raise InputError(
            found=f"{folder}, which is not a run's folder",
            expected=f"a folder with a {FILE}",
            remedy="begin a run with evaluate(…, run=folder), or meltpoint evaluate … --run FOLDER",
        )
    try:
        with open_regular(path, follow_links=False) as file:
            text = file.read(_LARGEST + 1)
        content: Any = json.loads(text) if len(text) <= _LARGEST else None
        version = content.pop("format")
        if type(version) is not int:
            raise TypeError("format must be a whole number")
        specification = _checked(content) if version == FORMAT else None
    # RecursionError: a thousand brackets
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as problem:
        raise InputError(
            found=f"{path}, damaged ({shortened(str(problem) or type(problem).__name__, 100)})",
            expected="a specification as it was written",
            remedy="restore it from a copy, or begin the run anew in another folder",
        ) from problem
    if specification is None:
        raise InputError(
            found=f"a run's folder of version {version} in {folder}",
            expected=f"version {FORMAT}",
            remedy="open it with the meltpoint that began it",
        )
    return specification


def has_specification(folder: Path) -> bool:
    """Whether a folder is a run's: it has an entry with the name of the specification."""
    try:
        (folder / FILE).lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except (OSError, ValueError) as problem:
        raise write_error(folder, problem) from problem
    return True


def _checked(content: dict[str, Any]) -> Specification:
    """The specification, or an error if anything is not of its type."""
    specification = Specification(**{**content, "parts": tuple(content["parts"])})
    numbers = (specification.method, specification.test_examples, *specification.parts)
    texts = [specification.model]
    for name in ("fingerprints", "settings", "reporting_settings", "versions"):
        values = getattr(specification, name)
        if not isinstance(values, dict):
            raise TypeError(f"{name} must be an object")
        texts += values.values() if name in ("fingerprints", "versions") else []
    if not specification.parts or not all(type(number) is int and number >= 0 for number in numbers):
        raise TypeError("method, test_examples and parts must be whole numbers")
    if not all(isinstance(text, str) for text in texts):
        raise TypeError("model, fingerprints and versions must be texts")
    specification.fingerprint  # noqa: B018  what JSON cannot write fails here, not later
    return specification


def _other(
    where: str,
    found: str,
    expected: str,
    remedy: str = "repeat the call that began it, or choose another folder",
) -> InputError:
    return InputError(found=f"a run with {found} in {where}", expected=expected, remedy=remedy)
