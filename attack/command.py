"""The command in processes that are forked from this one, where everything is imported and compiled already.

A fresh process takes a second and more to start; a forked one takes a few milliseconds, so that a campaign can make
thousands. Nothing but the command line and public names is used, so that campaigns survive changes inside.
"""

import os
import re
import resource
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import meltpoint as mp

LONGEST = 120.0
"""Seconds after which a call counts as hanging."""

LARGEST = 512 << 20
"""Bytes of memory that a hostile file may take."""


@dataclass(frozen=True)
class Ended:
    """How a process ended: exit code (negative: by that signal, None: it hung), output, seconds, peak memory."""

    code: int | None
    out: str
    err: str
    seconds: float
    memory: int
    left_processes: bool

    def complaint(self, *allowed: int) -> str:
        """What is wrong with this end, empty if nothing is."""
        if self.code is None:
            return f"hung for {self.seconds:.0f} s"
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
        """Wait for its end, and that of the processes it started."""
        code: int | None = None
        memory = 0
        while time.monotonic() - self._begun < longest:
            pid, status, usage = os.wait4(self.pid, os.WNOHANG)
            if pid:
                code, memory = os.waitstatus_to_exitcode(status), usage.ru_maxrss << 10
                break
            time.sleep(0.002)
        else:
            os.killpg(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        seconds = time.monotonic() - self._begun
        left = _left_behind(self.pid)
        return Ended(code, _text(self._out), _text(self._err), seconds, memory, left)


def run(
    call: Callable[[], object] | Sequence[str], folder: Path, before: Callable[[], None] | None = None
) -> Ended:
    """Call the command, and wait for its end."""
    return Process(call, folder, before).wait()


def warm_up(folder: Path) -> None:
    """Import and compile everything that a forked process would otherwise have to; leaves small models and data."""
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 2, (60, 12), np.uint8)
    np.save(folder / "data.npy", bits)
    small = rng.normal(0, 0.5, (12, 8)), rng.normal(size=12), rng.normal(size=8)
    mp.save(mp.RBM(*small), folder / "rbm.npz")
    mp.save(mp.DBM([small[0], small[0].T[:, :5]], [small[1], small[2], np.zeros(5)]), folder / "dbm.npz")
    top = mp.RBM(small[0].T[:, :5], small[2], np.zeros(5))
    mp.save(mp.DBN([small], top), folder / "dbn.npz")
    for name in ("rbm", "dbm", "dbn"):
        model = mp.load(folder / f"{name}.npz")
        mp.evaluate(model, bits, bits, steps=4, chains=2, ais_chains=2, examples=2, threads=1)


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
