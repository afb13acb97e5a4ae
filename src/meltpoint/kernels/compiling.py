"""How this library uses Numba: compiled functions without the GIL, cached on disk, and LLVM instructions of our own.

Numba's own cache compares the source file of the cached function only, although the functions that it calls are
compiled into it. Here machine code is filed under a digest of every source file of this package that the function's
module imports, directly or not, and of the versions of Numba, llvmlite and NumPy. Numba adds the signature, the
processor and the version of Python.

A process that finds its machine code there only links it: what Numba's compiler needs to know of Python and NumPy is
imported when something is compiled.
"""

import contextlib
import hashlib
import inspect
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import llvmlite
import numba
import numpy as np
from llvmlite import binding
from numba import extending, njit
from numba.core import caching
from numba.core.runtime.nrt import rtsys

_PACKAGE = Path(__file__).parents[1]
_IMPORT = re.compile(
    rf"^\s*(?:from|import)\s+({_PACKAGE.name}[\w.]*)(?:\s+import\s+(\([^)]*\)|[^\n]*))?", re.MULTILINE
)
_DIGEST_LENGTH = 16
_KEPT_DIGESTS = 3
"""Versions of a module's machine code that stay on disk, for switching between versions of the source."""


def compiled(function: Callable[..., Any]) -> Any:
    """Compile a function when it is first called, without the GIL and without checks for division by zero.

    The machine code is cached beside the source or, where that is read-only, in the user's cache directory. Where
    neither can be written it is compiled anew in every process.
    """
    dispatcher: Any = njit(nogil=True, error_model="numpy")(function)
    # RuntimeError: Numba found no directory to write to. OSError: there are no source files to read.
    with contextlib.suppress(RuntimeError, OSError):
        dispatcher._cache = _DigestCache(function)
    return dispatcher


def compiled_into_callers(function: Callable[..., Any]) -> Any:
    """Compile a function that only compiled ones call: not cached by itself, and nothing that Python could call."""
    options: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    return njit(nogil=True, error_model="numpy", **options)(function)


def intrinsic(emitter: Callable[..., Any]) -> Any:
    """Make a function that emits LLVM instructions callable, without its first parameter, from compiled ones."""
    return extending.intrinsic(emitter)


@cache
def code_digest(file: Path) -> str:
    """Digest of what the compiled functions of a source file depend on."""
    digest = hashlib.sha256()
    for version in (numba.__version__, llvmlite.__version__, np.__version__):
        digest.update(f"{version}\n".encode())
    for path in sorted(_sources(file)):
        source, _ = _read(path)
        digest.update(f"{path.name} {len(source)}\n".encode() + source)
    return digest.hexdigest()[:_DIGEST_LENGTH]


def _sources(file: Path) -> set[Path]:
    """The file, and the files of this package that it imports, directly or not."""
    found, waiting = set[Path](), {file}
    while waiting:
        path = waiting.pop()
        found.add(path)
        waiting |= _read(path)[1] - found
    return found


@cache
def _read(path: Path) -> tuple[bytes, frozenset[Path]]:
    """A source file, and the files of this package that it imports; read once, for many kernels depend on it."""
    source = path.read_bytes()
    imported = set[Path]()
    for module, names in _IMPORT.findall(source.decode("utf-8")):
        parts = module.split(".")[1:]
        # What is imported from a package may be a module of it.
        for place in (parts, *([*parts, name] for name in re.findall(r"\w+", names))):
            stem = _PACKAGE.joinpath(*place)
            imported |= {p for p in (stem.with_suffix(".py"), stem / "__init__.py") if p.is_file()}
    return source, frozenset(imported)


class _DigestCacheImpl(caching.CompileResultCacheImpl):
    """Numba's choice of a directory, file names that contain the digest, and machine code with the symbols it needs."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._digest = code_digest(Path(inspect.getfile(function)))
        super().__init__(function)

    def get_filename_base(self, fullname: str, abiflags: str) -> str:
        """What the names of a function's index and of its machine code begin with."""
        return f"{super().get_filename_base(fullname, abiflags)}-{self._digest}"

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

    def __init__(self, folder: str, filename_base: str, stamp: Any) -> None:
        self._folder, self._filename_base, self._stamp = folder, filename_base, stamp

    def load(self, key: Any) -> Any:
        """The machine code of a signature, None where there is none."""
        return self._file(key).load(key)

    def save(self, key: Any, data: Any) -> None:
        """Write the machine code of a signature."""
        self._file(key).save(key, data)

    def _file(self, key: Any) -> Any:
        name = f"{self._filename_base}-{hashlib.sha256(str(key).encode()).hexdigest()[:_DIGEST_LENGTH]}"
        return caching.IndexDataCacheFile(self._folder, name, self._stamp)


class _DigestCache(caching.FunctionCache):
    """Numba's cache of one function, which also removes the machine code of old versions of its module."""

    _impl_class = _DigestCacheImpl

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        stamp = self._impl.locator.get_source_stamp()
        self._cache_file = _FilesOfSignatures(self._cache_path, self._impl.filename_base, stamp)

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
        super().save_overload(sig, data)
        remove_old_versions(Path(self.cache_path), Path(inspect.getfile(self._py_func)).stem)


def remove_old_versions(folder: Path, module: str) -> None:
    """Remove the cached machine code of a module but for the digests that were written last."""
    name = re.compile(
        rf"{re.escape(module)}\..+\.py\d+\w*(?:-(\w+?)(?:-\w+)?)?(?:\.\d+)?\.nb[ic](?:\.tmp\.\w+)?"
    )
    written: dict[str, float] = {}
    files: list[tuple[Path, str]] = []
    for path in folder.iterdir():
        if match := name.fullmatch(path.name):
            digest = match[1] or ""  # none in what Numba's own cache has written
            with contextlib.suppress(OSError):  # another process has removed it
                written[digest] = max(written.get(digest, 0.0), path.stat().st_mtime)
                files.append((path, digest))
    kept = sorted(filter(None, written), key=lambda digest: written[digest])[-_KEPT_DIGESTS:]
    for path, digest in files:
        if digest not in kept:
            with contextlib.suppress(OSError):
                path.unlink()
