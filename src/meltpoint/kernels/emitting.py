"""Functions that emit LLVM instructions, callable from compiled ones; and the instructions that most of them need."""

from collections.abc import Callable, Iterator
from functools import wraps
from inspect import Parameter, Signature
from typing import Any

from llvmlite import ir
from numba import extending, types
from numba.core import cgutils

intrinsic: Any = extending.intrinsic  # what it makes is called without the first parameter
I8, I32, I64 = ir.IntType(8), ir.IntType(32), ir.IntType(64)


class Arguments:
    """The arguments of a call by name, arrays as pointers to their first element; `kinds` are Numba's types of them.

    The fields of a named tuple are arguments by themselves.
    """

    def __init__(self, context: Any, builder: Any, kinds: dict[str, Any], values: Any) -> None:
        self.context, self.builder = context, builder
        self.kinds: dict[str, Any] = {}
        self._values: dict[str, Any] = {}
        for (name, kind), value in zip(kinds.items(), values, strict=True):
            is_tuple = isinstance(kind, types.NamedTuple)
            fields = cgutils.unpack_tuple(builder, value) if is_tuple else [value]
            for (field, type_), part in zip(_arguments({name: kind}), fields, strict=True):
                self.kinds[field], self._values[field] = type_, part
                if isinstance(type_, types.Array):
                    self._values[field] = context.make_array(type_)(context, builder, part).data

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def place(self, name: str, index: Any) -> Any:
        """Pointer to an element of an array."""
        return self.builder.gep(self[name], [index])

    def at(self, name: str, index: Any) -> Any:
        """An element of an array."""
        return self.builder.load(self.place(name, index))


def emitted(
    names: str,
    returns: Any = types.void,
    *,
    reals: str | None = None,
    where: Callable[[dict[str, Any]], bool] = lambda _kinds: True,
) -> Callable[[Callable[[Arguments], Any]], Any]:
    """Make a function that emits instructions callable, with arguments of these names, from compiled ones.

    Integers reach it as int64, or uint64 if they are, and floats in the type of the array called `reals`. Where the
    types of the arguments are others than `where` allows, nothing is emitted.
    """

    def decorate(emit: Callable[[Arguments], Any]) -> Any:
        @wraps(emit)
        def typed(_context: Any, *given: Any) -> Any:
            kinds = dict(zip(names.split(), map(types.unliteral, given), strict=True))
            real = None if reals is None else dict(_arguments(kinds))[reals].dtype
            kinds = {name: _passed_as(kind, real) for name, kind in kinds.items()}

            def codegen(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
                found = emit(Arguments(context, builder, kinds, values)) if where(kinds) else None
                return context.get_dummy_value() if found is None else found

            return returns(*kinds.values()), codegen

        # Numba takes the parameters' names and number from here.
        parameters = [Parameter(name, Parameter.POSITIONAL_ONLY) for name in ("_context", *names.split())]
        typed.__signature__ = Signature(parameters)  # pyright: ignore[reportAttributeAccessIssue]
        return intrinsic(typed)

    return decorate


def _arguments(kinds: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Names and types, with the fields of a named tuple in its place."""
    for name, kind in kinds.items():
        if isinstance(kind, types.NamedTuple):
            yield from zip(kind.fields, kind.types, strict=True)
        else:
            yield name, kind


def _passed_as(kind: Any, real: Any) -> Any:
    if isinstance(kind, types.Float):
        return real
    return types.int64 if isinstance(kind, types.Integer) and kind != types.uint64 else kind


def load(builder: Any, place: Any, align: int = 4) -> Any:
    """A load that assumes no more than an alignment of so many bytes."""
    value = builder.load(place)
    value.align = align
    return value


def splat(builder: Any, scalar: Any, lanes: int) -> Any:
    """A scalar in every lane."""
    vector = ir.VectorType(scalar.type, lanes)
    undefined = ir.Constant(vector, ir.Undefined)
    first = builder.insert_element(undefined, scalar, ir.Constant(I32, 0))
    return builder.shuffle_vector(first, undefined, ir.Constant(ir.VectorType(I32, lanes), None))


def loop(builder: Any, start: Any, stop: Any, step: Any = 1) -> Any:
    """A loop from start to before stop; bounds are values or numbers."""
    start, stop, step = (
        ir.Constant(I64, each) if isinstance(each, int) else each for each in (start, stop, step)
    )
    return cgutils.for_range_slice(builder, start, stop, step, I64)
