"""A small valid file of every foreign format, to damage."""

import gzip
import io
import json
import pickle
import struct
import tarfile
from pathlib import Path

import numpy as np

from formats import written

FILES = Path(__file__).parent / "files"
OPTIONS = {
    "temperature": 1.0,
    "gap": "state",
    "states": 3,
    "units": "spin",
    "update": "last",
    "alphabet": "-ACG",
}
"""What the formats may need; each is told what it takes."""


def _contents():
    rng = np.random.default_rng(0)
    couplings, fields = written.potts(rng, 3, 4)
    tiny, tiny_fields = written.potts(rng, 2, 3)
    proteins, protein_fields = written.potts(rng, 2, 21)
    matrix = [*tiny.transpose(0, 2, 1, 3).reshape(6, 6), tiny_fields.ravel()]
    text = written.couplings_text(couplings, fields)
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as file:
        info = tarfile.TarInfo("model.txt")
        info.size = len(text)
        file.addfile(info, io.BytesIO(text))
    mi3 = io.BytesIO()
    np.save(mi3, np.ones((3, 9)))
    named = io.BytesIO()
    np.savez(named, W=np.ones((3, 2)), b=np.ones(3), c=np.ones(2))
    found = {
        "uai": written.uai([2, 3], [((0, 1), rng.uniform(0.5, 1, (2, 3))), ((1,), np.ones(3))]),
        "uai sparse": b"c x\nSPARSEMARKOV\n2\n2 3\n1\n2 0 1\n0.5 2\n0 2 3.0\n1 0 1e1\n",
        "couplings": text,
        "couplings gz": gzip.compress(text),
        "couplings tar": archive.getvalue(),
        "letters": written.couplings_text(couplings, fields, 1, "-ACG"),
        "ising": b"J 0 1 0.5\nJ 2 0 -1.25e0\nh 0 0.1\nh 1 0.2\nh 2 0.3\n",
        "matrix": "\n".join(" ".join(f"{x:.6f}" for x in row) for row in matrix).encode(),
        "plmc": written.plmc(couplings, fields, "-ACG"),
        "plmc v1": written.plmc(couplings, fields, "-ACG", version=1),
        "ccm": written.ccm_text(proteins, protein_fields[:, :20]),
        "braw": pack(written.ccm_map(proteins, protein_fields[:, :20])),
        "coo": b"# vartype=SPIN\n0 0 1.5e0\n0 3 -2\n",
        "mi3": mi3.getvalue(),
        "named": named.getvalue(),
        "legacy pickle": pickle.dumps({"W": [1.0]}, protocol=2),
    }
    for path in sorted(FILES.iterdir()):
        if path.name != "expected.json" and path.suffix != ".dat":
            found[path.name] = path.read_bytes()
    return found


def pack(value):
    """Msgpack of maps, lists of doubles, text, whole numbers, None and True."""
    if isinstance(value, dict):
        return struct.pack(">BI", 0xDF, len(value)) + b"".join(pack(k) + pack(v) for k, v in value.items())
    if isinstance(value, list):
        return struct.pack(">BI", 0xDD, len(value)) + b"".join(map(pack, value))
    if isinstance(value, str):
        return struct.pack(">BB", 0xD9, len(value)) + value.encode()
    if isinstance(value, bool) or value is None:
        return {None: b"\xc0", True: b"\xc3", False: b"\xc2"}[value]
    return struct.pack(">Bi", 0xD2, value) if isinstance(value, int) else struct.pack(">Bd", 0xCB, value)


VALID = _contents()


def deep(depth):
    """JSON nested this deeply."""
    return (
        json.dumps({"bqm_schema": 1, "quadratic_head": 2})
        .replace("2}", "[" * depth + "]" * depth + "}")
        .encode()
    )
