"""Read-outs of an element that represents a distribution: expectations, quantiles, density, mode, samples."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from meanmap.core.arrays import as_array, parameter, read_levels
from meanmap.core.domains import Real, holds_labels
from meanmap.core.door import Door, is_concrete
from meanmap.core.errors import InputError, KindError, ShapeError
from meanmap.core.intervals import Intervals
from meanmap.core.moments import is_column_of_times
from meanmap.core.points import any_sparse, count, library_of, rows, slices
from meanmap.core.report import Report
from meanmap.core.rng import Rng
from meanmap.core.settings import whole_number
from meanmap.core.tables.chunks import source_of
from meanmap.core.tables.schema import Schema, later
from meanmap.core.types import Array, Numbers, Points, Seed
from meanmap.embeddings.bandwidth import around, diffusion_widths
from meanmap.embeddings.herding import herd
from meanmap.embeddings.mode import find_modes
from meanmap.embeddings.signed_weights import covariance, law, quantiles, variances
from meanmap.kernels.base import Kernel

__all__ = ["Readouts", "values_at"]

# Variances of many queries are read from at most this many weights at a time, 128 MiB.
WEIGHTS_AT_ONCE = 1 << 24


class Readouts(Intervals, eqx.Module):
    """The read-outs of Σᵢ wᵢ k(xᵢ, ·) as the embedding of a distribution, E g ≈ Σᵢ wᵢ g(xᵢ) / Σᵢ wᵢ.

    Weights of conditional embeddings may be negative. Expectations and means use them as they are. Quantiles, density,
    samples and, for conditional embeddings, variances use the non-negative weights of a distribution close to them: for
    points on a line those of the distribution function of `quantile`, otherwise the nearest ones that sum to one.
    `negative_share` measures the negative part. Each method works on a batch and returns its leading axes first.
    """

    kernel: eqx.AbstractVar[Kernel]
    points: eqx.AbstractVar[Any]
    weights: eqx.AbstractVar[Any]
    flat: eqx.AbstractVar[bool]
    conditional: eqx.AbstractVar[bool]
    schema: eqx.AbstractVar[Schema | None]

    @abstractmethod
    def against(self, values: Array, library: ModuleType) -> Any:
        """Σᵢ wᵢ vᵢ for values (n, q), (..., q)."""

    @abstractmethod
    def weights_at(self, points: Points) -> Any:
        """The weights that other points would have, (..., m), or None if they are not a function of the point."""

    @property
    @abstractmethod
    def known_mass(self) -> Any:
        """Σᵢ |wᵢ|, or 0 if the weights are not computed."""

    @property
    @abstractmethod
    def batch(self) -> tuple[int, ...]:
        """The leading axes of the weights."""

    @property
    def negative_share(self) -> Any:
        """Σ|wᵢ⁻| / Σ|wᵢ|: 0 for an unweighted sample; above a few per cent, do not trust the tails."""
        weights = self.weights
        library = library_of(weights)
        return library.sum(library.maximum(-weights, 0), -1) / library.sum(library.abs(weights), -1)

    @property
    def effective_size(self) -> Any:
        """(Σwᵢ)² / Σwᵢ²: the number of equally weighted points with the same spread of weights."""
        weights = self.weights
        library = library_of(weights)
        return library.sum(weights, -1) ** 2 / library.sum(weights**2, -1)

    @property
    def report(self) -> Report:
        """Diagnostics of read-outs."""
        share, size = np.asarray(self.negative_share), np.asarray(self.effective_size)
        notes = (
            f"effective number of points: {np.median(size):.3g}",
            f"negative share of weights: {np.max(share):.2g}",
        )
        return Report("read-outs from weighted points", True, 0, notes=notes)

    def expect(self, function: Callable[..., Any] | Array) -> Any:
        """E g, computed from g at the points: (...,) or (..., q).

        Parameters
        ----------
        function : callable, or array (n,) or (n, q)
            Takes the points as the kernel reads them (plain numbers as (n,)) and returns one row for each; or those
            rows themselves, as for labels and texts, which are read as codes and counts.
        """
        with Door(self) as door:
            values = values_at(function, self.points, self.flat, door)
            averages = self._averages(values if values.ndim == 2 else values[:, None], door)
            return averages if values.ndim == 2 else averages[..., 0][()]

    def mean(self) -> Array:
        """E x: (..., d), or (...,) where points were given as plain numbers."""
        points = _real(self.points)
        means = self.expect(points.reshape(points.shape[0], -1))
        return means.reshape((*self.batch, *(() if self.flat else points.shape[1:])))[()]

    def cov(self) -> Array:
        """The covariance matrix, (..., d, d), made positive semidefinite if negative weights prevent that.

        For conditional embeddings, the correlations are those of `sample`, and the variances those of `var`.
        """
        points = _matrix(self.points)
        with Door(self) as door:
            library = jnp if door.follows else np
            d = points.shape[1]
            if self.conditional:
                return self._in_parts(lambda some: covariance(points, some._shares(), library))
            # About the mean of all points, so that no digits are lost for data far from zero.
            centred = points - points.mean(axis=0)
            squares = (centred[:, :, None] * centred[:, None, :]).reshape(-1, d * d)
            moments = self._averages(library.concatenate([centred, squares], axis=1), door)
            mean, second = moments[..., :d], moments[..., d:].reshape(*self.batch, d, d)
            values, vectors = library.linalg.eigh(second - mean[..., :, None] * mean[..., None, :])
            return library.einsum("...ik,...k,...jk->...ij", vectors, library.maximum(values, 0), vectors)

    def var(self) -> Any:
        """The variance of each column, (..., d) or (...,), floored at 0.

        For conditional embeddings it is that of the distribution of `quantile`: moments of small samples with negative
        weights would often be zero.
        """
        points = _matrix(self.points)
        with Door(self) as door:
            library = jnp if door.follows else np
            if self.conditional:
                variance = self._in_parts(lambda some: variances(points, some._shares(), library))
                return variance[..., 0][()] if self.flat else variance
            centred = points - points.mean(axis=0)
            moments = self._averages(library.concatenate([centred, centred**2], axis=1), door)
            mean, second = library.split(moments, 2, axis=-1)
            variance = library.maximum(second - mean**2, 0)
            return variance[..., 0][()] if self.flat else variance

    def _averages(self, values: Array, door: Door) -> Any:
        """Σᵢ wᵢ vᵢ for values (n, q) and normalised weights, without computing weights not needed so far."""
        library = jnp if door.follows else np
        sums = self.against(library.concatenate([values, library.ones_like(values[:, :1])], axis=1), library)
        if self.conditional:
            return sums[..., :-1] + (1 - sums[..., -1:]) * values.mean(axis=0)
        _check_mass(sums[..., -1], self.known_mass)
        return sums[..., :-1] / sums[..., -1:]

    def _shares(self) -> Any:
        """The weights, normalised to sum to one."""
        weights = self.weights
        if self.conditional:
            return weights + (1 - weights.sum(axis=-1, keepdims=True)) / weights.shape[-1]
        return _normalised(weights)

    def sd(self) -> Any:
        """The standard deviation of each column."""
        variance = self.var()
        return library_of(variance).sqrt(variance)

    def quantile(self, q: Numbers | Sequence[float]) -> Array:
        """Quantiles of each column: (...,) + shape of q + (d,), without the last axis for plain numbers.

        With signed weights the weighted distribution function need not be monotone; it is replaced by the mean of its
        running maximum from the left and its running minimum from the right.
        """
        levels = read_levels(q)
        points = _matrix(self.points)
        library = library_of(points, self.weights, levels)
        weights = self._shares()
        columns = [quantiles(points[:, d], weights, levels, library) for d in range(points.shape[1])]
        return columns[0] if self.flat else library.stack(columns, axis=-1)

    def _in_parts(self, read: Callable[[Any], Any]) -> Any:
        """What is read from all queries, some at a time where the weights of all would take much memory."""
        at_once = max(1, WEIGHTS_AT_ONCE // count(self.points))
        if len(self.batch) != 1 or self.batch[0] <= at_once:
            return read(self)
        parts: Any = self
        return np.concatenate([read(parts[some]) for some in slices(self.batch[0], at_once)])

    def density(self, grid: Array, bandwidth: Numbers | None = None) -> Array:
        """The density at each row of `grid`, (..., m), by Gaussian (Parzen) smoothing.

        It smooths the non-negative weights. For beliefs of graphical models it smooths the unweighted sample and
        multiplies by the ratio of belief and prior, a known function, which was more accurate in measurements.

        Parameters
        ----------
        grid : array_like (m,) or (m, d)
            Points at which to evaluate; a table is read by its names, an array has the columns in the order of
            `mean()`.
        bandwidth : float or (d,), optional
            Standard deviation of the smoothing of the weights. By default Scott's rule, spread × n_eff^(−1/(d + 4)),
            for each function of the batch; for beliefs of graphical models the improved Sheather-Jones rule for the
            sample.
        """
        points = _matrix(self.points)
        with Door(self, grid, bandwidth) as door:
            known = source_of(grid).named or is_column_of_times(grid)
            at = Real().read(later(self.schema, grid, "grid") if known else grid, "grid", door)
            if at.shape[1] != points.shape[1]:
                raise ShapeError(f"grid has {at.shape[1]} columns; the points have {points.shape[1]}.")
            if bandwidth is None:
                product = self._product_density(at)
                if product is not None:
                    return door.leave(product)
            weights = law(points, self._shares())
            if bandwidth is None:
                width = _scott(points, weights)
            else:
                width = _bandwidth(bandwidth, points, door)
            return door.leave(_parzen(at, points, weights, jnp.asarray(width)))

    def _product_density(self, at: object) -> Any:
        """Parzen density of the unweighted sample × weight at the point, normalised to integrate to one.

        The integral is taken about each point, by the rule that is exact for quadratics: √d bandwidths away along
        each axis, both ways.
        """
        there = self.weights_at(at)
        if there is None:
            return None
        points = np.asarray(_matrix(self.points))
        n, width = len(points), diffusion_widths(points)
        plain = _parzen(at, points, np.full(n, 1 / n), width)
        mass = np.maximum(np.asarray(self.weights_at(around(points, width))), 0).mean(axis=-1, keepdims=True)
        return np.asarray(plain) * np.maximum(np.asarray(there), 0) / mass

    def mode(self, candidates: Array | None = None, n_starts: int = 10) -> Array:
        """The point at which the embedding is largest: (..., d), (...,) or (..., 3, 3).

        Parameters
        ----------
        candidates : points, optional
            Choose the best of these (retrieval) instead of ascending; returns row numbers, (...,).
        n_starts : int
            On R^d, angles and rotations: Newton ascent, on rotations along geodesics, from this many of the points
            where the embedding is largest.
        """
        if candidates is not None:
            values = self(candidates)  # pyright: ignore[reportCallIssue]
            return library_of(values).argmax(values, axis=-1)
        n_starts = whole_number(n_starts, "n_starts")
        if any_sparse(self.points):
            raise KindError("the points are sparse: pass mode(candidates=...), or embed x.toarray() instead of x.")
        with Door(self) as door:
            modes = find_modes(door.cast(self.kernel), self.points, self._shares(), n_starts)
            return door.leave(modes[..., 0] if self.flat else modes)

    def sample(self, n: int, rng: Seed = None, bandwidth: Array | None = None) -> Array:
        """`n` independent draws from the points with non-negative weights, (..., n, d), (..., n) or (..., n, 3, 3).

        With a `bandwidth`, each draw is blurred by a Gaussian of that standard deviation.
        """
        n = whole_number(n, "n")
        self._refuse_labels("sample")
        random = Rng.of(rng)
        with Door(self, bandwidth) as door:
            weights = jnp.asarray(law(self.points, self._shares()))
            shape = (*self.batch, n)
            keys = jax.random.split(random.key)
            index = jax.random.categorical(keys[0], jnp.log(weights)[..., None, :], shape=shape)
            if any_sparse(self.points):
                return rows(self.points, np.asarray(index).ravel())
            drawn = jax.tree.map(lambda leaf: jnp.asarray(leaf)[index], self.points)
            if bandwidth is not None:
                points = _matrix(self.points)
                width = _bandwidth(bandwidth, points, door)
                drawn = drawn + width * jax.random.normal(keys[1], drawn.shape, points.dtype)
            return door.leave(drawn[..., 0] if self.flat else drawn)

    def _refuse_labels(self, name: str) -> None:
        """Labels are kept as codes, which say nothing to a reader."""
        if holds_labels(self.kernel.domain):
            raise KindError(
                f"{name}() would return codes, since the labels themselves are not kept: for labels y, "
                "expect(y == 'a') is the probability of 'a'."
            )

    def herd(self, n: int) -> Any:
        """`n` of the points, chosen greedily, whose average embedding approximates this one: (..., n, d).

        Kernel herding (Chen, Welling & Smola 2010, eq. 2): x_{t+1} = argmax_x f(x) − (1/(t+1)) Σ_s k(x, x_s). The error
        ‖f − (1/n) Σ k(x_s, ·)‖ falls faster than the n^(−1/2) of independent draws. Cost O(n × points).
        """
        n = whole_number(n, "n")
        self._refuse_labels("herd")
        if any_sparse(self.points):
            raise KindError("herding needs dense points: embed x.toarray() instead of x.")
        with Door(self) as door:
            index = herd(door.cast(self.kernel), self.points, self._shares(), n)
            drawn = jax.tree.map(lambda leaf: jnp.asarray(leaf)[index], self.points)
            return door.leave(drawn[..., 0] if self.flat else drawn)


def _real(points: Points) -> Any:
    if not isinstance(points, np.ndarray | jax.Array) or not jnp.issubdtype(points.dtype, jnp.floating):
        raise KindError(
            "this read-out needs numeric points; for others use mode(candidates) or expect(values): for labels y "
            "expect(y == 'a') is the probability of 'a', and in a graphical model beliefs.probabilities(name)."
        )
    return points


def _matrix(points: Points) -> Any:
    if _real(points).ndim != 2:
        raise KindError(f"this read-out needs points in R^d; these have shape {points.shape[1:]} each.")
    return points


def _normalised(weights: Array) -> Any:
    """Weights that sum to one."""
    library = library_of(weights)
    total = library.sum(weights, axis=-1, keepdims=True)
    _check_mass(total[..., 0], library.sum(library.abs(weights), axis=-1))
    return weights / total


def _check_mass(total: Array, mass: object) -> None:
    """Refuse weights that cannot be normalised, as of the difference of two embeddings."""
    if not is_concrete(total) or not is_concrete(mass):
        return
    if not (np.abs(np.asarray(total)) > 1e-6 * np.asarray(mass)).all():
        raise InputError(
            "the weights sum to nearly zero, so this element does not represent a distribution (it may be a difference "
            "of two embeddings): evaluate it as a function instead."
        )


def values_at(function: Callable[..., Any] | Array, points: Points, flat: bool, door: Door) -> Any:
    """g at n points, (n,) or (n, q) and floating, from a function or from its values."""
    n = count(points)
    values = function(points[:, 0] if flat else points) if callable(function) else function
    values = jnp.asarray(values) if door.follows else as_array(values, "the values of function")
    if values.ndim not in (1, 2) or values.shape[0] != n:
        raise ShapeError(f"function gave shape {values.shape}; expected ({n},) or ({n}, q): one row per point.")
    return values.astype(door.dtype)


def _bandwidth(bandwidth: Numbers, points: Points, door: Door) -> Any:
    width = door.cast(parameter(bandwidth, "bandwidth"))
    d = points.shape[1]
    if width.ndim == 1 and width.shape[0] not in (1, d):
        raise ShapeError(
            f"bandwidth has {width.shape[0]} entries; expected one number, or one for each of {d} columns."
        )
    return width


def _scott(points: Points, weights: Array) -> Any:
    library = library_of(points, weights)
    centred = points - points.mean(axis=0)
    mean = library.matmul(weights, centred)
    variance = library.maximum(library.matmul(weights, centred**2) - mean**2, 0)
    size = 1 / library.sum(weights**2, axis=-1, keepdims=True)
    width = library.sqrt(variance) * size ** (-1 / (points.shape[1] + 4))
    # A belief concentrated on one point has no spread: a small part of the spread of all points keeps its density
    # finite.
    return library.maximum(width, 1e-3 * points.std(axis=0) + 1e-12)


@jax.jit
def _parzen(at: jax.Array, points: jax.Array, weights: jax.Array, width: jax.Array) -> jax.Array:
    """Σᵢ wᵢ N(at; xᵢ, diag width²), in chunks of m rows of `at`, so that memory is O(m n)."""
    d = points.shape[1]
    flat_weights = weights.reshape(-1, weights.shape[-1])
    widths = jnp.broadcast_to(width, (*weights.shape[:-1], d)).reshape(-1, d)

    def one(pair):
        w, h = pair

        def at_point(g):
            return jnp.dot(w, jnp.exp(-jnp.sum(((g - points) / h) ** 2, axis=-1) / 2 - log_scale))

        log_scale = jnp.sum(jnp.log(h)) + d * jnp.log(2 * jnp.pi) / 2  # the product of many small h would underflow
        return jax.lax.map(at_point, at, batch_size=256)

    return jax.lax.map(one, (flat_weights, widths)).reshape(*weights.shape[:-1], at.shape[0])
