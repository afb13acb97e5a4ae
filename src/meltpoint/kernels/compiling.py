"""How this library uses Numba: compiled functions without the GIL, cached on disk, and LLVM instructions of our own.

Numba's own cache compares the source file of the cached function only, although the functions that it calls are
compiled into it. Here machine code is filed under a digest of that file, of all sources in the rooms of kernels, which
alone compiled functions take anything from, and of the versions of Numba, llvmlite and NumPy. Numba adds the signature,
the processor and the version of Python.

A process that finds its machine code there only links it: what Numba's compiler needs to know of Python and NumPy is
imported when something is compiled.
"""

import contextlib
import hashlib
import inspect
import logging
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from threading import Timer, local
from typing import Any

import llvmlite
import numba
import numpy as np
from llvmlite import binding
from numba import njit
from numba.core import caching, config
from numba.core.event import Event, Listener, install_listener
from numba.core.runtime.nrt import rtsys

from meltpoint.arguments import Threads, read
from meltpoint.errors import Progress, SystemFailure
from meltpoint.progress import COMPILING

_PACKAGE = Path(__file__).parents[1]
_ROOMS = "kernels", "backends/numba/kernels"
_DIGEST_LENGTH = 16
_KEPT_DIGESTS = 3
"""Versions of a module's machine code that stay on disk, for switching between versions of the source."""


def compiled(function: Callable[..., Any]) -> Any:
    """Compile a function when it is first called, without the GIL and without checks for division by zero.

    The machine code is cached beside the source or, where that is read-only, in the user's cache directory. Where
    neither can be written it is compiled anew in every process.
    """
    if config.DISABLE_JIT:  # pyright: ignore[reportAttributeAccessIssue]
        raise SystemFailure(
            found="Numba with its compiler switched off, by NUMBA_DISABLE_JIT",
            expected="its compiler: without it a run would take hundreds of times as long",
            remedy="unset NUMBA_DISABLE_JIT",
        )
    dispatcher: Any = njit(nogil=True, error_model="numpy")(function)
    # RuntimeError: Numba found no directory to write to. OSError: there are no source files to read.
    with contextlib.suppress(RuntimeError, OSError):
        dispatcher._cache = _DigestCache(function)
    return dispatcher


def compiled_into_callers(function: Callable[..., Any]) -> Any:
    """Compile a function that only compiled ones call: not cached by itself, and nothing that Python could call."""
    options: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    return njit(nogil=True, error_model="numpy", **options)(function)


def code_digest(file: Path) -> str:
    """Digest of what the compiled functions of a source file depend on."""
    return hashlib.sha256(_digest_of_rooms() + file.read_bytes()).hexdigest()[:_DIGEST_LENGTH]


@cache
def _digest_of_rooms() -> bytes:
    versions = [module.__version__.encode() for module in (numba, llvmlite, np)]
    files = sorted(path for room in _ROOMS for path in (_PACKAGE / room).glob("*.py"))
    sources = [part for path in files for part in (path.name.encode(), path.read_bytes())]
    # The lengths keep what follows one another apart.
    return hashlib.sha256(b"".join(b"%d %b" % (len(part), part) for part in versions + sources)).digest()


class _DigestCacheImpl(caching.CompileResultCacheImpl):
    """Machine code with the symbols it needs."""

    def reduce(self, cres: Any) -> Any:
        """What is written of compiled code."""
        return _external_symbols(cres.library), super().reduce(cres)

    def rebuild(self, target_context: Any, payload: Any) -> Any:
        """Link machine code.

        LLVM ends the process if a symbol is missing, and some are defined when Numba sets up what compiling needs.
        """
        symbols, reduced = payload
        if any(binding.address_of_symbol(name) is None for name in symbols):
            target_context.refresh()
        return super().rebuild(target_context, reduced)


def _external_symbols(library: Any) -> list[str]:
    """Names that compiled code uses and does not define, LLVM's own instructions apart."""
    module = library._get_module_for_linking()
    return [
        each.name
        for group in (module.functions, module.global_variables)
        for each in group
        if each.is_declaration and not each.name.startswith("llvm.")
    ]


