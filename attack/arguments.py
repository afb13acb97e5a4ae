"""Wrong arguments of all public functions, made from how their parameters are declared.

Every call must end within seconds: in an `InputError` that names the argument, or, where a value may be right, in a
result. Values that are wrong for a kind of parameter are listed here, apart from the library's own table of ranges.
"""

import inspect
import math
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any, Unpack, get_args, get_origin, get_type_hints

import numpy as np

import meltpoint as mp
from attack.campaign import Campaign

SECONDS = 2.0
"""How long a wrong call may take."""

_EXAMPLES = [[0, 1, 0], [1, 1, 1], [0, 0, 1]]
_WEIGHTS = [[0.5, -0.5], [0.25, 0.0], [0.0, 1.0]]
_EDGE = [[0.0, 0.5], [0.5, 0.0]]


def _shut_down() -> ThreadPoolExecutor:
    executor = ThreadPoolExecutor(1)
    executor.shutdown()
    return executor


def _raise(*_: object) -> None:
    raise AssertionError("called")


_ODD: dict[str, Callable[[], Any]] = {
    "bytes": lambda: b"1s",
    "text": lambda: "wrong",
    "a number as text": lambda: "3",
    "a lone surrogate": lambda: "\udcff",
    "an object": object,
    "a dictionary": lambda: {"a": 1},
    "a set": lambda: {1, 2},
    "a type": lambda: int,
    "a generator": lambda: iter([[0, 1, 0]]),
    "an empty list": list,
    "an empty array": lambda: np.zeros((0, 0)),
    "a ragged list": lambda: [[1, 2], [3]],
    "a deep list": lambda: [[[[[[[[[[1]]]]]]]]]],
    "a list of text": lambda: ["a", "b"],
    "a list of None": lambda: [None, None],
    "a list with itself": lambda: (own := [], own.append(own))[0],
    "a complex number": lambda: 1j,
    "complex numbers": lambda: np.array(_WEIGHTS) * 1j,
    "objects": lambda: np.array([object(), None]),
    "dates": lambda: np.array(["2020-01-01"], "M8[D]"),
    "records": lambda: np.zeros(3, [("a", "f8"), ("b", "i4")]),
    "text in an array": lambda: np.array([["a", "b", "c"]]),
    "a masked array": lambda: np.ma.masked_array(np.array(_WEIGHTS), mask=np.array(_WEIGHTS) == 0),
    "masked examples": lambda: np.ma.masked_array(np.array(_EXAMPLES), mask=np.array(_EXAMPLES) == 1),
    "a matrix": lambda: np.matrix(_WEIGHTS),
    "a matrix of examples": lambda: np.matrix(_EXAMPLES),
    "a tuple": lambda: (1, "a"),
    "factors of None": lambda: ((2,), None, 0.0),
    "a masked factor": lambda: ((2,), [((0,), np.ma.masked_array([0.0, 1.0], [True, False]))], 0.0),
    "a factor of another shape": lambda: ((2,), [((0, 1), [0.0, 1.0])], 0.0),
    "NaN in an array": lambda: np.full((3, 3), np.nan),
    "infinity in an array": lambda: np.full((3, 2), np.inf),
    "1e308 in an array": lambda: np.full((3, 2), 1e308),
}
_NUMBERS: dict[str, Callable[[], Any]] = {
    "NaN": lambda: math.nan,
    "NaN of NumPy": lambda: np.float64("nan"),
    "infinity": lambda: math.inf,
    "minus infinity": lambda: -math.inf,
    "-1": lambda: -1,
    "-1e-300": lambda: -1e-300,
    "a decimal": lambda: Decimal("NaN"),
    "an array": lambda: np.array([3]),
    "a list": lambda: [3],
}
_WHOLE: dict[str, Callable[[], Any]] = {
    "2.5": lambda: 2.5,
    "2.0": lambda: 2.0,
    "True": lambda: True,
    "10**18": lambda: 10**18,
    "2**63": lambda: 2**63,
    "-2**63": lambda: -(2**63),
    "10**5000": lambda: 10**5000,
    "a NumPy whole number": lambda: np.int64(-7),
}
_FUNCTIONS = {"3": lambda: 3, "a half": lambda: 0.5}
_PATHS = {
    "a zero byte": lambda: "a\0b",
    "an empty path": lambda: "",
    "a number": lambda: 3,
    "None": lambda: None,
}
_PATHS |= {
    "a long name": lambda: "x" * 5000,
    "a missing file": lambda: "/nowhere/x",
}

