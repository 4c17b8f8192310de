"""What an observation says about the variable behind it.

The message of an observed node is p(observed | x), up to a factor (Song et al. 2011, appendix, equation 28). Three ways
to learn it from pairs (hidden, observed), and any function of the user's:

- `LearnedLikelihood`: the likelihood operator, a density ratio in two kernels; for data of any kind;
- `NoiseLikelihood`: observed = f(x) + Gaussian noise, f a regression; best where noise is additive;
- `CentredLikelihood`: observed features are first regressed to a guess x̂ of x, then x̂ = f(x) + Gaussian noise; for
  patches and other long vectors, of which it keeps what says something about x.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from meanmap.bp.edges.samples import NodeSample, labels_of
from meanmap.core.arrays import as_array, check_finite, parameter
from meanmap.core.door import Door
from meanmap.core.errors import InputError, KindError, ShapeError
from meanmap.core.points import count
from meanmap.core.types import Data, Points
from meanmap.kernels.base import Kernel
from meanmap.kernels.reading import read_points
from meanmap.learning.default import kernel_for

__all__ = [
    "Likelihood",
    "Tempered",
    "UserLikelihood",
    "check_pairs",
    "columns",
    "learn_likelihoods",
    "numbers",
    "read_likelihood",
    "sample_of",
]


class Likelihood(ABC):
    """p(observed | x) as a function of x, up to a factor."""

    @property
    def width(self) -> int:
        """How many columns an observation has; 1 where it is no vector."""
        return 1

    @abstractmethod
    def at(self, observed: Data, points: Points) -> np.ndarray:
        """Values (N, n) for N observations and n points x that were read, the largest of each row 1."""

    def at_each(self, observed: Data, points: np.ndarray) -> np.ndarray:
        """Values (N, n) where each observation has points of its own, (N, n, d); a row may be zero at all of them."""
        return np.concatenate([self.at(observed[i : i + 1], points[i]) for i in range(len(points))])


@dataclass(frozen=True, eq=False)
class UserLikelihood(Likelihood):
    """Any function: (N, ...) observations and (n,) or (n, d) points give (N, n) values of at least 0.

    Where the hidden variable is a label, `hidden` says which label each point is, and the function gets these.
    """

    function: Callable[[Any, Any], Any]
    hidden: NodeSample | None = None

    def at(self, observed: Data, points: Points) -> np.ndarray:
        """What the function gives, checked."""
        values = self._values(observed, points)
        top = values.max(axis=1)
        if not (top > 0).all():
            raise InputError(f"the likelihood of observation {int(np.argmin(top))} is zero at every point.")
        return values / top[:, None]

    def at_each(self, observed: Data, points: np.ndarray) -> np.ndarray:
        """What the function gives for each observation."""
        values = np.concatenate([self._values(observed[i : i + 1], points[i]) for i in range(len(points))])
        top = values.max(axis=1, keepdims=True)
        return values / np.where(top > 0, top, 1)

    def _values(self, observed: Data, points: Points) -> np.ndarray:
        x = points[:, 0] if isinstance(points, np.ndarray) and points.shape[1:] == (1,) else points
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
    2011). Choose it by the error on data that were left out.

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
        """That of the likelihood."""
        return self.likelihood.width

    def at(self, observed: Data, points: Points) -> np.ndarray:
        """Values to the power."""
        return self.likelihood.at(observed, points) ** self.power

    def at_each(self, observed: Data, points: np.ndarray) -> np.ndarray:
        """Values to the power."""
        return self.likelihood.at_each(observed, points) ** self.power


def columns(points: Points) -> int:
    """How many columns points have that were read; 1 where they are no vectors."""
    return points.shape[1] if isinstance(points, np.ndarray) and points.ndim == 2 else 1


def sample_of(data: Data, kernel: Kernel | None, argument: str) -> NodeSample:
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


def check_pairs(hidden: int, observed: int) -> None:
    """As many of each."""
    if hidden != observed:
        raise ShapeError(f"hidden has {hidden} points and observed {observed}; expected pairs.")


def read_likelihood(given: Any) -> Any:
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
    samples: Mapping, observed: Data, likelihood: Any, default: type[Likelihood]
) -> dict[Hashable, Likelihood]:
    """A likelihood for each kind that is observed: learned from pairs, or given."""
    kinds = list(samples)
    pairs = observed if isinstance(observed, Mapping) else {} if observed is None else {kinds[0]: observed}
    every = {} if likelihood is None else dict.fromkeys(kinds, likelihood)
    given = likelihood if isinstance(likelihood, Mapping) else every
    found = {}
    for kind in kinds:
        chosen = read_likelihood(given.get(kind, default))
        if isinstance(chosen, UserLikelihood):
            found[kind] = UserLikelihood(chosen.function, samples[kind])
        elif isinstance(chosen, Likelihood):
            found[kind] = chosen
        elif kind in pairs:
            found[kind] = chosen.fit(*pairs[kind])
    return found
