"""Conditional densities that are mixtures of Gaussians, p(v | u) = Σₖ gₖ(u) N(v; rₖ, diag σ_v²)."""

from dataclasses import dataclass

import numpy as np

from meanmap.core.arrays import as_array, check_finite, check_paired
from meanmap.core.errors import ShapeError
from meanmap.core.rng import Rng
from meanmap.core.tables.indices import check_order
from meanmap.core.types import Array, Data, Seed

__all__ = ["ConditionalMixture", "matrix_of", "scaled_squares"]


@dataclass(frozen=True, eq=False)
class ConditionalMixture:
    """p(v | u) = Σₖ gₖ(u) N(v; rₖ, diag σ_v²), with weights gₖ(u) ∝ αₖ exp(−½ ‖(u − qₖ) / σ_u‖²) that sum to one.

    It integrates to one for each u, far from all centres, too: there the nearest ones decide.

    Attributes
    ----------
    log_coefficients : array (b,)
        log αₖ.
    u_centres, v_centres : array (b, d_u), (b, d_v)
        qₖ and rₖ.
    u_width, v_width : array (d_u,), (d_v,)
        σ_u and σ_v.
    ridge : float
        λ, relative to the mean of the diagonal of H, where α is a least-squares solution; else NaN.

    Notes
    -----
    Cost O(m b (d_u + d_v)) for m points. From `least_squares_density` (Sugiyama et al. 2010) or
    `nadaraya_watson_density`.

    Examples
    --------
    >>> before, behind = np.array([[-1.0], [1.0]]), np.array([[0.0], [5.0]])
    >>> density = ConditionalMixture(np.zeros(2), before, behind, np.ones(1), np.ones(1))
    >>> density.mean([-9.0, 0.0, 9.0]).round(2).tolist()
    [0.0, 2.5, 5.0]
    """

    log_coefficients: np.ndarray
    u_centres: np.ndarray
    v_centres: np.ndarray
    u_width: np.ndarray
    v_width: np.ndarray
    ridge: float = np.nan

    def log_weights(self, u: np.ndarray) -> np.ndarray:
        """log gₖ(u) for points (..., d_u): (..., b)."""
        logs = self.log_coefficients - scaled_squares(u, self.u_centres, self.u_width) / 2
        return logs - _log_total(logs)[..., None]

    def log_components(self, v: np.ndarray) -> np.ndarray:
        """log N(v; rₖ, diag σ_v²) for points (..., d_v): (..., b)."""
        scale = np.sum(np.log(self.v_width)) + self.v_width.size * np.log(2 * np.pi) / 2
        return -scaled_squares(v, self.v_centres, self.v_width) / 2 - scale

    def log_density(self, u: Array, v: Array) -> np.ndarray:
        """log p(vᵢ | uᵢ) for n pairs, (n,)."""
        check_order((u, v), ("u", "v"))
        u, v = self._read(u, "u", self.u_centres), self._read(v, "v", self.v_centres)
        check_paired(len(u), len(v), "u", "v")
        return _log_total(self.log_weights(u) + self.log_components(v))

    def mean(self, u: Array) -> np.ndarray:
        """E[v | u], (n, d_v), or (n,) where v has one column."""
        means = np.exp(self.log_weights(self._read(u, "u", self.u_centres))) @ self.v_centres
        return means[:, 0] if means.shape[1] == 1 else means

    def sample(self, u: Array, rng: Seed = None) -> np.ndarray:
        """One draw of v for each u, (n, d_v), or (n,) where v has one column."""
        generator = Rng.of(rng).generator
        weights = np.exp(self.log_weights(self._read(u, "u", self.u_centres)))
        levels = generator.random((len(weights), 1)) * weights.sum(axis=1, keepdims=True)
        chosen = np.minimum(np.sum(np.cumsum(weights, axis=1) <= levels, axis=1), weights.shape[1] - 1)
        draws = self.v_centres[chosen] + self.v_width * generator.normal(size=(len(chosen), self.v_width.size))
        return draws[:, 0] if draws.shape[1] == 1 else draws

    def _read(self, data: Data, name: str, centres: np.ndarray) -> np.ndarray:
        matrix = matrix_of(data, name)
        if matrix.shape[1] != centres.shape[1]:
            raise ShapeError(f"{name} has {matrix.shape[1]} columns; the density was learned with {centres.shape[1]}.")
        return matrix

    def __repr__(self) -> str:
        b, d = self.u_centres.shape
        return f"ConditionalMixture({b} components, {d} columns to {self.v_centres.shape[1]})"


def matrix_of(data: Data, name: str) -> np.ndarray:
    """Numbers (n,) or vectors (n, d) as a finite matrix."""
    array = as_array(data, name).astype(np.float64)
    if array.ndim not in (1, 2) or 0 in array.shape:
        raise ShapeError(f"{name} has shape {array.shape}; expected (n,) numbers or (n, d) vectors.")
    check_finite(array, name)
    return array.reshape(len(array), -1)


def scaled_squares(x: np.ndarray, centres: np.ndarray, width: np.ndarray) -> np.ndarray:
    """‖(x − cₖ) / width‖² for points (..., d): (..., b). By differences in few columns, else by a product."""
    a, b = x / width, centres / width
    if width.size <= 3:
        squares = np.zeros((*x.shape[:-1], len(centres)))
        for i in range(width.size):
            squares += (a[..., i, None] - b[:, i]) ** 2
        return squares
    middle = b.mean(axis=0)
    a, b = a - middle, b - middle
    return np.maximum(np.sum(a**2, axis=-1, keepdims=True) + np.sum(b**2, axis=-1) - 2 * a @ b.T, 0)


def _log_total(logs: np.ndarray) -> np.ndarray:
    from scipy.special import logsumexp  # here: a learned kernel needs no SciPy

    return np.asarray(logsumexp(logs, axis=-1))
