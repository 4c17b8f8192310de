"""Likelihoods of a hidden variable given an observation.

The message of an observed node is p(observed | x), up to a factor (Song et al. 2011, appendix, equation 28). Three ways
to learn it from pairs (hidden, observed), and any function of the user's:

- `LearnedLikelihood`: the likelihood operator, a density ratio in two kernels; for data of any kind;
- `NoiseLikelihood`: observed = f(x) + Gaussian noise, f a regression; best where noise is additive;
- `CentredLikelihood`: observed features are first regressed to a guess x̂ of x, then x̂ = f(x) + Gaussian noise; for
patches and other long vectors, of which it keeps the part that depends on x.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg

from meanmap.bp.edges.regression import MOST_ROWS, Regression
from meanmap.bp.edges.samples import MOST_PAIRS, NodeSample, labels_of
from meanmap.core.arrays import as_array, check_finite, check_paired, parameter
from meanmap.core.containers import refuse_unread
from meanmap.core.door import Door
from meanmap.core.errors import InputError, KindError, ShapeError
from meanmap.core.language import a_type
from meanmap.core.meant import did_you_mean, listed
from meanmap.core.notes import warn_of
from meanmap.core.pieces.files import ParquetFiles
from meanmap.core.points import count, in_columns, rows, slices, spread_rows
from meanmap.core.tables.chunks import side_by_side
from meanmap.core.tables.doubts import doubts
from meanmap.core.tables.indices import check_order
from meanmap.core.types import Data, Points
from meanmap.kernels.base import Kernel
from meanmap.kernels.reading import check_alike, read_points
from meanmap.learning.default import kernel_for

__all__ = [
    "CentredLikelihood",
    "Likelihood",
    "NoiseLikelihood",
    "Tempered",
    "UserLikelihood",
    "columns",
    "learn_likelihoods",
    "numbers",
    "read_likelihood",
    "sample_of",
]


# Likelihoods that are computed at once: they stay in a core's cache.
IN_CACHE = 1 << 16


class Likelihood(ABC):
    """p(observed | x) as a function of x, up to a factor."""

    @property
    def width(self) -> int:
        """The number of columns of an observation; 1 if it is not a vector."""
        return 1

    @abstractmethod
    def at(self, observed: Points, points: Points) -> np.ndarray:
        """Values (N, n) for N observations and n points x that were read, the largest of each row 1."""

    def at_each(self, observed: Points, points: np.ndarray) -> np.ndarray:
        """Values (N, n) where each observation has points of its own, (N, n, d); a row may be zero at all of them."""
        return np.concatenate([self.at(observed[i : i + 1], points[i]) for i in range(len(points))])


@dataclass(frozen=True, eq=False)
class UserLikelihood(Likelihood):
    """Any function: (N, ...) observations and (n,) or (n, d) points give (N, n) values of at least 0.

    Where the hidden variable is a label, `hidden` says which label each point is, and the function gets these.
    """

    function: Callable[[Any, Any], Any]
    hidden: NodeSample | None = None

    def at(self, observed: Points, points: Points) -> np.ndarray:
        """The values of the function, checked."""
        values = self._values(observed, points)
        top = values.max(axis=1)
        if not (top > 0).all():
            raise InputError(f"the likelihood of observation {int(np.argmin(top))} is zero at every point.")
        return values / top[:, None]

    def at_each(self, observed: Points, points: np.ndarray) -> np.ndarray:
        """The values of the function for each observation."""
        values = np.concatenate([self._values(observed[i : i + 1], points[i]) for i in range(len(points))])
        top = values.max(axis=1, keepdims=True)
        return values / np.where(top > 0, top, 1)

    def _values(self, observed: Points, points: Points) -> np.ndarray:
        x = points[:, 0] if in_columns(points) and points.shape[1] == 1 else points
        x = x if self.hidden is None or self.hidden.labels is None else self.hidden.named(points)
        values = as_array(self.function(observed, x), "the likelihood")
        shape = (len(observed), count(points))
        if values.shape != shape:
            raise ShapeError(
                f"the likelihood gave shape {values.shape}; expected {shape}: a row for each observation, a column for "
                "each point."
            )
        check_finite(values, "the likelihood")
        if (values < 0).any():
            raise InputError(f"the likelihood has the negative value {values.min():.3g}.")
        return values


@dataclass(frozen=True, eq=False)
class Tempered(Likelihood):
    """p(observed | x)^a: observations whose noise is shared by neighbours count as fewer.

    Beliefs multiply the likelihoods of all nodes as if their noise were independent. Where it is not, as with guesses
    from features that change slowly over an image, a power a < 1 counts n observations as a n (Pauli, Racugno & Ventura
    2011). Choose it by the error on held-out data.

    Examples
    --------
    >>> certain = UserLikelihood(lambda y, x: np.exp(-((y[:, None] - x) ** 2)))
    >>> Tempered(certain, 0.5).at(np.array([0.0]), np.array([[0.0], [1.0]])).round(3).tolist()
    [[1.0, 0.607]]
    """

    likelihood: Likelihood
    power: float

    def __post_init__(self):
        parameter(self.power, "power", axes=0)

    @property
    def width(self) -> int:
        """The number of columns of the likelihood's observations."""
        return self.likelihood.width

    def at(self, observed: Points, points: Points) -> np.ndarray:
        """Values to the power."""
        return self.likelihood.at(observed, points) ** self.power

    def at_each(self, observed: Points, points: np.ndarray) -> np.ndarray:
        """Values to the power."""
        return self.likelihood.at_each(observed, points) ** self.power


