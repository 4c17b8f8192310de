"""Shrinkage estimates of a mean embedding: a little bias for less variance.

All are weights on the sample points. Muandet, Fukumizu, Sriperumbudur & Schölkopf (2016), "Kernel Mean Shrinkage
Estimators"; they are also Bayesian posterior means, as in Flaxman et al. (2016), section 4.2.
"""

import numpy as np

from meanmap.core.errors import ParameterError

__all__ = ["ESTIMATORS", "factor_weights", "spectral_leave_one_out", "spectral_weights"]

ESTIMATORS = ("empirical", "james-stein", "ridge", "shrinkage")
# Ridges that are tried, as multiples of the mean eigenvalue: from no shrinkage in double precision to nearly complete.
RIDGE_GRID = np.logspace(-6, 2, 49)


def factor_weights(row_means: np.ndarray, diagonal: np.ndarray, estimator: str, ridge: float | None) -> float:
    """The factor s ≤ 1 of the estimate s μ̂, for the estimators that scale the whole embedding.

    "james-stein": s = ‖μ‖² / (‖μ‖² + Δ) with Δ = E‖μ̂ − μ‖² = (E k(x, x) − E k(x, x′)) / n, both from unbiased
    estimates. "ridge": s = 1 / (1 + λ), λ given or chosen by closed-form leave-one-out.
    """
    n = len(diagonal)
    off_diagonal = (row_means.mean() * n - diagonal.mean()) / (n - 1)
    if estimator == "james-stein":
        squared_norm = max(off_diagonal, 0.0)
        risk = max(diagonal.mean() - off_diagonal, 0.0) / n
        return 1.0 if risk == 0 else squared_norm / (squared_norm + risk)
    return _leave_one_out_factor(row_means, diagonal) if ridge is None else 1 / (1 + ridge)


def _leave_one_out_factor(row_means: np.ndarray, diagonal: np.ndarray) -> float:
    """The s in [0, 1] that minimises Σᵢ ‖s μ̂⁽⁻ⁱ⁾ − φ(xᵢ)‖², from row sums of the Gram matrix alone.

    A quadratic in s: s = Σᵢ ⟨μ̂⁽⁻ⁱ⁾, φ(xᵢ)⟩ / Σᵢ ‖μ̂⁽⁻ⁱ⁾‖².
    """
    n = len(diagonal)
    sums = row_means * n
    agreement = (sums - diagonal).mean() / (n - 1)
    squared_norm = (sums.sum() - 2 * sums + diagonal).mean() / (n - 1) ** 2
    return float(np.clip(agreement / squared_norm, 0, 1)) if squared_norm > 0 else 1.0


def spectral_weights(vectors: np.ndarray, values: np.ndarray, ridge: float) -> np.ndarray:
    """β = (K + n λ I)⁻¹ K 1/n, the weights of (C + λ I)⁻¹ C μ̂, from K = V diag(s) Vᵀ with V of shape (n, r)."""
    n = len(vectors)
    return vectors @ (values / (values + n * ridge) * (vectors.T @ np.full(n, 1 / n)))


def spectral_leave_one_out(
    vectors: np.ndarray, values: np.ndarray, diagonal: np.ndarray, ridges: np.ndarray
) -> np.ndarray:
    """(1/n) Σᵢ ‖μ̌_λ⁽⁻ⁱ⁾ − φ(xᵢ)‖² for each λ, where μ̌_λ⁽⁻ⁱ⁾ is the spectral estimate from the other n − 1 points.

    With c = (n − 1) λ, B = (K + c I)⁻¹, u = B 1 and g = 1 − c u, deleting row and column i from B leaves the weights
    β⁽⁻ⁱ⁾ = (g − eᵢ + (c uᵢ / Bᵢᵢ) B eᵢ) / (n − 1), so each λ costs O(n r) after one eigendecomposition.
    """
    n = len(vectors)
    ones = vectors.T @ np.ones(n)
    square = vectors**2
    total = np.ones(n)
    # The parts of 1 and of eᵢ outside the span of V, where K is zero and B is 1 / c.
    rest, own_rest = total - vectors @ ones, np.maximum(1 - square.sum(axis=1), 0)
    scores = []
    for ridge in ridges:
        c = (n - 1) * ridge
        inverse = 1 / (values + c)
        u = vectors @ (inverse * ones) + rest / c
        g = total - c * u
        b_diagonal = square @ inverse + own_rest / c
        b_square_diagonal = square @ inverse**2 + own_rest / c**2
        g_in = vectors.T @ g
        k_g = vectors @ (values * g_in)
        b_g = vectors @ (inverse * g_in) + (g - vectors @ g_in) / c
        s = c * u / b_diagonal
        squared_norms = (
            g @ k_g
            + diagonal
            + s**2 * (b_diagonal - c * b_square_diagonal)
            - 2 * k_g
            + 2 * s * (g - c * b_g)
            - 2 * s * (1 - c * b_diagonal)
        ) / (n - 1) ** 2
        agreement = (k_g - diagonal + s * (1 - c * b_diagonal)) / (n - 1)
        scores.append(np.mean(squared_norms - 2 * agreement + diagonal))
    return np.array(scores)


def choose_spectral_ridge(vectors: np.ndarray, values: np.ndarray, diagonal: np.ndarray) -> float:
    """The λ with the smallest leave-one-out error on a logarithmic grid around the mean eigenvalue."""
    scale = float(diagonal.mean())
    if scale <= 0:
        raise ParameterError("the kernel is zero on every point: there is nothing to shrink.")
    ridges = RIDGE_GRID * scale
    return float(ridges[np.argmin(spectral_leave_one_out(vectors, values, diagonal, ridges))])


def spectrum_of_gram(gram: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvectors and eigenvalues of a Gram matrix, without those that are rounding errors."""
    values, vectors = np.linalg.eigh(gram)
    kept = values > len(values) * np.finfo(float).eps * max(values[-1], 0)
    return vectors[:, kept], values[kept]


def spectrum_of_features(phi: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvectors and eigenvalues of ΦΦᵀ, from the (r, r) matrix ΦᵀΦ."""
    axes, values = spectrum_of_gram(phi.T @ phi)
    return phi @ (axes / np.sqrt(values)), values
