"""What a run computes. Only runs of the same specification are continued or joined."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from meltpoint.errors import InputError
from meltpoint.files.atomic import atomic_write
from meltpoint.runs.fingerprint import fingerprint

FORMAT = 1
"""Version of the folder's layout."""

METHOD = 2
"""Version of the method. It changes whenever the same model, data, settings and seed give other weights."""

FILE = "specification.json"


@dataclass(frozen=True)
class Specification:
    """A model, data and settings, by their fingerprints and values, and the parts of the chains a run has.

    `judgement` (tolerance and confidence) and `versions` are for the reader: they change no weight.
    """

    model: str
    test_examples: int
    fingerprints: Mapping[str, str]
    settings: Mapping[str, Any]
    judgement: Mapping[str, Any]
    versions: Mapping[str, str]
    parts: tuple[int, ...]
    method: int = METHOD

    @property
    def fingerprint(self) -> str:
        """A fingerprint of all that determines the numbers, the same for all parts."""
        return fingerprint({}, json.dumps(self._determining(), sort_keys=True))

    def _determining(self) -> dict[str, Any]:
        return {
            "method": self.method,
            "fingerprints": dict(self.fingerprints),
            "settings": dict(self.settings),
        }

    def check_same(self, other: "Specification", where: str) -> None:
        """Refuse to mix with a run of another specification, which was found at `where`."""
        if self.method != other.method:
            raise _other(
                where,
                f"version {other.method} of the method",
                f"version {self.method}",
                "continue it with the meltpoint that began it",
            )
        for name in sorted({*self.fingerprints, *other.fingerprints}):
            mine, theirs = self.fingerprints.get(name), other.fingerprints.get(name)
            if mine != theirs:
                what = f"another {name}" if mine and theirs else f"{'no' if mine else 'a'} {name}"
                raise _other(where, what, f"the same {name}" if mine and theirs else "the same arguments")
        for name in sorted({*self.settings, *other.settings}):
            mine, theirs = self.settings.get(name), other.settings.get(name)
            if mine != theirs:
                raise _other(where, f"{name}={theirs!r}", f"{name}={mine!r}")


def write_specification(specification: Specification, folder: Path) -> None:
    """Write a run's specification into its folder."""
    content = {"format": FORMAT, **vars(specification), "parts": list(specification.parts)}
    with atomic_write(folder / FILE) as file:
        file.write(json.dumps(content, indent=2, default=dict).encode() + b"\n")


def read_specification(folder: Path) -> Specification:
    """The specification in a run's folder."""
    path = folder / FILE
    if not path.is_file():
        raise InputError(
            found=f"{folder}, which is not a run's folder",
            expected=f"a folder with a {FILE}",
            remedy="begin a run with evaluate(…, run=folder), or meltpoint evaluate … --run FOLDER",
        )
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        version = content.pop("format")
        specification = Specification(**{**content, "parts": tuple(content["parts"])})
        specification.fingerprint  # noqa: B018  a damaged file fails here, not later
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as problem:
        raise InputError(
            found=f"{path}, damaged ({problem})",
            expected="a specification as it was written",
            remedy="restore it from a copy, or begin the run anew in another folder",
        ) from problem
    if version != FORMAT:
        raise InputError(
            found=f"a run's folder of version {version} in {folder}",
            expected=f"version {FORMAT}",
            remedy="open it with the meltpoint that began it",
        )
    return specification


def _other(
    where: str,
    found: str,
    expected: str,
    remedy: str = "repeat the call that began it, or choose another folder",
) -> InputError:
    return InputError(found=f"a run with {found} in {where}", expected=expected, remedy=remedy)
