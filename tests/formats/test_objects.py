"""Objects of other libraries become models with the same log f. They are told by their attributes, so fakes do."""

from inspect import signature
from types import SimpleNamespace

import numpy as np
import pytest

import meltpoint as mp

RNG = np.random.default_rng(0)
W, A, B = RNG.normal(size=(5, 3)), RNG.normal(size=5), RNG.normal(size=3)
X = RNG.integers(0, 2, (8, 5))
RBM = mp.RBM(W, A, B)


class Tensor:
    """As much of a tensor of PyTorch on a graphics card as is looked at: numbers only after detach and cpu."""

    def __init__(self, array, *, detached=False, on_cpu=False):
        self.array, self.detached, self.on_cpu = np.asarray(array), detached, on_cpu
        self.shape = self.array.shape

    def detach(self):
        return Tensor(self.array, detached=True, on_cpu=self.on_cpu)

    def cpu(self):
        return Tensor(self.array, detached=self.detached, on_cpu=True)

    def numpy(self):
        if not self.detached:
            raise RuntimeError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy()")
        if not self.on_cpu:
            raise TypeError("can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu()")
        return self.array

    def __array__(self, dtype=None, copy=None):
        raise RuntimeError("Can't call numpy() on Tensor that requires grad.")


class Module:
    """A module of PyTorch with these parameters."""

    def __init__(self, **parameters):
        self.parameters = parameters

    def state_dict(self):
        return dict(self.parameters)

    def named_parameters(self):
        return iter(self.parameters.items())


def same(model, right=RBM, x=X):
    np.testing.assert_allclose(model.log_f(x), right.log_f(x), rtol=0, atol=1e-12)


def test_a_model_stays_what_it_is():
    assert mp.from_object(RBM) is RBM


def test_scikit_learn():
    from sklearn.neural_network import BernoulliRBM

    fitted = BernoulliRBM(3, n_iter=2, random_state=0).fit(X)
    np.testing.assert_allclose(mp.from_object(fitted).log_f(X), -fitted._free_energy(X), rtol=0, atol=1e-12)
    assert mp.evaluate(fitted, X, steps=10, chains=1, examples=4).model == "RBM 5-3"
    assert mp.sample(fitted, 2, steps=5, moves=1).shape == (2, 5)
    assert mp.exact_log_z(fitted) == mp.exact_log_z(mp.from_object(fitted))


NAMINGS = {
    "commonest": {"W": W.T, "v_bias": A, "h_bias": B},
    "row vectors": {"W": W.T, "v": A[np.newaxis], "h": B[np.newaxis]},
    "visible first": {"weights": W, "visible_biases": A, "hidden_biases": B},
    "prefixed": {"module.rbm.W": W.T, "module.rbm.v_bias": A, "module.rbm.h_bias": B},
    "a and b": {"W": W, "a": A, "b": B},
    "b and c": {"W": W, "b": A, "c": B},
    "a linear layer": {"fc.weight": W.T, "fc.bias": B, "v_bias": A},
    "Salakhutdinov's": {"vishid": W, "visbiases": A[np.newaxis], "hidbiases": B[np.newaxis]},
}


@pytest.mark.parametrize("naming", NAMINGS)
def test_state_dicts_by_their_names_and_lengths(naming):
    tensors = {name: Tensor(array) for name, array in NAMINGS[naming].items()}
    same(mp.from_object(tensors))
    same(mp.from_object(NAMINGS[naming]))
    same(mp.from_object(Module(**tensors)))


def test_square_weights_are_asked_for():
    square = {"W": W[:3], "v_bias": A[:3], "h_bias": B}
    with pytest.raises(mp.InputError, match=r"square weights.*orientation=\"visible-hidden\".*v @ W"):
        mp.from_object(square)
    same(mp.from_object(square, orientation="visible-hidden"), mp.RBM(W[:3], A[:3], B), X[:, :3])
    same(mp.from_object(square, orientation="hidden-visible"), mp.RBM(W[:3].T, A[:3], B), X[:, :3])


def test_state_dicts_with_names_of_their_own():
    named = {"matrix": W, "of_visible": A, "of_hidden": B, "loss": np.zeros(100)}
    same(mp.from_object(named, weights="matrix", visible_bias="of_visible", hidden_bias="of_hidden"))


