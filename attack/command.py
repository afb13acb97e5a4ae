"""The command in processes that are forked from this one, where everything is imported and compiled already.

A fresh process takes a second and more to start; a forked one takes a few milliseconds, so that a campaign can make
thousands. Nothing but the command line and public names is used, so that campaigns survive changes inside.
"""

import ctypes
import functools
import gc
import importlib
import os
import pkgutil
import re
import resource
import select
import signal
import sys
import tempfile
import time
import types
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

import numpy as np
import typer.main
from numpy.typing import NDArray

import meltpoint as mp
from meltpoint.models import Model

LONGEST = 60.0
"""Seconds of processor time after which a call counts as hanging, and seconds in which it must have used some."""

_LITTLE = 0.05  # seconds of processor time: what waiting takes
_GRACE = 30.0  # seconds in which worker processes end after their parent
_LOOK = 1.0  # seconds between looks at the processor time
_SET_CHILD_SUBREAPER = 36  # of prctl

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
        _adopt_orphans()
        sys.stdout.flush()
        sys.stderr.flush()
        self.pid = os.fork()
        if self.pid == 0:
            _child(call, folder, before, self._out.fileno(), self._err.fileno())
        self._handle = os.pidfd_open(self.pid)  # readable when it has ended

    def ends_within(self, seconds: float) -> bool:
        """Whether it ends by itself within some seconds; returns when it does."""
        return bool(select.select([self._handle], [], [], seconds)[0])

    def kill_after(self, seconds: float) -> bool:
        """Kill it after some seconds, unless it has ended by then; gives whether it was killed."""
        if self.ends_within(seconds):
            return False
        os.kill(self.pid, signal.SIGKILL)
        return True

    def wait(self, longest: float = LONGEST) -> Ended:
        """Wait for its end, and that of the processes it started.

        It hangs if it takes `longest` seconds of processor time, or next to none for LONGEST seconds.
        """
        code: int | None = None
        memory, processor, used = 0, 0.0, 0.0
        progressed = self._begun
        while not self.ends_within(_LOOK):
            now, processor = time.monotonic(), _processor_seconds(self.pid)
            if processor > used + _LITTLE:
                used, progressed = processor, now
            if processor > longest or now - progressed > LONGEST:
                os.killpg(self.pid, signal.SIGKILL)
                os.waitpid(self.pid, 0)
                break
        else:
            _, status, usage = os.wait4(self.pid, 0)
            code, memory = os.waitstatus_to_exitcode(status), usage.ru_maxrss << 10
            processor = usage.ru_utime + usage.ru_stime
        os.close(self._handle)
        seconds = time.monotonic() - self._begun
        left = _left_behind(self.pid)
        return Ended(code, _text(self._out), _text(self._err), seconds, processor, memory, left)


def run(
    call: Callable[[], object] | Sequence[str], folder: Path, before: Callable[[], None] | None = None
) -> Ended:
    """Call the command, and wait for its end."""
    return Process(call, folder, before).wait()


