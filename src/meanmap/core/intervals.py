"""Central intervals of whatever has quantiles: elements, beliefs and families."""

from abc import abstractmethod
from typing import Any

from meanmap.core.settings import probability
from meanmap.core.types import Array

__all__ = ["Intervals", "ends"]


class Intervals:
    """What has quantiles has intervals."""

    @abstractmethod
    def quantile(self, q: float) -> Any:
        """The value that this share of draws does not exceed, entry by entry."""

    def interval(self, confidence: float = 0.95) -> tuple[Array, Array]:
        """The equal-tailed interval that contains a draw with this probability, entry by entry: lower and upper end."""
        low, high = ends(confidence)
        return self.quantile(low), self.quantile(high)


def ends(confidence: float) -> tuple[float, float]:
    """The probabilities below the two ends of a central interval."""
    tail = (1 - probability(confidence)) / 2
    return tail, 1 - tail
