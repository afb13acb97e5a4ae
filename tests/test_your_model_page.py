"""The page about other libraries' models runs, block by block, with fakes where a library is not here."""

import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse

import meltpoint as mp
from formats.test_objects import Factor, Graph, Module, Network, Tensor

PAGE = (Path(__file__).resolve().parents[1] / "docs" / "your-model.md").read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.filterwarnings("error")
def test_every_block_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    w, a, b = rng.normal(size=(4, 3)), np.zeros(4), np.zeros(3)
    tensors = {"W": Tensor(w.T), "v_bias": Tensor(a), "h_bias": Tensor(b)}
    train = rng.random((200, 4)) < [0.9, 0.8, 0.1, 0.2]
    (tmp_path / "test.csv").write_text("a,b\n0,1\n1,1\n")
    (tmp_path / "family.fasta").write_text(">one\nAC-\n>two\nADY\n")
    scipy.sparse.save_npz(tmp_path / "matrix.npz", scipy.sparse.csr_array(train.astype(int)))
    names = {
        "module": Module(**tensors),
        "square_module": Module(W=Tensor(w[:3]), v_bias=Tensor(a[:3]), h_bias=Tensor(b)),
        "other": Module(matrix=Tensor(w.T), of_visible=Tensor(a), of_hidden=Tensor(b)),
        "machine": SimpleNamespace(weight_matrix=Tensor(w), vbias=Tensor(a), hbias=Tensor(b)),
        "bqm": SimpleNamespace(
            linear={"a": 1.0}, quadratic={}, offset=0.5, variables=["a"], vartype=SimpleNamespace(name="SPIN")
        ),
        "network": Network(["x"], [Factor(["x"], [2], [1, 2])]),
        "graph": Graph({0: {}, 1: {"bias": 1.0, "h": 2.0}}, [(0, 1, {"weight": 1.0, "J": 2.0})]),
        "wrong": mp.RBM(0 * w, [-2, -1, 2, 1], b),
        "train": train,
    }
    blocks = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert len(blocks) == 9
    for block in blocks:
        exec(block, names)
    assert "all parameters have the other sign" in capsys.readouterr().out
    assert (tmp_path / "model.npz").is_file()
    assert names["family"].tolist() == [[1, 2, 0], [1, 3, 20]]
