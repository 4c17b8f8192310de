"""Scores of every ridge from one eigendecomposition: leave-one-out, generalised cross-validation, evidence, K-fold.

Write K = U diag(e) Uᵀ with U (n, k) orthonormal, H = K (K + n λ I)⁻¹ and a = n λ / (e + n λ). Then

    I − H = (I − U Uᵀ) + U diag(a) Uᵀ

which stays accurate for a small ridge, where 1 − e / (e + n λ) would cancel.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from meanmap.core.types import Array

__all__ = ["Spectrum", "target_columns"]


class Spectrum(eqx.Module):
    """Eigenvectors (n, k) and eigenvalues (k,) of a positive semidefinite (n, n) matrix; the others are zero."""

    vectors: Any
    values: Any

    @classmethod
    def of_gram(cls, gram: Array) -> "Spectrum":
        """From a Gram matrix (n, n). Cost about 9 n³."""
        if isinstance(gram, jax.Array):
            values, vectors = jnp.linalg.eigh(gram)
            return cls(vectors, jnp.maximum(values, 0.0))
        values, vectors = np.linalg.eigh(gram)
        return cls(vectors, np.maximum(values, 0.0))

    @classmethod
    def of_features(cls, features: Any) -> "Spectrum":
        """From features Φ (n, r) with K = ΦΦᵀ, never n × n for r < n. Cost 4 n r² + O(r³).

        Uses Φ = Q R and the singular values of R rather than the eigenvalues of ΦᵀΦ, where squaring would leave no
        correct digits in directions below √eps of the largest.
        """
        if isinstance(features, jax.Array):
            orthonormal, triangle = jnp.linalg.qr(features)
            left, singular, _ = jnp.linalg.svd(triangle, full_matrices=False)
            return cls(jnp.matmul(orthonormal, left, precision="highest"), singular**2)
        orthonormal, triangle = np.linalg.qr(features)
        left, singular, _ = np.linalg.svd(triangle, full_matrices=False)
        return cls(orthonormal @ left, singular**2)

    def seen(self) -> "Spectrum":
        """The decomposition without eigenvalues that are only rounding errors; of NumPy arrays."""
        kept = self.values > self.size * np.finfo(self.values.dtype).eps * self.values.max(initial=0.0)
        return Spectrum(self.vectors[:, kept], self.values[kept])

    @property
    def size(self) -> int:
        """n, the number of rows of the matrix."""
        return self.vectors.shape[0]

    @property
    def complete(self) -> bool:
        """Whether the eigenvectors span the whole space, so that I − U Uᵀ is exactly zero."""
        return self.vectors.shape[0] == self.vectors.shape[1]

    def degrees_of_freedom(self, shifts: Array) -> Any:
        """tr H for each shift n λ."""
        values = self.values[:, None]
        return (values / (values + shifts)).sum(0)

    def leave_one_out(self, targets: Array, shifts: Array, taken: Array | None = None) -> Any:
        """(1/n) Σᵢ ‖(Y − HY)ᵢ / (1 − Hᵢᵢ)‖² for each shift (g,). Cost n k (q + g min(q, k)).

        `taken` (n,) is the part of Hᵢᵢ due to a first regression, whose columns have been projected out of Y and K.
        """
        library, multiply = _tools(self.vectors)
        coordinates, outside, constant = self._split(targets, reduce=True)
        shrink = shifts / (self.values[:, None] + shifts)
        leverage_left = multiply(self.vectors**2, shrink)
        if not self.complete or taken is not None:
            beside = 1.0 - (self.vectors**2).sum(1) - (0.0 if taken is None else taken)
            leverage_left = leverage_left + library.maximum(beside, 0.0)[:, None]
        scores = []
        for g in range(shrink.shape[1]):
            residual = multiply(self.vectors, shrink[:, g, None] * coordinates)
            squares = constant + ((residual if self.complete else residual + outside) ** 2).sum(1)
            scores.append((squares / leverage_left[:, g] ** 2).mean())
        return library.stack(scores)

    def generalised(self, targets: Array, shifts: Array) -> Any:
        """Generalised cross-validation, (1/n) ‖Y − HY‖² / (tr(I − H) / n)². Cost n k q + k g.

        Golub, Heath and Wahba (1979), equation 1.4.
        """
        inside, outside = self._energies(targets)
        shrink = shifts / (self.values[:, None] + shifts)
        left = shrink.sum(0) + (self.size - self.values.shape[0])
        return self.size * ((shrink**2 * inside[:, None]).sum(0) + outside) / left**2

    def evidence(self, targets: Array, shifts: Array, outputs: int) -> Any:
        """Minus the log marginal likelihood per number, −max over s of log N(Y; 0, s (K + n λ I)) / (n q).

        The columns of Y are independent given s, the prior variance, whose maximum is tr(Yᵀ (K + n λ I)⁻¹ Y) / (n q).
        Rasmussen and Williams (2006), equation 2.30, with the scale profiled out. Cost n k q + k g.
        """
        library, _ = _tools(self.vectors)
        inside, outside = self._energies(targets)
        missing = self.size - self.values.shape[0]
        shifted = self.values[:, None] + shifts
        scale = ((inside[:, None] / shifted).sum(0) + outside / shifts) / (self.size * outputs)
        determinant = library.log(shifted).sum(0) + missing * library.log(shifts)
        return (library.log(2 * np.pi * scale) + 1 + determinant / self.size) / 2

    def folds(self, targets: Array, shifts: Array, labels: np.ndarray) -> Any:
        """K-fold error (1/n) Σ_B ‖(I − H_BB)⁻¹ (Y − HY)_B‖² for each shift; `labels` (n,) names the fold of each row.

        Each block is left out in closed form, with n λ unchanged. Cost g Σ_B b (b k + b² + b q).
        """
        library, multiply = _tools(self.vectors)
        coordinates, outside, _ = self._split(targets, reduce=False)
        shrink = shifts / (self.values[:, None] + shifts)
        blocks = [np.flatnonzero(labels == label) for label in np.unique(labels)]
        scores = []
        for g in range(shrink.shape[1]):
            residual = multiply(self.vectors, shrink[:, g, None] * coordinates) + outside
            total = 0.0
            for block in blocks:
                rows = self.vectors[block]
                matrix = multiply(rows * shrink[:, g], rows.T)
                if not self.complete:
                    matrix = matrix + (library.eye(block.size, dtype=rows.dtype) - multiply(rows, rows.T))
                total = total + (library.linalg.solve(matrix, residual[block]) ** 2).sum()
            scores.append(total / self.size)
        return library.stack(scores)

    def _split(self, targets: Array, reduce: bool) -> tuple[Any, Any, Any]:
        """Uᵀ Y, (I − U Uᵀ) Y and the squared row norms of what was rotated out of the latter.

        A rotation of the outputs changes no norm. With more outputs than eigenvectors one exists after which only k
        columns of Uᵀ Y are not zero; the ridge does not affect the others, and only their norms are kept.
        """
        library, multiply = _tools(self.vectors)
        coordinates = multiply(self.vectors.T, targets)
        zero = library.zeros(self.size, dtype=targets.dtype)
        outside = library.zeros((1, 1), dtype=targets.dtype)
        if not self.complete:
            outside = targets - multiply(self.vectors, coordinates)
        if not reduce or targets.shape[1] <= self.values.shape[0]:
            return coordinates, outside, zero
        rotation, triangle = library.linalg.qr(coordinates.T)
        if self.complete:
            return triangle.T, outside, zero
        kept = multiply(outside, rotation)
        return triangle.T, kept, library.maximum((outside**2).sum(1) - (kept**2).sum(1), 0.0)

    def _energies(self, targets: Array) -> tuple[Any, Any]:
        """The squared norms of Y along each eigenvector, and outside all of them."""
        coordinates, outside, _ = self._split(targets, reduce=False)
        return (coordinates**2).sum(1), (outside**2).sum()


def target_columns(gram: Array) -> Any:
    """Columns R (n, q) with R Rᵀ = L: targets with the Gram matrix L become targets in R^q. Cost O(n³)."""
    if isinstance(gram, jax.Array):
        values, vectors = jnp.linalg.eigh(gram)
        return vectors * jnp.sqrt(jnp.maximum(values, 0.0))
    values, vectors = np.linalg.eigh(gram)
    kept = values > gram.shape[0] * np.finfo(np.float64).eps * values[-1]
    return vectors[:, kept] * np.sqrt(values[kept])


def _tools(array: Array) -> tuple[Any, Any]:
    """The array library of `array` and its exact matrix product."""
    if isinstance(array, jax.Array):
        return jnp, lambda left, right: jnp.matmul(left, right, precision="highest")
    return np, np.matmul