def columns(points: Points) -> int:
    """The number of columns of points that were read; 1 if they are not vectors."""
    return points.shape[1] if in_columns(points) else 1


def sample_of(data: Any, kernel: Kernel | None, argument: str) -> NodeSample:
    """Data read by a kernel; without one, by the default for their kind."""
    kernel_or_default = kernel_for(data, argument=argument) if kernel is None else kernel
    with Door() as door:
        points = read_points(kernel_or_default, data, argument, door)
    return NodeSample(
        kernel_or_default, points, np.ndim(data) == 1, kernel is not None, labels_of(kernel_or_default, data)
    )


def numbers(data: Data, argument: str) -> np.ndarray:
    """Numbers or vectors as finite rows (m, d)."""
    array = as_array(data, argument).astype(np.float64)
    check_finite(array, argument)
    if array.ndim not in (1, 2):
        raise ShapeError(f"{argument} has shape {array.shape}; expected (m,) numbers or (m, d) vectors.")
    return array.reshape(len(array), -1)


def read_likelihood(given: object) -> Any:
    """A likelihood, a class of them to learn, or a function."""
    if isinstance(given, Likelihood) or (isinstance(given, type) and issubclass(given, Likelihood)):
        return given
    if callable(given):
        return UserLikelihood(given)
    raise KindError(
        f"likelihood is {given!r}; expected mm.bp.NoiseLikelihood, CentredLikelihood or LearnedLikelihood (learned "
        "from pairs), one that was fitted, or a function of observations (N, ...) and points (n,) that gives (N, n)."
    )


def learn_likelihoods(
    samples: Mapping, observed: Data, likelihood: object, default: type[Likelihood]
) -> dict[Hashable, Likelihood]:
    """A likelihood for each kind that is observed: learned from pairs, or given."""
    kinds = list(samples)
    pairs = observed if isinstance(observed, Mapping) else {} if observed is None else {kinds[0]: observed}
    every = {} if likelihood is None else dict.fromkeys(kinds, likelihood)
    given = likelihood if isinstance(likelihood, Mapping) else every
    for argument, named in (("observed", pairs), ("likelihood", given)):
        for name in (name for name in named if name not in kinds):
            meant = did_you_mean(name, kinds)
            raise InputError(f"{argument} names the kind {name!r}{meant}; the variables are of {listed(kinds)}.")
    found = {}
    for kind in kinds:
        chosen = read_likelihood(given.get(kind, default))
        if isinstance(chosen, UserLikelihood):
            found[kind] = UserLikelihood(chosen.function, samples[kind])
        elif isinstance(chosen, Likelihood):
            found[kind] = chosen
        elif kind in pairs:
            together = _together(pairs[kind])
            warn_of(doubts(together, ("observed[0]", "observed[1]"), apart=True, then="put nan there"))
            found[kind] = chosen.fit(*together)
    return found


