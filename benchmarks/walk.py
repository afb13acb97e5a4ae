"""The walk of one evaluation, from the command to the kernel and back to the report: the package's own functions on it.

    python benchmarks/walk.py

runs `meltpoint evaluate` on a small model, and prints the functions that are under way at four moments: when the
scheduler gets the chains of AIS, when a thread calls a kernel for them, when the report is composed, and when it is
written. A function that was under way at a moment before is not repeated.
"""

import sys
import tempfile
import threading
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

import meltpoint as mp

PACKAGE = str(Path(mp.__file__).parent)


def main() -> None:
    """Run the evaluation, and print the walk."""
    rng = np.random.default_rng(0)
    model = mp.RBM(rng.normal(0, 0.1, (20, 9)), np.zeros(20), np.zeros(9))
    moments: list[tuple[str, list[str]]] = []
    with tempfile.TemporaryDirectory() as folder:
        mp.save(model, f"{folder}/model.npz")
        np.save(f"{folder}/test.npy", rng.integers(0, 2, (40, 20)))
        from meltpoint.cli.app import app

        watch = _watching(moments)
        threading.setprofile(watch)
        sys.setprofile(watch)
        try:
            app(
                ["evaluate", f"{folder}/model.npz", f"{folder}/test.npy", "--steps", "50"],
                standalone_mode=False,
            )
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
    known: set[str] = set()
    for moment, functions in moments:
        print(f"{moment}:", file=sys.stderr)
        for name in functions:
            if name not in known:
                known.add(name)
                print(f"{len(known):4}  {name}", file=sys.stderr)


def _watching(moments: list[tuple[str, list[str]]]) -> Any:
    """A profile function that notes what is under way when one of the moments comes for the first time."""
    wanted = {
        "runs/scheduler.py:compute_chunks": ("AIS is scheduled", _has_ais),
        "backends/numba/bipartite.py:_call": ("a kernel is called", _is_in_ais),
        "results/compose.py:compose": ("the report is composed", lambda _: True),
        "cli/screen.py:echo": ("the report is written", lambda _: True),
    }

    def watch(frame: FrameType, event: str, _argument: object) -> None:
        if event != "call" or not frame.f_code.co_filename.startswith(PACKAGE):
            return
        name = _name(frame)
        if name in wanted and wanted[name][1](frame):
            moments.append((wanted.pop(name)[0], _under_way(frame)))

    return watch


def _has_ais(frame: FrameType) -> bool:
    return any(chunk.batch.name == "ais" for chunk in frame.f_locals["chunks"])


def _is_in_ais(frame: FrameType) -> bool:
    return "estimators/ais.py:compute" in _under_way(frame)


def _under_way(frame: FrameType | None) -> list[str]:
    """The package's functions that are under way, the outermost first."""
    names: list[str] = []
    while frame is not None:
        if frame.f_code.co_filename.startswith(PACKAGE):
            names.append(_name(frame))
        frame = frame.f_back
    return names[::-1]


def _name(frame: FrameType) -> str:
    return f"{Path(frame.f_code.co_filename).relative_to(PACKAGE)}:{frame.f_code.co_name}"


if __name__ == "__main__":
    main()
