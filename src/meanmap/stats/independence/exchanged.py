"""Independence under a design: HSIC within strata, permuted as the design allows under the null hypothesis."""

from typing import Any

import numpy as np

from meanmap.core.door import Door
from meanmap.core.progress import track
from meanmap.kernels.base import Kernel
from meanmap.stats.designs.exchanges import Exchange
from meanmap.stats.independence.hsic import SINGLE, largest_standardised
from meanmap.stats.independence.moments import features_and_values
from meanmap.stats.permutations import Permuted

__all__ = ["MOST_ROWS", "design_hsic"]

# Each permutation costs a product of all features: 6 ms for a thousand rows and five kernels for each variable.
MOST_ROWS, MOST_FEATURES = 20_000, 48


def design_hsic(
    data: Any,
    names: Any,
    kernels: tuple[tuple[Kernel, ...], ...],
    behind: np.ndarray,
    design: Exchange,
    n_draws: int,
    generator: np.random.Generator,
    door: Door,
) -> tuple[Permuted, tuple[str, ...]]:
    """The biased HSIC of features centred within strata, fused over kernels, and notes.

    The statistic is ‖Σ_s n_s C_s‖² / n² with the cross-covariances C_s of both variables' features within strata s.
    Features approximate each Gram matrix to 10⁻⁴ of its trace; there are at most 48. They are chosen from one variable
    alone, so the approximation does not affect the level.
    """
    n = len(design.units)
    design.refuse_more(MOST_ROWS)
    sides = [
        [features_and_values(kernel, values, name, generator, door, MOST_FEATURES)[1] for kernel in listed]
        for values, name, listed in zip(data, names, kernels, strict=True)
    ]
    whole = len(design.first_rows) < n
    fixed = [whole and all(_constant(phi, design) for phi in side) for side in sides]
    if fixed[0] and not fixed[1]:  # then the clusters of x are permuted as wholes
        sides, behind = sides[::-1], behind.T
    doubts = design.doubts_of_orders(any(fixed))
    orders = design.orders(n_draws, generator, any(fixed))
    first = [design.centred(phi) for phi in sides[0]]
    left, right = (np.concatenate(side, axis=1).astype(np.float32) for side in (first, sides[1]))
    cuts = [np.cumsum([0, *(phi.shape[1] for phi in side[:-1])]) for side in (first, sides[1])]
    values = np.empty((len(orders), len(first), len(sides[1])))
    for found, order in zip(values, track(orders, "exchanges"), strict=True):
        squares = np.square(left.T @ right.take(order, axis=0))  # faster than right[order]
        found[:] = np.add.reduceat(np.add.reduceat(squares, cuts[0], axis=0), cuts[1], axis=1) / n**2
    traces = [[float(np.sum(phi**2)) for phi in side] for side in (first, [design.centred(phi) for phi in sides[1]])]
    rounding = SINGLE * np.multiply.outer(*map(np.asarray, traces)) / n**3
    if values.shape[1:] == (1, 1):
        return Permuted(values[:, 0, 0], float(rounding[0, 0])), doubts
    counted = np.argwhere(np.isfinite(behind))
    pairs = [(Permuted(values[:, i, j], float(rounding[i, j])), float(behind[i, j])) for i, j in counted]
    return largest_standardised(pairs, len(orders)), doubts


def _constant(phi: np.ndarray, design: Exchange) -> bool:
    """Whether features are constant within each unit."""
    return bool(np.allclose(phi, phi[design.first_rows][design.units], atol=1e-6 * float(np.abs(phi).max())))
