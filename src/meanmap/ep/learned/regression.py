"""What learns: from incoming messages to rows of numbers of order 1, with how far they may be off."""

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np

__all__ = ["Estimate", "Regression"]


class Estimate(NamedTuple):
    """What a regression says about n messages.

    Attributes
    ----------
    mean : array (n, q)
        Of each number.
    deviation : array (n, q)
        Its predictive standard deviation, noise included.
    novelty : array (n,)
        The part of the variance that more training would take away, in units of the noise: the doubt of the papers
        relative to what can be had.
    """

    mean: np.ndarray
    deviation: np.ndarray
    novelty: np.ndarray


class Regression(ABC):
    """A way to learn. Values do not change: `fit` and `add` return new ones.

    To write one, give `fit`, `add` and `predict`; `settings` have to be enough to make it again, with `fit` on the same
    rows.
    """

    @abstractmethod
    def fit(self, incoming: tuple[Any, ...], numbers: np.ndarray, also: tuple[Any, ...] | None = None) -> "Regression":
        """Choose everything anew from all rows; `also` are incoming messages whose answers are not known yet."""

    @abstractmethod
    def add(self, incoming: tuple[Any, ...], numbers: np.ndarray) -> "Regression":
        """Learn more rows with the same settings."""

    @abstractmethod
    def predict(self, incoming: tuple[Any, ...]) -> Estimate:
        """The numbers of some messages, and how far they may be off."""

    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """What the regression was made with, as JSON can hold it."""

    def choose(self, incoming: tuple[Any, ...], threshold: float) -> np.ndarray:
        """Which of some messages have to be learned so that none is newer than the threshold."""
        return np.flatnonzero(self.predict(incoming).novelty > threshold)
