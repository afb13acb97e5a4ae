"""Files from the web: downloaded once, checked, kept in the user's cache."""

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from meltpoint.errors import InputError, Progress
from meltpoint.formats.atomic import atomic_write

VARIABLE = "MELTPOINT_DATA"
ROUNDS = 2
TIMEOUT_SECONDS = (10, 30)
"""Seconds to wait for the connection, and for the next bytes after it."""
CHUNK_BYTES = 1 << 16
LIMIT_BYTES = 1 << 30
"""Largest number of bytes of a file of unknown size."""


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
    supplied = supplied_path(file)
    if supplied is not None:
        if file.only_this:
            refuse_another(file, supplied)
        return supplied
    cached = cached_path(file)
    if cached.is_file() and checksum_of(cached, file) == file.checksum:
        return cached
    return download(file, cached.parent, progress)


def here(file: RemoteFile) -> Path | None:
    """Path of the copy that `obtain` would look at, None if it would download; nothing is checked."""
    cached = cached_path(file)
    return supplied_path(file) or (cached if cached.is_file() else None)


def supplied_path(file: RemoteFile) -> Path | None:
    """Path of the user's own copy, in the folder that MELTPOINT_DATA names or in its sub-folder."""
    named = os.environ.get(VARIABLE)
    if not named:
        return None
    root = Path(named).expanduser()
    if not root.is_dir():
        raise InputError(
            found=f"{VARIABLE}={named}, which is not a folder",
            expected="the folder that has the files",
            remedy=f"correct {VARIABLE}, or unset it to download",
        )
    candidates = (root / file.name, root / file.folder / file.name)
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


def refuse_another(file: RemoteFile, path: Path) -> None:
    """Raise an error unless the file at the path is the one that was published."""
    checksum = checksum_of(path, file)
    if checksum != file.checksum:
        raise InputError(
            found=f"{path} of {path.stat().st_size:,} bytes with {checksum}",
            expected=file.expectation,
            remedy=f"it is cut short, damaged or another file: get it again from {file.urls[0]}",
        )


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
            except _MirrorError as problem:
                failures[url] = str(problem)
            else:
                return folder / file.name
    raise InputError(
        found="; ".join(f"{url} {reason}" for url, reason in failures.items()),
        expected=f"{file.name}, {file.expectation}",
        remedy=f"are you offline? get the file on another machine and name its folder in {VARIABLE}",
    )


class _MirrorError(Exception):
    """One address did not give the file; the message goes on from the address."""


def _download_from(url: str, file: RemoteFile, target: Path, progress: Progress | None) -> None:
    import pooch
    from requests.exceptions import RequestException

    downloader = pooch.HTTPDownloader(chunk_size=CHUNK_BYTES, timeout=TIMEOUT_SECONDS)
    with atomic_write(target) as part:
        try:
            downloader(url, _Sink(part, file, progress), None)
        except RequestException as problem:
            raise _MirrorError(_reason(problem)) from problem
        part.flush()
        checksum = checksum_of(Path(part.name), file)
        if checksum != file.checksum:
            raise _MirrorError(f"sent {part.tell():,} bytes with {checksum}")


@dataclass
class _Sink:
    """Where Pooch writes to: counts and reports the bytes, stops a server that would never stop."""

    part: BinaryIO
    file: RemoteFile
    progress: Progress | None
    done: int = 0

    def write(self, chunk: bytes) -> None:
        self.done += len(chunk)
        limit = LIMIT_BYTES if self.file.size is None else self.file.size
        if self.done > limit:
            raise _MirrorError(f"sent more than {limit:,} bytes")
        self.part.write(chunk)
        if self.progress is not None:
            self.progress(f"{self.file.folder}: {self.file.name}", self.done, self.file.size or self.done)

    def flush(self) -> None:
        """Pooch asks after every chunk; once at the end is enough."""


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
