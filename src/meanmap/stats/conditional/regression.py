"""Regression on z: an unpenalised linear part and a penalised smooth part, chosen by generalised cross-validation."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import scipy.linalg

from meanmap.linalg.cross_validation import best_shift
from meanmap.stats.conditional.landmarks import (
    Landmarks,
    additive_landmarks,
    joint_landmarks,
    lighter,
    median_distance,
    rbf_landmarks,
)

__all__ = [
    "METRIC_LANDMARKS",
    "ROUNDING",
    "Basis",
    "Fit",
    "Linear",
    "along_metric",
    "best_fit",
    "candidates",
    "learned_metric",
    "variance_parts",
    "variance_ratios",
]

# Penalties that are tried, relative to the trace of the smooth part: from almost none to an almost linear fit.
SHIFTS = np.geomspace(2e-6, 20, 29)
# Fits with more degrees of freedom per point are not tried: their errors cannot be estimated.
MOST_FREEDOM = 0.7
# Residuals of rows with a higher leverage, such as a gross outlier in z, are uninformative.
MOST_LEVERAGE = 0.99
ROUNDING = 1e-12
METRIC_ROUNDS, METRIC_LANDMARKS, METRIC_FLOOR = 3, 120, 1e-2


@dataclass(frozen=True)
class Linear:
    """The linear functions of z: an orthonormal basis of 1 and the columns of z, which no regression shrinks."""

    vectors: np.ndarray

    @classmethod
    def of(cls, z: np.ndarray) -> "Linear":
        """The linear functions on n rows; collinear columns, such as indicators of all labels, count once."""
        left, values, _ = np.linalg.svd(np.column_stack([np.ones(len(z)), z]), full_matrices=False)
        return cls(left[:, values > 1e-8 * values[0]])

    def residuals(self, targets: np.ndarray) -> np.ndarray:
        """The residuals of the targets."""
        return targets - self.vectors @ (self.vectors.T @ targets)


@dataclass(frozen=True)
class Basis:
    """The smooth functions of z beyond the linear ones, orthonormal on the sample: U diag(values) Uᵀ is their kernel.

    U is the landmarks' `features` without their linear part, times `coordinates`; it is formed where it is needed.
    """

    landmarks: tuple[Landmarks, ...]
    features: np.ndarray
    values: np.ndarray
    coordinates: np.ndarray

    @cached_property
    def vectors(self) -> np.ndarray:
        """U, (n, r)."""
        return self.features @ self.coordinates

    def along(self, targets: np.ndarray) -> np.ndarray:
        """Uᵀ y of some targets."""
        return self.coordinates.T @ (self.features.T @ targets)

    @classmethod
    def of(cls, landmarks: tuple[Landmarks, ...], z: np.ndarray, linear: Linear) -> "Basis":
        """The eigenvectors of Φ̃ Φ̃ᵀ, where Φ̃ are the features of z without their linear part, in O(n r²)."""
        return cls.of_features(landmarks, [part(z) for part in landmarks], linear)

    @classmethod
    def of_features(cls, landmarks: tuple[Landmarks, ...], known: Sequence[np.ndarray], linear: Linear) -> "Basis":
        """The basis from the values of all features."""
        whole = np.concatenate(known, axis=1)
        features = linear.residuals(whole)
        values, turn = np.linalg.eigh(features.T @ features)
        # If all functions are linear (z with two values, or labels), the rest is rounding error.
        kept = values > max(1e-7 * values[-1], ROUNDING * np.sum(whole**2))
        values, turn = values[kept][::-1], turn[:, kept][:, ::-1]
        coordinates = turn / np.sqrt(values)
        return cls(landmarks, features, values, coordinates)


@dataclass(frozen=True)
class Fit:
    """A linear smoother: fitted values Q Qᵀ y + U diag(shrinkage) Uᵀ y.

    Attributes
    ----------
    score : float
        The generalised cross-validation error, the rotation-invariant form of leaving one out.
    """

    linear: Linear
    basis: Basis
    shrinkage: np.ndarray
    score: float

    def in_sample(self, targets: np.ndarray) -> np.ndarray:
        """Residuals at the fitted points."""
        rest = self.linear.residuals(targets)
        return rest - self.basis.vectors @ (self.shrinkage[:, None] * (self.basis.vectors.T @ rest))

    def standardised(self, targets: np.ndarray) -> np.ndarray:
        """Residuals that all have the variance of the noise, (y − ŷ)ᵢ / √(1 − Hᵢᵢ): Cook & Weisberg (1982), 2.1.1."""
        return self.in_sample(targets) / np.sqrt(1 - np.minimum(self.leverages, MOST_LEVERAGE))[:, None]

    @property
    def leverages(self) -> np.ndarray:
        """The diagonal of H."""
        return np.sum(self.linear.vectors**2, axis=1) + self.basis.vectors**2 @ self.shrinkage

    @property
    def freedom(self) -> float:
        """The degrees of freedom tr H."""
        return self.linear.vectors.shape[1] + float(self.shrinkage.sum())


def best_fit(
    linear: Linear, bases: Sequence[Basis], targets: np.ndarray, undersmooth: float = 1.0, charge: float = 1.0
) -> Fit:
    """The fit with the lowest error among all bases and penalties, its penalty multiplied by `undersmooth`.

    The error is that of generalised cross-validation, computed from projections alone in O(n r q) per basis.
    """
    n = len(targets)
    rest = linear.residuals(targets)
    total = np.sum(rest**2)
    best, lowest = None, np.inf
    for basis in bases:
        energy = np.sum(basis.along(rest) ** 2, axis=1)
        shifts = SHIFTS * basis.values.sum()
        taken = linear.vectors.shape[1]
        shift, error = best_shift(shifts, basis.values, energy, total, taken, n, charge=charge, most=MOST_FREEDOM)
        if best is None or error < lowest:
            best, lowest = (basis, shift), error
    basis, shift = best  # pyright: ignore[reportGeneralTypeIssues]
    return Fit(linear, basis, basis.values / (basis.values + undersmooth * shift), lowest)


def variance_parts(first: Fit, left: np.ndarray, second: Fit, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The contribution of each row to the variance of Σ (A u)ᵢ (B v)ᵢ, and to that of Σ εᵢ (A u)ᵢ (B v)ᵢ with random
    signs ε. Random signs ignore the correlation of a fit's residuals. For noise u and v the first is (A Aᵀ B Bᵀ)ᵢᵢ, the
    second (A Aᵀ)ᵢᵢ (B Bᵀ)ᵢᵢ. If A = B is a projection and H its complement, their ratio is 1 / (1 − Hᵢᵢ). It is 2 for
    the two rows of a label that no other row has: their residuals differ only in sign. Here A = I − Q Qᵀ − U diag(1 −
    left) Uᵀ, and B is the same with `right`. The cost is O(n r²).
    """
    # A Aᵀ = I − Q Qᵀ − U diag(1 − left²) Uᵀ.
    lost_left, lost_right = 1 - left**2, 1 - right**2
    if first.basis is second.basis:  # UᵀU = I
        both = first.basis.vectors**2 @ (lost_left * lost_right)
    else:
        shared = lost_left[:, None] * (first.basis.vectors.T @ second.basis.vectors) * lost_right
        both = np.sum((first.basis.vectors @ shared) * second.basis.vectors, axis=1)
    linear = np.sum(first.linear.vectors**2, axis=1)
    left_alone, right_alone = first.basis.vectors**2 @ lost_left, second.basis.vectors**2 @ lost_right
    truth = 1 - linear - left_alone - right_alone + both
    return np.maximum(truth, 0), (1 - linear - left_alone) * (1 - linear - right_alone)