def warm_up(folder: Path) -> None:
    """Import everything that a forked process would otherwise have to; leaves small models and data."""
    for module in pkgutil.walk_packages(mp.__path__, "meltpoint."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    # Which commands import when they run.
    for name in ("distributed", "matplotlib.backends.backend_agg", "rich.progress", "typer._adapters"):
        importlib.import_module(name)
    # The options of all commands are put together anew in each call, which takes a fifth of it.
    typer.main.get_command = functools.cache(typer.main.get_command)
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
    # Too large to be written with one call.
    mp.save(mp.RBM(rng.normal(size=(400, 350)), np.zeros(400), np.zeros(350)), folder / "large.npz")
    _make_paper_small(folder, bits, models)
    _make_evaluations_small()
    _save_every_batch()


def rehearse(commands: Sequence[Sequence[str]], folder: Path) -> None:
    """Run commands in this process, so that all they import and compile is there in those that are forked from it."""
    from meltpoint.cli import main

    before = os.getcwd(), sys.argv, [os.dup(stream) for stream in (1, 2)]
    null = os.open(os.devnull, os.O_WRONLY)
    os.chdir(folder)
    for stream in (1, 2):
        os.dup2(null, stream)
    try:
        for arguments in commands:
            sys.argv = ["meltpoint", *arguments]
            with suppress(SystemExit):
                main()
            signal.signal(signal.SIGINT, signal.default_int_handler)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os.chdir(before[0])
        sys.argv = before[1]
        for stream, kept in zip((1, 2), before[2], strict=True):
            os.dup2(kept, stream)
            os.close(kept)
        os.close(null)
    until = time.monotonic() + LONGEST
    while len(os.listdir("/proc/self/task")) > 1:  # a thread that was joined may be about to end
        if time.monotonic() > until:
            raise RuntimeError("a rehearsed command has left threads, which do not survive a fork")
        time.sleep(0.001)
    gc.collect()
    gc.freeze()  # pages that the collector does not touch stay shared


def _make_paper_small(folder: Path, bits: NDArray[np.uint8], models: Mapping[str, Model]) -> None:
    """Make the paper's deep models and data as small as the others, in this process and those forked from it."""
    from meltpoint.data.dataset import Dataset, Images
    from reproduce import cells
    from reproduce import models as paper

    mp.save(models["dbm"], folder / f"{paper.DBMS[0].name}.npz")
    cells.DEEP = [paper.DBMS[0]]  # the others make the same calls again
    data = Dataset("small", bits, bits, (3, 4), "threshold", 0, Images(bits, bits, 1, (3, 4)))
    paper.load_data = lambda _: (data, "small")
    cells.PROFILES["quick"] = cells.Profile(
        "quick", 60, (2, 4), 8, examples=10, chains=2, ais_chains=50, test_examples=20
    )


def _make_evaluations_small() -> None:
    """Let pilots, the first stage of `--gap` and what a training traces take less; no option says how much they do.

    A pilot's chains are one chunk in place of two: other starts and samples are two, and kept by the same calls.
    """
    from meltpoint.estimators import pilot
    from meltpoint.evaluation import plan, prerequisites, trace
    from meltpoint.runs import batch

    def ranges(n: int, largest: int) -> list[tuple[int, int]]:
        return [(0, n)] if largest // 2 < n <= largest else cut(n, largest)

    cut = batch.ranges
    _replace(batch, ranges=ranges)
    _replace(pilot, PILOT_STEPS=100, _WINDOWS=30)
    _replace(prerequisites, PILOT_STEPS=100)
    _replace(plan, _MEASURING=replace(plan._MEASURING, ais_chains=64))
    _replace(trace, TRACE_STEPS=1200, TRACE_AIS_CHAINS=100)


def _save_every_batch() -> None:
    """Let a training write its checkpoint after every batch: the clock decides otherwise, and other calls each time."""
    from meltpoint.training import checkpoint

    _replace(checkpoint, _LARGEST_SHARE=float("inf"))


def _replace(module: types.ModuleType, **values: object) -> None:
    """Give names of a module other values, in this process and those forked from it; each must be there."""
    for name, value in values.items():
        getattr(module, name)  # after a renaming the attack would be slow, and not say why
        setattr(module, name, value)


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
        # Worker processes import their parent's main module: that of the command, which imports next to nothing.
        sys.modules["__main__"] = types.ModuleType("__main__")
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


def _adopt_orphans() -> None:
    """Make this process the parent of those below it whose own parent is gone.

    The init of a machine or container may take seconds to notice that an orphan has ended, and until then the orphan
    cannot be told from one that goes on. Adopted, its processor time is counted too.
    """
    ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _left_behind(session: int) -> bool:
    """Whether processes of a session go on without their first; they are given some seconds, and then killed.

    A worker process that has just been started notices that its parent is gone when it has imported what it needs.
    """
    until = time.monotonic() + _GRACE
    while _is_left(session):
        if time.monotonic() > until:
            os.killpg(session, signal.SIGKILL)
            return True
        time.sleep(0.02)
    return False


def _is_left(session: int) -> bool:
    """Whether there are processes of a session; those that have ended are cleared away."""
    with suppress(ChildProcessError):  # none of them is a child of this process
        while os.waitpid(-session, os.WNOHANG)[0]:
            pass
    try:
        os.killpg(session, 0)
    except ProcessLookupError:
        return False
    return True


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    text = file.read().decode(errors="replace")
    file.close()
    return text
