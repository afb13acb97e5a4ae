"""The trained models that come with the source: `zoo:NAME` wherever the path of a model is taken.

They are not part of the installed package. A clone has them in `zoo/`; otherwise they are downloaded once, checked, and
kept in the user's cache, unless MELTPOINT_DATA names a folder that has them.
"""

import difflib
import os
from pathlib import Path

from meltpoint.errors import InputError
from meltpoint.formats.download import RemoteFile, obtain

PREFIX = "zoo:"
_ADDRESS = "https://raw.githubusercontent.com/meltpoint/meltpoint/main/zoo/"
_CLONE = Path(__file__).parents[3] / "zoo"

_FILES = {
    "mnistCD1-20": (32758, "e6e3ef156602c9726e4d2ed0a87e26e19c31b46802a8141b09a89c6e60d5a616"),
    "mnistCD1-500": (740271, "1510617eea5b0bc5ed710c9a716e261724d605f87fd7b87a64dfdf5f13009e27"),
    "mnistCD25-500": (741003, "9410f57343f42b4b1888b77d4ea6788372b5ea24f03fff578d72a53d513d3066"),
    "mnistDBM-500-1000": (1674986, "2477d5d3211fc13879d3abda3713f882a4d0bc9d51784ddc06886e35186ce951"),
    "mnistDBN-500-2000": (2614128, "fd10c2b206ba35184b139ef1be5eefda59d6f088534759c847c85ae664418738"),
    "mnistPCD-20": (32704, "039830e0a12fd08ef5b51f80388b58e8e9d9a66dd101c4a8c73fd173933ad311"),
    "mnistPCD-500": (741195, "65278fc751fa44cb5144a068e6f7d33bfc3b43e25e7197e12a4367f0ecb3b6fd"),
    "omniDBM-1000-1000": (3328561, "980dbdc7d8bd2c0a7c694481a630e0f88adda6beae60e4c24fcea873a1f074e2"),
    "omniDBN-1000-1000": (3328606, "5b7acde6a54ea8a60f2184bf7b8a8179362cb1726a3653aee3987632570d8158"),
    "omniPCD-1000": (1463934, "9a3013f7acfb141170626faa97ecb41cf2b18d151cd00ab044c5d2944e0872e8"),
}
"""Size in bytes and SHA-256 of each."""


def names() -> tuple[str, ...]:
    """Names that `zoo:` takes.

    >>> names()[0]
    'mnistCD1-20'
    """
    return tuple(_FILES)


def path_of(name: str | os.PathLike[str]) -> Path:
    """The path itself, or for `zoo:NAME` the path of that model, downloaded if it is not here yet."""
    text = os.fspath(name)
    if not text.startswith(PREFIX):
        return Path(text)
    known = text.removeprefix(PREFIX).removesuffix(".npz")
    if known not in _FILES:
        near = difflib.get_close_matches(known, names(), n=1)
        raise InputError(
            found=text,
            expected=f"one of {', '.join(names())}",
            remedy=f"did you mean {PREFIX}{near[0]}?" if near else "choose one of these",
        )
    size, digest = _FILES[known]
    in_clone = _CLONE / f"{known}.npz"
    if in_clone.is_file():
        return in_clone
    return obtain(RemoteFile(f"{known}.npz", "zoo", size, f"sha256:{digest}", (f"{_ADDRESS}{known}.npz",)))
