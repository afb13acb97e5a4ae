"""Two models that are not the library's, without file formats: written with public names alone."""

import numpy as np

import meltpoint as mp


class SingleSite:
    """Single-site Metropolis moves of bits, site after site: the reversal takes the sites in the opposite order."""

    def __init__(self, backwards=False):
        self.backwards = backwards

    def reversed(self):
        return SingleSite(not self.backwards)

    def move(self, path, s, state, draws, clamped=None):
        log_f = path.log_f(s, state)
        sites = range(state.shape[1])
        for i in reversed(sites) if self.backwards else sites:
            flipped = state.copy()
            flipped[:, i] ^= 1
            proposed = path.log_f(s, flipped)
            accepted = np.log(draws.uniforms(1)[:, 0]) <= proposed - log_f
            state = np.where(accepted[:, np.newaxis], flipped, state)
            log_f = np.where(accepted, proposed, log_f)
        return state


class Energy(mp.Model):
    """A bare energy of bits, of any order."""

    support = mp.layers.Bernoulli()

    def __init__(self, n_visible=6, seed=0):
        self.seed = seed
        self._n = n_visible
        rng = np.random.default_rng(seed)
        self.pairs = np.triu(rng.normal(0, 0.8, (n_visible, n_visible)), 1)
        self.field = rng.normal(0, 0.5, n_visible)

    @property
    def n_visible(self):
        return self._n

    def log_f(self, x):
        x = np.asarray(x, float)
        return x @ self.field + np.einsum("ei,ij,ej->e", x, self.pairs, x) + 0.7 * np.sin(x.sum(axis=1))

    def path(self, base):
        return mp.annealing.GeometricPath(self, self.independent(base), SingleSite())

    def fingerprint(self):
        return f"energy {self._n} {self.seed}"


class Triangle(mp.annealing.MarkovRandomField):
    """Three bits with all couplings up to order three: three blocks of one bit each."""

    def __init__(self, bias, pairs, cubic):
        self.bias, self.pairs, self.cubic = bias, pairs, cubic
        unit = mp.layers.Bernoulli()
        self._blocks = tuple(mp.annealing.UnitBlock(unit, np.array([i]), (1,)) for i in range(3))

    @property
    def state_blocks(self):
        return self._blocks

    def inputs(self, block, units):
        (i,) = block.columns
        others = [j for j in range(3) if j != i]
        inputs = self.bias[i] + units @ self.pairs[i] + self.cubic * units[:, others].prod(axis=1)
        return inputs[:, np.newaxis]

    def log_f_of_state(self, units):
        pairs = np.einsum("ci,ij,cj->c", units, self.pairs, units) / 2
        return units @ self.bias + pairs + self.cubic * units.prod(axis=1)


class ThreeBlocks(mp.Model):
    """The triangle with two visible units and a hidden one, which is kept in the state."""

    n_visible = 2
    support = mp.layers.Bernoulli()
    layer_sizes = (2, 1)
    units = (support, support)

    def __init__(self, scale=1.0):
        self.scale = scale
        pairs = scale * np.array([[0.0, 1.0, -1.5], [1.0, 0.0, 0.8], [-1.5, 0.8, 0.0]])
        self._field = Triangle(scale * np.array([0.3, -0.4, 0.5]), pairs, 1.2 * scale)

    @property
    def mrf(self):
        return self._field

    def log_f(self, x):
        states = [np.column_stack([x, np.full(len(x), h)]).astype(np.uint8) for h in (0, 1)]
        return np.logaddexp(*(self._field.log_f(state) for state in states))

    def fingerprint(self):
        return f"three blocks {self.scale}"


class RandomWalk:
    """Metropolis moves of all units at once by normal steps of a fixed size: reversible."""

    def reversed(self):
        return self

    def move(self, path, s, state, draws, clamped=None):
        for _ in range(5):
            proposed = state + 0.6 * draws.normals(state.shape[1])
            ratio = path.log_f(s, proposed) - path.log_f(s, state)
            accepted = np.log(draws.uniforms(1)) <= ratio[:, np.newaxis]
            state = np.where(accepted, proposed, state)
        return state


class Reals(mp.Model):
    """Two coupled real numbers: log f = -½ x·precision·x, whose normaliser is known."""

    support = mp.layers.Gaussian()
    n_visible = 2
    precision = np.array([[2.0, 0.8], [0.8, 1.0]])

    def log_f(self, x):
        return -np.einsum("ei,ij,ej->e", x, self.precision, x) / 2

    def path(self, base):
        return mp.annealing.GeometricPath(self, self.independent(base), RandomWalk())

    def fingerprint(self):
        return "reals"
