"""The likelihood operator: what any observation says, as a density ratio in two kernels."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from meanmap.bp.edges.coordinates import MOST_FEATURES, TOLERANCE, coordinates, rescaled, transformed
from meanmap.bp.edges.floors import FLOOR, raised
from meanmap.bp.edges.observations import Likelihood, check_pairs, columns, sample_of
from meanmap.bp.edges.samples import NodeSample
from meanmap.core.door import Door
from meanmap.core.points import rows, spread_rows
from meanmap.core.types import Data, Points
from meanmap.features.lowrank import PivotedCholesky
from meanmap.kernels.base import Kernel
from meanmap.kernels.reading import check_alike, read_points
from meanmap.learning.choice import least
from meanmap.learning.density_ratio import held_out_errors, ratio_operator
from meanmap.linalg.ridge import Ridge

__all__ = ["LearnedLikelihood"]

# Likelihoods are learned from up to so many pairs: one function of two variables needs no more.
MOST_ROWS = 4000
# Multiples of the median distance among which lengthscales are chosen.
LENGTHSCALES = (0.25, 0.35, 0.5, 0.7, 1.0, 1.4)
RIDGES = np.geomspace(1e-5, 1e-1, 9)
FOLDS = 10


@dataclass(frozen=True, eq=False)
class LearnedLikelihood(Likelihood):
    """The likelihood operator: φ(y)ᵀ M ψ(x), M = (C_yy + λ I)⁻¹ C_yx (C_xx + λ I)⁻¹ (Song et al. 2010, equation 8).

    An estimate of p(x, y) / (p(x) p(y)); both lengthscales by one multiple of their medians, and the ridge relative to
    each kernel's size, have the least held-out error of it. Made by `LearnedLikelihood.fit`.
    """

    observed: NodeSample
    phi: PivotedCholesky
    psi: PivotedCholesky
    matrix: np.ndarray
    ridge: float
    multiple: float

    @classmethod
    def fit(cls, hidden: Data, observed: Data, kernel: Kernel | None = None) -> "LearnedLikelihood":
        """From pairs; `kernel` is that of the observations, by default RBF, or Delta for labels.

        Examples
        --------
        >>> rng = np.random.default_rng(0)
        >>> x = rng.normal(size=400)
        >>> likelihood = LearnedLikelihood.fit(x, x + 0.5 * rng.normal(size=400))
        >>> low, high = likelihood.at([1.0], np.array([[-1.0], [1.0]]))[0]
        >>> bool(low < 0.2 < high)
        True
        """
        return cls.between(sample_of(hidden, None, "hidden"), sample_of(observed, kernel, "observed"))

    @classmethod
    def between(cls, hidden: NodeSample, observed: NodeSample, pairs: np.ndarray | None = None) -> "LearnedLikelihood":
        """From samples that were read, `pairs` (m, 2) rows (observed, hidden) of them."""
        if pairs is None:
            check_pairs(hidden.count, observed.count)
            pairs = np.repeat(np.arange(hidden.count)[:, None], 2, axis=1)
        pairs = pairs[spread_rows(len(pairs), MOST_ROWS)]
        folds = np.arange(len(pairs)) % FOLDS
        seen = [rows(observed.points, pairs[:, 0]), rows(hidden.points, pairs[:, 1])]

        def score(multiple: float) -> tuple[np.ndarray, Any]:
            kernels = [rescaled(sample, multiple) for sample in (observed, hidden)]
            features = [coordinates(k, p, TOLERANCE, MOST_FEATURES) for k, p in zip(kernels, seen, strict=True)]
            phi, psi = (transformed(f, p) for f, p in zip(features, seen, strict=True))
            grids = [RIDGES * np.sum(f**2) / len(f) for f in (phi, psi)]
            errors = [held_out_errors(phi, psi, folds == i, *grids) for i in np.unique(folds)]
            return np.mean(errors, axis=0), (features, phi, psi, grids)

        multiples = LENGTHSCALES if observed.searched or hidden.searched else (1.0,)
        multiple, at, (features, phi, psi, grids) = least(multiples, score, narrower=True)
        factors = (Ridge.factor_features(f, ridge=grid[at]) for f, grid in zip((phi, psi), grids, strict=True))
        matrix = ratio_operator(phi, psi, *factors)
        return cls(observed, features[0], features[1], matrix, float(grids[0][at]), multiple)

    @property
    def width(self) -> int:
        """That of the observations it was learned from."""
        return columns(self.observed.points)

    def at(self, observed: Data, points: Points) -> np.ndarray:
        """The density ratio; where it comes out small or negative, `FLOOR` of its mean."""
        return self.at_points(self._read(observed), points)

    def at_points(self, read: Any, points: Points) -> np.ndarray:
        """Likelihoods (N, n) of observations that were read."""
        return _positive(transformed(self.phi, read) @ self.matrix @ transformed(self.psi, points).T)

    def at_each(self, observed: Data, points: np.ndarray) -> np.ndarray:
        """Likelihoods where each observation has points of its own, (N, n), all at once."""
        there = transformed(self.psi, points.reshape(-1, points.shape[-1])).reshape(*points.shape[:2], -1)
        return _positive(np.einsum("ir,ijr->ij", transformed(self.phi, self._read(observed)) @ self.matrix, there))

    def _read(self, observed: Data) -> Any:
        with Door() as door:
            read = read_points(self.observed.kernel, observed, "observed", door)
        check_alike(read, self.observed.points, "the observations", "those that were learned from")
        return read


def _positive(values: np.ndarray) -> np.ndarray:
    """Scaled rows of a density ratio. Nothing positive is left far from all that was seen: that says nothing."""
    return raised(values, FLOOR)
