"""Real files of other programs, against log f by a plain reading of them."""

import gzip
import tarfile
import zipfile

import numpy as np
import pytest

import meltpoint as mp


@pytest.fixture
def others(shared):
    return shared / "data" / "others"


@pytest.mark.parametrize("name", ["Grids_11", "Segmentation_11", "Alchemy_11", "CSP_11"])
def test_uai(others, name):
    model = mp.load(others / f"uai/{name}.uai")
    words = iter((others / f"uai/{name}.uai").read_text().split())
    assert next(words) == "MARKOV"
    sizes = [int(next(words)) for _ in range(int(next(words)))]
    scopes = [[int(next(words)) for _ in range(int(next(words)))] for _ in range(int(next(words)))]
    state = np.random.default_rng(0).integers(0, sizes)
    expected = 0.0
    for scope in scopes:
        values = [float(next(words)) for _ in range(int(next(words)))]
        place = 0
        for variable in scope:
            place = place * sizes[variable] + state[variable]
        expected += np.log(values[place])
    np.testing.assert_allclose(model.log_f([state]), [expected], rtol=1e-12)


def couplings_by_lines(lines, states):
    couplings = {}
    for line in lines:
        *words, value = line.split()
        couplings[tuple(words)] = float(value)
    n = states.shape[1]
    return [
        sum(couplings["h", f"{i}", f"{x[i]}"] for i in range(n))
        + sum(couplings["J", f"{i}", f"{j}", f"{x[i]}", f"{x[j]}"] for i in range(n) for j in range(i + 1, n))
        for x in states
    ]


@pytest.mark.slow
def test_couplings_as_text_straight_from_the_archive(others, tmp_path):
    states = np.random.default_rng(0).integers(0, 21, (4, 23))
    packed = mp.load(others / "potts/PF00096.tar.gz")
    name = "PF00096/parameters_PF00096.txt"
    with tarfile.open(others / "potts/PF00096.tar.gz") as archive:
        content = archive.extractfile(name).read()
    (tmp_path / "parameters.txt").write_bytes(content)
    expected = couplings_by_lines(content.decode().splitlines(), states)
    np.testing.assert_allclose(packed.log_f(states), expected, atol=1e-9)
    np.testing.assert_allclose(mp.load(tmp_path / "parameters.txt").log_f(states), expected, atol=1e-9)


def test_two_dialects_of_one_pottsgraph(others):
    states = np.random.default_rng(0).integers(0, 21, (20, 2))
    lines = (others / "potts/numerical_0.pottsgraph").read_text().splitlines()
    for name in ("numerical_0", "symbolic_1"):
        model = mp.load(others / f"potts/{name}.pottsgraph")
        np.testing.assert_allclose(model.log_f(states), couplings_by_lines(lines, states), atol=1e-12)


def test_braw(others):
    msgpack = pytest.importorskip("msgpack")
    path = others / "ccm/1atzA.braw.gz"
    stored = msgpack.unpackb(gzip.decompress(path.read_bytes()))
    states = np.random.default_rng(0).integers(0, 20, (3, 75))
    single = np.reshape(stored["x_single"], (75, 20))
    expected = single[np.arange(75), states].sum(1)
    for pair in stored["x_pair"].values():
        expected += np.reshape(pair["x"], (21, 21))[states[:, pair["i"]], states[:, pair["j"]]]
    for gap in ("state", "masked"):
        np.testing.assert_allclose(mp.load(path, gap=gap).log_f(states), expected, atol=1e-9)


def test_rbms(others):
    h5py = pytest.importorskip("h5py")
    path = others / "rbms/blume_old_layout.h5"
    with h5py.File(path) as file:
        group = file["update_5000000"]
        weights, visible, hidden = (group[name][()] for name in ("weight_matrix", "vbias", "hbias"))
    states = np.random.default_rng(0).integers(0, 3, (5, 51))
    sites = np.arange(51)
    inputs = weights[states, sites].sum(1) + hidden
    expected = visible[states, sites].sum(1) + np.logaddexp(0, inputs).sum(1)
    np.testing.assert_allclose(mp.load(path).log_f(states), expected, rtol=1e-12)


def test_torch(others):
    path = others / "torch/rbm_state_dict.pt"
    with zipfile.ZipFile(path) as archive:
        weights, visible, hidden = (np.frombuffer(archive.read(f"archive/data/{k}"), "<f4") for k in range(3))
    v = np.random.default_rng(0).integers(0, 2, (5, 784))
    inputs = v @ weights.reshape(784, 128).astype(float) + hidden
    expected = v @ visible.astype(float) + np.logaddexp(0, inputs).sum(1)
    np.testing.assert_allclose(mp.load(path).log_f(v), expected, rtol=1e-12)


def test_bqm(others):
    """Energies as dimod 0.12.23 computes them."""
    states = [[0, 0, 0, 0, 0], [1, 0, 1, 0, 0], [1, 1, 1, 1, 1], [0, 1, 0, 0, 1]]
    model = mp.load(others / "dimod/5x5_v1.bqm", temperature=2.0)
    np.testing.assert_allclose(model.log_f(states), np.array([0.0, 14.0, 140.0, 39.0]) / -2.0, atol=1e-12)


def test_qubo(others):
    with pytest.warns(UserWarning, match="was it cut off"):
        model = mp.load(others / "dimod/coo_qubo.qubo", temperature=1.0)
    np.testing.assert_allclose(model.log_f([[0, 0, 0, 0], [1, 0, 1, 1]]), [0.0, 3.0])


def test_data_in_place_of_a_model(others):
    with pytest.raises(mp.InputError, match=r"PF00072_test\.fasta.*are model and data swapped"):
        mp.load(others / "potts/PF00072_test.fasta")


def test_a_braw_file_that_unpacks_to_25_times_its_size(shared):
    path = shared / "data/known/general/ccm/mrf_params.braw.gz"
    assert repr(mp.load(path, gap="masked")).startswith("Potts 100")
    with pytest.raises(mp.InputError, match=r"more than 1,048,576 bytes"):
        mp.load(path, gap="masked", unpacked=1)
