"""The command in processes that are forked from this one, where everything is imported and compiled already.

A fresh process takes a second and more to start; a forked one takes a few milliseconds, so that a campaign can make
thousands. Nothing but the command line and public names is used, so that campaigns survive changes inside.
"""

import importlib
import os
import pkgutil
import re
import resource
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import meltpoint as mp
from meltpoint.models import Model

LONGEST = 60.0
"""Seconds of processor time after which a call counts as hanging, and seconds in which it must have used some."""

_LITTLE = 0.05  # seconds of processor time: what waiting takes
_LOOK = 1.0  # seconds between looks at the processor time

LARGEST = 512 << 20
"""Bytes of memory that a hostile file may take."""


@dataclass(frozen=True)
class Ended:
    """How a process ended: exit code (negative: by that signal, None: it hung), output, seconds, peak memory.

    `processor` are its own seconds of processor time: on a busy machine the others say little.
    """

    code: int | None
    out: str
    err: str
    seconds: float
    processor: float
    memory: int
    left_processes: bool

    def complaint(self, *allowed: int) -> str:
        """What is wrong with this end, empty if nothing is."""
        if self.code is None:
            return "hung"
        if self.left_processes:
            return "left processes behind"
        if "Traceback" in self.err or "Exception ignored" in self.err:
            lines = [
                line for line in self.err.splitlines() if line.strip() and not line.startswith("meltpoint: ")
            ]
            return f"traceback: {lines[-1][:200]}"
        if self.code not in allowed:
            return f"exit code {self.code}: {self.err[-200:].strip()}"
        if re.search(r"[\x00-\x08\x0b-\x1f\x7f]", self.out + self.err):
            return "control characters on the terminal"
        return ""


class Process:
    """A call of the command, or of any function, in a forked process with a session of its own."""

    def __init__(
        self,
        call: Callable[[], object] | Sequence[str],
        folder: Path,
        before: Callable[[], None] | None = None,
    ) -> None:
        self._out, self._err = (tempfile.TemporaryFile() for _ in range(2))  # noqa: SIM115  closed after the wait
        self._begun = time.monotonic()
        sys.stdout.flush()
        sys.stderr.flush()
        self.pid = os.fork()
        if self.pid == 0:
            _child(call, folder, before, self._out.fileno(), self._err.fileno())

    @property
    def has_ended(self) -> bool:
        """Whether it has ended by itself."""
        return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def kill_after(self, seconds: float) -> bool:
        """Kill it after some seconds, unless it has ended by then; gives whether it was killed."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            if self.has_ended:
                return False
            time.sleep(min(0.002, max(0.0, until - time.monotonic())))
        os.kill(self.pid, signal.SIGKILL)
        return True

    def wait(self, longest: float = LONGEST) -> Ended:
        """Wait for its end, and that of the processes it started.

        It hangs if it takes `longest` seconds of processor time, or next to none for LONGEST seconds.
        """
        code: int | None = None
        memory, processor, used = 0, 0.0, 0.0
        looked = progressed = self._begun
        while True:
            pid, status, usage = os.wait4(self.pid, os.WNOHANG)
            now = time.monotonic()
            if pid:
                code, memory = os.waitstatus_to_exitcode(status), usage.ru_maxrss << 10
                processor = usage.ru_utime + usage.ru_stime
                break
            if now - looked > _LOOK:
                looked, processor = now, _processor_seconds(self.pid)
                if processor > used + _LITTLE:
                    used, progressed = processor, now
                if processor > longest or now - progressed > LONGEST:
                    os.killpg(self.pid, signal.SIGKILL)
                    os.waitpid(self.pid, 0)
                    break
            time.sleep(0.002)
        seconds = time.monotonic() - self._begun
        left = _left_behind(self.pid)
        return Ended(code, _text(self._out), _text(self._err), seconds, processor, memory, left)


def run(
    call: Callable[[], object] | Sequence[str], folder: Path, before: Callable[[], None] | None = None
) -> Ended:
    """Call the command, and wait for its end."""
    return Process(call, folder, before).wait()


def warm_up(folder: Path) -> None:
    """Import and compile everything that a forked process would otherwise have to; leaves small models and data."""
    for module in pkgutil.walk_packages(mp.__path__, "meltpoint."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    for name in ("pydantic", "rich.console", "rich.progress"):  # which commands import when they run
        importlib.import_module(name)
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 2, (60, 12), np.uint8)
    np.save(folder / "data.npy", bits)
    small = rng.normal(0, 0.5, (12, 8)), rng.normal(size=12), rng.normal(size=8)
    couplings = np.triu(rng.normal(0, 0.3, (12, 12)), 1)
    models = {
        "rbm": mp.RBM(*small),
        "dbm": mp.DBM([small[0], small[0].T[:, :5]], [small[1], small[2], np.zeros(5)]),
        "dbn": mp.DBN([small], mp.RBM(small[0].T[:, :5], small[2], np.zeros(5))),
        "ising": mp.Ising(couplings + couplings.T, np.zeros(12), units="bernoulli"),
    }
    for name, model in models.items():
        mp.save(model, folder / f"{name}.npz")
        mp.evaluate(model, bits, bits, steps=4, chains=2, ais_chains=2, examples=2, threads=1)
    _make_paper_small(folder, bits, models)


def _make_paper_small(folder: Path, bits: NDArray[np.uint8], models: Mapping[str, Model]) -> None:
    """Make the paper's deep models and data as small as the others, in this process and those forked from it."""
    from meltpoint.datasets.dataset import Dataset, Images
    from meltpoint.paper import cells
    from meltpoint.paper import models as paper

    for model in paper.DBMS:
        mp.save(models["dbm"], folder / f"{model.name}.npz")
    for model in paper.DBNS:
        mp.save(models["dbn"], folder / f"{model.name}.npz")
    data = Dataset("small", bits, bits, (3, 4), "threshold", 0, Images(bits, bits, 1, (3, 4)))
    paper.load_data = lambda *_, **__: data
    cells.PROFILES["quick"] = cells.Profile(
        "quick", 60, (2, 4), 8, examples=10, chains=2, ais_chains=50, test_examples=20
    )


def _child(
    call: Callable[[], object] | Sequence[str],
    folder: Path,
    before: Callable[[], None] | None,
    out: int,
    err: int,
) -> None:
    code = 3
    try:
        os.setsid()
        for source, target in ((out, 1), (err, 2)):
            os.dup2(source, target)
        os.chdir(folder)
        temporary = folder / "tmp"
        temporary.mkdir(exist_ok=True)
        tempfile.tempdir = str(temporary)
        os.environ["TMPDIR"] = str(temporary)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if before is not None:
            before()
        if callable(call):
            call()
            code = 0
        else:
            sys.argv = ["meltpoint", *call]
            from meltpoint.cli import main

            main()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError):
                stream.flush()
        os._exit(code)


def _processor_seconds(session: int) -> float:
    """Processor time of the living processes of a session."""
    ticks = 0
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError, IndexError):
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                ticks += int(fields[11]) + int(fields[12]) if int(fields[3]) == session else 0
    return ticks / os.sysconf("SC_CLK_TCK")


def _left_behind(session: int) -> bool:
    """Whether processes of a session go on without their first; they are given two seconds, and then killed."""
    for _ in range(100):
        try:
            os.killpg(session, 0)
        except ProcessLookupError:
            return False
        time.sleep(0.02)
    os.killpg(session, signal.SIGKILL)
    return True


def _text(file: "tempfile._TemporaryFileWrapper[bytes]") -> str:
    file.seek(0)
    text = file.read().decode(errors="replace")
    file.close()
    return text
