"""Run folders and checkpoints made by an enemy: sentences only, nothing outside touched, little memory, no waiting."""

import io
import json
import os
import random
import resource
import shutil
import socket
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from attack.campaign import Campaign
from attack.command import LARGEST, Ended, run
from attack.scenarios import EVALUATIONS, PAPER, SEVERAL, TRAININGS, Scenario
from meltpoint.fingerprint import fingerprint
from meltpoint.runs.files import read_sealed, write_sealed
from meltpoint.runs.specification import FILE as _SPECIFICATION
from meltpoint.runs.specification import read_specification

_PRECIOUS = b"precious"
_CODES = (0, 1, 2, 3)
_SLOWEST = 5.0  # seconds of processor time
_KINDS = (
    "link",
    "pipe",
    "folder",
    "socket",
    "cut",
    "flip",
    "folder link",
    "extra",
    *["json"] * 3,
    *["sealed"] * 6,
)


_TARGETS = (
    (EVALUATIONS[0], "kept", (("runs", "show", "kept"), ("runs", "merge", "kept", "--out", "joint"))),
    (EVALUATIONS[3], "kept", (("runs", "show", "kept", "--json"),)),
    (SEVERAL[0], "kept", ()),
    (SEVERAL[1], "kept", ()),
    (PAPER[0], "results", (("paper", "page", "--profile", "quick", "--models", ".", "--docs", "pages"),)),
)
"""Commands, the folders they keep, and other commands that read these."""


_TRACE_CHECKPOINT = ("trace", "trained.checkpoint.npz", "data.npy", "--steps", "10", "--ais-chains", "5")


def attack(campaign: Campaign) -> Iterator[None]:
    """Damage folders of runs and of results, and show, merge and continue them."""
    baseline = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
    with campaign.folder() as origin:
        for number, (scenario, name, _) in enumerate(_TARGETS):
            with campaign.folder() as folder:
                if not campaign.check(run(scenario.arguments, folder).complaint(0, 1), "undisturbed"):
                    return
                shutil.copytree(folder / name, origin / str(number))
        for _ in campaign.tries():
            number = campaign.random.randrange(len(_TARGETS))
            _attack_one(campaign, origin / str(number), number, baseline)
            campaign.count("folders", _TARGETS[number][0].name)
            yield


def _attack_one(campaign: Campaign, source: Path, number: int, baseline: int) -> None:
    scenario, name, readers = _TARGETS[number]
    with campaign.folder() as folder:
        shutil.copytree(source, folder / name)
        outside, empty = folder / "outside", folder / "empty"
        outside.mkdir()
        empty.mkdir()
        (outside / "precious").write_bytes(_PRECIOUS)
        what = _damage(folder / name, outside, empty, campaign.random)
        for arguments in (*readers, scenario.arguments):
            ended = run(arguments, folder)
            campaign.count("calls")
            campaign.check(_complaint(ended, baseline), f"{' '.join(arguments[:2])}, {what}")
        changed = [path.name for path in outside.iterdir()] != ["precious"] or any(empty.iterdir())
        changed = changed or (outside / "precious").read_bytes() != _PRECIOUS
        campaign.check("a file outside was touched" if changed else "", f"{scenario.name}, {what}")


def attack_checkpoints(campaign: Campaign) -> Iterator[None]:
    """Change the arrays of a training's checkpoint, and continue it.

    Seals are not checked in this process, as if the enemy had made the right one: the content must be checked too.
    """
    baseline = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
    made: list[tuple[Scenario, bytes]] = []
    for scenario in TRAININGS:
        with campaign.folder() as folder:
            checkpoint = folder / "trained.checkpoint.npz"
            run(scenario.arguments, folder, _end_with_a_checkpoint)
            if campaign.check("" if checkpoint.exists() else "no checkpoint was left", scenario.name):
                made.append((scenario, checkpoint.read_bytes()))
    for number in campaign.tries() if made else ():
        scenario, content = made[number % len(made)]
        with campaign.folder() as folder:
            changed, what = _changed_arrays(content, campaign.random)
            (folder / "trained.checkpoint.npz").write_bytes(changed)
            for arguments in (_TRACE_CHECKPOINT, scenario.arguments):
                ended = run(arguments, folder, _without_seals)
                campaign.check(_complaint(ended, baseline), f"{scenario.name}, {arguments[0]}, {what}")
        campaign.count("checkpoints", scenario.name)
        yield


def _end_with_a_checkpoint() -> None:
    """End this process, as a kill would, when it has put a second checkpoint into its place."""
    replace, seen = os.replace, []

    def replace_and_end(source: Any, target: Any) -> None:
        replace(source, target)
        seen.extend([target] if str(target).endswith(".checkpoint.npz") else [])
        if len(seen) == 2:
            os._exit(1)

    os.replace = replace_and_end


def _complaint(ended: Ended, baseline: int) -> str:
    if ended.memory > baseline + LARGEST:
        return f"took {ended.memory >> 20} MB"
    if ended.processor > _SLOWEST:
        return "too slow"
    if any(len(line) > 700 for line in ended.err.splitlines()):
        return "a message of more than 700 characters"
    return ended.complaint(*_CODES)