_KINDS: dict[str, tuple[dict[str, Callable[[], Any]], ...]] = {
    "whole": (_ODD, _NUMBERS, _WHOLE),
    "real": (_ODD, _NUMBERS),
    "switch": (_ODD, _NUMBERS, {"1": lambda: 1, "'no'": lambda: "no"}),
    "word": (_ODD, _NUMBERS, {"1": lambda: 1}),
    "function": ({name: make for name, make in _ODD.items() if name != "a type"}, _FUNCTIONS),
    "executor": (_ODD, _FUNCTIONS, {"one that is shut down": _shut_down}),
    "array": (_ODD, {"a number": lambda: 3.5, "a path": lambda: Path("x"), "None": lambda: None}),
    "path": (_PATHS,),
    "output": (
        {
            name: make
            for name, make in _PATHS.items()
            if name not in ("a missing file", "an empty path", "None")
        },
    ),
    "other": (_ODD, _NUMBERS),
}
_MAY_BE_RIGHT = {
    "seed": {"10**18", "2**63"},
    "forward": {"an empty list"},
    "hidden": {"an empty list"},
    "directed": {"an empty list", "an empty array"},
    "factors": {"an empty list", "an empty array"},
    "dtype": {"NaN of NumPy", "None"},
    "note": {"text", "a number as text", "a lone surrogate"},
    "models": {"a list of text"},
    "names": {"a list of text", "a dictionary", "a set", "a generator", "text", "a number as text"},
    "budget": {"a number as text"},
}
"""Values that are right for some parameters: such a call may give a result."""

_CALLED = {
    "steps": ["betas"],
    "factors": ["factor"],
    "visible": ["units"],
    "hidden": ["units"],
    "cardinalities": ["variables"],
    "fields": ["variables"],
    "folders": ["folder", "runs"],
    "model": ["object", "factor", "cardinalities"],
    "models": ["model", "object"],
    "checkpoints": ["checkpoint", "object", "file"],
    "x": ["object"],
}
"""What errors call an argument, where that is plainer than its name."""


@dataclass(frozen=True)
class Call:
    """A call of a public function with one wrong argument."""

    function: str
    parameter: str
    kind: str
    value: str
    make: Callable[[], Any]

    def __str__(self) -> str:
        return f"{self.function}({self.parameter}: {self.value})"


@cache
def _model() -> mp.RBM:
    return mp.RBM(_WEIGHTS, [0.1, 0.0, -0.1], [0.0, 0.2])


def usual() -> dict[str, dict[str, Any]]:
    """Public functions by name, each with arguments that are right and quick."""
    model, few = _model(), {"steps": 3, "chains": 2, "threads": 1}
    sizes = {
        **few,
        "examples": 2,
        "ais_chains": 4,
        "base": "uniform",
        "schedule": "linear",
        "evidence": False,
    }
    three = {"data": _EXAMPLES * 4, "hidden": 2, "epochs": 1, "batch": 4}
    return {
        "RBM": {"weights": _WEIGHTS, "visible_bias": [0, 0, 0], "hidden_bias": [0, 0]},
        "DBM": {"weights": [_WEIGHTS], "biases": [[0, 0, 0], [0, 0]]},
        "DBN": {"directed": [([[0.0] * 3] * 4, [0.0] * 4, [0.0] * 3)], "top": model},
        "Ising": {"couplings": _EDGE, "fields": [0, 0]},
        "Potts": {"couplings": {(0, 1): _EDGE}, "fields": [[0, 0], [0, 0]]},
        "FactorGraph": {"cardinalities": [2, 2], "factors": [((0, 1), _EDGE)]},
        "Base": {"name": "mine", "biases": (np.zeros(3),)},
        "evaluate": {"model": model, "test": _EXAMPLES, **sizes},
        "compare": {"models": [model, model], "test": _EXAMPLES, **sizes},
        "trace": {"checkpoints": [model, model], "test": _EXAMPLES, **sizes, "evidence": "none"},
        "sweep": {"model": model, "test": _EXAMPLES, **sizes, "steps": (2, 3)},
        "log_z": {"model": model, **few, "base": "uniform"},
        "ais_log_z": {"model": model, **few},
        "raise_log_prob": {"model": model, "x": _EXAMPLES, **few},
        "csl_log_prob": {"model": model, "x": _EXAMPLES, **few},
        "exact_log_z": {"model": model, "threads": 1},
        "sample": {"model": model, "n": 2, "steps": 2, "moves": 2, "threads": 1},
        "sample_annealing_model": {"model": model, "n": 2, "steps": 2, "threads": 1},
        "data_rates": {"train": _EXAMPLES},
        "model_rates": {"model": model, "threads": 1},
        "friction_schedule": {"model": model, "steps": 4, "threads": 1},
        "check_conventions": {"model": model, "data": _EXAMPLES},
        "train_rbm": three,
        "train_dbn": three | {"hidden": (2, 2)},
        "train_dbm": three | {"hidden": (2, 2)},
        "from_object": {"x": model},
        "load": {"path": "/nowhere/x"},
        "save": {"model": model, "path": "/nowhere/x.npz"},
        "read_run": {"folder": "/nowhere/x"},
        "merge_runs": {"folders": ["/nowhere/x"]},
    }