class _FilesOfSignatures:
    """An index and a file of machine code for each signature of a function.

    Numba has one index for all signatures of a function and numbers their files: of two processes that compile
    different signatures at the same time, one would overwrite the other's machine code, and the index would name it.
    """

    def __init__(self, folder: Path, filename_base: str, stamp: Any) -> None:
        self._folder, self._filename_base, self._stamp = folder, filename_base, stamp

    def load(self, key: Any) -> Any:
        """The machine code of a signature, None where there is none."""
        return self._file(key).load(key)

    def save(self, key: Any, data: Any) -> None:
        """Write the machine code of a signature."""
        self._file(key).save(key, data)

    def _file(self, key: Any) -> Any:
        name = f"{self._filename_base}-{hashlib.sha256(str(key).encode()).hexdigest()[:_DIGEST_LENGTH]}"
        return caching.IndexDataCacheFile(str(self._folder), name, self._stamp)


class _DigestCache(caching.FunctionCache):
    """Numba's cache of one function, which also removes the machine code of old versions of its module."""

    _impl_class = _DigestCacheImpl

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        file = Path(inspect.getfile(function))
        self._versions, self._module = Path(self.cache_path), file.stem
        self._folder = self._versions / f"{self._module}-{code_digest(file)}"
        stamp = self._impl.locator.get_source_stamp()
        self._cache_file = _FilesOfSignatures(self._folder, self._impl.filename_base, stamp)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The machine code of one signature, linked; None where there is none.

        Numba's own method first sets up all that compiling needs: 0.2 s, most of the first call of a process that
        has nothing to compile. The compiler does so by itself.
        """
        rtsys.initialize(target_context)  # allocation, which machine code calls
        with self._guard_against_spurious_io_errors():
            return self._load_overload(sig, target_context)

    def save_overload(self, sig: Any, data: Any) -> None:
        """Write the machine code of one signature."""
        with contextlib.suppress(OSError):  # Numba's own method says so
            self._folder.mkdir(parents=True, exist_ok=True)
        super().save_overload(sig, data)
        remove_old_versions(self._versions, self._module)


def remove_old_versions(folder: Path, module: str) -> None:
    """Remove the cached machine code of a module but for the digests that were written last."""
    versions = [
        path for path in folder.glob(f"{module}-*") if len(path.name) == len(module) + 1 + _DIGEST_LENGTH
    ]
    written: dict[Path, float] = {}
    for path in versions:
        with contextlib.suppress(OSError):  # another process has removed it
            written[path] = path.stat().st_mtime
    for path in sorted(written, key=lambda path: written[path])[:-_KEPT_DIGESTS]:
        shutil.rmtree(path, ignore_errors=True)


_SECONDS = 2.0
_log = logging.getLogger("meltpoint")
_spent = local()


def seconds_compiling() -> float:
    """Seconds that this thread has spent until now on compiling kernels, which no budget pays for."""
    return getattr(_spent, "seconds", 0.0)


@contextmanager
def preparing_kernels(progress: Progress) -> Iterator[None]:
    """Around what may compile kernels. Nothing is reported where machine code is only loaded."""
    listener = _CompilerListener(progress)
    try:
        with install_listener("numba:compile", listener):
            yield
    finally:
        listener.timer.cancel()
        if listener.begun is not None:
            _spent.seconds = seconds_compiling() + time.perf_counter() - listener.begun
    if listener.begun is not None:
        progress(COMPILING, 1.0, 1.0)


class _CompilerListener(Listener):
    """Announces the first of the functions that are compiled; the others are its callees, or follow at once."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self.begun: float | None = None
        self.timer = Timer(_SECONDS, _log.info, (COMPILING,))
        self.timer.daemon = True

    def on_start(self, event: Event) -> None:
        """Numba found no machine code of a function, and compiles it."""
        if self.begun is None:
            self.begun = time.perf_counter()
            self.timer.start()
            self._progress(COMPILING, 0.0, 1.0)

    def on_end(self, event: Event) -> None:
        """Nothing is reported: more functions may follow."""


def check_threads(threads: int | None) -> int:
    """The number of threads: as given, or all cores this process may use."""
    if threads is None:
        usable = getattr(os, "sched_getaffinity", None)
        return len(usable(0)) if usable else os.cpu_count() or 1
    return read(Threads, threads, "threads")
