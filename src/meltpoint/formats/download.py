"""Files from the web: downloaded once, checked, kept in the user's cache."""

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
