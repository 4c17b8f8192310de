"""A family: the likelihood of one response given its linear predictor."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from meanmap.core.types import Numbers

__all__ = ["Family", "Observed"]


@dataclass(frozen=True)
class Observed:
    """Responses; `trials` of binomial ones; offsets of the predictors; frequency weights of the rows; limits of
    censored or truncated ones.
    """

    response: np.ndarray
    trials: np.ndarray
    offset: np.ndarray
    weights: np.ndarray
    low: np.ndarray
    high: np.ndarray

    @classmethod
    def of(
        cls,
        response: np.ndarray,
        trials: Numbers = 1.0,
        offset: Numbers = 0.0,
        weights: Numbers = 1.0,
        low: Numbers = -np.inf,
        high: Numbers = np.inf,
    ) -> "Observed":
        """With arguments that are scalars, or have one entry per row."""
        others = (trials, offset, weights, low, high)
        spread = (np.broadcast_to(np.asarray(each, float), response.shape) for each in others)
        return cls(np.asarray(response, float), *spread)

    def taken(self, rows: slice | np.ndarray) -> "Observed":
        """Some of the rows."""
        return Observed(*(each[rows] for each in self.each))

    def columns(self) -> "Observed":
        """For several predictors per row, (n, nodes)."""
        return Observed(*(each[:, None] for each in self.each))

    @property
    def each(self) -> tuple[np.ndarray, ...]:
        """All of these, an entry per row."""
        return (self.response, self.trials, self.offset, self.weights, self.low, self.high)


# A function of responses, predictors without offsets, and parameters.
Density = Callable[[Observed, np.ndarray, np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Family:
    """A likelihood of one response given η, and parameters on the whole line.

    Attributes
    ----------
    name : str
    link : str
        With "identity" responses are standardised; with "log" the intercept starts at the log of their mean.
    parameters : tuple of str
        Their logs are estimated.
    log_density : callable
        log p(y | η, parameters).
    slopes : callable
        Its derivatives by the logs of the parameters, one array each.
    mean : callable
        E(y | η, parameters).
    draw : callable
        (observed, η, parameters, generator) to new responses.
    start : callable
        (observed, parameters) to the first location and precision of a site.
    exact : bool
        Whether this site is the likelihood.
    fits, expected : callable, str
        A check for possible responses, and a description of these.
    first : mapping
        Initial logs of parameters, where these are not 0.
    heavy : bool
        Whether responses may have outliers, so that the unit is estimated robustly.
    of_labels, of_trials, ordered : bool
        Whether responses may be two labels, are shares of trials, or are ordered labels.
    ends : int
        At how many ends of the responses the likelihood may increase without bound: at 0 alone, or also at all trials.
    censored : bool
        Whether rows may be known only to be between two limits.
    bends : callable, optional
        The log density with its first two derivatives by η; without it they are differences.
    """

    name: str
    link: str
    parameters: tuple[str, ...]
    log_density: Density
    slopes: Callable[[Observed, np.ndarray, np.ndarray], list[np.ndarray]]
    mean: Density
    draw: Callable[..., np.ndarray]
    start: Callable[[Observed, np.ndarray], tuple[np.ndarray, np.ndarray]]
    exact: bool = False
    fits: Callable[[np.ndarray], np.ndarray] = lambda response: np.ones(len(response), bool)
    expected: str = "numbers"
    first: Mapping[str, float] = field(default_factory=dict)
    heavy: bool = False
    of_labels: bool = False
    of_trials: bool = False
    ordered: bool = False
    ends: int = 0
    censored: bool = False
    bends: Callable[[Observed, np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray, np.ndarray]] | None = None

    def densities(self, observed: Observed) -> np.ndarray:
        """1 for rows whose likelihood is a density of the response, which has its unit, and 0 for probabilities of
        censored rows.
        """
        seen = (observed.low == observed.high) if self.censored else np.ones(len(observed.response), bool)
        return seen.astype(float)

    def weighted(self, observed: Observed, eta: np.ndarray, parameters: np.ndarray) -> np.ndarray:
        """The log density times the weight of the row."""
        return observed.weights * self.log_density(observed, eta + observed.offset, parameters)

    def weighted_bends(
        self, observed: Observed, eta: np.ndarray, parameters: np.ndarray, step: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The weighted log density with its first two derivatives by η, by differences over a step where need be."""
        if self.bends is not None:
            here, slope, bend = self.bends(observed, eta + observed.offset, parameters)
            if (observed.weights == 1).all():
                return here, slope, bend
            return observed.weights * here, observed.weights * slope, observed.weights * bend
        here, above, below = (self.weighted(observed, eta + k * step, parameters) for k in (0, 1, -1))
        return here, (above - below) / (2 * step), (above - 2 * here + below) / step**2

    def weighted_slopes(self, observed: Observed, eta: np.ndarray, parameters: np.ndarray) -> list[np.ndarray]:
        """Derivatives of the weighted log density by the logs of parameters."""
        return [observed.weights * each for each in self.slopes(observed, eta + observed.offset, parameters)]

    def first_sites(self, observed: Observed, parameters: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Initial weights and shifts of the Gaussian sites."""
        place, precision = self.start(observed, parameters)
        weights = observed.weights * precision
        return weights, weights * (place - observed.offset)
