"""Joint independence under a design: dHSIC within strata, permuted as the design allows under the null hypothesis."""

from collections.abc import Sequence

import numpy as np

from meanmap.core.progress import track
from meanmap.stats.designs.exchanges import Exchange
from meanmap.stats.permutations import Permuted

__all__ = ["MOST_ROWS", "design_joint"]

# Each permutation gathers and multiplies full matrices: 20 ms for a thousand rows of three variables.
MOST_ROWS = 2000
# The rounding error of a sum in single precision, relative to the largest of the terms that cancel.
SINGLE = 8 * float(np.finfo(np.float32).eps)


def design_joint(
    grams: Sequence[np.ndarray], design: Exchange, n_draws: int, generator: np.random.Generator
) -> tuple[Permuted, tuple[str, ...]]:
    """‖Σ_s (n_s/n) (μ_s − ⊗_k μ_ks)‖² for the data and each permutation, and notes.

    μ_s is the embedding of all variables in stratum s, and μ_ks that of the k-th alone. Each variable but the first is
    permuted separately, by clusters with their rows in order. The means of a stratum do not change.
    """
    n = len(design.units)
    design.refuse_more(MOST_ROWS)
    doubts = design.doubts_of_orders(constant=False)
    orders = [design.orders(n_draws, generator) for _ in grams[1:]]
    sizes = np.bincount(design.strata).astype(float)
    members = np.eye(len(sizes))[design.strata] / sizes
    toward = [gram.astype(float) @ members for gram in grams]  # mean of k(i, ·) over each stratum
    constant = sizes @ np.prod([members.T @ means for means in toward], axis=0) @ sizes
    values, largest = np.empty(n_draws + 1), abs(constant)
    for b, drawn in enumerate(track(zip(*orders, strict=True), "exchanges", n_draws + 1)):
        product, crossed = grams[0].copy(), toward[0].copy()
        for gram, means, order in zip(grams[1:], toward[1:], drawn, strict=True):
            product *= gram[np.ix_(order, order)]
            crossed *= means[order]
        terms = float(product.sum(dtype=float)), float(np.sum(crossed @ sizes))
        values[b] = (terms[0] - 2 * terms[1] + constant) / n**2
        largest = max(largest, *map(abs, terms))
    return Permuted(values, SINGLE * largest / n**2), doubts
