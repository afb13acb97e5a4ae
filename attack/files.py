"""Mutated files through every reader: they load, or are refused in a sentence, quickly and with little memory."""

import gzip
import io
import os
import random
import resource
import struct
import tarfile
import tempfile
import time
import warnings
import zipfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import numpy as np
import scipy.io
import scipy.sparse
from numpy.typing import NDArray

import meltpoint as mp
from attack.campaign import Campaign
from attack.command import LARGEST, run
from meltpoint.data.sources import mnist as read_mnist
from meltpoint.data.sources import omniglot as read_omniglot
from meltpoint.datasets import read as read_data
from meltpoint.errors import SystemFailure
from meltpoint.evaluation.trace import load_checkpoint
from meltpoint.formats.load import detect, read_array
from meltpoint.formats.models import read_note
from meltpoint.formats.source import Source
from meltpoint.formats.uai import read_evidence
from meltpoint.models import Model
from meltpoint.runs.files import read_sealed, write_sealed
from meltpoint.runs.records import from_arrays
from meltpoint.training.recipe import read_recipe

READERS: tuple[Callable[[Path], object], ...] = (
    read_array,
    read_data,
    lambda path: read_data(path, alphabet="protein", outside="drop"),
    lambda path: read_array(path, "a"),
    mp.load,
    lambda path: _load_told(path),  # defined below
    read_evidence,
    read_note,
    lambda path: from_arrays(_Matrix, read_sealed(path, "run", "name")),  # defined below
    read_recipe,
    load_checkpoint,
    read_omniglot,
    lambda path: read_mnist(path, path),
)


@dataclass(frozen=True, eq=False)
class _Matrix:
    """A record."""

    a: Annotated[NDArray[np.floating], None, None]


_BATCH = 40
_SLOWEST = 5.0  # seconds of processor time
_LONGEST_MESSAGE = 600
_FOREIGN = Path(__file__).resolve().parents[1] / "tests" / "formats" / "files"
_TOLD = {"temperature": 1.0, "gap": "state", "states": 2, "units": "spin", "update": "last"}
"""What foreign formats leave open; each is told what it takes."""


def _load_told(path: Path) -> object:
    """A foreign model, with the options that its format takes."""
    format = None
    with suppress(Exception), Source(path) as source:
        format = detect(source, "model")
    with warnings.catch_warnings(action="ignore", category=UserWarning):  # of files that were cut off
        return mp.load(path, **{name: _TOLD[name] for name in _TOLD if format and name in format.options})


def seeds(folder: Path) -> dict[str, bytes]:
    """A valid file of every kind."""
    array = np.arange(12.0).reshape(3, 4)

    def written(write: Callable[..., object], *arguments: object, **options: object) -> bytes:
        file = io.BytesIO()
        write(file, *arguments, **options)
        return file.getvalue()

    idx = bytes([0, 0, 8, 3]) + struct.pack(">3I", 2, 2, 3) + bytes(range(12))
    found = {
        "npy": written(np.save, array),
        "npz": written(np.savez, a=array, b=array),
        "npz compressed": written(np.savez_compressed, a=array),
        "mat": written(scipy.io.savemat, {"a": array}),
        "mat compressed": written(scipy.io.savemat, {"a": array}, do_compression=True),
        "mat sparse": written(scipy.io.savemat, {"a": scipy.sparse.csc_array(array)}),
        "mat model": written(
            scipy.io.savemat, {"vishid": array, "visbiases": array[:1, :3], "hidbiases": array[:1]}
        ),
        "idx": idx,
        "idx.gz": gzip.compress(idx),
        "csv": b"a,b,c\n1,2,3\n4,5.5,-6e3\n",
        "csv with an index and labels": b",a,b,kind\n0,1,0,cat\n1,0,1,dog\n2,1,1,cat\n",
        "csv.gz": gzip.compress(b"a,b,c\n1,2,3\n4,5.5,-6e3\n"),
        "fasta": b">first\nAC-DY\n>second\nACwwDDY\n>third\nAXDEY\n",
        "fasta.gz": gzip.compress(b">first\nAC-DY\n>second\nACDDY\n"),
        "alignment in numbers": b"2 4 21\n0 1 2 3\n4 5 20 0\n",
        "sparse": written(scipy.sparse.save_npz, scipy.sparse.csr_array(array)),
        "sparse coordinates": written(scipy.sparse.save_npz, scipy.sparse.coo_array(array), compressed=False),
        "recipe": b'model = "rbm"\ndata = "digits"\nhidden = 20\nepochs = 3\n',
    }
    found |= _foreign() | _hdf5() | _parquet()
    with tempfile.TemporaryDirectory() as own:
        for name, model in _models().items():
            mp.save(model, Path(own) / "model.npz")
            found[name] = (Path(own) / "model.npz").read_bytes()
        write_sealed(f"{own}/sealed.npz", {"a": array}, "run", "name")
        found["sealed"] = Path(f"{own}/sealed.npz").read_bytes()
        bits = np.zeros((4, 6), np.uint8)
        run(lambda: mp.train_rbm(bits, hidden=2, epochs=1, checkpoint=f"{own}/training.npz"), Path(own))
        found["training checkpoint"] = Path(f"{own}/training.npz").read_bytes()
    for kind in ("rbm", "dbm", "dbn"):
        found[kind] = (folder / f"{kind}.npz").read_bytes()
    return found


