"""Potts models of protein families: the spread of AIS from three bases, and brackets.

    python benchmarks/graphs_proteins.py ../shared/data/others/potts/PF00096.tar.gz
    python benchmarks/graphs_proteins.py --fasta PF00072_train.fasta PF00072_test.fasta --budget 300

The first form reads J/h parameters and an alignment as DCATools writes them: 40 runs of AIS with 64 chains x 100 steps
from uniform, from the fields, and from the alignment's profile; then evaluate to 0.1 nats. The second fits a model of
the family's size by mean-field inversion and evaluates it to 0.5 nats, or says why not.
"""

import argparse
import io
import tarfile
import time
from pathlib import Path

import numpy as np

import meltpoint as mp

ALPHABET = "-ACDEFGHIKLMNPQRSTVWY"


def read_archive(path):
    """The Potts model and the alignment (sequence, site) in an archive of DCATools' files."""
    with tarfile.open(path) as archive:
        files = {name: archive.extractfile(name) for name in archive.getnames()}
        text = {name.rsplit("/", 1)[-1]: file.read().decode() for name, file in files.items() if file}
    (parameters,) = (text[name] for name in text if name.startswith("parameters"))
    (alignment,) = (text[name] for name in text if name.startswith("msa"))
    couplings, fields = {}, {}
    for line in parameters.splitlines():
        kind, *numbers = line.split()
        if kind == "J":
            i, j, a, b = map(int, numbers[:4])
            couplings.setdefault((i, j), {})[a, b] = float(numbers[4])
        elif kind == "h":
            fields[int(numbers[0]), int(numbers[1])] = float(numbers[2])
    sites, states = (1 + max(key[k] for key in fields) for k in (0, 1))
    h = np.zeros((sites, states))
    for (i, a), value in fields.items():
        h[i, a] = value
    tables = {}
    for pair, values in couplings.items():
        tables[pair] = np.zeros((states, states))
        for (a, b), value in values.items():
            tables[pair][a, b] = value
    sequences = np.loadtxt(io.StringIO(alignment), dtype=np.int64, skiprows=1)
    return mp.Potts(tables, h), sequences


def read_fasta(path):
    """Sequences (sequence, site) of an aligned FASTA file; those with other letters are left out."""
    records = Path(path).read_text(encoding="ascii").split(">")[1:]
    rows = ["".join(record.splitlines()[1:]) for record in records]
    return np.array([[ALPHABET.index(c) for c in row] for row in rows if set(row) <= set(ALPHABET)])


def fit(sequences, q=21, pseudo_count=0.5):
    """A Potts model by mean-field inversion: couplings are minus the inverse covariance of one-hot sequences.

    In the gauge where the last state has no couplings; `pseudo_count` is the share of uniform counts.
    """
    n, sites = sequences.shape
    one_hot = np.eye(q)[sequences][:, :, :-1].reshape(n, -1)
    single = (1 - pseudo_count) * one_hot.mean(axis=0) + pseudo_count / q
    double = (1 - pseudo_count) * (one_hot.T @ one_hot) / n + pseudo_count / q**2
    for i in range(sites):
        own = slice(i * (q - 1), (i + 1) * (q - 1))
        double[own, own] = np.diag(single[own])
    inverse = -np.linalg.inv(double - np.outer(single, single)).reshape(sites, q - 1, sites, q - 1)
    couplings = np.zeros((sites, sites, q, q))
    couplings[:, :, :-1, :-1] = inverse.transpose(0, 2, 1, 3)
    couplings[np.arange(sites), np.arange(sites)] = 0
    rates = single.reshape(sites, q - 1)
    fields = np.zeros((sites, q))
    mean_field = np.einsum("ijab,jb->ia", couplings[:, :, :-1, :-1], rates)
    fields[:, :-1] = np.log(rates) - np.log(1 - rates.sum(axis=1, keepdims=True)) - mean_field
    return mp.Potts((couplings + couplings.transpose(1, 0, 3, 2)) / 2, fields)


def spread(model, train, runs):
    """Mean and standard deviation of AIS's log Z over runs, from three bases."""
    fields = mp.Base("fields", (np.stack(model.fields),))
    bases = {"uniform": mp.uniform(), "fields": fields, "profile": mp.data_rates(train, model)}
    for name, base in bases.items():
        begun = time.perf_counter()
        found = [
            mp.ais_log_z(model, base=base, steps=100, chains=64, seed=seed).value for seed in range(runs)
        ]
        seconds = time.perf_counter() - begun
        print(
            f"{name:8s} log Z {np.mean(found):8.3f}  standard deviation {np.std(found, ddof=1):.4f}"
            f"  over {runs} runs of 64 chains x 100 steps, {seconds:.1f} s"
        )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("archive", nargs="?")
    parser.add_argument("--fasta", nargs=2, metavar=("TRAIN", "TEST"))
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--budget", type=float, default=300.0, help="seconds for a bracket")
    parser.add_argument("--model", help="keep the fitted model in this file, or take it from there")
    asked = parser.parse_args()
    if asked.fasta:
        train, test = map(read_fasta, asked.fasta)
        model = fitted(asked.model, train)
        gap = 0.5
    else:
        model, sequences = read_archive(asked.archive)
        order = np.random.default_rng(0).permutation(len(sequences))
        test, train = sequences[order[:2000]], sequences[order[2000:]]
        spread(model, train, asked.runs)
        gap = 0.1
    print(mp.evaluate(model, test, train, gap=gap, budget=asked.budget))


def fitted(path, train):
    """The model in a file, or a new one, which is kept there."""
    try:
        return mp.load(path)
    except (mp.InputError, TypeError):
        model = fit(train)
        if path:
            mp.save(model, path)
        return model


if __name__ == "__main__":
    main()
