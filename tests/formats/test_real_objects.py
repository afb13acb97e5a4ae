"""Objects of the libraries themselves, in the environment of the benchmarks: the same log f as they compute."""

import json
import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PYTHON = ROOT / ".venv-bench" / "bin" / "python"

TORCH = """
import torch
module = torch.nn.Module()
module.W = torch.nn.Parameter(torch.randn(3, 5))
module.v_bias, module.h_bias = torch.nn.Parameter(torch.randn(5)), torch.nn.Parameter(torch.randn(3))
x = torch.bernoulli(torch.full((7, 5), 0.5))
inputs = torch.nn.functional.linear(x, module.W, module.h_bias)
theirs = (x @ module.v_bias + torch.nn.functional.softplus(inputs).sum(1)).detach()
ours = mp.from_object(module).log_f(x)
"""
RBMS = """
import torch
from rbms.bernoulli_bernoulli.classes import BBRBM
machine = BBRBM(torch.randn(5, 3), torch.randn(5), torch.randn(3))
x = torch.bernoulli(torch.full((7, 5), 0.5))
theirs, ours = -machine.compute_energy_visibles(x), mp.from_object(machine).log_f(x)
"""
POTTS = """
import torch
from rbms.potts_bernoulli.classes import PBRBM
machine = PBRBM(torch.randn(5, 4, 3), torch.randn(5, 4), torch.randn(3))
x = torch.randint(0, 4, (7, 5))
theirs, ours = -machine.compute_energy_visibles(x), mp.from_object(machine).log_f(x)
"""
LEARNERGY = """
import torch
from learnergy.models.bernoulli import RBM
machine = RBM(5, 3)
x = torch.bernoulli(torch.full((7, 5), 0.5))
theirs, ours = -machine.energy(x).detach(), mp.from_object(machine).log_f(x)
"""
DIMOD = """
import dimod
bqm = dimod.generators.gnm_random_bqm(6, 9, "SPIN", random_state=1)
bqm.offset = 0.5
x = 2 * np.random.default_rng(0).integers(0, 2, (7, 6)) - 1
theirs, ours = -0.7 * bqm.energies((x, list(bqm.variables))), mp.from_object(bqm, beta=0.7).log_f(x)
"""
PGMPY = """
from pgmpy.factors.discrete import DiscreteFactor
from pgmpy.models import DiscreteMarkovNetwork
network = DiscreteMarkovNetwork([("x", "y"), ("y", "z")])
network.add_factors(DiscreteFactor(["y", "x"], [3, 2], range(1, 7)), DiscreteFactor(["z", "y"], [2, 3], range(2, 8)))
theirs, ours = np.log([network.get_partition_function()]), [mp.exact_log_z(mp.from_object(network))]
"""
NETWORKX = """
import networkx as nx
graph = nx.cycle_graph(6)
nx.set_edge_attributes(graph, 0.4, "weight")
theirs, ours = [6 * np.log(2 * np.cosh(0.4)) + np.log1p(np.tanh(0.4) ** 6)], [mp.exact_log_z(mp.from_object(graph))]
"""
LIBRARIES = {
    "torch": TORCH,
    "rbms": RBMS,
    "rbms.potts_bernoulli": POTTS,
    "learnergy": LEARNERGY,
    "dimod": DIMOD,
    "pgmpy": PGMPY,
    "networkx": NETWORKX,
}


@pytest.mark.slow
@pytest.mark.parametrize("library", LIBRARIES)
def test_the_same_log_f_as_the_library(library):
    python = Path(os.environ.get("MELTPOINT_BENCH_PYTHON", PYTHON))
    if not python.is_file():
        pytest.skip("needs .venv-bench, which make bench makes")
    script = (
        "import importlib.util, json, sys\n"
        f"if not all(map(importlib.util.find_spec, ('numba', {library.partition('.')[0]!r}))):\n"
        "    sys.exit(77)\nimport numpy as np\nimport meltpoint as mp\n"
        f"{LIBRARIES[library]}\nprint(json.dumps([np.asarray(theirs).tolist(), np.asarray(ours).tolist()]))"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "PYTHONWARNINGS": "ignore"}
    command = [python, "-c", script]
    ended = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if ended.returncode == 77:
        pytest.skip(f"needs {library} and numba in .venv-bench")
    assert ended.returncode == 0, ended.stderr
    theirs, ours = json.loads(ended.stdout.splitlines()[-1])
    assert ours == pytest.approx(theirs, rel=1e-6, abs=1e-6)