def _models() -> dict[str, Model]:
    """A model of every kind that has no layers of two-state units alone."""
    table = np.arange(6.0).reshape(2, 3)
    return {
        "Ising": mp.Ising([[0, 0.5], [0.5, 0]], [0.1, 0.2]),
        "Potts": mp.Potts({(0, 1): table}, [np.zeros(2), np.zeros(3)]),
        "factor graph": mp.FactorGraph((2, 3), [((0, 1), table)]),
        "Gaussian RBM": mp.RBM(table, np.zeros(2), np.zeros(3), visible="gaussian"),
        "Potts RBM": mp.RBM(table[None], np.zeros((1, 2)), np.zeros(3), visible="potts"),
    }


def _hdf5() -> dict[str, bytes]:
    """Files of named arrays and of RestrictedBoltzmannMachines.jl, where h5py can write them."""
    if find_spec("h5py") is None:
        return {}
    import h5py

    named = {"W": np.ones((3, 2)), "b": np.zeros(3), "c": np.zeros(2)}
    julia = {"visible_type": "Binary", "hidden_type": "Binary", "visible_par": np.zeros((3, 1))}
    julia |= {"hidden_par": np.zeros((2, 1)), "weights": np.ones((2, 3))}
    found = {}
    for name, entries in (("named.h5", named), ("julia.h5", julia)):
        file = io.BytesIO()
        with h5py.File(file, "w") as written:
            for key, value in entries.items():
                written[key] = value
        found[name] = file.getvalue()
    return found


def _parquet() -> dict[str, bytes]:
    """A table, where pyarrow can write it."""
    if find_spec("pyarrow") is None:
        return {}
    arrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    file = io.BytesIO()
    parquet.write_table(arrow.table({"a": [0, 1, 1], "b": [1, 0, 1], "c": ["x", "y", "z"]}), file)
    return {"parquet": file.getvalue()}


def _foreign() -> dict[str, bytes]:
    """A valid file of every foreign format: those that other libraries wrote, and small ones of the others."""
    fields, couplings = np.arange(6.0).reshape(3, 2), np.arange(12.0).reshape(3, 2, 2)
    frequencies, sites = np.full((3, 2), 0.5, "<f4").tobytes(), np.arange(3, dtype="<i4").tobytes()
    tables = couplings.astype("<f4").tobytes()
    plmc = (
        struct.pack("<5i", 3, 2, 1, 0, 9) + np.ones(5, "<f4").tobytes() + b"-A" + np.ones(1, "<f4").tobytes()
    )
    plmc += b"AAA" + sites + frequencies + fields.astype("<f4").tobytes() + tables + tables
    pair = "\n".join(" ".join(["0.5"] * 21) for _ in range(21))
    ccm = "\n".join(" ".join(["0.25"] * 20) for _ in range(2)) + f"\n# 0 1\n{pair}\n"
    matrix = "\n".join(" ".join(["0.5"] * 4) for _ in range(5))
    couplings_text = b"J 0 1 0 1 0.5\nJ 0 2 1 1 -1e-1\nh 0 0 1.0\nh 1 1 0.25\n"
    npy = io.BytesIO()
    np.save(npy, np.ones((3, 4)))
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w:gz") as file:
        info = tarfile.TarInfo("model.txt")
        info.size = len(couplings_text)
        file.addfile(info, io.BytesIO(couplings_text))
    found = {
        "plmc": plmc,
        "ccm": ccm.encode(),
        "matrix": matrix.encode(),
        "couplings": couplings_text,
        "couplings gz": gzip.compress(couplings_text),
        "couplings tar.gz": archive.getvalue(),
        "ising": b"J 0 1 0.5\nh 0 0.1\nh 1 0.2\n",
        "sparse uai": b"SPARSEMARKOV 2 2 3 1 2 0 1 0.5 2 0 2 3.0 1 0 1e1",
        "couplings npy": npy.getvalue(),
        "evidence": b"2 0 1 7 0",
        "braw": _packed_ccm(),
    }
    return found | {
        path.name: path.read_bytes() for path in _FOREIGN.iterdir() if path.name != "expected.json"
    }


def _packed_ccm() -> bytes:
    """CCMgen's msgpack of two sites."""

    def text(value: str) -> bytes:
        return bytes([0xA0 + len(value)]) + value.encode()

    def doubles(count: int) -> bytes:
        return struct.pack(">BH", 0xDC, count) + struct.pack(">Bd", 0xCB, 0.5) * count

    entry = b"\x83" + text("i") + b"\x00" + text("j") + b"\x01" + text("x") + doubles(441)
    head = b"\x84" + text("format") + text("ccm-1") + text("ncol") + b"\x02"
    return head + text("x_single") + doubles(40) + text("x_pair") + b"\x81" + text("0/1") + entry


