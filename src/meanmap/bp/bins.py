"""Bins of a number: where they end, what they hold, and how many pairs of neighbours tell apart."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from meanmap.bp.histogram import Histogram
from meanmap.bp.relations import Direction
from meanmap.core.errors import InputError
from meanmap.embeddings.conditional import spread_rows
from meanmap.embeddings.points import PointEmbedding

__all__ = ["Bins", "Smoothing", "choose_bins"]

# Up to so many distinct values, each seen often, are bins of their own: colours, counts.
MOST_LEVELS = 256
SEEN_OFTEN = 4
NUMBERS = (4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)
# Likelihoods are averaged over so many Gauss-Legendre points of each bin.
POINTS = 4
# Pseudo-counts for each cell, and widths of the blur in bins, among which held-out pairs choose.
COUNTS = (1e-3, 1e-2, 1e-1, 1.0)
BLURS = (0.0, 0.5, 1.0, 2.0, 4.0)
FOLDS = 5
CHOICE_PAIRS = 20_000
MOST_JUDGES = 8


@dataclass(frozen=True, eq=False)
class Bins:
    """The bins of one kind of variable.

    Attributes
    ----------
    edges : array (k + 1,)
        Where they end.
    centres, spreads : array (k,)
        Mean and variance of the sample within each bin.
    discrete : bool
        Whether each bin holds one value, a level.
    """

    edges: np.ndarray
    centres: np.ndarray
    spreads: np.ndarray
    discrete: bool

    @classmethod
    def of(cls, values: np.ndarray, number: int | None, equal: str, name: Hashable) -> "Bins":
        """`number` bins of equal mass or equal width; None for one bin at each level."""
        distinct = np.unique(values)
        if len(distinct) < 2:
            raise InputError(
                f"all values of {name!r} are {distinct[0]:g}: there is one bin, and nothing to tell apart."
            )
        if number is None or len(distinct) <= number:
            middle = (distinct[1:] + distinct[:-1]) / 2
            edges = np.concatenate([distinct[:1], middle, distinct[-1:]])
            return cls(edges, distinct, np.zeros(len(distinct)), True)
        if equal == "mass":
            edges = np.unique(np.quantile(values, np.linspace(0, 1, number + 1)))
        else:
            edges = np.linspace(distinct[0], distinct[-1], number + 1)
        if len(edges) < 3:
            raise InputError(f"{number} bins of equal mass of {name!r} are one bin, so often is {edges[0]:g} seen.")
        at = _index(edges, values)
        size = np.bincount(at, minlength=len(edges) - 1)
        middle = (edges[1:] + edges[:-1]) / 2
        offset = values - middle[at]
        sums = (np.bincount(at, offset**power, minlength=len(size)) for power in (1, 2))
        first, second = (each / np.maximum(size, 1) for each in sums)
        spreads = np.where(size > 1, np.maximum(second - first**2, 0), np.diff(edges) ** 2 / 12)
        return cls(edges, middle + first, spreads, False)

    @property
    def number(self) -> int:
        """k."""
        return len(self.centres)

    @property
    def widths(self) -> np.ndarray:
        """Of the bins, ones for levels."""
        return np.ones(self.number) if self.discrete else np.diff(self.edges)

    def index(self, values: np.ndarray) -> np.ndarray:
        """The bin of each value; beyond the ends, the last."""
        return _index(self.edges, values)

    def points(self) -> np.ndarray:
        """Where likelihoods are evaluated, (k, q)."""
        if self.discrete:
            return self.centres[:, None]
        nodes = np.polynomial.legendre.leggauss(POINTS)[0]
        return (self.edges[:-1, None] + self.edges[1:, None] + nodes * np.diff(self.edges)[:, None]) / 2

    def average(self, likelihoods: np.ndarray) -> np.ndarray:
        """Means over each bin (..., k) of values at `points` (..., k q)."""
        if self.discrete:
            return likelihoods
        weights = np.polynomial.legendre.leggauss(POINTS)[1] / 2
        return likelihoods.reshape(*likelihoods.shape[:-1], self.number, POINTS) @ weights

    def belief(self, weights: np.ndarray, kernel: Any) -> Histogram | PointEmbedding:
        """Probabilities (..., k) as a belief."""
        if self.discrete:
            return PointEmbedding(kernel, self.centres[:, None], weights, True)
        return Histogram(self.edges, weights, self.centres, self.spreads)


def _index(edges: np.ndarray, values: np.ndarray) -> np.ndarray:
    return np.clip(np.searchsorted(edges, values, side="right") - 1, 0, len(edges) - 2)


@dataclass(frozen=True)
class Smoothing:
    """From counts of pairs to probabilities: a Gaussian blur over neighbouring bins, and pseudo-counts.

    Attributes
    ----------
    counts : float
        Pseudo-counts for each cell, spread as if both ends were independent.
    blur : float
        The standard deviation of the blur, in bins.
    """

    counts: float
    blur: float = 0.0

    def __call__(self, table: np.ndarray) -> np.ndarray:
        """Probabilities from counts (..., k_t, k_s)."""
        total = table.sum(axis=(-2, -1), keepdims=True)
        if self.blur:
            table = blurring(table.shape[-2], self.blur) @ table @ blurring(table.shape[-1], self.blur).T
        rows, columns = table.sum(axis=-1, keepdims=True) + 1e-9, table.sum(axis=-2, keepdims=True) + 1e-9
        added = self.counts * table.shape[-2] * table.shape[-1]
        found = table / total * (total / (total + added))
        found = found + added / (total + added) * (rows / rows.sum(-2, keepdims=True)) * (
            columns / columns.sum(-1, keepdims=True)
        )
        return found / found.sum(axis=(-2, -1), keepdims=True)


def blurring(number: int, width: float) -> np.ndarray:
    """(k, k), columns sum to one: what leaves at an end comes back there."""
    at = np.arange(number)
    away = at[:, None] - at
    folded = np.exp(-((at[:, None] + at + 1) ** 2) / (2 * width**2))
    kernel = np.exp(-(away**2) / (2 * width**2)) + folded + folded[::-1, ::-1]
    return kernel / kernel.sum(axis=0)


def count_pairs(bins: Mapping[Hashable, Bins], samples: Mapping, direction: Direction) -> tuple[np.ndarray, np.ndarray]:
    """The bins of both ends of each pair."""
    ends = (direction.sender, 0), (direction.receiver, 1)
    sent, received = (bins[name].index(samples[name].points[direction.pairs[:, side], 0]) for name, side in ends)
    return sent, received


def choose_bins(
    samples: Mapping, directions: list[Direction], number: int | None, equal: str | None
) -> tuple[dict[Hashable, Bins], Smoothing, float]:
    """Bins of each kind, smoothing, and their held-out mean of log p(x_s | x_t), the largest of all that were tried."""
    values = {name: sample.points[:, 0] for name, sample in samples.items()}
    levels = {name: _are_levels(value) for name, value in values.items()}
    judges = [directions[i] for i in spread_rows(len(directions), MOST_JUDGES)]
    judges = [Direction(d.sender, d.receiver, d.pairs[spread_rows(len(d.pairs), CHOICE_PAIRS)]) for d in judges]
    best: tuple[float, Any] = (-np.inf, None)
    kept = {name: Bins.of(value, None, "mass", name) for name, value in values.items() if levels[name] and not number}
    for k in (number,) if number or len(kept) == len(values) else NUMBERS:
        for way in (equal,) if equal or len(kept) == len(values) else ("mass", "width"):
            bins = {n: kept[n] if n in kept else Bins.of(v, k, way or "mass", n) for n, v in values.items()}
            for smoothing, score in _scores(bins, samples, judges):
                if score > best[0]:
                    best = score, (bins, smoothing)
    return (*best[1], best[0])


def _are_levels(values: np.ndarray) -> bool:
    distinct = len(np.unique(values))
    return distinct <= min(MOST_LEVELS, len(values) // SEEN_OFTEN)


def _scores(bins: Mapping, samples: Mapping, judges: list[Direction]) -> list[tuple[Smoothing, float]]:
    """Held-out scores of all ways of smoothing: each needs the tables of counts only."""
    tables = []
    for direction in judges:
        sent, received = count_pairs(bins, samples, direction)
        shape = bins[direction.sender].number, bins[direction.receiver].number
        fold = np.arange(len(sent)) % FOLDS
        flat = (fold * shape[0] + sent) * shape[1] + received
        counts = np.bincount(flat, minlength=FOLDS * shape[0] * shape[1]).reshape(FOLDS, *shape).astype(float)
        tables.append((counts, bins[direction.receiver].widths))
    found = []
    for blur in BLURS:
        for added in COUNTS:
            smoothing, total, pairs = Smoothing(added, blur), 0.0, 0.0
            for counts, widths in tables:
                learned = smoothing(counts.sum(axis=0) - counts)
                conditional = learned / learned.sum(axis=-1, keepdims=True) / widths
                total += float((counts * np.log(np.maximum(conditional, 1e-300))).sum())
                pairs += counts.sum()
            found.append((smoothing, total / pairs))
    return found
