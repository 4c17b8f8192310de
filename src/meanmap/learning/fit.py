"""Choosing a lengthscale together with a ridge: grids are data, one loop tries them, criteria are functions.

Without a `start` the least error is kept. At a hundred pairs the held-out losses of most candidates differ by less than
their noise, and the smallest of them is mostly chance: it was worse in measurements than any reasonable fixed rule. A
choice with a start keeps the candidate nearest to it among those within a standard error of the least loss (as Breiman
et al. 1984, section 3.4.3, choose the simplest tree).
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TypeVar

import numpy as np

__all__ = ["Choice", "nearly_least", "relative"]

Made = TypeVar("Made")

# Lengthscales are not searched below this share of the median distance.
FINEST = 0.02


@dataclass(frozen=True, eq=False)
class Choice:
    """The candidates, and where a choice starts.

    Attributes
    ----------
    lengthscales : tuple of float
        As multiples of the median distance, the narrowest first.
    ridges : array
        Relative to the mean of k(x, x), see `relative`; with a start multiples of its ridge. One where criteria
        have their own.
    start : pair of float, optional
        The lengthscale and the ridge that are kept unless the losses say otherwise; as declared, the ridge times √m.
    narrower : bool
        Whether narrower lengthscales are tried for as long as the narrowest is the one chosen: a relation with little
        noise needs them, and where there is more noise nothing is spent on them.
    """

    lengthscales: tuple[float, ...]
    ridges: np.ndarray = field(default_factory=lambda: np.ones(1))
    start: tuple[float, float] | None = None
    narrower: bool = False

    def kept(self, searched: bool) -> "Choice":
        """Itself, or the choice of the ridge alone where the kernel was given."""
        start = None if self.start is None else (1.0, self.start[1])
        return self if searched else replace(self, lengthscales=(1.0,), start=start)

    def at(self, lengthscale: float) -> "Choice":
        """The choice of the ridge alone."""
        return replace(self, lengthscales=(lengthscale,))

    def on(self, pairs: int, ridge: float | None) -> "Choice":
        """A choice with a start on this many pairs; a given ridge is kept."""
        lengthscale, lam = self.start or (1.0, 1.0)
        lam, ridges = (lam / np.sqrt(pairs), self.ridges) if ridge is None else (ridge, np.ones(1))
        return replace(self, start=(lengthscale, lam), ridges=lam * ridges)

    def fit(
        self, features: Callable[[float], Made], criterion: Callable[[Made], np.ndarray]
    ) -> tuple[float, int, Made]:
        """The lengthscale, the number of the ridge, and the features there.

        `criterion` gives the errors of all ridges with some features, (g,), and of choices with a start the loss of
        each ridge at each pair, (g, m).
        """
        made: dict[float, Made] = {}
        losses: dict[float, np.ndarray] = {}
        nothing_to_choose = len(self.lengthscales) == len(self.ridges) == 1

        def tried(lengthscale: float) -> None:
            made[lengthscale] = features(lengthscale)
            losses[lengthscale] = np.zeros((1, 2)) if nothing_to_choose else criterion(made[lengthscale])

        for lengthscale in self.lengthscales:
            tried(lengthscale)
        narrowest = self.lengthscales[0]
        step = narrowest / self.lengthscales[min(1, len(self.lengthscales) - 1)] if self.narrower else 1.0
        while step < 1 and narrowest * step >= FINEST and self.best(losses)[0] == narrowest:
            narrowest *= step
            tried(narrowest)
        lengthscale, at = self.best(losses)
        return lengthscale, at, made[lengthscale]

    def best(self, losses: dict[float, np.ndarray]) -> tuple[float, int]:
        """Of all losses, by lengthscale; the first of equals."""
        candidates = [(lengthscale, at) for lengthscale, each in losses.items() for at in range(len(each))]
        table = np.concatenate(list(losses.values()))
        if self.start is None:
            return candidates[int(np.argmin(table))]
        worse = table - table[np.argmin(table.mean(axis=1))]
        good = worse.mean(axis=1) <= worse.std(axis=1, ddof=1) / np.sqrt(table.shape[1])
        octaves = [np.log2(lengthscale / self.start[0]) for lengthscale, _ in candidates]
        decades = [np.log10(self.ridges[at] / self.start[1]) for _, at in candidates]
        far = np.square(octaves) + np.square(decades)
        return candidates[int(np.argmin(np.where(good, far, np.inf)))]


def relative(ridges: np.ndarray, features: np.ndarray) -> np.ndarray:
    """Ridges relative to the mean of k(x, x), for these features (n, r)."""
    return ridges * np.sum(features**2) / len(features)


def nearly_least(errors: np.ndarray, share: float) -> np.ndarray:
    """Positions of the errors that are within a share of the least one; with a share of zero, of that alone."""
    return np.flatnonzero(errors <= (1 + share) * errors.min())
