"""Files of formats whose programs are not on PyPI, as those programs write them, and log f by its definition."""

import json
import struct

import numpy as np

LETTERS = "-ACDEFGHIKLMNPQRSTVWY"


def potts(rng, length=3, q=4):
    """Couplings (i, j, a, b) of all pairs, both ways, and fields (i, a)."""
    couplings = rng.normal(size=(length, length, q, q))
    couplings = couplings + couplings.transpose(1, 0, 3, 2)
    couplings[range(length), range(length)] = 0
    return couplings, rng.normal(size=(length, q))


def potts_log_f(couplings, fields, states):
    """Log f (example,) of states by summing over sites and pairs."""
    length = len(fields)
    return np.array(
        [
            sum(fields[i, x[i]] for i in range(length))
            + sum(couplings[i, j, x[i], x[j]] for i in range(length) for j in range(i + 1, length))
            for x in states
        ]
    )


def ising_log_f(couplings, fields, values):
    """Log f (example,) of values with couplings (i, j) above the diagonal."""
    return np.einsum("ni,ij,nj->n", values, np.triu(couplings, 1), values) + values @ fields


def rbm_log_f(weights, visible_bias, hidden_bias, v, values=(0, 1)):
    """Log f (example,) of an RBM, its hidden units summed over their values."""
    inputs = v @ weights + hidden_bias
    return v @ visible_bias + np.logaddexp(values[0] * inputs, values[1] * inputs).sum(1)


def all_states(length, q):
    return np.stack(np.meshgrid(*[np.arange(q)] * length, indexing="ij"), -1).reshape(-1, length)


def pairs_of(length):
    return [(i, j) for i in range(length) for j in range(i + 1, length)]


def couplings_text(couplings, fields, base=0, letters=None, h_first=False, comment=""):
    """J i j a b value and h i a value, with sites (and states that are numbers) from `base`."""
    length, q = fields.shape
    state = [letters[a] if letters else str(a + base) for a in range(q)]
    j = [
        f"J {i + base} {k + base} {state[a]} {state[b]} {couplings[i, k, a, b]!r}"
        for i, k in pairs_of(length)
        for a in range(q)
        for b in range(q)
    ]
    h = [f"h {i + base} {state[a]} {fields[i, a]!r}" for i in range(length) for a in range(q)]
    lines = h + j if h_first else j + h
    return (
        comment + "\n".join(line.replace("np.float64(", "").replace(")", "") for line in lines) + "\n"
    ).encode()


def plmc(couplings, fields, letters, version=2, dtype="<f4", sequences=2):
    """plmc's parameters; EVcouplings writes float64 too."""
    length, q = fields.shape
    target, sites = b"A" * length, np.arange(10, 10 + length, dtype="<i4").tobytes()
    frequencies = np.full((length, q), 1 / q).astype(dtype).tobytes()
    pair = np.full((q, q), 1 / q**2).astype(dtype).tobytes()
    h = fields.astype(dtype).tobytes()
    tables = [couplings[i, j].astype(dtype).tobytes() for i, j in pairs_of(length)]
    if version == 1:
        head = struct.pack("<2i", length, q) + target + sites + frequencies + h
        return head + b"".join(
            struct.pack("<2i", i + 1, j + 1) + pair + table
            for (i, j), table in zip(pairs_of(length), tables, strict=True)
        )
    head = (
        struct.pack("<5i", length, q, sequences, 1, 100) + np.array([0.2, 1, 2, 0, 5]).astype(dtype).tobytes()
    )
    head += letters[:q].encode() + np.ones(sequences + 1).astype(dtype).tobytes() + target + sites
    return head + frequencies + h + pair * len(tables) + b"".join(tables)


def ccm_text(couplings, fields, meta=None):
    """CCMpred's raw text: 20 fields and 21 x 21 couplings."""
    lines = ["\t".join(f"{x:.18e}" for x in row) for row in fields]
    for i, j in pairs_of(len(fields)):
        lines.append(f"# {i} {j}")
        lines += ["\t".join(f"{x:.18e}" for x in row) for row in couplings[i, j]]
    if meta:
        lines.append(f"#>META> {json.dumps(meta)}")
    return ("\n".join(lines) + "\n").encode()


def ccm_map(couplings, fields):
    """What CCMgen packs into msgpack."""
    return {
        "format": "ccm-1",
        "ncol": len(fields),
        "x_single": fields.ravel().tolist(),
        "x_pair": {
            f"{i}/{j}": {"i": i, "j": j, "x": couplings[i, j].ravel().tolist()}
            for i, j in pairs_of(len(fields))
        },
        "meta": {"workflow": [{"version": "1.0", "none": None, "flag": True}]},
    }


def uai(cardinalities, factors, kind="MARKOV"):
    """Factors (scope, values) with linear values."""
    lines = [kind, str(len(cardinalities)), " ".join(map(str, cardinalities)), str(len(factors))]
    lines += [f"{len(scope)} {' '.join(map(str, scope))}" for scope, _ in factors]
    for _, values in factors:
        lines += ["", str(values.size), " ".join(f"{x:.17g}" for x in values.ravel())]
    return ("\n".join(lines) + "\n").encode()


def julia(file, visible, hidden, weights, *, kind="RBM", standard=(), version="1.0.0"):
    """RestrictedBoltzmannMachines.jl's layout in an open h5py file: Julia's axes come out in reverse order."""
    file["rbm_hdf5_file_format_version"] = version
    file["rbm_type"] = kind
    for side, (name, parameters) in (("visible", visible), ("hidden", hidden)):
        file[f"{side}_type"] = name
        file[f"{side}_par"] = parameters.T
    file["weights"] = weights.T
    for name, array in dict(standard).items():
        file[name] = array.T