def _damage(run_folder: Path, outside: Path, empty: Path, rng: random.Random) -> str:
    """Replace, change or add something in a folder; gives what."""
    files = sorted(path for path in run_folder.rglob("*") if path.is_file())
    folders = sorted(path for path in run_folder.rglob("*") if path.is_dir())
    chunks = [path for path in files if path.suffix == ".npz"]
    path = rng.choice(files)
    kind = rng.choice([kind for kind in _KINDS if kind != "sealed" or chunks])  # cells of the paper have none
    if kind == "json":
        path = rng.choice(
            [file for file in files if file.name == _SPECIFICATION or file.parent.name == "cells"]
        )
        change = _changed_specification if path.name == _SPECIFICATION else _changed_cell
        path.write_text(change(path.read_text(), rng))
    elif kind == "sealed":
        path = rng.choice(chunks)
        _reseal(path, rng)
    elif kind == "folder link":
        path = rng.choice(folders)
        shutil.rmtree(path)
        path.symlink_to(rng.choice((outside, empty)))
    elif kind == "extra":
        below = rng.choice([run_folder, *folders])
        path = below / rng.choice(
            (".meltpoint-x.tmp", "stage-1/stage.npz", "stage.npz", "lock", "report.json")
        )
        path.unlink(missing_ok=True)
        path.parent.mkdir(parents=True, exist_ok=True)
        rng.choice((path.mkdir, lambda: os.mkfifo(path), lambda: path.symlink_to(outside / "precious")))()
    elif kind in ("cut", "flip"):
        content = bytearray(path.read_bytes())
        at = rng.randrange(len(content)) if content else 0
        if kind == "cut":
            del content[at:]
        elif content:
            content[at] ^= 1 << rng.randrange(8)
        path.write_bytes(bytes(content))
    else:
        path.unlink()
        if kind == "link":
            path.symlink_to(rng.choice((outside / "precious", outside / "new", Path("/dev/zero"), path)))
        elif kind == "pipe":
            os.mkfifo(path)
        elif kind == "folder":
            path.mkdir()
        else:
            with socket.socket(socket.AF_UNIX) as made:
                short = run_folder.parent / "s"  # an address has at most 107 characters
                made.bind(str(short))
                short.rename(path)
    return f"{kind} {path.relative_to(run_folder)}"


def _changed_specification(text: str, rng: random.Random) -> str:
    content = json.loads(text)
    inner = rng.choice((content, content["settings"], content["reporting_settings"], content["fingerprints"]))
    return _changed_json(text, content, inner, rng)


def _changed_cell(text: str, rng: random.Random) -> str:
    """A cell of the paper, sealed again, as anybody with the library can."""
    content = json.loads(text)
    inner = rng.choice((content, content["cell"], *[content["result"]] * 3))
    while dicts := [value for value in inner.values() if isinstance(value, dict) and value]:
        if rng.random() < 0.5:
            break
        inner = rng.choice(dicts)
    changed = _changed_json(text, content, inner, rng)
    with suppress(ValueError, AttributeError, RecursionError):
        record = json.loads(changed)
        record.pop("seal", None)
        return json.dumps(record | {"seal": fingerprint({}, json.dumps(record, sort_keys=True))})
    return changed


def _changed_json(text: str, content: dict[str, Any], inner: dict[str, Any], rng: random.Random) -> str:
    if rng.random() < 0.2:
        return rng.choice(
            ("[" * 100_000, "{}", "null", text[: len(text) // 2], '{"format": ' + "9" * 5000 + "}")
        )
    key = rng.choice(sorted(inner))
    if rng.random() < 0.3:
        del inner[key]
    else:
        inner[key] = rng.choice((None, -1, 10**9, 1e308, "\x1b[2J", [], {}, [[]], True, "x" * 5000))
    return json.dumps(content)


def _reseal(path: Path, rng: random.Random) -> None:
    """Change arrays of a chunk and seal it again, as anybody with the library can."""
    run_folder = next((parent for parent in path.parents if (parent / _SPECIFICATION).is_file()), None)
    assert run_folder is not None, "chunks are in the folders of runs"
    context = read_specification(run_folder).fingerprint, str(path.relative_to(run_folder).with_suffix(""))
    arrays = read_sealed(path, *context) or {"surplus": np.zeros(3)}  # a uniform base has no arrays
    write_sealed(path, _changed(arrays, rng.choice(sorted(arrays)), rng), *context)


def _changed(arrays: dict[str, Any], name: str, rng: random.Random) -> dict[str, Any]:
    array = arrays[name]
    changes = {
        "left out": None,
        "flat": array.reshape(-1)[: array.size // 2],
        "deeper": array[None],
        "longer": np.concatenate([array.reshape(-1)] * 3) if array.size else np.zeros(3),
        "text": np.array("\x1b[2J" + "x" * 100),
        "huge": np.array(10**9) if array.dtype.kind in "iu" else np.full(array.shape, 1e308),
        "negative": -np.ones(array.shape, np.int64),
        "not a number": np.full(array.shape, np.nan),
        "empty": np.zeros((0, 4)),
        "bytes": np.full(array.shape, 200, np.uint8),
    }
    value = changes[rng.choice(sorted(changes))]
    kept = {other: arrays[other] for other in arrays if other != name}
    return kept if value is None else kept | {name: value}


def _changed_arrays(content: bytes, rng: random.Random) -> tuple[bytes, str]:
    """A checkpoint with one array changed, and what was changed. Its digest or seal is left as it is."""
    with np.load(io.BytesIO(content)) as file:
        arrays = {name: file[name] for name in file.files}
    name = rng.choice([name for name in sorted(arrays) if name not in ("digest", "fingerprint")])
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for key, array in _changed(arrays, name, rng).items():
            with archive.open(f"{key}.npy", "w") as entry:
                np.lib.format.write_array(entry, np.asanyarray(array), allow_pickle=False)
    return file.getvalue(), f"changed {name}"


def _without_seals() -> None:
    """Take every seal for the right one, in this process."""
    import meltpoint.runs.files as chunks

    chunks.fingerprint = lambda arrays, *context: _Anything()  # pyright: ignore


class _Anything(str):
    """A text that is equal to every other."""

    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        return True

    def __ne__(self, other: object) -> bool:
        return False
