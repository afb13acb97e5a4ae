"""What an object of another library says about its own log-probability, compared with the model made from its arrays.

The arrays do not say everything: a module may have ReLU hidden units, a mask, a temperature. Its `free_energy` does.
"""

import copy
import random
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meltpoint.errors import InputError
from meltpoint.foreign import as_array
from meltpoint.layers.unit import Floats
from meltpoint.models.model import Model

_SIGNS = {
    "free_energy": (-1, 1),
    "compute_energy_visibles": (-1, 1),  # of rbms
    "energy": (-1, 1),
    "score_samples": (1,),
    "log_prob": (1,),
    "forward": (-1, 1),
}
"""Methods that may give log f up to a constant, and with which sign. There are energies with either."""

_AMBIGUOUS = {"forward", "score_samples"}  # names that other quantities have, too
_LIBRARIES = frozenset({"sklearn", "dimod"})
"""Libraries whose arrays are all there is, and whose methods give or take something else: score_samples of a
BernoulliRBM is a pseudo-likelihood of a random site, an energy of dimod takes columns by the names of its variables."""

OWN_VALUES = 32
"""Number of examples on which they are compared."""

_ROUNDINGS = 64  # of a sum of as many terms as there are units, each of which is a sum


def check_own_values(x: Any, model: Model, values: NDArray[Any] | None = None) -> None:  # noqa: ANN401
    """Refuse an object whose own energy or log-probability differs from log f of the model, beyond a constant.

    They are compared on `values` (example, visible unit), or on random ones. What the object does not offer, or offers
    with other arguments or at random, is not compared.
    """
    offered = [name for name in _SIGNS if _is_comparable(getattr(x, name, None))]
    if x is model or not offered:
        return
    if values is None:
        values = _random_values(model)
    log_f = model.log_f(values)
    with _undisturbed(x) as (own, tensor):
        for name in offered:
            differences = [
                _difference(answers, log_f, sign, model)
                for inputs in _as_inputs(values, model)
                if (answers := _ask(getattr(own, name), inputs, tensor, name, model)) is not None
                for sign in _SIGNS[name]
            ]
            apart = [pair for pair in differences if pair is not None]
            if apart and len(apart) == len(differences):
                raise _differs(x, name, model, min(apart, key=lambda pair: abs(pair[0] - pair[1])))


def _is_comparable(method: Any) -> bool:  # noqa: ANN401
    library = str(getattr(method, "__module__", "")).partition(".")[0]
    return callable(method) and library not in _LIBRARIES


def _random_values(model: Model) -> NDArray[Any]:
    """Values (example, visible unit), from few units on to many."""
    generator = np.random.default_rng(0)
    unit, inputs = model.units[0], model.uniform_layers()[0][: model.n_visible]
    if unit.n_states == 2:
        inputs = inputs + generator.normal(size=(OWN_VALUES, 1), scale=1.5)
    shape = (OWN_VALUES, model.n_visible, *unit.input_shape)
    uniforms = 1 - generator.random((OWN_VALUES, model.n_visible))
    return model.decode(unit.draw(np.broadcast_to(inputs, shape), uniforms))


def _as_inputs(values: NDArray[Any], model: Model) -> Iterator[NDArray[Any]]:
    """The values in the forms in which a method may take them."""
    yield values
    states = model.units[0].n_states
    if states is not None and states > 2:
        one_hot = np.eye(states)[values]
        yield one_hot
        yield one_hot.reshape(len(values), -1)


@contextmanager
def _undisturbed(x: Any) -> Iterator[tuple[Any, Any]]:  # noqa: ANN401
    """A copy of the object, and one of its tensors if it has any; global random generators stay as they are."""
    held = x.state_dict() if callable(getattr(x, "state_dict", None)) else getattr(x, "__dict__", {})
    tensor = next((value.detach() for value in held.values() if hasattr(value, "new_tensor")), None)
    own = x
    with suppress(Exception):
        own = copy.deepcopy(x)
        if callable(getattr(own, "eval", None)) and hasattr(own, "training"):
            own.eval()
        if tensor is not None and tensor.element_size() < 4:  # sums in half precision say too little
            own, tensor = own.float(), tensor.float()
    state, numpy_state = random.getstate(), np.random.get_state()  # noqa: NPY002
    with ExitStack() as stack:
        stack.enter_context(warnings.catch_warnings(action="ignore"))
        stack.enter_context(np.errstate(all="ignore"))
        if torch := sys.modules.get("torch"):
            cards = [tensor.device] if tensor is not None and tensor.device.type == "cuda" else []
            stack.enter_context(torch.random.fork_rng(devices=cards))
        try:
            yield own, tensor
        finally:
            random.setstate(state)
            np.random.set_state(numpy_state)  # noqa: NPY002


def _ask(
    method: Callable[[Any], Any],
    inputs: NDArray[Any],
    tensor: Any,  # noqa: ANN401
    name: str,
    model: Model,
) -> NDArray[Any] | None:
    """One number (example,) for each example, None if the method gives something else, or not twice the same."""

    def answers(batch: NDArray[Any]) -> NDArray[Any]:
        return as_array(method(batch if tensor is None else tensor.new_tensor(batch)), name)

    ways: list[Callable[[], NDArray[Any]]] = [lambda: answers(inputs)]
    if name != "forward":  # a batch may give its mean; a method may take one example without a batch
        ways.append(lambda: np.stack([answers(inputs[k : k + 1]) for k in range(len(inputs))]))
        ways.append(lambda: np.stack([answers(example) for example in inputs]))
    for way in ways:
        with suppress(Exception):  # whatever code of others does: it is not what we look for
            found = way()
            # The output of a single unit is no energy.
            if found.ndim > 1 and name == "forward" and 1 in model.layer_sizes:
                continue
            if found.size == len(inputs) == len(found) and found.dtype.kind in "fiu":
                return found.reshape(-1) if np.array_equal(found, way(), equal_nan=True) else None
    return None


def _difference(own: NDArray[Any], log_f: Floats, sign: int, model: Model) -> tuple[float, float] | None:
    """How far two examples are apart by the object's values and by log f, None if they agree."""
    finite = np.isfinite(own)  # exp overflows in single precision at 89
    theirs, ours = sign * own[finite].astype(np.float64), log_f[finite]
    if len(theirs) < 2:
        return None
    rounding = np.finfo(own.dtype).eps if own.dtype.kind == "f" else 0.0
    single = max(float(rounding), float(np.finfo(np.float32).eps))
    largest = max(1.0, float(np.abs(theirs).max()), float(np.abs(ours).max()))
    allowed = _ROUNDINGS * single * np.sqrt(sum(model.layer_sizes)) * largest
    apart = theirs - ours
    high, low = int(apart.argmax()), int(apart.argmin())
    if apart[high] - apart[low] <= allowed:
        return None
    return float(theirs[high] - theirs[low]), float(ours[high] - ours[low])


def _differs(x: Any, name: str, model: Model, pair: tuple[float, float]) -> InputError:  # noqa: ANN401
    theirs, ours = pair
    otherwise = "; if it gives something else, pass its arrays as a dict" if name in _AMBIGUOUS else ""
    return InputError(
        found=f"a model of type {type(x).__name__} whose {name} says that two states differ by {theirs:.6g} nats, "
        f"where the {model!r} made from its arrays says {ours:.6g}",
        expected="the same log-probability up to a constant",
        remedy="are its hidden units of another kind (hidden=…), its weights transposed, masked or scaled? "
        f"docs/your-model.md says what to do with models that are no RBM{otherwise}",
    )
