"""Independence tests in one pass over the data: moments of features, and the limit given by their spectra."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from meanmap.core.arrays import check_rows
from meanmap.core.door import Door
from meanmap.core.points import count, rows
from meanmap.core.types import Data
from meanmap.features.lowrank import PivotedCholesky
from meanmap.kernels.base import Kernel
from meanmap.kernels.reading import read_points
from meanmap.linalg.moments import Moments
from meanmap.stats.limits import gamma_null, spectral_null
from meanmap.stats.result import Null
from meanmap.stats.settings import LEAST_POINTS

__all__ = ["BLOCK", "MOST_FEATURES", "TRACE_TOLERANCE", "JointMoments", "features_and_values", "features_of"]

# Features of a variable are added until this share of the trace of its Gram matrix is left, or until there are this
# many. Φ Φᵀ is a kernel too, chosen from each variable alone, so the level does not depend on the choice.
TRACE_TOLERANCE = 1e-4
MOST_FEATURES = 128
# The number of rows read and mapped at once. It is fixed so that rounding does not depend on the source of the data.
BLOCK = 4096


def features_of(
    kernel: Kernel,
    sample: Data,
    name: str,
    generator: np.random.Generator,
    door: Door,
    tolerance: float = TRACE_TOLERANCE,
    most: int = MOST_FEATURES,
) -> PivotedCholesky:
    """Features of one variable, fitted to a sample of it in random order.

    If several points are equally good pivots, such as the first rows of new labels, the first is taken. In the order of
    the data the pivots of two variables could be the same rows, which would make the features of both depend on each
    other.
    """
    points = read_points(kernel, sample, name, door)
    check_rows(count(points), name, LEAST_POINTS)
    points = rows(points, generator.permutation(count(points)))
    return PivotedCholesky.of_points(kernel, points, door, tolerance=tolerance, max_rank=most)


@dataclass(frozen=True)
class JointMoments:
    """Moments of the features φ of x and ψ of y side by side; `split` is the number of those of x."""

    moments: Moments
    split: int

    @property
    def n(self) -> int:
        """The number of pairs."""
        return self.moments.n

    @cached_property
    def joint(self) -> np.ndarray:
        """The covariance of all features, divided by n."""
        return self.moments.covariance(lost=0)

    @property
    def hsic(self) -> float:
        """‖Cov(φ, ψ)‖², the biased HSIC of the kernels that the features define."""
        return float(np.sum(self.joint[: self.split, self.split :] ** 2))

    def spectra(self) -> tuple[np.ndarray, np.ndarray]:
        """The eigenvalues of the covariances of φ and of ψ."""
        parts = self.joint[: self.split, : self.split], self.joint[self.split :, self.split :]
        x, y = (np.maximum(np.linalg.eigvalsh(part), 0) for part in parts)
        return x, y

    def limit(self, kind: str, n_draws: int, generator: np.random.Generator) -> Null:
        """The limit of n HSIC, Σ λᵢ μⱼ zᵢⱼ² with the eigenvalues of both covariances (Gretton et al. 2007)."""
        x, y = self.spectra()
        # The mean of n HSIC over permutations is the mean of the limit times n / (n − 1).
        x = x * self.n / (self.n - 1)
        if kind == "gamma":
            variance = 2 * np.sum(x**2) * np.sum(y**2)
            return gamma_null(float(x.sum() * y.sum()), float(variance), n_draws, generator)
        products = np.sort(np.outer(x, y).ravel())[::-1]
        # Together, the smallest products that are left out add less than this share of the mean, and almost nothing to
        # the variance.
        kept = products[np.cumsum(products) <= (1 - 1e-6) * products.sum()]
        return spectral_null(kept if len(kept) else products[:1], n_draws, generator)


def features_and_values(
    kernel: Kernel, data: Data, name: str, generator: np.random.Generator, door: Door, most: int = MOST_FEATURES
) -> tuple[PivotedCholesky, np.ndarray]:
    """Features fitted to all points of one variable, as by `features_of`, and their centred values, (n, r)."""
    points = read_points(kernel, data, name, door)
    order = generator.permutation(count(points))
    feature, values = PivotedCholesky.with_values(kernel, rows(points, order), door, TRACE_TOLERANCE, most)
    phi = np.empty(values.shape)
    phi[order] = values - values.mean(axis=0)
    return feature, phi