def variance_ratios(first: Fit, left: np.ndarray, second: Fit, right: np.ndarray) -> np.ndarray:
    """The ratio of the first variance part to the second, (n,); 1 for rows whose residuals are negligible."""
    truth, signed = variance_parts(first, left, second, right)
    return np.divide(truth, signed, out=np.ones_like(truth), where=signed > (1 - MOST_LEVERAGE) ** 2)


def candidates(z: np.ndarray, sample: np.ndarray, linear: Linear, single: int | None = None) -> list[Basis]:
    """Smooth functions of z that do not depend on the targets; landmarks are chosen from the rows `sample`.

    The first are those of all columns together, in median distances, if there are several columns.
    They are functions of the first `single` columns, by default of all. The other columns are indicators of values of
    these. If there are several first columns, one more candidate uses the indicators too, for functions that are smooth
    in one column and differ for each value of another.
    """
    first = z.shape[1] if single is None else single
    whole, sample = sample, sample[:, :first]
    if first == 1:
        kinds = [additive_landmarks(sample), joint_landmarks(sample, 0.4)]
    else:
        along, across = additive_landmarks(sample), joint_landmarks(sample, 1.0)
        kinds = [across, along, along + lighter(across, 0.7), joint_landmarks(sample, 0.6)]
    if 1 < first < z.shape[1]:
        kinds.append(additive_landmarks(sample) + joint_landmarks(whole, 1.0, 0.7))
    wider = (tuple(part.wider(z.shape[1]) for part in kind) for kind in kinds if kind)
    known: dict[int, np.ndarray] = {}

    def values(part: Landmarks) -> np.ndarray:
        """Features of some landmarks; those of the same landmarks with another weight are reused."""
        at = id(part.triangle)
        if at not in known:
            known[at] = replace(part, weight=1.0)(z)
        return part.weight * known[at]

    return [Basis.of_features(kind, [values(part) for part in kind], linear) for kind in wider]


