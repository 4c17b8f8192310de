"""Permutations among rows that are neighbours in z, for residuals that may still contain functions of z."""

from itertools import permutations

import numpy as np
from scipy.special import ndtri

from meanmap.core.points import slices
from meanmap.stats.conditional.judging import pairs_of
from meanmap.stats.conditional.landmarks import rbf_landmarks
from meanmap.stats.conditional.leftover import MOST_COLUMNS, REACHES, Neighbours, bent_columns, noise_of
from meanmap.stats.conditional.regression import Fit
from meanmap.stats.conditional.residuals import Residuals
from meanmap.stats.conditional.statistics import LOCAL, Products
from meanmap.stats.conditional.straight import MOST_PRODUCTS, together
from meanmap.stats.result import Null

__all__ = ["exchanged_nearby", "order_in_doubt", "told_nearby"]

# Groups of this many consecutive rows along a column of z are permuted. Of 80 data sets with a wave .5 sin(20 z) and
# noise of variance 1 on both sides (200 rows, z uniform from -3 to 3) regressions rejected 20. With groups of 2, 3, 4
# and 6 rows 7, 8, 12 and 17 of these were rejected; and of 75 dependences that regressions found, 71, 72, 74 and 75.
TOGETHER = 3
# The approximate rate at which pure noise triggers these permutations. With twice this rate the wave was rejected as
# often, and power fell by another 2%.
DOUBT = 0.08
# The largest number of principal features of each side and of functions of z by which dependence may vary.
MOST_FEATURES, MOST_LOCAL, TOLERANCE = 12, 12, 0.05
ORDERS_AT_ONCE = 16


def exchanged_nearby(
    left: Residuals, right: Residuals, method: str, n_draws: int, generator: np.random.Generator
) -> tuple[float, Null] | None:
    """The statistic and its null, with y permuted among neighbours in z; None if no doubt arises about the residuals.
    Functions of z that the regressions missed then affect the draws, too, as far as their values at neighbours are
    similar (Kim, Neykov, Balakrishnan & Wasserman 2022, "Local permutation tests for conditional independence").
    """
    order = order_in_doubt(left, right)
    if order is None:
        return None
    n, given = len(order), left.given
    orders = _orders(n, n_draws, generator)
    pairs, shares = pairs_of(left, right, method)
    weights = Products(pairs, shares, given.local).weights
    where = given.local.z
    along = rbf_landmarks(where, np.eye(where.shape[1]), TOLERANCE, MOST_LOCAL)(where)
    functions = np.column_stack([np.full(n, np.sqrt(1 - LOCAL)), np.sqrt(LOCAL) * along])
    kernels = sum(
        weight * _sizes(_turned(_principal(u), functions)[order], _principal(v)[order], orders)
        for weight, (u, v) in zip(weights, pairs, strict=True)
    )
    values = np.asarray(kernels)
    if left.line is not None and right.line is not None:
        u, v = left.line.columns, right.line.columns
        if u.shape[1] * v.shape[1] <= MOST_PRODUCTS:
            values = together(values, _sizes(u[order], v[order], orders))
    return float(values[0]), Null("permutation among neighbours in z", values[1:], exact=False)


def order_in_doubt(left: Residuals, right: Residuals) -> np.ndarray | None:
    """The rows in the order of the column of z along which a missed function of z may be common to both sides. The
    residuals u and v, each in the direction of their largest covariance, are added: w = u + v. A function of z in both
    is doubled, noise is not. Returns None if Σ wᵢ wⱼ over neighbours is compatible with noise, and for clusters, whose
    rows have more than z in common.
    """
    given = left.given
    columns = bent_columns(given.where)
    if given.units is not None or not columns:
        return None
    near = given.neighbours if len(columns) <= MOST_COLUMNS else Neighbours.along(given.where, columns)
    found = []
    for (u, one), (v, other) in zip(_parts(left), _parts(right), strict=True):
        turn, _, back = np.linalg.svd(u.T @ v)
        sides = (_scaled(u @ turn[:, 0]), one), (_scaled(v @ back[0]), other)
        found += [(_score(sides, near, place), -place) for place in range(len(REACHES) * len(columns))]
    score, place = max(found)
    if score <= -ndtri(DOUBT / len(columns)):
        return None
    return np.argsort(given.where[:, columns[-place // len(REACHES)]], kind="stable")


def told_nearby(pvalue: float, before: float) -> str:
    """The note if permutations among neighbours changed the p-value; empty if it is nearly the same."""
    if pvalue <= max(2 * before, 0.05):
        return ""
    return (
        "residuals of neighbours in z are slightly correlated, by chance or because regressions missed functions "
        "of z. The p-value therefore comes from permutations among neighbours in z; the regressions alone gave "
        f"{before:.2g}."
    )


def _score(sides: tuple[tuple[np.ndarray, Fit], ...], near: Neighbours, place: int) -> float:
    """Σ wᵢ wⱼ over pairs of neighbours, minus its mean for regressions of noise, in standard deviations. `sides` are
    the residuals and the regression of each side.
    """
    one, other = near.pairs[place]
    w = np.sum([side for side, _ in sides], axis=0)
    expected = -sum(noise_of(side, fit) * near.of_noise(place, fit) for side, fit in sides)
    products = w[one] * w[other]
    size = float(np.sqrt(products @ products))
    return (float(products.sum()) - expected) / size if size > 0 else 0.0


def _parts(side: Residuals) -> tuple[tuple[np.ndarray, Fit], ...]:
    """The residuals and the regression of the numbers, and those of the features."""
    return side.plainly, (side.left, side.second)


def _scaled(column: np.ndarray) -> np.ndarray:
    size = float(np.sqrt(np.mean(column**2)))
    return column / size if size > 0 else column


def _principal(features: np.ndarray) -> np.ndarray:
    """The principal components of features."""
    turn = np.linalg.eigh(features.T @ features)[1][:, ::-1][:, :MOST_FEATURES]
    return (features @ turn).astype(np.float32)


def _turned(features: np.ndarray, functions: np.ndarray) -> np.ndarray:
    """All products of features and functions of z."""
    return (features[:, :, None] * functions[:, None, :].astype(np.float32)).reshape(len(features), -1)


def _orders(n: int, n_draws: int, generator: np.random.Generator) -> np.ndarray:
    """Random orders of n rows within groups of consecutive ones, (1 + B, n); the first is as they are."""
    found = np.tile(np.arange(n, dtype=np.int32), (n_draws + 1, 1))
    whole = n // TOGETHER * TOGETHER
    for size, start, stop in ((TOGETHER, 0, whole), (n - whole, whole, n)):
        ways = np.array([*permutations(range(size))], np.int32) - np.arange(size, dtype=np.int32)
        groups = (stop - start) // max(size, 1)
        found[1:, start:stop] += ways[generator.integers(0, len(ways), (n_draws, groups))].reshape(n_draws, -1)
    return found


def _sizes(u: np.ndarray, v: np.ndarray, orders: np.ndarray) -> np.ndarray:
    """|Σᵢ uᵢ ⊗ v_π(i)|²/n for each order π, by one product of matrices for several orders."""
    across, (n, width) = np.ascontiguousarray(u.T), v.shape
    sizes = []
    for some in slices(len(orders), ORDERS_AT_ONCE):
        turned = v[orders[some].T].reshape(n, -1)
        sizes.append(np.sum((across @ turned).reshape(len(across), -1, width) ** 2, axis=(0, 2), dtype=float))
    return np.concatenate(sizes) / n