def test_state_dicts_of_other_units():
    spins = mp.from_object(NAMINGS["commonest"], visible="spin", hidden="spin")
    same(spins, mp.RBM(W, A, B, visible="spin", hidden="spin"), 2 * X - 1)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"W": W, "v_bias": A}, "no hidden_bias in the object with the arrays W, v_bias"),
        (
            {**NAMINGS["commonest"], "conv.running_mean": A},
            r"conv.running_mean \(5,\) besides the parameters of an RBM",
        ),
        ({"0.W": W, "1.W": W, "0.v_bias": A}, "no weights, hidden_bias in the object"),
        (
            {"W": W[:2], "v_bias": A, "h_bias": B},
            r"weights W of shape \(2, 3\) with 5 visible and 3 hidden biases",
        ),
        ({}, "without an array of numbers"),
    ],
)
def test_state_dicts_that_are_no_rbm(parameters, message):
    with pytest.raises(mp.InputError, match=message):
        mp.from_object(parameters)


def test_an_orientation_that_the_biases_contradict():
    with pytest.raises(mp.InputError, match="expected 'hidden-visible', the only one that fits"):
        mp.from_object(NAMINGS["commonest"], orientation="visible-hidden")
    with pytest.raises(mp.InputError, match="orientation='rows', expected 'visible-hidden' or"):
        mp.from_object(NAMINGS["commonest"], orientation="rows")


def test_rbms():
    same(mp.from_object(SimpleNamespace(weight_matrix=Tensor(W), vbias=Tensor(A), hbias=Tensor(B))))
    w, a = RNG.normal(size=(4, 3, 2)), RNG.normal(size=(4, 3))
    potts = mp.from_object(SimpleNamespace(weight_matrix=Tensor(w), vbias=Tensor(a), hbias=Tensor(B[:2])))
    x = RNG.integers(0, 3, (6, 4))
    sites = np.arange(4)
    inputs = w[sites, x].sum(axis=1) + B[:2]
    expected = a[sites, x].sum(axis=1) + np.logaddexp(0, inputs).sum(axis=1)
    np.testing.assert_allclose(potts.log_f(x), expected, rtol=0, atol=1e-12)
    one_hot = np.eye(3)[x]
    same(potts, potts, one_hot)
    np.testing.assert_array_equal(potts.log_f(one_hot.reshape(6, 12)), potts.log_f(x))


def test_learnergy():
    kind = type("RBM", (Module,), {"__module__": "learnergy.models.bernoulli.rbm"})

    def machine(temperature):
        x = kind(W=Tensor(W), a=Tensor(A), b=Tensor(B))
        x.W, x.a, x.b, x.T = Tensor(W), Tensor(A), Tensor(B), temperature
        return x

    same(mp.from_object(machine(1.0)))
    with pytest.raises(mp.InputError, match="with temperature 2, and neither temperature nor beta"):
        mp.from_object(machine(2.0))
    same(mp.from_object(machine(2.0), temperature=2.0), mp.RBM(W / 2, A / 2, B / 2))
    other = type("GaussianRBM", (kind,), {"__module__": "learnergy.models.gaussian.gaussian_rbm"})
    gaussian = other()
    gaussian.W, gaussian.a, gaussian.b, gaussian.T = W, A, B, 1.0
    with pytest.raises(mp.InputError, match="learnergy's GaussianRBM"):
        mp.from_object(gaussian)


@pytest.mark.parametrize("vartype", ["SPIN", "BINARY"])
def test_dimod(vartype):
    linear = {"a": 0.5, "b": -1.0, 7: 0.25}
    quadratic = {("b", "a"): 1.5, (7, "b"): -0.5}
    bqm = SimpleNamespace(
        linear=linear,
        quadratic=quadratic,
        offset=0.75,
        variables=["a", "b", 7],
        vartype=SimpleNamespace(name=vartype),
    )
    values = np.array([(-1, 1), (0, 1)][vartype == "BINARY"])
    x = values[np.array(list(np.ndindex(2, 2, 2)))]
    energy = (
        0.5 * x[:, 0] - x[:, 1] + 0.25 * x[:, 2] + 1.5 * x[:, 0] * x[:, 1] - 0.5 * x[:, 1] * x[:, 2] + 0.75
    )
    model = mp.from_object(bqm, beta=2.0)
    np.testing.assert_allclose(model.log_f(x), -2.0 * energy, rtol=0, atol=1e-12)
    np.testing.assert_allclose(mp.from_object(bqm, temperature=0.5).log_f(x), model.log_f(x), atol=1e-12)
    np.testing.assert_allclose(mp.exact_log_z(model), np.logaddexp.reduce(-2.0 * energy), atol=1e-12)
    with pytest.raises(mp.InputError, match=r"an energy without a temperature.*beta"):
        mp.from_object(bqm)
    with pytest.raises(mp.InputError, match="both temperature and beta"):
        mp.from_object(bqm, beta=1.0, temperature=1.0)
    with pytest.raises(
        mp.InputError, match=r"found beta=-1\.0, temperature=None, expected a positive number"
    ):
        mp.from_object(bqm, beta=-1)