def learned_metric(z: np.ndarray, targets: np.ndarray, linear: Linear, start: Basis) -> Basis:
    """Functions in the metric in which the targets vary: M Mᵀ is the mean of ∇f ∇fᵀ over points for the fit f before.

    `start` are functions in the metric of z itself. Each round takes the mean outer product of the gradients as the new
    metric and fits again (Radhakrishnan et al. 2024); the round with the lowest error is kept. A function of a few
    columns or directions of many then costs no more degrees of freedom than one of few variables. Every direction keeps
    a small weight (METRIC_FLOOR of the trace in all).
    """
    n, d = z.shape
    best, metric = None, np.eye(d)
    for number in range(METRIC_ROUNDS):
        basis = start if number == 0 else along_metric(z, metric, linear)
        fit = best_fit(linear, [basis], targets)
        best = fit if best is None or fit.score < best.score else best
        if number < METRIC_ROUNDS - 1:
            metric = np.zeros((d, d))
            for gradient in _gradients(fit, z, targets):
                metric += gradient.T @ gradient / n
            metric = metric / max(np.trace(metric), 1e-300) + METRIC_FLOOR / d * np.eye(d)
    return best.basis  # pyright: ignore[reportOptionalMemberAccess]


def along_metric(z: np.ndarray, metric: np.ndarray, linear: Linear) -> Basis:
    """Smooth functions in a metric (d, d), in units of the median distance."""
    values, turn = np.linalg.eigh(metric)
    root = turn * np.sqrt(np.maximum(values, 0) / values[-1])
    root = root / median_distance(z @ root)
    return Basis.of((rbf_landmarks(z, root, most=METRIC_LANDMARKS),), z, linear)


def _gradients(fit: Fit, z: np.ndarray, targets: np.ndarray) -> list[np.ndarray]:
    """The gradients ∇f at the rows of z, (n, d) for each target, of f = Σ βₘ k(·, landmarkₘ) plus a linear function."""
    (landmarks,) = fit.basis.landmarks
    energy = fit.basis.vectors.T @ fit.linear.residuals(targets)
    smooth = fit.basis.coordinates @ (fit.shrinkage[:, None] * energy)
    slopes = np.linalg.lstsq(np.column_stack([np.ones(len(z)), z]), targets - landmarks(z) @ smooth, rcond=None)[0][1:]
    weights = scipy.linalg.solve_triangular(landmarks.triangle, smooth, lower=True, trans=1, check_finite=False)
    gram, points = landmarks.gram(z), z @ landmarks.metric
    found = []
    for column, slope in zip(weights.T, slopes.T, strict=True):
        pull = gram * column
        found.append((pull @ landmarks.points - pull.sum(axis=1)[:, None] * points) @ landmarks.metric.T + slope)
    return found
