"""Regressions from incoming messages to rows of numbers of order 1, with the errors of their predictions."""

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np

__all__ = ["Estimate", "Regression"]


class Estimate(NamedTuple):
    """The predictions of a regression for n messages.

    Attributes
    ----------
    mean : array (n, q)
        Of each number.
    deviation : array (n, q)
        Its predictive standard deviation, noise included.
    novelty : array (n,)
        The part of the variance that more training would remove, in units of the noise: the papers' uncertainty
        relative to the least possible one.
    """

    mean: np.ndarray
    deviation: np.ndarray
    novelty: np.ndarray


class Regression(ABC):
    """A way to learn. Immutable: `fit` and `add` return new ones.

    To write one, give `fit`, `add` and `predict`; `settings` and `fit` on the same rows must suffice to make it again.
    """

    @abstractmethod
    def fit(self, incoming: tuple[Any, ...], numbers: np.ndarray, also: tuple[Any, ...] | None = None) -> "Regression":
        """Choose everything anew from all rows; `also` are incoming messages whose answers are not known yet."""

    @abstractmethod
    def add(self, incoming: tuple[Any, ...], numbers: np.ndarray) -> "Regression":
        """Learn more rows with the same settings."""

    @abstractmethod
    def predict(self, incoming: tuple[Any, ...]) -> Estimate:
        """The numbers of some messages, and their standard deviations."""

    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """The settings of the regression, ready for JSON."""

    def choose(self, incoming: tuple[Any, ...], threshold: float) -> np.ndarray:
        """Which of some messages have to be learned so that none is newer than the threshold."""
        return np.flatnonzero(self.predict(incoming).novelty > threshold)