def calls() -> Iterator[Call]:
    """All wrong calls: of every parameter of every public function all values that are wrong for its kind."""
    for name in usual():
        function = getattr(mp, name)
        own = inspect.unwrap(function.__init__ if isinstance(function, type) and name != "Base" else function)
        hints = get_type_hints(function if name == "Base" else own, include_extras=True)
        hints.pop("return", None)
        for parameter, hint in list(hints.items()):
            if get_origin(hint) is Unpack:
                hints |= get_type_hints(get_args(hint)[0], include_extras=True)
            if get_origin(hint) is Unpack or (name, parameter) in (
                ("sweep", "settings"),
                ("load", "options"),
            ):
                del hints[parameter]
        for parameter, hint in hints.items():
            kind = _kind(parameter, hint)
            optional = hint is Any or type(None) in get_args(hint)
            for values in (*_KINDS[kind], {} if optional else {"None": lambda: None}):
                made = {value: make for value, make in values.items() if value != "None" or not optional}
                yield from (Call(name, parameter, kind, value, make) for value, make in made.items())
        yield Call(name, "no_such_argument", "unknown", "3", lambda: 3)


def _kind(parameter: str, hint: Any) -> str:
    """The kind of a parameter, by its name and the words of its type."""
    text = str(hint)
    if parameter in ("progress", "watch", "on_epoch"):
        return "function"
    if "Executor" in text:
        return "executor"
    if "PathLike" in text:
        if parameter in ("run", "out", "checkpoint"):
            return "output"
        return (
            "path" if "Sequence" not in text and "Mapping" not in text and "Iterable" not in text else "other"
        )
    if "_SupportsArray" in text or parameter in ("model", "couplings"):
        return "array" if parameter != "steps" else "other"
    if "Sequence" in text or "Mapping" in text or "Iterable" in text:
        return "other"
    plain = {part.replace("typing.", "") for part in text.replace(" | None", "").split("[")}
    if "bool" in text:
        return "switch"
    if "Literal" in text or parameter == "base":
        return "word"
    if "whole=False" in text or text.startswith("float") or "Duration" in text:
        return "real"
    return "whole" if "int" in " ".join(plain) else "other"


def complaint(call: Call) -> str:
    """What is wrong with how a call ended, empty if nothing is."""
    value = call.make()
    arguments = usual()[call.function] | {call.parameter: value}
    begun = time.perf_counter()
    try:
        getattr(mp, call.function)(**arguments)
    except mp.InputError as problem:
        ended = (
            ""
            if _names(call, str(problem)) or _may_be_right(call)
            else f"an error that does not name it: {problem}"
        )
    except TypeError as problem:
        ended = "" if call.kind == "unknown" else f"TypeError: {problem}"
    except mp.SystemFailure as problem:
        ended = "" if call.kind == "path" else f"SystemFailure: {problem}"
    except Exception as problem:
        ended = f"{type(problem).__name__}: {problem}"
    else:  # kernels may have been compiled for it
        return "" if _may_be_right(call) else "a result"
    seconds = time.perf_counter() - begun
    return ended or (f"{seconds:.1f} seconds" if seconds > SECONDS else "")


def _names(call: Call, text: str) -> bool:
    words = (call.parameter, *_CALLED.get(call.parameter, ()))
    return call.kind == "path" or any(word in text for word in words)


def _may_be_right(call: Call) -> bool:
    return call.kind == "other" or call.value in _MAY_BE_RIGHT.get(call.parameter, ())


def attack(campaign: Campaign) -> Iterator[None]:
    """Make wrong calls, in a random order."""
    everything = list(calls())
    campaign.random.shuffle(everything)
    for call in everything:
        campaign.check(complaint(call), str(call))
        campaign.count("wrong calls")
        yield
