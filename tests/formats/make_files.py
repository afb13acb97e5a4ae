"""Small files written by other libraries, and the log f that they compute: run it where they are installed.

    python tests/formats/make_files.py tests/formats/files

needs torch, rbms, skops, scikit-learn, safetensors, dimod, pgmpy, adabmDCA and h5py; what is missing is left out and
said so. Beside the files it writes `expected.json`: for each file the options to load it with, states, and their log f.
"""

import json
import math
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

Case = tuple[str, dict[str, Any], np.ndarray, np.ndarray]
RNG = np.random.default_rng(16)
VISIBLE, HIDDEN, CASES = 6, 4, 5


def torch_files(folder: Path) -> Iterator[Case]:
    import torch

    class RBM(torch.nn.Module):
        def __init__(self, visible: int, hidden: int) -> None:
            super().__init__()
            self.W = torch.nn.Parameter(torch.tensor(RNG.normal(size=(hidden, visible)), dtype=torch.float32))
            self.v_bias = torch.nn.Parameter(torch.tensor(RNG.normal(size=visible), dtype=torch.float32))
            self.h_bias = torch.nn.Parameter(torch.tensor(RNG.normal(size=hidden), dtype=torch.float32))

        def log_f(self, v: torch.Tensor) -> torch.Tensor:
            inputs = torch.nn.functional.linear(v, self.W.double(), self.h_bias.double())
            return v @ self.v_bias.double() + torch.nn.functional.softplus(inputs).sum(1)

    states = bits(VISIBLE)
    wide, square = RBM(VISIBLE, HIDDEN), RBM(VISIBLE, VISIBLE)
    expected = wide.log_f(torch.tensor(states, dtype=torch.float64)).detach().numpy()
    torch.save(wide.state_dict(), folder / "state.pt")
    yield "state.pt", {}, states, expected
    torch.save(wide.state_dict(), folder / "state_legacy.pt", _use_new_zipfile_serialization=False)
    yield "state_legacy.pt", {}, states, expected
    optimizer = torch.optim.SGD(wide.parameters(), 0.1, momentum=0.9)
    checkpoint = {
        "epoch": 3,
        "loss": np.float64(0.5),
        "state_dict": wide.state_dict(),
        "optimizer": optimizer.state_dict(),
    }
    torch.save(checkpoint, folder / "checkpoint.pt")
    yield "checkpoint.pt", {}, states, expected
    strided = {
        "W": wide.W.detach().T.contiguous().T,
        "v": wide.v_bias.detach()[None],
        "h": wide.h_bias.detach()[None],
    }
    torch.save(strided, folder / "strided.pt")
    yield "strided.pt", {}, states, expected
    torch.save(square.state_dict(), folder / "square.pt")
    expected = square.log_f(torch.tensor(states, dtype=torch.float64)).detach().numpy()
    yield "square.pt", {"orientation": "hidden-visible"}, states, expected
    # A whole module, which only code can open.
    sys.modules["__main__"].RBM = RBM
    RBM.__module__, RBM.__qualname__ = "__main__", "RBM"
    torch.save(wide, folder / "module.pt")


def safetensors_files(folder: Path) -> Iterator[Case]:
    import torch
    from safetensors.torch import save_file

    tensors = {
        "rbm.weights": torch.tensor(RNG.normal(size=(VISIBLE, HIDDEN))),
        "rbm.visible_bias": torch.tensor(RNG.normal(size=VISIBLE), dtype=torch.float32),
        "rbm.hidden_bias": torch.tensor(RNG.normal(size=HIDDEN), dtype=torch.bfloat16),
    }
    save_file(tensors, folder / "rbm.safetensors", metadata={"format": "pt"})
    states = bits(VISIBLE)
    v = torch.tensor(states, dtype=torch.float64)
    inputs = v @ tensors["rbm.weights"] + tensors["rbm.hidden_bias"].double()
    log_f = v @ tensors["rbm.visible_bias"].double() + torch.nn.functional.softplus(inputs).sum(1)
    yield "rbm.safetensors", {}, states, log_f.numpy()


def skops_files(folder: Path) -> Iterator[Case]:
    import skops.io
    from sklearn.neural_network import BernoulliRBM

    for name, hidden in (("sklearn.skops", HIDDEN), ("sklearn_square.skops", VISIBLE)):
        rbm = BernoulliRBM(hidden, learning_rate=1.0, n_iter=20, random_state=0).fit(bits(VISIBLE, 40))
        skops.io.dump(rbm, folder / name)
        states = bits(VISIBLE)
        yield name, {}, states, -rbm._free_energy(states)


def rbms_files(folder: Path) -> Iterator[Case]:
    import torch
    from rbms.bernoulli_bernoulli.classes import BBRBM
    from rbms.io import save_model
    from rbms.potts_bernoulli.classes import PBRBM

    def normal(*shape: int) -> torch.Tensor:
        return torch.tensor(RNG.normal(size=shape))

    made = {
        "rbms_bernoulli.h5": lambda: BBRBM(normal(VISIBLE, HIDDEN), normal(VISIBLE), normal(HIDDEN)),
        "rbms_potts.h5": lambda: PBRBM(normal(VISIBLE, 3, HIDDEN), normal(VISIBLE, 3), normal(HIDDEN)),
    }
    for name, make in made.items():
        states = bits(VISIBLE) if "bernoulli" in name else RNG.integers(0, 3, (CASES, VISIBLE))
        chains = {"visible": torch.tensor(states, dtype=torch.float64)}
        expected = []
        for update in (10, 200):
            model = make()
            save_model(str(folder / name), model, chains, update, 0.5)
            expected.append(-model.compute_energy_visibles(chains["visible"]).numpy())
        yield name, {"update": 10}, states, expected[0]
        yield name, {"update": "last"}, states, expected[1]


