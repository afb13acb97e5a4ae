"""scikit-learn's BernoulliRBM as skops stores it: a zip of `schema.json` and a `.npy` for each array.

An RBM inside a Pipeline is found too, if it is the only one; what the steps before it do to the data is not part of
the model.
"""

from typing import Any

from meltpoint.errors import InputError
from meltpoint.formats import named_arrays, npz
from meltpoint.formats.documents import read_json
from meltpoint.formats.format import Format
from meltpoint.formats.options import Options
from meltpoint.formats.source import Source
from meltpoint.models import Model

_SCHEMA = "schema.json"
_LONGEST_SCHEMA = 1 << 24
_ARRAYS = ("components_", "intercept_visible_", "intercept_hidden_")


def _model(source: Source, options: Options) -> Model:
    """The RBM; components_ is (hidden, visible)."""
    files = _files(source, read_json(npz.content(source, _SCHEMA, _LONGEST_SCHEMA)))
    arrays = npz.read_arrays(source, list(files.values()))
    return named_arrays.model(source, {name: arrays[stem] for name, stem in files.items()}, options)


def _files(source: Source, schema: object) -> dict[str, str]:
    """Name of the file, without .npy, of each array of the one BernoulliRBM in the schema."""
    found: list[dict[str, Any]] = []
    nodes = [schema]
    while nodes:
        node = nodes.pop()
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
    missing = [name for name in _ARRAYS if name not in content]
    if missing:
        raise InputError(
            found=f"a BernoulliRBM without {' and '.join(missing)} in {source.name}",
            expected="one that was fitted",
            remedy="fit it, and dump it again",
        )
    return {name: content[name]["file"].removesuffix(".npy") for name in _ARRAYS}


FORMAT = Format("skops file", (".skops",), lambda source: _SCHEMA in source.once(npz.members), model=_model)