def test_a_qubo_dict_and_a_polynomial():
    x = np.array(list(np.ndindex(2, 2, 2)))
    qubo = {(0, 0): 0.5, (2, 2): -1.0, (0, 2): 1.5, (2, 1): -0.5, (1, 2): 0.25}
    energy = 0.5 * x[:, 0] - x[:, 2] + 1.5 * x[:, 0] * x[:, 2] - 0.25 * x[:, 1] * x[:, 2]
    np.testing.assert_allclose(mp.from_object(qubo, beta=2.0).log_f(x), -2.0 * energy, atol=1e-12)

    class Polynomial(dict):
        vartype, degree = SimpleNamespace(name="BINARY"), 3

    cubic = Polynomial({frozenset({0}): 0.5, frozenset({0, 1, 2}): 2.0, frozenset(): 0.75})
    energy = 0.5 * x[:, 0] + 2.0 * x.prod(axis=1) + 0.75
    np.testing.assert_allclose(mp.from_object(cubic, beta=2.0).log_f(x), -2.0 * energy, atol=1e-12)
    cubic.vartype = SimpleNamespace(name="SPIN")
    with pytest.raises(mp.InputError, match=r"expected one of BINARY variables.*to_binary\(\)"):
        mp.from_object(cubic, beta=2.0)


def test_beta_is_taken_wherever_a_model_is():
    qubo = {(0, 0): 0.5, (0, 1): 1.5}
    truth, x = np.logaddexp.reduce(-2.0 * np.array([0, 0, 0.5, 2.0])), np.zeros((4, 2))
    assert mp.exact_log_z(qubo, beta=2.0) == pytest.approx(truth)
    assert mp.log_z(qubo, beta=2.0, steps=5, chains=4).exact == pytest.approx(truth)
    assert mp.evaluate(qubo, x, beta=2.0, steps=5, chains=2).exact.value == pytest.approx(-truth)
    assert mp.sample(model=qubo, n=3, beta=2.0).shape == (3, 2)
    assert "beta" in signature(mp.evaluate).parameters
    with pytest.raises(mp.InputError, match="an energy without a temperature"):
        mp.log_z(qubo)
    with pytest.raises(mp.InputError, match="beta"):
        mp.log_z(mp.Ising([[0.0, 1.0], [1.0, 0.0]]), beta=2.0)


def test_samples_of_dimod_are_refused_with_the_line_that_orders_them():
    samples = SimpleNamespace(record=SimpleNamespace(sample=np.zeros((2, 2))), variables=[1, 0])
    model = mp.Ising([[0.0, 1.0], [1.0, 0.0]])  # without fields
    with pytest.raises(mp.InputError, match=r"order of the model's variables: test\.record\.sample\[:, \["):
        mp.evaluate(model, samples)


class Factor:
    """A DiscreteFactor of pgmpy."""

    def __init__(self, variables, cardinality, values):
        self.variables, self.cardinality = variables, np.array(cardinality)
        self.values = np.array(values, float).reshape(cardinality)

    def scope(self):
        return self.variables


class Network:
    """A Markov network of pgmpy; of a factor graph the factors are nodes too."""

    def __init__(self, nodes, factors):
        self._nodes, self._factors = nodes, factors

    def nodes(self):
        return self._nodes

    def get_factors(self):
        return self._factors


@pytest.mark.parametrize("is_factor_graph", [False, True])
def test_pgmpy(is_factor_graph):
    factors = [
        Factor(["y", "x"], [3, 2], range(1, 7)),
        Factor(["z"], [2], [0.5, 2]),
        Factor(["x", "z"], [2, 2], [1, 2, 3, 4]),
    ]
    network = Network(["x", "y", "z"], factors)
    if is_factor_graph:
        network = Network(["x", "phi_x_y", "y", "z", factors[1]], factors)
        network.get_factor_nodes = lambda: []
    model = mp.from_object(network)
    x = np.array(list(np.ndindex(2, 3, 2)))
    f = factors[0].values[x[:, 1], x[:, 0]] * factors[1].values[x[:, 2]] * factors[2].values[x[:, 0], x[:, 2]]
    np.testing.assert_allclose(model.log_f(x), np.log(f), rtol=0, atol=1e-12)


