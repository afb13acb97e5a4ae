"""Files from the web: downloaded once, checked, kept in the user's cache; and the trained models of the zoo.

`zoo:NAME` is taken wherever the path of a model is. These models come with the source and are not part of the installed
package: a clone has them in `zoo/`, otherwise they are downloaded, unless MELTPOINT_DATA names a folder that has them.
"""

import difflib
import os
import time
from dataclasses import dataclass
from pathlib import Path

from meltpoint.errors import InputError, Progress
from meltpoint.formats.atomic import atomic_write

VARIABLE = "MELTPOINT_DATA"
ROUNDS = 2
TIMEOUT_SECONDS = (10, 30)
"""Seconds to wait for the connection, and for the next bytes after it."""
CHUNK_BYTES = 1 << 16
LIMIT_BYTES = 1 << 30
"""Largest number of bytes of a file of unknown size."""

PREFIX = "zoo:"
_ADDRESS = "https://raw.githubusercontent.com/meltpoint/meltpoint/main/zoo/"
_CLONE = Path(__file__).parents[3] / "zoo"

_ZOO = {
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
"""Models of the zoo: size in bytes and SHA-256 of each."""


@dataclass(frozen=True)
class RemoteFile:
    """A public file: its name, the folder it is kept in, its size and checksum, and who has it."""

    name: str
    folder: str
    size: int | None
    checksum: str
    urls: tuple[str, ...]
    only_this: bool = True
    """Whether a copy that the user supplies must have this checksum too, or only the right layout."""

    @property
    def expectation(self) -> str:
        """What the file should be, in words."""
        return self.checksum if self.size is None else f"{self.size:,} bytes with {self.checksum}"


def obtain(file: RemoteFile, progress: Progress | None = None) -> Path:
    """Path of the file, checked: the user's own copy, else the cached one, else a new download."""
    found, cached = here(file), cached_path(file)
    if found is None or (found == cached and checksum_of(found, file) != file.checksum):
        return download(file, cached.parent, progress)
    if found != cached and file.only_this and (checksum := checksum_of(found, file)) != file.checksum:
        raise InputError(
            found=f"{found} of {found.stat().st_size:,} bytes with {checksum}",
            expected=file.expectation,
            remedy=f"it is cut short, damaged or another file: get it again from {file.urls[0]}",
        )
    return found


def here(file: RemoteFile) -> Path | None:
    """Path of the copy that `obtain` would take, None if it would download; nothing is checked."""
    candidates = [cached_path(file)]
    if named := os.environ.get(VARIABLE):
        root = Path(named).expanduser()
        if not root.is_dir():
            raise InputError(
                found=f"{VARIABLE}={named}, which is not a folder",
                expected="the folder that has the files",
                remedy=f"correct {VARIABLE}, or unset it to download",
            )
        candidates = [root / file.name, root / file.folder / file.name, *candidates]
    return next((path for path in candidates if path.is_file()), None)


def cached_path(file: RemoteFile) -> Path:
    """Where a download of the file is kept, whether or not it is there."""
    import pooch

    return Path(pooch.os_cache("meltpoint")).expanduser() / file.folder / file.name


def checksum_of(path: Path, file: RemoteFile) -> str:
    """Checksum of what lies at the path, by the algorithm that `file.checksum` names, in the same form."""
    import pooch

    algorithm = file.checksum.partition(":")[0]
    return f"{algorithm}:{pooch.file_hash(str(path), algorithm)}"


def download(file: RemoteFile, folder: Path, progress: Progress | None = None, pause: float = 1.0) -> Path:
    """Path of a new download in the folder, from the first address that gives the right file.

    Nothing ever stands under the final name but the complete, checked file, so other processes that fetch the
    same one, or die while doing so, do no harm. After a round of failures it waits `pause` seconds and tries
    all addresses once more.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise InputError(
            found=f"a cache folder that cannot be made, {folder} ({problem.strerror})",
            expected="a folder to keep downloads in",
            remedy=f"free the path, or get {file.name} by hand and name its folder in {VARIABLE}",
        ) from problem
    failures: dict[str, str] = {}
    for attempt in range(ROUNDS):
        if attempt:
            time.sleep(pause)
        for url in file.urls:
            try:
                _download_from(url, file, folder / file.name, progress)
                return folder / file.name
            except _MirrorError as problem:
                failures[url] = str(problem)
    raise InputError(
        found="; ".join(f"{url} {reason}" for url, reason in failures.items()),
        expected=f"{file.name}, {file.expectation}",
        remedy=f"are you offline? get the file on another machine and name its folder in {VARIABLE}",
    )


class _MirrorError(Exception):
    """One address did not give the file; the message goes on from the address."""


def _download_from(url: str, file: RemoteFile, target: Path, progress: Progress | None) -> None:
    import requests

    limit = LIMIT_BYTES if file.size is None else file.size  # some servers would never stop
    with atomic_write(target) as part:
        try:
            with requests.get(url, stream=True, timeout=TIMEOUT_SECONDS) as answer:
                answer.raise_for_status()
                for chunk in answer.iter_content(CHUNK_BYTES):
                    if part.tell() + len(chunk) > limit:
                        raise _MirrorError(f"sent more than {limit:,} bytes")
                    part.write(chunk)
                    if progress is not None:
                        progress(f"{file.folder}: {file.name}", part.tell(), file.size or part.tell())
        except requests.exceptions.RequestException as problem:
            raise _MirrorError(_reason(problem)) from problem
        part.flush()
        checksum = checksum_of(Path(part.name), file)
        if checksum != file.checksum:
            raise _MirrorError(f"sent {part.tell():,} bytes with {checksum}")


def _reason(problem: Exception) -> str:
    """Why an address failed, in a few words: what `requests` says fills a screen."""
    from requests import exceptions

    if isinstance(problem, exceptions.HTTPError) and problem.response is not None:
        return f"answered {problem.response.status_code} {problem.response.reason}"
    known = (
        (exceptions.Timeout, "did not answer in time"),
        (exceptions.ChunkedEncodingError, "broke off"),
        (exceptions.ConnectionError, "could not be reached"),
    )
    return next((reason for kind, reason in known if isinstance(problem, kind)), f"failed ({problem})")


def path_of(name: str | os.PathLike[str]) -> Path:
    """The path itself, or for `zoo:NAME` the path of that model, downloaded if it is not here yet."""
    text = os.fspath(name)
    if not text.startswith(PREFIX):
        return Path(text)
    known = text.removeprefix(PREFIX).removesuffix(".npz")
    if known not in _ZOO:
        near = difflib.get_close_matches(known, _ZOO, n=1)
        raise InputError(
            found=text,
            expected=f"one of {', '.join(_ZOO)}",
            remedy=f"did you mean {PREFIX}{near[0]}?" if near else "choose one of these",
        )
    size, digest = _ZOO[known]
    in_clone = _CLONE / f"{known}.npz"
    if in_clone.is_file():
        return in_clone
    return obtain(RemoteFile(f"{known}.npz", "zoo", size, f"sha256:{digest}", (f"{_ADDRESS}{known}.npz",)))
