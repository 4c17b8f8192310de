"""The conditional test in finite coordinates, streamed: a few passes over blocks of rows, never n × n."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from meanmap.core.points import slices
from meanmap.core.progress import track
from meanmap.linalg.moments import Moments
from meanmap.stats.conditional.landmarks import Landmarks, median_distance, rbf_landmarks
from meanmap.stats.conditional.regression import MOST_FREEDOM, ROUNDING, SHIFTS
from meanmap.stats.conditional.residuals import UNDERSMOOTH, Residuals
from meanmap.stats.conditional.statistics import LOCAL
from meanmap.stats.conditional.variables import Variable

__all__ = ["Streamed", "streamed"]

BLOCK = 4096
# Principal features of each side, and functions of z that dependence is looked for along: 8 × 8 × 5 products a row.
SIDE_FEATURES, LOCAL_FUNCTIONS = 8, 4


@dataclass(frozen=True)
class StreamedFit:
    """A regression on z known by its normal equations.

    Attributes
    ----------
    landmarks : tuple of Landmarks
        The smooth functions.
    turn : array (functions, q + r)
        From 1, the columns of z and the landmarks' features to an orthonormal basis of the data.
    shrinkage : array (q + r,)
        How much of each direction is fitted, 1 for the linear ones.
    weights : array (q + r, targets)
        The coefficients.
    """

    landmarks: tuple[Landmarks, ...]
    turn: np.ndarray
    shrinkage: np.ndarray
    weights: np.ndarray

    @classmethod
    def of(
        cls, landmarks: tuple[Landmarks, ...], z: np.ndarray, targets: Callable, undersmooth: float = 1.0
    ) -> "StreamedFit":
        """One pass; `targets` gives those of a slice of rows."""
        q, size = 1 + z.shape[1], 1 + z.shape[1] + sum(len(part.points) for part in landmarks)
        beside = (
            np.concatenate([_functions(landmarks, z[rows]), targets(rows)], axis=1)
            for rows in track(slices(len(z), BLOCK), "regressions")
        )
        products = Moments.merged(map(Moments.of, beside)).products
        normal, moments, total = products[:size, :size], products[:size, size:], np.trace(products[size:, size:])
        free = _orthonormal(normal[:q, :q], ROUNDING, 0.0)[0]
        # Gram–Schmidt in coordinates: the smooth functions less their linear part.
        smooth = np.concatenate([-free @ (free.T @ normal[:q, q:]), np.eye(len(normal) - q)])
        bent, values = _orthonormal(smooth.T @ normal @ smooth, 1e-7, ROUNDING * np.trace(normal[q:, q:]))
        turn = np.zeros((len(normal), free.shape[1] + bent.shape[1]))
        turn[:q, : free.shape[1]], turn[:, free.shape[1] :] = free, smooth @ bent
        projected = turn.T @ moments
        rest = total - np.sum(projected[: free.shape[1]] ** 2)
        energy = np.sum(projected[free.shape[1] :] ** 2, axis=1)
        shift = undersmooth * _best_shift(values, energy, rest, free.shape[1], len(z))
        shrinkage = np.concatenate([np.ones(free.shape[1]), values / (values + shift)])
        return cls(landmarks, turn, shrinkage, shrinkage[:, None] * projected)

    def basis(self, z: np.ndarray) -> np.ndarray:
        """The orthonormal functions at some rows of z."""
        return _functions(self.landmarks, z) @ self.turn

    def in_sample(self, basis: np.ndarray, targets: np.ndarray) -> np.ndarray:
        """Residuals of rows with this basis."""
        return targets - basis @ self.weights

    def standardised(self, basis: np.ndarray, targets: np.ndarray) -> np.ndarray:
        """Residuals enlarged to the variance of the noise."""
        return self.in_sample(basis, targets) / np.sqrt(1 - np.minimum(basis**2 @ self.shrinkage, 0.99))[:, None]


class _Overlap:
    """The variance ratio of two streamed smoothers, gathered by blocks (see `variance_ratio`)."""

    def __init__(self, first: StreamedFit, second: StreamedFit):
        self.lost = [1 - (1 - fit.shrinkage) ** 2 for fit in (first, second)]
        self.shared: Any = 0.0
        self.kept, self.n = 0.0, 0

    def add(self, left: np.ndarray, right: np.ndarray) -> None:
        self.shared = self.shared + left.T @ right
        self.kept += float((1 - left**2 @ self.lost[0]) @ (1 - right**2 @ self.lost[1]))
        self.n += len(left)

    @property
    def ratio(self) -> float:
        first, second = self.lost
        return float((self.n - first.sum() - second.sum() + first @ self.shared**2 @ second) / self.kept)


@dataclass(frozen=True)
class Streamed:
    """What a pass over the data leaves: |Σ wᵢ|²/n, the matrix Σ wᵢ wᵢᵀ/n, and the variance ratio."""

    statistic: float
    covariance: np.ndarray
    ratio: float
    freedom: float


def streamed(variables: tuple[Variable, Variable], pilots: tuple[Residuals, Residuals], z: np.ndarray) -> Streamed:
    """The statistic of all rows, with every choice (landmarks, metrics, kernels, features) made by the pilots.

    The pilots are the residuals of a sample of the rows. Three passes: the first regressions; their residuals and the
    second regressions; the products wᵢ = uᵢ ⊗ vᵢ ⊗ ζ(zᵢ). Cost O(n (r² + p⁴ s²)), memory O(n) for the residuals of the
    numbers and the rest O(r² + block · r).
    """
    firsts = [
        None
        if pilot.first is None
        else StreamedFit.of(pilot.first.basis.landmarks, z, lambda rows, v=v: v.numbers[rows], UNDERSMOOTH)
        for v, pilot in zip(variables, pilots, strict=True)
    ]
    numbers = [np.empty_like(v.numbers) for v in variables]
    twice = None if firsts[0] is None or firsts[1] is None else _Overlap(firsts[0], firsts[1])
    for rows in track(slices(len(z), BLOCK), "residuals"):
        bases = [None if fit is None else fit.basis(z[rows]) for fit in firsts]
        if twice is not None:
            twice.add(*bases)  # pyright: ignore[reportArgumentType]
        for out, fit, basis, v in zip(numbers, firsts, bases, variables, strict=True):
            if fit is not None and basis is not None:
                out[rows] = fit.standardised(basis, v.numbers[rows])
    sides = [_side(v, e, p) for v, e, p in zip(variables, numbers, pilots, strict=True)]
    seconds = [StreamedFit.of(pilot.second.basis.landmarks, z, side) for pilot, side in zip(pilots, sides, strict=True)]
    once = _Overlap(seconds[0], seconds[1])
    local = _local(z)

    def products() -> Iterator[Moments]:
        for rows in track(slices(len(z), BLOCK), "products"):
            bases = [fit.basis(z[rows]) for fit in seconds]
            once.add(*bases)
            left, right = (f.in_sample(b, side(rows)) for f, b, side in zip(seconds, bases, sides, strict=True))
            yield Moments.of(np.einsum("na,nb,nc->nabc", left, right, local(rows)).reshape(len(left), -1))

    total = Moments.merged(products())
    share = pilots[0].share * pilots[1].share
    ratio = once.ratio if twice is None else once.ratio + share * max(0.0, twice.ratio - once.ratio)
    freedom = max(float(fit.shrinkage.sum()) for fit in [*firsts, *seconds] if fit is not None)
    return Streamed(float(total.sums @ total.sums) / len(z), total.second, ratio, freedom)


def _side(variable: Variable, numbers: np.ndarray, pilot: Residuals) -> Callable:
    """The principal features of one side at a slice of rows."""
    assert pilot.landmarks is not None
    features = pilot.landmarks
    raw = features(pilot.columns)
    centre = raw.mean(axis=0)
    turn = np.linalg.eigh((raw - centre).T @ (raw - centre))[1][:, ::-1][:, :SIDE_FEATURES]

    def at(rows: slice) -> np.ndarray:
        columns = np.concatenate([numbers[rows] / pilot.scales, variable.indicators[rows]], axis=1)
        return (features(columns) - centre) @ turn

    return at


def _local(z: np.ndarray) -> Callable:
    """A constant and the principal functions of the kernel on z, at a slice of rows."""
    sample = z[:: -(-len(z) // 1000)]
    features = rbf_landmarks(sample, np.eye(z.shape[1]) / median_distance(sample))
    values = features(sample)
    turn = np.linalg.eigh(values.T @ values)[1][:, ::-1][:, :LOCAL_FUNCTIONS]

    def at(rows: slice) -> np.ndarray:
        values = np.sqrt(LOCAL) * features(z[rows]) @ turn
        return np.column_stack([np.full(len(values), np.sqrt(1 - LOCAL)), values])

    return at


def _functions(landmarks: tuple[Landmarks, ...], z: np.ndarray) -> np.ndarray:
    return np.concatenate([np.ones((len(z), 1)), z, *(part(z) for part in landmarks)], axis=1)


def _orthonormal(inner: np.ndarray, tolerance: float, rounding: float) -> tuple[np.ndarray, np.ndarray]:
    """Combinations of functions with this matrix of inner products that are orthonormal, and their eigenvalues."""
    values, vectors = np.linalg.eigh(inner)
    kept = values > max(tolerance * values[-1], rounding)
    return vectors[:, kept] / np.sqrt(values[kept]), values[kept]


def _best_shift(values: np.ndarray, energy: np.ndarray, rest: float, q: int, n: int) -> float:
    """The shift with the lowest generalised cross-validation error."""
    shifts = SHIFTS * values.sum()
    shrinkage = values / (values + shifts[:, None])
    squares = rest - energy.sum() + (1 - shrinkage) ** 2 @ energy
    freedom = (q + shrinkage.sum(axis=1)) / n
    scores = np.where(freedom < MOST_FREEDOM, squares / (1 - np.minimum(freedom, MOST_FREEDOM)) ** 2, np.inf)
    return float(shifts[scores.argmin()])
