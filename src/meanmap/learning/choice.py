"""Choosing a multiple of a lengthscale together with a ridge, by one loop: what is tried, and which of it is kept.

`least` keeps the least error. At a hundred pairs the held-out losses of most candidates differ by less than their
noise, and the least of them is a matter of luck: it was measured to be worse than any fixed rule that is not far off. A
`Rule` keeps the candidate nearest to it among those within a standard error of the least loss (as Breiman et al. 1984,
section 3.4.3, choose the simplest tree).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

__all__ = ["Rule", "least", "nearly_least", "search"]

Made = TypeVar("Made")

# Lengthscales are not searched below this share of the median distance.
FINEST = 0.02


@dataclass(frozen=True, eq=False)
class Rule:
    """Where a choice starts, and what it may choose.

    Attributes
    ----------
    multiple : float
        Of the median distance.
    ridge : float
        Relative to the mean of k(x, x); as declared, times 1 / √m.
    multiples, ridges : arrays
        The candidates; ridges as multiples of `ridge` until a number of pairs is known.
    """

    multiple: float
    ridge: float
    multiples: tuple[float, ...]
    ridges: np.ndarray

    def on(self, pairs: int, search: bool, ridge: float | None) -> "Rule":
        """The rule for so many pairs: without a search the kernel is taken as it is, and a given ridge is kept."""
        here = self if search else replace(self, multiple=1.0, multiples=(1.0,))
        if ridge is not None:
            return replace(here, ridge=ridge, ridges=np.array([ridge]))
        start = self.ridge / np.sqrt(pairs)
        return replace(here, ridge=start, ridges=start * self.ridges)

    def at(self, multiple: float) -> "Rule":
        """The rule for the ridge alone."""
        return replace(self, multiples=(multiple,))

    def search(self, score: Callable[[float], Mapping[float, np.ndarray]]) -> tuple[float, float]:
        """The multiple and the ridge; `score` gives the losses (m,) of each ridge at a multiple."""
        losses: dict[tuple[float, float], np.ndarray] = {}
        if len(self.multiples) == len(self.ridges) == 1:
            return self.multiples[0], float(self.ridges[0])

        def tried(multiple: float) -> None:
            losses.update({(multiple, ridge): loss for ridge, loss in score(multiple).items()})

        search(self.multiples, tried, lambda: self.choose(losses)[0])
        return self.choose(losses)

    def choose(self, losses: Mapping[tuple[float, float], np.ndarray]) -> tuple[float, float]:
        """The multiple and the ridge, from the loss of each candidate at each pair."""
        candidates, table = list(losses), np.array(list(losses.values()))
        worse = table - table[np.argmin(table.mean(axis=1))]
        good = worse.mean(axis=1) <= worse.std(axis=1, ddof=1) / np.sqrt(table.shape[1])
        return min((candidates[i] for i in np.flatnonzero(good)), key=self._distance)

    def _distance(self, candidate: tuple[float, float]) -> float:
        """In octaves of lengthscales and decades of ridges."""
        multiple, ridge = candidate
        return float(np.log2(multiple / self.multiple) ** 2 + np.log10(max(ridge, 1e-300) / self.ridge) ** 2)


def search(multiples: Sequence[float], tried: Callable[[float], None], chosen: Callable[[], float]) -> None:
    """Try all multiples, the narrowest first, and narrower ones for as long as the narrowest is the one chosen: a
    relation with little noise needs them, and where there is more noise nothing is spent on them.
    """
    for multiple in multiples:
        tried(multiple)
    if len(multiples) == 1:
        return
    step, narrowest = multiples[0] / multiples[1], multiples[0]
    while chosen() == narrowest and narrowest * step >= FINEST:
        narrowest *= step
        tried(narrowest)


def nearly_least(errors: np.ndarray, share: float) -> np.ndarray:
    """Positions of the errors that are within a share of the least one; with a share of zero, of that alone."""
    return np.flatnonzero(errors <= (1 + share) * errors.min())


def least(
    multiples: Sequence[float], score: Callable[[float], tuple[np.ndarray, Made]], narrower: bool = False
) -> tuple[float, int, Made]:
    """The multiple of least error, which of its errors that is, and what was made there.

    `score` gives the errors of all ridges at a multiple, with whatever was made on the way; the first of equals is
    kept. With `narrower` narrower multiples are tried as `search` does.
    """
    tried: list[tuple[float, float, int, Made]] = []

    def one(multiple: float) -> None:
        errors, made = score(multiple)
        at = int(np.argmin(errors))
        tried.append((float(errors[at]), multiple, at, made))

    def best() -> tuple[float, float, int, Made]:
        return min(tried, key=lambda each: each[0])

    search(multiples, one, lambda: best()[1] if narrower else np.inf)
    return best()[1:]
