"""Two-sample statistics that are means over blocks of pairs: memory O(n), time between O(n) and O(n^1.5)."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from meanmap.core.anew import compiled_anew
from meanmap.core.errors import KindError
from meanmap.core.points import any_sparse, count, pad, rows
from meanmap.core.types import Array, Data, Points
from meanmap.kernels.base import Kernel
from meanmap.stats.permutations import BLOCK, SINGLE
from meanmap.stats.result import Null
from meanmap.stats.samples.samples import Outcome, Samples

__all__ = ["block_length", "block_null", "block_test"]

# The largest numbers of Gram matrix entries and of pairs, approximately, in one compiled call.
ENTRIES, POINTS = 1 << 21, 1 << 15
# Above this many random signs (pairs × draws) the normal limit of the mean of many blocks is used instead.
MOST_SIGNS = 2 * 10**7


def block_length(statistic: str, n: int) -> int:
    """The number of pairs in a block: 2 for linear time, √n for the block statistic (Zaremba et al. 2013)."""
    return 2 if statistic == "linear" else max(2, math.isqrt(n))


def block_null(sizes: tuple[int, ...], statistic: str, n_draws: int) -> str:
    """The null distribution that null="auto" chooses: random signs unless there are too many."""
    length = block_length(statistic, min(sizes))
    return "wild" if min(sizes) // length * length * n_draws <= MOST_SIGNS else "normal"


def block_test(samples: Samples, statistic: str, kind: str, n_draws: int, generator: np.random.Generator) -> Outcome:
    """The mean over blocks of the unbiased MMD² of paired points, and its null distribution.

    With h_ij = k(xᵢ, xⱼ) + k(yᵢ, yⱼ) − k(xᵢ, yⱼ) − k(xⱼ, yᵢ) a block's statistic is the mean of h_ij over i ≠ j
    (Gretton et al. 2012, lemma 6 and section 6). Swapping xᵢ and yᵢ changes the sign of every h_ij, and under the null
    hypothesis does not change the distribution. Random signs, εᵢ εⱼ h_ij, therefore give an exact null distribution.
    The last points, which do not fill a block, are left out.
    """
    kernel, x, y = samples.kernels[0], samples[0], samples[1]
    if any_sparse((x, y)):
        raise KindError("x is sparse, which block statistics do not take: pass x.toarray(), or statistic='unbiased'.")
    length = block_length(statistic, min(samples.sizes))
    n = min(samples.sizes) // length * length
    means, draws, total = [], np.zeros(n_draws), 0.0
    step = max(1, min(ENTRIES // length**2, POINTS // length))
    for start in range(0, n // length, step):
        stop = min(start + step, n // length)
        part = slice(start * length, stop * length)
        h = _differences(kernel, rows(x, part), rows(y, part), length, step if n // length > step else stop)
        means.append(h.sum(axis=(1, 2), dtype=float) / (length * (length - 1)))
        total += float(np.abs(h).sum(dtype=float))
        if kind == "wild":
            for first in range(0, n_draws, BLOCK):
                number = min(BLOCK, n_draws - first)
                signs = generator.choice(np.array([-1, 1], np.float32), (stop - start, length, number))
                draws[first : first + number] += np.einsum("bij,bij->j", signs, h @ signs, dtype=np.float64)
    values, weight = np.concatenate(means), 1 / (n * (length - 1))
    if kind == "wild":
        law = Null("random signs", weight * draws, exact=True, rounding=weight * SINGLE * total)
        return Outcome(float(values.mean()), law)
    spread = values.std(ddof=1) / math.sqrt(len(values))
    null = Null("normal limit", spread * generator.standard_normal(n_draws), exact=False)
    return Outcome(float(values.mean()), null)


@compiled_anew
@jax.jit
def _blocks(kernel: Kernel, x: Array, y: Array) -> jax.Array:
    def one(a: Array, b: Array) -> jax.Array:
        cross = kernel.gram(a, b)
        h = kernel.gram(a, a) + kernel.gram(b, b) - cross - cross.T
        return h * (1 - jnp.eye(len(h)))

    return jax.vmap(one)(x, y)


def _differences(kernel: Kernel, x: Data, y: Data, length: int, blocks: int) -> np.ndarray:
    """h of each block, (blocks, length, length), with zeros on the diagonals."""
    kept = count(x) // length

    def cut(points: Points) -> Any:
        points = pad(points, blocks * length)
        return jax.tree.map(lambda leaf: leaf.reshape(blocks, length, *leaf.shape[1:]), points)

    return np.asarray(_blocks(kernel, cut(x), cut(y)), np.float32)[:kept]
