"""The conditional statistic, and its null distribution: random signs, or weighted chi-squares."""

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np

from meanmap.core.points import slices
from meanmap.core.progress import track
from meanmap.stats.conditional.landmarks import median_distance
from meanmap.stats.conditional.sign_groups import bounds, group_signs, mixed, number_of_groups
from meanmap.stats.conditional.straight import Straight, correlated, together
from meanmap.stats.designs.exchanges import Exchange
from meanmap.stats.limits import gamma_null, spectral_null
from meanmap.stats.result import Null

__all__ = ["Local", "Products", "beyond", "linear_share", "permuted"]

# The number of rows of the n × n matrix in memory at a time, fixed so that sums are the same on every machine. Only the
# upper triangle is needed, for which small blocks waste little.
BLOCK = 128
# The weight of the local part of the kernel on z, for dependence that varies with z; the rest is the constant part, for
# dependence that does not.
LOCAL = 0.8
# The norms of several parts are compared on about this many rows.
ROWS_FOR_SIZES = 300
# Kernel matrices on z are kept up to this many rows, which take 8 megabytes.
ROWS_KEPT = 2000


class Local:
    """The kernel on z with its constant part, in single precision; blocks of few rows are kept for other x and y."""

    def __init__(self, z: np.ndarray):
        self.z = z / median_distance(z)
        self.known: dict[tuple[Any, ...], np.ndarray] = {}

    def block(self, rows: slice, columns: slice) -> np.ndarray:
        """Some rows and columns; the caller must not write to them."""
        key = rows.start, rows.stop, rows.step, columns.start
        if key in self.known:
            return self.known[key]
        found = _exponential(self.z[rows], self.z[columns])
        found *= np.float32(LOCAL)
        found += np.float32(1 - LOCAL)
        if len(self.z) <= ROWS_KEPT:
            self.known[key] = found
        return found

    def in_order(self, order: np.ndarray) -> "Local":
        """The kernel on rows in another order."""
        found = copy(self)
        found.z, found.known = self.z[order], {}
        return found