def mutated(content: bytes, rng: random.Random, others: list[bytes]) -> bytes:
    """Content with a few changes: bytes, numbers, pieces left out, doubled or taken from another file."""
    if content[:2] == b"PK" and rng.random() < 0.5:
        return _mutated_below_checksums(content, rng)
    data = bytearray(content)
    for _ in range(rng.randint(1, 5)):
        at, n = rng.randrange(len(data) + 1), rng.choice((1, 2, 4, 8, 40))
        kind = rng.choice(("flip", "set", "number", "insert", "remove", "double", "cut", "splice"))
        if kind == "flip" and at < len(data):
            data[at] ^= 1 << rng.randrange(8)
        elif kind == "set":
            data[at : at + n] = bytes([rng.choice((0, 1, 0x7F, 0x80, 0xFF, 0x1B))]) * n
        elif kind == "number":
            extreme = rng.choice((0, 1, 2**31 - 1, 2**31, 2**32 - 1, 10**9, rng.randrange(2**32)))
            data[at : at + 4] = struct.pack(rng.choice(("<I", ">I")), extreme)
        elif kind == "insert":
            data[at:at] = rng.randbytes(n)
        elif kind == "remove":
            del data[at : at + n]
        elif kind == "double":
            data[at:at] = data[at : at + n] * rng.choice((1, 2, 1000))
        elif kind == "cut" and rng.random() < 0.3:
            del data[at:]
        elif kind == "splice":
            other = rng.choice(others)
            start = rng.randrange(len(other))
            data[at : at + n] = other[start : start + n]
        if not data:
            return b"\0"
    return bytes(data)


def _mutated_below_checksums(content: bytes, rng: random.Random) -> bytes:
    """A zip file with changed entries, names and sizes, whose own sums are right."""
    file = io.BytesIO()
    compression = rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA))
    with zipfile.ZipFile(io.BytesIO(content)) as source, zipfile.ZipFile(file, "w", compression) as archive:
        for name in source.namelist():
            entry = source.read(name)
            change = rng.random()
            if change < 0.1:
                continue
            if change < 0.4:
                entry = bytes(_with_shape(entry, rng))
            elif change < 0.6:
                entry = mutated(entry, rng, [entry])
            if rng.random() < 0.1:
                name = rng.choice(("\x1b]0;owned\x07", "n" * 3000, "../../escaped", "", "a\nb")) + name
            archive.writestr(name, entry)
    return file.getvalue()


def _with_shape(entry: bytes, rng: random.Random) -> bytes:
    """A .npy file whose header promises something else, in the same number of bytes."""
    shape = rng.choice(
        ("(10**9,)", "(1000000000,)", "(-1, 4)", "(0, 99999999)", "(3, 4, 1)", "()", "(2**62, 4)")
    )
    descr = rng.choice(("<f8", "|u1", "|O", "<U9", "<c16", ">i8", "<f2"))
    header = f"{{'descr': {descr!r}, 'fortran_order': {rng.random() < 0.5}, 'shape': {shape}, }}".encode()
    data = entry[128:] * rng.choice((1, 1, 1000))
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", 118) + header.ljust(117) + b"\n" + data


def attack(campaign: Campaign) -> Iterator[None]:
    """Read batches of mutated files."""
    valid = seeds(campaign.files)
    baseline = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
    for number in campaign.tries():
        with campaign.folder() as folder:
            before = sorted(path.name for path in folder.iterdir())
            ended = run(lambda: _read_batch(campaign.seed, number, valid), folder)  # noqa: B023
            what = f"batch {number}"
            if campaign.check(ended.complaint(0), what):
                for line in ended.out.splitlines():
                    campaign.check(line, "a reader")
            if ended.memory > baseline + LARGEST:
                campaign.check(f"{ended.memory >> 20} MB", what)
            left = {path.name for path in folder.iterdir()} - {*before, "mutated.bin", "tmp"}
            campaign.check(f"wrote {left}" if left else "", what)
        campaign.count("files", n=_BATCH)
        campaign.count("reads", n=_BATCH * len(READERS))
        yield


def _read_batch(seed: int, number: int, valid: dict[str, bytes]) -> None:
    # Far beyond what is allowed, so that it is noticed, and far below what the machine has.
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + 4 * LARGEST
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    rng = random.Random(f"{seed} {number}")
    path = Path("mutated.bin")
    for k in range(_BATCH):
        name = rng.choice(sorted(valid))
        path.write_bytes(mutated(valid[name], rng, list(valid.values())))
        for position, reader in enumerate(READERS):
            begun = time.process_time()
            complaint = ""
            try:
                with warnings.catch_warnings(action="ignore"):  # of columns that are left out
                    reader(path)
            except (mp.InputError, SystemFailure) as problem:
                if not str(problem).isprintable() or len(str(problem)) > _LONGEST_MESSAGE:
                    complaint = f"message {str(problem)[:80]!r}"
            except Exception as problem:
                complaint = f"{type(problem).__name__}: {str(problem)[:80]!r}"
            if time.process_time() - begun > _SLOWEST:
                complaint = "too slow"
            if complaint:
                os.write(1, f"{name}, reader {position}, file {k} of batch {number}: {complaint}\n".encode())
