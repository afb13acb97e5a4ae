"""Vectors across chains: CHAINS chains advance together, one lane of a vector each, at the same site.

Every chain keeps the generators of `meltpoint.kernels.streams` to itself: LANES of them, whose outputs are taken
in turn. In a group's array (lane, 4, chain) one step of the same generator of every chain is one vector operation, so
that uniforms come out in the order of sites without being transposed.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numpy.typing import NDArray

from meltpoint.kernels.compiling import compiled
from meltpoint.kernels.streams import LANES

CHAINS = 32
"""Chains of a group: the bits of a word."""

_I32, _I64 = ir.IntType(32), ir.IntType(64)
_WORDS = ir.VectorType(_I32, CHAINS)


def n_groups(n_chains: int) -> int:
    """Groups that hold so many chains."""
    return -(-n_chains // CHAINS)


def in_groups(values: NDArray[Any]) -> NDArray[Any]:
    """Values (chain, …) as (group, …, chain of the group); chains that fill up the last group are zero."""
    full = np.zeros((n_groups(len(values)) * CHAINS, *values.shape[1:]), values.dtype)
    full[: len(values)] = values
    return np.ascontiguousarray(np.moveaxis(full.reshape(-1, CHAINS, *values.shape[1:]), 1, -1))


def group_generators(generators: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Generator states (group, lane, 4, chain of the group) of those of chains (chain, 4, LANES)."""
    full = np.ones((n_groups(len(generators)) * CHAINS, *generators.shape[1:]), np.uint32)
    full[: len(generators)] = generators
    return np.ascontiguousarray(full.reshape(-1, CHAINS, 4, LANES).transpose(0, 3, 2, 1))


@compiled
def pack_bits(bits: np.ndarray, n_words: int) -> np.ndarray:
    """Words (group, site) whose bit k is the site's state in the group's chain k, of bits (chain, site of the state).

    Sites from those of the state up to `n_words` are zero.
    """
    n_chains, n_sites = bits.shape
    words = np.zeros(((n_chains + CHAINS - 1) // CHAINS, n_words), np.uint32)
    for chain in range(n_chains):
        row = words[chain // CHAINS]
        for site in range(n_sites):
            row[site] |= np.uint32(np.uint32(bits[chain, site] != 0) << np.uint32(chain % CHAINS))
    return words


@compiled
def unpack_bits(words: np.ndarray, out: np.ndarray) -> None:
    """The bits (chain, site) that `pack_bits` was given; sites of the words that `out` has no column for are left."""
    for chain in range(out.shape[0]):
        row = words[chain // CHAINS]
        for site in range(out.shape[1]):
            out[chain, site] = (row[site] >> np.uint32(chain % CHAINS)) & np.uint32(1)


def step_generators(builder: Any, states: Any, group: Any, lane: Any, reals: ir.VectorType) -> Any:
    """Emit: advance one generator of every chain of a group; gives their uniforms in (0, 1], in units of UNIFORM.

    `states` points to (group, LANES, 4, CHAINS).
    """

    def splat(value: int) -> ir.Constant:
        return ir.Constant(_WORDS, [value] * CHAINS)

    def rotate(word: Any, by: int) -> Any:
        return builder.or_(builder.shl(word, splat(by)), builder.lshr(word, splat(32 - by)))

    row = builder.add(builder.mul(group, ir.Constant(_I64, LANES)), lane)
    words = builder.bitcast(states, _WORDS.as_pointer())
    first = builder.mul(row, ir.Constant(_I64, 4))
    places = [builder.gep(words, [builder.add(first, ir.Constant(_I64, k))]) for k in range(4)]
    s0, s1, s2, s3 = (load(builder, place) for place in places)
    drawn = builder.add(rotate(builder.add(s0, s3), 7), s0)
    shifted = builder.shl(s1, splat(9))
    s2 = builder.xor(s2, s0)
    s3 = builder.xor(s3, s1)
    s1 = builder.xor(s1, s2)
    s0 = builder.xor(s0, s3)
    for value, place in zip((s0, s1, builder.xor(s2, shifted), rotate(s3, 11)), places, strict=True):
        builder.store(value, place).align = 4
    value = builder.sitofp(builder.lshr(drawn, splat(1)), reals)
    return builder.fadd(value, ir.Constant(reals, [0.5] * CHAINS))


def load(builder: Any, place: Any) -> Any:
    """Emit a load that assumes no more than the alignment of four bytes."""
    value = builder.load(place)
    value.align = 4
    return value


def splat(builder: Any, scalar: Any, lanes: int = CHAINS) -> Any:
    """Emit a scalar in every lane."""
    vector = ir.VectorType(scalar.type, lanes)
    undefined = ir.Constant(vector, ir.Undefined)
    first = builder.insert_element(undefined, scalar, ir.Constant(_I32, 0))
    return builder.shuffle_vector(first, undefined, ir.Constant(ir.VectorType(_I32, lanes), None))


def pointers(context: Any, builder: Any, signature: Any, args: Any, names: str) -> dict[str, Any]:
    """The arguments by name; arrays as pointers to their first element."""
    named = dict(zip(names.split(), args, strict=True))
    for name, kind in zip(names.split(), signature.args, strict=True):
        if isinstance(kind, types.Array):
            named[name] = context.make_array(kind)(context, builder, named[name]).data
    return named