class Products:
    """The matrix Kᵢⱼ = ⟨uᵢ, uⱼ⟩ ⟨vᵢ, vⱼ⟩ k(zᵢ, zⱼ) of residuals u of x and v of y, by blocks of rows.

    (1/n) Σᵢⱼ Kᵢⱼ = |Σ wᵢ|²/n with wᵢ = uᵢ ⊗ vᵢ ⊗ φ(zᵢ), whose mean is zero if x and y are independent given z. With
    several pairs (u, v), K is the sum of their matrices, whose norms are scaled to fractions (`shares`) of the norm of
    the first.
    """

    def __init__(self, pairs: Sequence[tuple[np.ndarray, np.ndarray]], shares: Sequence[float], local: Local):
        # Single precision halves the work; sums over rows are in double precision.
        self.pairs = [(left.astype(np.float32), right.astype(np.float32)) for left, right in pairs]
        self.local, self.n = local, len(local.z)
        self.weights = np.ones(1)
        if len(pairs) > 1:
            some = slice(None, None, -(-self.n // ROWS_FOR_SIZES))
            sizes = [float(np.linalg.norm(part)) for part in self._parts(some, slice(None))]
            self.weights = np.array([w * sizes[0] / s if s else 0.0 for w, s in zip(shares, sizes, strict=True)])

    def block(self, rows: slice, columns: slice = slice(None)) -> np.ndarray:
        """Some rows and columns of K, in single precision."""
        total, *others = (
            np.multiply(part, np.float32(weight), out=part)
            for weight, part in zip(self.weights, self._parts(rows, columns), strict=True)
        )
        for other in others:
            total += other
        return total

    def _parts(self, rows: slice, columns: slice) -> Iterator[np.ndarray]:
        local = self.local.block(rows, columns)
        for left, right in self.pairs:
            found = left[rows] @ left[columns].T
            found *= local
            found *= right[rows] @ right[columns].T
            yield found

    @property
    def size(self) -> float:
        """The mean of |u|² times that of |v|², which bounds what a function of z on each side adds to the mean of w."""
        return float(
            sum(
                weight * np.mean(np.sum(left**2, axis=1)) * np.mean(np.sum(right**2, axis=1))
                for weight, (left, right) in zip(self.weights, self.pairs, strict=True)
            )
        )

    def in_order(self, order: np.ndarray) -> "Products":
        """The matrix of rows in another order."""
        found = copy(self)
        found.pairs = [(left[order], right[order]) for left, right in self.pairs]
        found.local = self.local.in_order(order)
        return found

    def forms(self, signs: np.ndarray, groups: int = 1) -> np.ndarray:
        """εᵀ K ε / n for each column of `signs` (n, B), (groups, B): in each row with other signs of groups of rows."""
        n, ends = len(signs), bounds(len(signs), groups)
        sums = np.zeros((groups, signs.shape[1]))  # the sign of a pair of groups depends on the xor of their numbers
        starts = [(one, start) for one in range(groups) for start in range(ends[one], ends[one + 1], BLOCK)]
        for one, start in track(starts, "bootstrap"):
            rows = slice(start, min(start + BLOCK, ends[one + 1]))
            block = self.block(rows, slice(start, None))
            block[:, rows.stop - start :] *= 2  # counts the entries below the diagonal
            for other in range(one, groups):
                columns = slice(max(start, ends[other]), ends[other + 1])
                half = block[:, columns.start - start : columns.stop - start] @ signs[columns]
                sums[one ^ other] += np.einsum("ij,ij->j", signs[rows], half, dtype=np.float64)
        return group_signs(groups) @ sums / n

    def bootstrap(
        self,
        ratios: np.ndarray,
        n_draws: int,
        generator: np.random.Generator,
        units: np.ndarray | None = None,
        straight: Straight | None = None,
        bias: float = 0.0,
    ) -> tuple[float, Null]:
        """The statistic and its wild bootstrap: the wᵢ have random signs ±1, times the roots of the variance ratios.

        All rows of one of the `units` have the same sign. Otherwise fewer independent draws each count several times,
        with other signs of whole groups of rows (`sign_groups`). A `straight` part is combined with K by `together`.
        The `bias` is subtracted from the statistic by `beyond`.
        """
        exchange = Exchange.of(self.n)
        exchange = exchange if units is None else replace(exchange, units=units)
        groups = number_of_groups(self.n) if units is None else 1
        own = self
        if groups > 1:
            order = mixed(self.n)
            own, ratios = self.in_order(order), ratios[order]
            straight = None if straight is None else straight.in_order(order)
        signs = np.ascontiguousarray(exchange.signs(-(-n_draws // groups), generator, np.int8).T)
        along = None if straight is None else _listed(straight.forms(signs, groups), n_draws)
        signs[:, 1:] *= np.sqrt(ratios)[:, None]
        values = _listed(own.forms(signs, groups), n_draws)
        values[0] = beyond(values[0], bias * self.size)
        if along is not None and straight is not None:
            along[0] = beyond(along[0], bias * straight.size)
            values = together(values, along)
        return float(values[0]), Null("wild bootstrap", values[1:], exact=False)

    def limit(
        self,
        kind: str,
        ratios: np.ndarray,
        n_draws: int,
        generator: np.random.Generator,
        straight: Straight | None = None,
        bias: float = 0.0,
    ) -> tuple[float, Null]:
        """The statistic, and draws of Σ λᵢ zᵢ² or of a gamma distribution with the same mean and variance.

        λᵢ are the eigenvalues of K / n, with rows and columns multiplied by the roots of the variance ratios. These
        draws have the covariance 2 Σᵢⱼ Kᵢⱼ ⟨wᵢ, wⱼ⟩/n² with the draws of a `straight` part.
        """
        n, roots = self.n, np.sqrt(ratios)
        value, mean, square, crossed = 0.0, 0.0, 0.0, 0.0
        scaled = np.zeros((n, n) if kind == "spectral" else (0, 0))
        own = np.zeros((n, 0)) if straight is None else (roots * np.sqrt(straight.ratios))[:, None] * straight.products
        single, weights = own.astype(np.float32), ratios.astype(np.float32)
        for rows in track(slices(n, BLOCK), "products"):
            behind, width = slice(rows.start, None), rows.stop - rows.start
            block = self.block(rows, behind)
            if kind == "spectral":
                scaled[rows, behind] = roots[rows, None] * block * roots[behind] / n
            times = np.full(block.shape[1], 2, np.float32)  # counts the entries below the diagonal
            times[:width] = 1
            value += float(np.sum(block @ times, dtype=np.float64)) / n
            crossed += 2 * float(np.sum(own[rows] * (block @ (times[:, None] * single[behind])))) / n**2
            if kind != "spectral":
                mean += float(ratios[rows] @ np.diagonal(block)) / n
                size = float(max(block.max(), -block.min())) or 1.0  # squares of large numbers overflow
                block /= size
                block *= block
                square += float(ratios[rows] @ (block @ (times * weights[behind]))) * (size / n) ** 2
        if kind == "spectral":
            law = spectral_null(np.linalg.eigvalsh(scaled, UPLO="U"), n_draws, generator)
        else:
            law = gamma_null(mean, 2 * square, n_draws, generator)
        value = beyond(value, bias * self.size)
        if straight is None:
            return value, law
        along = straight.limit(n_draws, generator)
        along[0] = beyond(along[0], bias * straight.size)
        drawn = correlated(law.draws, along[1:], crossed, generator)
        values = together(np.append(value, drawn), along)
        return float(values[0]), Null(law.kind, values[1:], exact=False)


def _listed(forms: np.ndarray, n_draws: int) -> np.ndarray:
    """The statistic, and this many draws, from forms whose first column has the data's own signs."""
    return np.append(forms[0, 0], forms[:, 1:].ravel()[:n_draws])


def _exponential(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """exp(−|aᵢ − bⱼ|²/2) in single precision, from exponents in double precision, in which large numbers cancel."""
    one, other = (-0.5 * np.sum(each**2, axis=1, keepdims=True) for each in (a, b))
    left = np.concatenate([one, np.ones_like(one), a], axis=1)
    exponents = (left @ np.concatenate([np.ones_like(other), other, b], axis=1).T).astype(np.float32)
    return np.exp(np.minimum(exponents, 0, out=exponents), out=exponents)


def beyond(statistic: float, bias: float) -> float:
    """The statistic |Σ wᵢ|²/n after reducing |Σ wᵢ|/√n by √bias."""
    return max(0.0, np.sqrt(statistic) - np.sqrt(bias)) ** 2


def permuted(left: np.ndarray, right: np.ndarray, n_draws: int, generator: np.random.Generator) -> np.ndarray:
    """n HSIC of two sets of centred features, |Φᵀ Ψ|²/n: for the data, then for Ψ in random orders."""
    n = len(left)
    transposed = np.ascontiguousarray(left.T)
    values = [np.sum((transposed @ right) ** 2) / n]
    values += [
        np.sum((transposed @ right[generator.permutation(n)]) ** 2) / n for _ in track(range(n_draws), "permutations")
    ]
    return np.array(values)


def linear_share(features: np.ndarray, columns: np.ndarray) -> float:
    """The share of the features' variance that is linear in these columns."""
    centred, total = columns - columns.mean(axis=0), np.sum(features**2)
    if not centred.any() or total == 0:
        return 0.0
    left, values, _ = np.linalg.svd(centred, full_matrices=False)
    return float(np.sum((left[:, values > 1e-8 * values[0]].T @ features) ** 2) / total)
