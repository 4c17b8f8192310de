"""A deep kernel: a Gaussian kernel of a small network's outputs, trained to tell two samples apart."""

from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from meanmap.core.anew import compiled_anew
from meanmap.kernels.base import ByGram
from meanmap.kernels.geometry import squared_distances

__all__ = ["DeepKernel", "learn_deep_kernel"]

# Three layers of this many units, steps of Adam at this rate on batches of at most this many rows of each sample.
UNITS, LAYERS, STEPS, RATE, BATCH = 30, 3, 300, 3e-3, 128
# Added to the variance; without it, a batch whose samples differ by chance would determine the kernel.
LEAST_VARIANCE = 1e-4
FIRST_MOMENT, SECOND_MOMENT, SMALL = 0.9, 0.999, 1e-8


class DeepKernel(ByGram):
    """k(x, y) = ((1 − ε) exp(−|φ(x) − φ(y)|²/2) + ε) exp(−|x − y|²/(2 ℓ²)) with a network φ (Liu et al. 2020, eq. 1).

    The second factor and ε keep it characteristic, whatever the network does. Made by `learn_deep_kernel`.

    Attributes
    ----------
    weights, offsets : tuples of arrays
        Of the layers, with softplus between them.
    log_width, share : array
        log ℓ, and the number whose logistic function is ε.
    centre, units : arrays (d,)
        Columns are measured from here, in these.
    """

    weights: tuple[Any, ...]
    offsets: tuple[Any, ...]
    log_width: Any
    share: Any
    centre: Any
    units: Any

    def gram(self, x: jax.Array, y: jax.Array) -> jax.Array:
        """The Gram matrix: O(n m (d + 30)) after O((n + m) d) for the network."""
        x, y = ((jnp.asarray(part) - self.centre) / self.units for part in (x, y))
        near = jnp.exp(-0.5 * squared_distances(x, y) * jnp.exp(-2 * self.log_width))
        share = jax.nn.sigmoid(self.share)
        return ((1 - share) * jnp.exp(-0.5 * squared_distances(self._outputs(x), self._outputs(y))) + share) * near

    def diagonal(self, x: jax.Array) -> jax.Array:
        """k(x, x) of each point, which is 1."""
        return jnp.ones(len(x))

    def _outputs(self, x: jax.Array) -> jax.Array:
        for i, (weights, offset) in enumerate(zip(self.weights, self.offsets, strict=True)):
            x = x @ weights + offset
            x = jax.nn.softplus(x) if i < len(self.weights) - 1 else x
        return x


def learn_deep_kernel(x: np.ndarray, y: np.ndarray, generator: np.random.Generator) -> DeepKernel:
    """The kernel that tells two samples (n, d) and (m, d) apart with the most power, on these rows.

    The power of a test grows with MMD²/σ under the alternative, which is what Adam climbs (Liu et al. 2020, eqs. 3 to
    5). Test on other rows than these. A second or so, compiling included.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x, y = rng.normal(size=(2, 60, 2))
    >>> kernel = learn_deep_kernel(x, np.c_[y[:, 0], np.sign(y[:, 1])], rng)
    >>> kernel(x[:2]).diagonal().round(6).tolist()
    [1.0, 1.0]
    """
    both = np.concatenate([x, y])
    units = both.std(axis=0)
    units = np.where(units > 0, units, 1.0)
    standard = [((part - both.mean(axis=0)) / units).astype(np.float32) for part in (x, y)]
    size = min(len(x), len(y), BATCH)
    batches = np.stack([[generator.permutation(len(part))[:size] for _ in range(STEPS)] for part in standard], axis=1)
    sizes = [x.shape[1], *[UNITS] * LAYERS]
    weights = [generator.normal(size=pair) / np.sqrt(pair[0]) for pair in pairwise(sizes)]
    # Two typical rows are √(2 d) apart in these units.
    start = DeepKernel(
        tuple(np.asarray(part, np.float32) for part in weights),
        tuple(np.zeros(UNITS, np.float32) for _ in weights),
        np.float32(0.5 * np.log(2 * x.shape[1])),
        np.float32(-3.0),
        np.float32(0.0),
        np.float32(1.0),
    )
    trained = _trained(start, *standard, batches)
    found = jax.tree.map(lambda part: np.asarray(part, np.float64), trained)
    return DeepKernel(found.weights, found.offsets, found.log_width, found.share, both.mean(axis=0), units)


def power_ratio(kernel: DeepKernel, x: jax.Array, y: jax.Array) -> jax.Array:
    """MMD² over its standard deviation under the alternative, from as many rows of each sample."""
    n = len(x)
    across = kernel.gram(x, y)
    h = kernel.gram(x, x) + kernel.gram(y, y) - across - across.T
    h = h - jnp.diag(jnp.diagonal(h))
    means = jnp.sum(h, axis=1) / n
    variance = 4 * (jnp.mean(means**2) - jnp.mean(means) ** 2)
    return jnp.sum(h) / (n * (n - 1)) / jnp.sqrt(jnp.maximum(variance, 0) + LEAST_VARIANCE / n)


@compiled_anew
@jax.jit
def _trained(start: DeepKernel, x: jax.Array, y: jax.Array, batches: jax.Array) -> DeepKernel:
    """Adam (Kingma & Ba 2015), one step per batch; what measures columns stays."""

    def step(state: Any, now: Any) -> tuple[Any, None]:
        kernel, first, second = state
        t, (rows_x, rows_y) = now
        slope = jax.grad(lambda k: -power_ratio(k, x[rows_x], y[rows_y]))(kernel)
        first = jax.tree.map(lambda m, g: FIRST_MOMENT * m + (1 - FIRST_MOMENT) * g, first, slope)
        second = jax.tree.map(lambda v, g: SECOND_MOMENT * v + (1 - SECOND_MOMENT) * g**2, second, slope)
        sizes = RATE / (1 - FIRST_MOMENT**t), 1 / (1 - SECOND_MOMENT**t)
        moved = jax.tree.map(lambda p, m, v: p - sizes[0] * m / (jnp.sqrt(sizes[1] * v) + SMALL), kernel, first, second)
        kept = DeepKernel(moved.weights, moved.offsets, moved.log_width, moved.share, kernel.centre, kernel.units)
        return (kept, first, second), None

    none = jax.tree.map(jnp.zeros_like, start)
    numbers = jnp.arange(1, len(batches) + 1, dtype=jnp.float32)
    (found, _, _), _ = jax.lax.scan(step, (start, none, none), (numbers, batches))
    return found