def test_pgmpy_that_cannot_be_read():
    with pytest.raises(mp.InputError, match="without factors"):
        mp.from_object(Network(["x"], []))
    with pytest.raises(mp.InputError, match="variables without a factor: y"):
        mp.from_object(Network(["x", "y"], [Factor(["x"], [2], [1, 2])]))
    with pytest.raises(mp.InputError):  # a factor of zero is a hard constraint
        mp.from_object(Network(["x"], [Factor(["x"], [2], [0, 2])]))


class Nodes(dict):
    """The nodes of a NetworkX graph with their attributes."""


class Graph:
    """A Graph of NetworkX."""

    adj = None

    def __init__(self, nodes, edges, directed=False):
        self.nodes, self._edges, self._directed = Nodes(nodes), edges, directed

    def edges(self, data=False):
        return self._edges

    def is_directed(self):
        return self._directed

    def is_multigraph(self):
        return False


def test_networkx():
    graph = Graph(
        {"a": {"bias": 0.5}, "b": {}, "c": {"bias": -1.0}},
        [("a", "c", {"weight": 2.0}), ("b", "c", {"weight": -1.0})],
    )
    x = 2 * np.array(list(np.ndindex(2, 2, 2))) - 1
    log_f = 0.5 * x[:, 0] - x[:, 2] + 2 * x[:, 0] * x[:, 2] - x[:, 1] * x[:, 2]
    np.testing.assert_allclose(mp.from_object(graph).log_f(x), log_f, rtol=0, atol=1e-12)
    np.testing.assert_allclose(mp.from_object(graph, beta=0.5).log_f(x), log_f / 2, rtol=0, atol=1e-12)
    bits = mp.from_object(graph, units="bernoulli")
    np.testing.assert_allclose(bits.log_f([[1, 1, 1]]), 0.5 - 1 + 2 - 1, rtol=0, atol=1e-12)
    with pytest.raises(mp.InputError, match=r"without an attribute 'J'.*there are weight.*coupling=…"):
        mp.from_object(graph, coupling="J")
    with pytest.raises(mp.InputError, match="an undirected graph"):
        mp.from_object(Graph({}, [], directed=True))
    with pytest.raises(mp.InputError, match="an edge of 'a' with itself"):
        mp.from_object(Graph({"a": {}}, [("a", "a", {"weight": 1.0})]))


def test_networkx_with_tables():
    table = RNG.normal(size=(2, 3))
    graph = Graph({0: {"h": [1.0, 2.0]}, 1: {}}, [(1, 0, {"J": table.T})])
    model = mp.from_object(graph, coupling="J", field="h")
    x = np.array(list(np.ndindex(2, 3)))
    expected = table[x[:, 0], x[:, 1]] + np.array([1.0, 2.0])[x[:, 0]]
    np.testing.assert_allclose(model.log_f(x), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("x", "message"),
    [
        ("model.npz", r"a path, 'model.npz', .* load it: meltpoint.load\('model.npz'\)"),
        (type("BernoulliRBM", (), {})(), "not fitted.*call its fit first"),
        (SimpleNamespace(named_steps={"rbm": 1}), r"several steps.*pipeline.named_steps\[…\], one of 'rbm'"),
        (SimpleNamespace(get_cpds=1), r"a directed model.*to_markov_model\(\)"),
        (3, "found a model of type int"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_what_is_no_model_says_what_to_do(x, message):
    with pytest.raises(mp.InputError, match=message):
        mp.evaluate(x, X)


def test_options_that_say_nothing_are_refused():
    with pytest.raises(
        mp.InputError,
        match=r"units, beta for a dict of parameters.*hidden, hidden_bias, orientation, visible",
    ):
        mp.from_object(NAMINGS["commonest"], beta=1.0, units="spin")


def test_save_takes_objects(tmp_path):
    mp.save(NAMINGS["commonest"], tmp_path / "model.npz", note="from a state dict")
    same(mp.load(tmp_path / "model.npz"))
