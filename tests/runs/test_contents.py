"""The list of names in `runs.contents` is complete: every file of a run's folder matches one of them."""

import re

import numpy as np
import pytest

import meltpoint as mp
from meltpoint.runs import contents


def _listed():
    """Patterns of the names in the docstring: any digits for digits, any word for NAME, anything for …."""
    names = re.findall(r"^(\S+(?:\.npz|\.json)|lock)\b", contents.__doc__, re.MULTILINE)
    names += re.findall(r"[,;:] (\S+\.npz)", contents.__doc__)
    return [
        re.sub(r"\d+", r"\\d+", re.escape(name)).replace("NAME", r"\w+").replace("…", r"[\w-]+")
        for name in names
    ]


@pytest.mark.parametrize(
    "settings", [{"steps": 20}, pytest.param({"gap": 0.5, "budget": "2s"}, marks=pytest.mark.slow)]
)
def test_every_file_of_a_run_is_listed(tmp_path, settings):
    rng = np.random.default_rng(0)
    model = mp.RBM(rng.normal(size=(5, 3)), np.zeros(5), np.zeros(3))
    data = rng.integers(0, 2, (8, 5))
    mp.evaluate(model, data, data, run=tmp_path / "run", **settings)
    found = [path.relative_to(tmp_path / "run").as_posix() for path in tmp_path.glob("run/**/*")]
    found = [name for name in found if not (tmp_path / "run" / name).is_dir()]
    assert len(found) > 8
    assert [name for name in found if not any(re.fullmatch(p, name) for p in _listed())] == []
    assert not any(re.fullmatch(p, "part-0/stage-0/other.npz") for p in _listed())
