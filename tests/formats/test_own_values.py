"""An object's own energy or log-probability must be that of the model made from its arrays, and none is left out."""

import random
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import meltpoint as mp
from formats.test_objects import RBM, Module, Tensor, W, X
from formats.test_objects import A as VISIBLE
from formats.test_objects import B as HIDDEN

rng = np.random.default_rng(1)


class Float(Tensor):
    """A tensor in single precision that makes others of its kind, as PyTorch's does."""

    def __init__(self, array, *, detached=False, on_cpu=False):
        super().__init__(np.asarray(array, np.float32), detached=detached, on_cpu=on_cpu)

    def detach(self):
        return Float(self.array, detached=True, on_cpu=self.on_cpu)

    def cpu(self):
        return Float(self.array, detached=self.detached, on_cpu=True)

    def new_tensor(self, array):
        return Float(array)

    def element_size(self):
        return 4


def same(model, right=RBM, x=X):
    np.testing.assert_allclose(model.log_f(x), right.log_f(x), rtol=1e-5, atol=1e-5)  # parameters are float32


NAMES = {"W": W.T, "v_bias": VISIBLE, "h_bias": HIDDEN}
BY_NAME = {"weights": "W", "visible_bias": "v_bias", "hidden_bias": "h_bias"}


def module(parameters=NAMES, **methods):
    """A module with these methods, which take a tensor, compute with its numbers and give a tensor."""
    tensors = {name: Float(array) for name, array in parameters.items()}

    def on_tensors(method):
        def call(self, v):
            assert isinstance(v, Float), "a tensor, as the parameters are"
            return Float(method(self, v.array))

        return call

    own = {name: on_tensors(method) for name, method in methods.items()}
    return type("Own", (Module,), own)(**tensors)


def bernoulli(v, w=W):
    w, a, b = (np.asarray(x, np.float32) for x in (w, VISIBLE, HIDDEN))
    return v @ a + np.logaddexp(np.float32(0), v @ w + b).sum(axis=-1)


def relu(v):
    """Log f of hidden units that are real numbers from 0 on: exp(h·input - h²/2)."""
    from scipy.special import log_ndtr

    inputs = v @ W + HIDDEN
    return v @ VISIBLE + (inputs**2 / 2 + log_ndtr(inputs)).sum(axis=-1)


def semi_restricted(v):
    lateral = np.triu(np.full((5, 5), 0.3), 1)
    return bernoulli(v) + np.einsum("...i,ij,...j->...", v, lateral, v)


NAMED = ["free_energy", "energy", "forward", "compute_energy_visibles"]


@pytest.mark.parametrize("name", [*NAMED, "score_samples", "log_prob"])
@pytest.mark.parametrize(
    "other", [relu, semi_restricted, lambda v: bernoulli(v, 1.01 * W), lambda v: 0 * v[..., 0]]
)
def test_an_object_that_says_something_else_is_refused(name, other):
    sign = -1 if name in NAMED else 1
    own = module(**{name: lambda _, v: sign * other(v)})
    pattern = (
        rf"type Own whose {name} says that two states differ by \S+ nats, where the RBM 5-3 .* says \S+,"
    )
    for call in (mp.from_object, lambda x: mp.evaluate(x, X, steps=5)):
        with pytest.raises(mp.InputError, match=pattern):
            call(own)
    with pytest.raises(mp.InputError) as stop:
        mp.from_object(own)
    assert ("pass its arrays as a dict" in str(stop.value)) == (name in ("forward", "score_samples"))


@pytest.mark.parametrize("name", NAMED)
@pytest.mark.parametrize("sign", [-1, 1])
def test_energies_agree_up_to_sign_and_constant(name, sign):
    same(mp.from_object(module(**{name: lambda _, v: sign * bernoulli(v) + 1000})))


@given(
    st.integers(1, 40),
    st.integers(1, 40),
    st.sampled_from([1e-4, 0.1, 1.0, 10.0, 300.0]),
    st.integers(0, 2**32),
)
def test_rounding_is_no_difference_and_another_parameter_is(visible, hidden, scale, seed):
    numbers = np.random.default_rng(seed)
    w, a, b = (
        numbers.normal(0, scale, size).astype(np.float32) for size in ((visible, hidden), visible, hidden)
    )
    offset = np.float32(numbers.normal(0, 100))

    def free_energy(_, v, a=a):
        return offset - v @ a - np.logaddexp(np.float32(0), v @ w + b).sum(axis=-1)

    arrays = {"W": w, "v_bias": a, "h_bias": b}
    model = mp.from_object(module(arrays, free_energy=free_energy), orientation="visible-hidden")
    assert model.layer_sizes == (visible, hidden)
    other = a.copy()
    other[0] += np.float32(max(1, abs(offset) / 100) * (0.1 + scale))
    with pytest.raises(mp.InputError, match="free_energy says"):
        mp.from_object(
            module(arrays, free_energy=lambda self, v: free_energy(self, v, other)),
            orientation="visible-hidden",
        )