def _together(pair: Any) -> list[Any]:
    """Values and observations of them, in memory."""
    refuse_unread(pair, "observed")
    if ParquetFiles.holds(pair):
        raise KindError(f"observed is {a_type(pair)}; expected a pair of samples (hidden, observed).")
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        raise KindError(f"observed is {a_type(pair)}; expected a pair of samples (hidden, observed).")
    return side_by_side(list(pair), "observed", MOST_PAIRS)


# Groups are left out in this many folds.
FOLDS = 5


@dataclass(frozen=True, eq=False)
class NoiseLikelihood(Likelihood):
    """observed = f(x) + noise: f by regression, the noise Gaussian with the covariance of the residuals.

    Made by `NoiseLikelihood.fit`. `covariance` is that of leave-one-out residuals.
    """

    regression: Regression
    covariance: np.ndarray

    @classmethod
    def fit(cls, hidden: Data, observed: Data) -> "NoiseLikelihood":
        """Fit to pairs of a hidden variable of any kind and observed numbers or vectors.

        Examples
        --------
        >>> rng = np.random.default_rng(0)
        >>> x = rng.normal(size=1000)
        >>> likelihood = NoiseLikelihood.fit(x, 2 * x + 0.5 * rng.normal(size=1000))
        >>> likelihood.covariance.round(1).tolist()
        [[0.3]]
        """
        check_order((hidden, observed), ("hidden", "observed"))
        return cls.of(sample_of(hidden, None, "hidden"), numbers(observed, "observed"))

    @classmethod
    def of(cls, hidden: NodeSample, observed: np.ndarray) -> "NoiseLikelihood":
        """Fit to a node sample and vectors (m, d)."""
        check_paired(hidden.count, len(observed), "hidden", "observed")
        regression, left = Regression.fit(hidden, observed)
        covariance = left.T @ left / len(left)
        # A direction without noise would make one value certain: a millionth of the spread keeps the density finite.
        covariance += 1e-6 * np.diag(np.maximum(observed.var(axis=0), np.finfo(float).tiny))
        return cls(regression, covariance)

    @property
    def width(self) -> int:
        """d, how many columns an observation has."""
        return len(self.covariance)

    def at(self, observed: Points, points: Points) -> np.ndarray:
        """exp(−½ (y − f(x))ᵀ Σ⁻¹ (y − f(x))), scaled."""
        a, b = self._whitened(observed, points)
        found = np.empty((len(a), len(b)))
        for part in slices(len(a), max(IN_CACHE // len(b), 1)):
            squares = np.subtract(np.sum(b**2, axis=1), 2 * a[part] @ b.T, out=found[part])  # |a|² is in a whole row
            squares -= squares.min(axis=1, keepdims=True)
            squares /= -2
            np.exp(squares, out=squares)
        return found

    def at_each(self, observed: Points, points: np.ndarray) -> np.ndarray:
        """Likelihoods where each observation has points of its own, (N, n), all at once."""
        a, b = self._whitened(observed, points.reshape(-1, points.shape[-1]))
        squares = np.sum((a[:, None] - b.reshape(*points.shape[:2], -1)) ** 2, axis=2)
        squares -= squares.min(axis=1, keepdims=True)
        return np.exp(-squares / 2)

    def _whitened(self, observed: Points, points: Points) -> tuple[np.ndarray, np.ndarray]:
        """Observations, and what is expected at points, in units of the noise."""
        y = numbers(observed, "observed")
        triangle = scipy.linalg.cholesky(self.covariance, lower=True)
        if y.shape[1] != len(triangle):
            raise ShapeError(f"the observations have {y.shape[1]} columns; expected {len(triangle)} as when learned.")
        a, b = (scipy.linalg.solve_triangular(triangle, v.T, lower=True).T for v in (y, self.regression(points)))
        return a, b


@dataclass(frozen=True, eq=False)
class CentredLikelihood(Likelihood):
    """A guess x̂(observed) by regression, and the noise of that guess given x.

    Song et al. (2011), appendix 1, centre a Gaussian at x̂. As a likelihood that counts p(x) twice, because x̂ is shrunk
    towards the mean; here x̂ is an observation of its own, x̂ = f(x) + noise, learned from leave-one-out guesses. Made by
    `CentredLikelihood.fit`.
    """

    regression: Regression
    noise: NoiseLikelihood

    @classmethod
    def fit(
        cls, hidden: Data, observed: Data, kernel: Kernel | None = None, groups: object = None
    ) -> "CentredLikelihood":
        """Fit to pairs.

        Parameters
        ----------
        hidden : array (m,) or (m, d)
            Numbers or vectors.
        observed : m points
            Of any kind.
        kernel : Kernel, optional
            Of the observations.
        groups : labels (m,), optional
            The image or person each pair is from. How good guesses are is then measured by leaving out whole groups:
            where pairs of one group are alike, leaving out single ones says too little.

        Examples
        --------
        >>> rng = np.random.default_rng(0)
        >>> x = rng.normal(size=500)
        >>> patch = x[:, None] + rng.normal(size=(500, 4))
        >>> likelihood = CentredLikelihood.fit(x, patch)
        >>> low, high = likelihood.at(np.ones((1, 4)), np.array([[-1.0], [1.0]]))[0]
        >>> bool(low < 0.1 < high)
        True
        """
        check_order((hidden, observed, groups), ("hidden", "observed", "groups"))
        x = numbers(hidden, "hidden")
        seen = sample_of(observed, kernel, "observed")
        check_paired(len(x), seen.count, "hidden", "observed")
        regression, left = Regression.fit(seen, x)
        if groups is None:
            chosen = spread_rows(len(x), MOST_ROWS)
            truth, guess = x[chosen], x[chosen] - left
        else:
            truth, guess = x, _guesses(seen, x, groups)
        return cls(regression, NoiseLikelihood.of(sample_of(truth, None, "hidden"), guess))

    @property
    def width(self) -> int:
        """That of the observations it was learned from."""
        return columns(self.regression.sample.points)

    def at(self, observed: Points, points: Points) -> np.ndarray:
        """p(x̂ | x)."""
        return self.noise.at(self._guess(observed), points)

    def at_each(self, observed: Points, points: np.ndarray) -> np.ndarray:
        """Likelihoods where each observation has points of its own, (N, n), all at once."""
        return self.noise.at_each(self._guess(observed), points)

    def _guess(self, observed: Points) -> np.ndarray:
        """x̂ of each observation."""
        sample = self.regression.sample
        with Door() as door:
            read = read_points(sample.kernel, observed, "observed", door)
        check_alike(read, sample.points, "the observations", "those that were learned from")
        return self.regression(read)


def _guesses(seen: NodeSample, x: np.ndarray, groups: object) -> np.ndarray:
    """Guesses (m, d) for the points of each group by regressions that saw none of its fold."""
    fold = np.unique(as_array(groups, "groups"), return_inverse=True)[1]
    if fold.shape != (len(x),):
        raise ShapeError(f"groups has shape {fold.shape}; expected ({len(x)},), a group for each pair.")
    if fold.max() == 0:
        raise InputError("groups names one group only; expected two or more, so that one can be left out.")
    guess = np.empty_like(x)
    for k in range(min(FOLDS, fold.max() + 1)):
        out = fold % FOLDS == k
        kept = np.flatnonzero(~out)
        sample = NodeSample(seen.kernel, rows(seen.points, kept), seen.flat, seen.given)
        guess[out] = Regression.fit(sample, x[kept])[0](rows(seen.points, np.flatnonzero(out)))
    return guess