def dimod_files(folder: Path) -> Iterator[Case]:
    import dimod
    from dimod.serialization import coo

    for vartype in ("SPIN", "BINARY"):
        model = dimod.BinaryQuadraticModel(
            {k: float(RNG.normal()) for k in "abcdef"},
            {("a", "b"): 0.7, ("a", "e"): -1.3, ("c", "b"): 0.25, ("d", "f"): 2.0, ("f", "a"): -0.5},
            1.75,
            vartype,
        )
        states = bits(VISIBLE) if vartype == "BINARY" else 2 * bits(VISIBLE).astype(int) - 1
        expected = -model.energies((states, list(model.variables))) / 0.8
        for version in (1, 2):
            name = f"{vartype.lower()}_v{version}.bqm"
            with model.to_file(version=version) as file:
                (folder / name).write_bytes(file.read())
            yield name, {"temperature": 0.8}, states, expected
        name = f"{vartype.lower()}.bqm.json"
        (folder / name).write_text(json.dumps(model.to_serializable()))
        expected = -model.energies((states, sorted(model.variables))) / 0.8  # JSON sorts the labels
        yield name, {"beta": 1 / 0.8}, states, expected
        model.relabel_variables({label: k for k, label in enumerate("abcdef")})
        name = f"{vartype.lower()}.coo"
        (folder / name).write_text(coo.dumps(model, vartype_header=True))
        with (folder / name).open() as file:
            model = coo.load(file)  # what is left after rounding to six digits
        expected = -model.energies((states, range(VISIBLE))) / 0.8
        yield name, {"temperature": 0.8}, states, expected


def pgmpy_files(folder: Path) -> Iterator[Case]:
    from pgmpy.factors.discrete import DiscreteFactor
    from pgmpy.models import DiscreteMarkovNetwork
    from pgmpy.readwrite import UAIWriter

    sizes = [2, 2, 3, 4]  # the writer sorts variables by their sizes
    names = [f"var_{k}" for k in range(4)]
    scopes = [(0, 1), (2, 1), (1, 2, 3), (3,)]
    network = DiscreteMarkovNetwork([(names[a], names[b]) for a, b in ((0, 1), (1, 2), (1, 3), (2, 3))])
    factors = []
    for scope in scopes:
        shape = [sizes[k] for k in scope]
        values = np.round(RNG.uniform(0.1, 2, math.prod(shape)), 4)
        factors.append(DiscreteFactor([names[k] for k in scope], shape, values))
    network.add_factors(*factors)
    UAIWriter(network).write(str(folder / "pgmpy.uai"))
    states = np.stack([RNG.integers(0, size, CASES) for size in sizes], axis=1)
    log_f = [
        sum(math.log(f.get_value(**{v: int(s[names.index(v)]) for v in f.variables})) for f in factors)
        for s in states
    ]
    yield "pgmpy.uai", {}, states, np.array(log_f)


def adabmdca_files(folder: Path) -> Iterator[Case]:
    import torch
    from adabmDCA.io import load_params, save_params, save_params_oldformat
    from adabmDCA.statmech import compute_energy

    def log_f(params: dict[str, torch.Tensor], states: np.ndarray) -> np.ndarray:
        one_hot = torch.nn.functional.one_hot(torch.tensor(states), params["bias"].shape[1])
        return -compute_energy(one_hot.double(), {k: p.double() for k, p in params.items()}).numpy()

    length, q = 4, 5
    couplings = RNG.normal(size=(length, q, length, q))
    couplings += couplings.transpose(2, 3, 0, 1)
    couplings[range(length), :, range(length), :] = 0
    params = {"bias": torch.tensor(RNG.normal(size=(length, q))), "coupling_matrix": torch.tensor(couplings)}
    states = RNG.integers(0, q, (CASES, length))
    save_params(str(folder / "adabmdca_rna.dat"), params, "rna")
    stored = load_params(str(folder / "adabmdca_rna.dat"), "rna", torch.device("cpu"), torch.float64)
    yield "adabmdca_rna.dat", {}, states, log_f(stored, states)
    save_params_oldformat(str(folder / "adabmdca_old.dat"), params)
    yield "adabmdca_old.dat", {}, states, log_f(params, states)


def bits(n: int, count: int = CASES) -> np.ndarray:
    return (RNG.random((count, n)) < 0.5).astype(np.uint8)


WRITERS: tuple[Callable[[Path], Iterator[Case]], ...] = (
    torch_files,
    safetensors_files,
    skops_files,
    rbms_files,
    dimod_files,
    pgmpy_files,
    adabmdca_files,
)


def make(folder: Path) -> list[dict[str, Any]]:
    """Write all files that can be written, and give what was expected of them."""
    folder.mkdir(parents=True, exist_ok=True)
    expected: list[dict[str, Any]] = []
    for writer in WRITERS:
        try:
            for file, options, states, log_f in writer(folder):
                assert np.isfinite(log_f).all()
                expected.append(
                    {
                        "file": file,
                        "options": options,
                        "states": states.tolist(),
                        "log_f": [float(x) for x in log_f],
                    }
                )
        except ImportError as problem:
            sys.stderr.write(f"{writer.__name__}: {problem}\n")
    (folder / "expected.json").write_text(json.dumps(expected, indent=1) + "\n")
    return expected


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    make(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(tempfile.mkdtemp()))
