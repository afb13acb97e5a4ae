"""scikit-learn's BernoulliRBM as skops stores it: a zip of `schema.json` and a `.npy` for each array.

An RBM inside a Pipeline is found too, if it is the only one; what the steps before it do to the data is not part of
the model.
"""

import json
import zipfile
from typing import Any

from meltpoint.errors import InputError
from meltpoint.formats import named_arrays, npz
from meltpoint.formats.options import Options
from meltpoint.formats.source import Source
from meltpoint.models import Model

NAME = "skops file"
OPTIONS: frozenset[str] = frozenset()

_LONGEST_SCHEMA = 1 << 24
_MOST_NODES = 1_000_000
_ARRAYS = ("components_", "intercept_visible_", "intercept_hidden_")


def recognises(source: Source) -> bool:
    """Whether it is a zip with a schema.json."""
    if not source.head.startswith(b"PK\x03\x04"):
        return False
    with source.open() as file, zipfile.ZipFile(file) as archive:
        return "schema.json" in archive.namelist()


def read(source: Source, options: Options) -> Model:
    """The RBM; components_ is (hidden, visible)."""
    with source.open() as file:
        with zipfile.ZipFile(file) as archive:
            info = archive.getinfo("schema.json")
            if info.file_size > _LONGEST_SCHEMA or info.compress_type not in (
                zipfile.ZIP_STORED,
                zipfile.ZIP_DEFLATED,
            ):
                raise ValueError(f"a schema of {info.file_size} bytes")
            with archive.open(info) as entry:
                schema = json.loads(entry.read(info.file_size + 1))
        files = _files(source, schema)
        arrays = npz.read_npz(file, source.path, names=list(files.values()))
    return named_arrays.model(source, {name: arrays[stem] for name, stem in files.items()}, options)


def _files(source: Source, schema: object) -> dict[str, str]:
    """Name of the file, without .npy, of each array of the one BernoulliRBM in the schema."""
    found: list[dict[str, Any]] = []
    nodes, seen = [schema], 0
    while nodes:
        node = nodes.pop()
        seen += 1
        if seen > _MOST_NODES:
            raise ValueError("a schema that is too large")
        if isinstance(node, dict):
            if node.get("__class__") == "BernoulliRBM":
                found.append(node)
            nodes.extend(node.values())
        elif isinstance(node, list):
            nodes.extend(node)
    if len(found) != 1:
        raise InputError(
            found=f"{len(found) or 'no'} BernoulliRBM in {source.name}",
            expected="one",
            remedy="dump the fitted BernoulliRBM alone: skops.io.dump(rbm, path)",
        )
    content = found[0]["content"]["content"]
    if not all(name in content for name in _ARRAYS):
        missing = " and ".join(name for name in _ARRAYS if name not in content)
        raise InputError(
            found=f"a BernoulliRBM without {missing} in {source.name}",
            expected="one that was fitted",
            remedy="fit it, and dump it again",
        )
    return {name: str(content[name]["file"]).removesuffix(".npy") for name in _ARRAYS}