def test_log_probabilities_have_their_sign():
    same(mp.from_object(module(log_prob=lambda _, v: bernoulli(v) - 7)))
    with pytest.raises(mp.InputError, match="log_prob says"):
        mp.from_object(module(log_prob=lambda _, v: -bernoulli(v)))


def test_shapes_in_which_values_come():
    same(mp.from_object(module(free_energy=lambda _, v: -bernoulli(v)[:, np.newaxis])))
    for reduced in (np.mean, np.sum):  # over the batch, as a loss
        same(mp.from_object(module(free_energy=lambda _, v, reduced=reduced: -reduced(bernoulli(v)))))
        with pytest.raises(mp.InputError, match="free_energy says"):
            mp.from_object(module(free_energy=lambda _, v, reduced=reduced: -reduced(relu(v))))
    with pytest.raises(mp.InputError, match="energy says"):  # of one state without a batch
        mp.from_object(module(energy=lambda _, v: -relu(v) if v.ndim == 1 else v))


@pytest.mark.parametrize(
    "methods",
    [
        {"forward": lambda _, v: v @ W},  # probabilities of hidden units
        {"forward": lambda _, v: np.mean(v)},  # a loss
        {"free_energy": lambda _, v: v[:, 10]},
        {"energy": lambda _, v, h: v},
        {"free_energy": lambda _, v: rng.normal(size=len(v))},  # of a draw
        {"score_samples": lambda _, v: np.random.normal(size=len(v))},  # noqa: NPY002
        {"free_energy": lambda _, v: np.full(len(v), np.nan)},
        {"free_energy": lambda _, v: np.full(len(v), "a")},
        {"free_energy": lambda _, v: 1 / 0},
    ],
)
def test_what_is_no_log_probability_is_not_compared(methods):
    name = next(iter(methods))
    own = module(**methods) if name != "energy" else Module(**{n: Float(a) for n, a in NAMES.items()})
    if name == "energy":
        own.energy = methods["energy"]
    before, python = np.random.get_state()[1].copy(), random.getstate()  # noqa: NPY002
    same(mp.from_object(own))
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002
    assert random.getstate() == python


def test_one_hidden_unit_is_no_energy():
    one = {"W": W[:, :1].T, "v_bias": VISIBLE, "h_bias": HIDDEN[:1]}
    same(
        mp.from_object(module(one, forward=lambda _, v: v @ W[:, :1])), mp.RBM(W[:, :1], VISIBLE, HIDDEN[:1])
    )


def test_what_overflows_is_left_out():
    large = {**NAMES, "W": 60 * W.T}

    def naive(_, v):
        return -(
            v @ np.float32(VISIBLE) + np.log(1 + np.exp(v @ np.float32(60 * W) + np.float32(HIDDEN))).sum(-1)
        )

    same(mp.from_object(module(large, free_energy=naive)), mp.RBM(60 * W, VISIBLE, HIDDEN))


def test_an_object_is_asked_in_a_copy_that_does_not_train():
    class Own(Module):
        training = True
        calls = 0

        def eval(self):
            self.training = False

        def free_energy(self, v):
            assert not self.training
            self.calls += 1
            return Float(-bernoulli(v.array))

    own = Own(**{name: Float(array) for name, array in NAMES.items()})
    same(mp.from_object(own))
    assert (own.training, own.calls) == (True, 0)


def test_half_precision_is_asked_in_single():
    class Half(Float):
        def element_size(self):
            return 2

        def detach(self):
            return Half(self.array, detached=True)

        def float(self):
            return Float(self.array)

    class Own(Module):
        single = False

        def float(self):
            self.single = True
            return self

        def free_energy(self, v):
            return Float(-bernoulli(v.array) + (0 if self.single else v.array.sum(axis=-1)))

    own = Own(**{name: Half(array) for name, array in NAMES.items()})
    same(mp.from_object(own))
    assert not own.single


def test_scikit_learn_scores_by_a_pseudo_likelihood_of_random_sites():
    from sklearn.neural_network import BernoulliRBM

    class Own(BernoulliRBM):
        """Its own free energy is another one."""

        def free_energy(self, v):
            return -relu(v)

    fitted = BernoulliRBM(3, n_iter=2, random_state=np.random.RandomState(0)).fit(X)
    before = fitted.random_state.get_state()[1].copy()
    mp.from_object(fitted)
    np.testing.assert_array_equal(fitted.random_state.get_state()[1], before)
    with pytest.raises(mp.InputError, match="free_energy says"):
        mp.from_object(Own(3, n_iter=2).fit(X))


def test_dimod_takes_columns_by_their_names():
    class Quadratic:
        linear, quadratic, offset, variables = {1: 0.5, 0: -1.0}, {(0, 1): 0.3}, 0.0, (1, 0)
        vartype = SimpleNamespace(name="BINARY")

        def energy(self, x):
            return -x[..., 0] + 0.5 * x[..., 1] + 0.3 * x[..., 0] * x[..., 1]

    with pytest.raises(mp.InputError, match="energy says"):
        mp.from_object(Quadratic(), beta=1.0)
    Quadratic.energy.__module__ = "dimod.binary.binary_quadratic_model"
    np.testing.assert_allclose(mp.from_object(Quadratic(), beta=1.0).log_f([[1, 0], [0, 1]]), [-0.5, 1.0])


def test_other_units_are_compared_in_their_own_values():
    spins = mp.RBM(W, VISIBLE, HIDDEN, visible="spin", hidden="spin")
    own = module(free_energy=lambda _, v: -spins.log_f(v))
    same(mp.from_object(own, visible="spin", hidden="spin"), spins, 2 * X - 1)
    with pytest.raises(mp.InputError, match=r"free_energy says .*hidden=…"):
        mp.from_object(own, visible="spin")
    w, a = rng.normal(size=(4, 3, 2)), rng.normal(size=(4, 3))
    potts = mp.RBM(w, a, HIDDEN[:2], visible="potts")
    for form in (lambda v: v, lambda v: v.reshape(len(v), 4, 3), lambda v: v.astype(int)):
        machine = SimpleNamespace(weight_matrix=w, vbias=a, hbias=HIDDEN[:2])
        machine.compute_energy_visibles = lambda v, form=form: -potts.log_f(form(v))
        same(mp.from_object(machine), potts, rng.integers(0, 3, (6, 4)))
        machine.compute_energy_visibles = lambda v, form=form: potts.log_f(form(v)) ** 2
        with pytest.raises(mp.InputError, match="compute_energy_visibles says"):
            mp.from_object(machine)


def test_an_energy_does_not_know_the_temperature():
    kind = type("RBM", (Module,), {"__module__": "learnergy.models.bernoulli.rbm"})
    machine = kind(**{name: Float(array) for name, array in zip("Wab", (W, VISIBLE, HIDDEN), strict=True)})
    machine.W, machine.a, machine.b, machine.T = W, VISIBLE, HIDDEN, 2.0
    machine.energy = lambda v: Float(-bernoulli(v.array))
    same(mp.from_object(machine, temperature=2.0), mp.RBM(W / 2, VISIBLE / 2, HIDDEN / 2))


def test_the_wrong_orientation_shows():
    square = {"W": W[:3], "v_bias": VISIBLE[:3], "h_bias": HIDDEN}
    right = mp.RBM(W[:3], VISIBLE[:3], HIDDEN)
    own = module(square, free_energy=lambda _, v: -right.log_f(v))
    same(mp.from_object(own, orientation="visible-hidden"), right, X[:, :3])
    with pytest.raises(mp.InputError, match="weights transposed"):
        mp.from_object(own, orientation="hidden-visible")


def test_a_difference_on_the_data_alone_shows():
    data = np.eye(5, dtype=int)

    def free_energy(_, v):
        return -bernoulli(v) - 3.0 * (v == data[0]).all(axis=-1) * (len(v) == len(data))

    own = module(free_energy=free_energy)
    same(mp.from_object(own))
    with pytest.raises(mp.InputError, match="free_energy says"):
        mp.evaluate(own, data, steps=5)


BESIDES = {
    "L": (np.zeros((5, 5)), r"L \(5, 5\) besides .*semi-restricted.*mp\.Ising\(couplings, fields"),
    "M": (np.zeros((3, 3)), r"M \(3, 3\) besides .*mp\.Ising.*second layer: mp\.DBM or mp\.DBN"),
    "condition": (np.zeros((10, 5)), r"condition \(10, 5\) besides .*fold it into the biases: mp\.RBM\("),
    "kernel": (np.zeros((1, 1, 5, 5)), r"kernel \(1, 1, 5, 5\) besides .*unroll a convolution"),
}


@pytest.mark.parametrize("name", BESIDES)
@pytest.mark.parametrize("named", [{}, BY_NAME])
@pytest.mark.parametrize("kind", [dict, Module, "file"])
def test_what_may_belong_to_the_model_is_refused_even_if_the_others_are_named(name, named, kind, tmp_path):
    array, message = BESIDES[name]
    arrays, read, given = {**NAMES, name: array}, mp.load, tmp_path / "own.npz"
    if kind == "file":
        np.savez(given, **arrays)
    else:
        read, given = mp.from_object, kind(**arrays)
    with pytest.raises(mp.InputError, match=message):
        read(given, **named)


@pytest.mark.parametrize("extra", [np.zeros(3), np.zeros(7), np.float32(2.0), np.zeros(1), W])
def test_a_module_has_no_parameter_that_is_ignored(extra):
    with pytest.raises(mp.InputError, match=r"extra \(.*docs/your-model\.md.*a dict of the three"):
        mp.from_object(Module(**NAMES, extra=extra), **BY_NAME)
    same(mp.from_object({**NAMES, "extra": extra}, **BY_NAME))
    hidden = Module(**NAMES)
    hidden.named_buffers = lambda: [("extra", extra)]  # one that state_dict leaves out
    with pytest.raises(mp.InputError, match="extra"):
        mp.from_object(hidden)


def test_a_counter_is_no_parameter():
    same(mp.from_object(Module(**NAMES, steps=np.array(7))), RBM)
