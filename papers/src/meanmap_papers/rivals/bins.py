"""Bins of a number: their edges, their contents, and how many of them pairs of neighbours support."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass

import numpy as np

from meanmap.bp.beliefs.histogram import Histogram
from meanmap.bp.edges.samples import Direction
from meanmap.core.errors import InputError
from meanmap.core.points import spread_rows
from meanmap.embeddings.points import PointEmbedding
from meanmap.kernels.base import Kernel

__all__ = ["Bins", "Smoothing", "choose_bins", "table"]

# Up to this many distinct values, each seen often, are bins of their own: colours, counts.
MOST_LEVELS = 256
SEEN_OFTEN = 4
NUMBERS = (4, 8, 16, 24, 32, 48, 64, 96)
# Likelihoods are averaged over this many Gauss-Legendre points of each bin.
POINTS = 4
# Pseudo-counts for each cell, and widths of the blur in bins, among which held-out pairs choose.
COUNTS = (1e-3, 1e-2, 1e-1)
BLURS = (0.0, 1.0, 2.0, 4.0, 8.0)
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
        """k, how many bins there are."""
        return len(self.centres)

    @property
    def widths(self) -> np.ndarray:
        """Of the bins, ones for levels."""
        return np.ones(self.number) if self.discrete else np.diff(self.edges)

    def index(self, values: np.ndarray) -> np.ndarray:
        """The bin of each value; beyond the ends, the last."""
        return _index(self.edges, values)

    def between(self, value: float) -> np.ndarray:
        """Weights (k,) that interpolate at a value what is known at the centres; levels take the nearest."""
        if self.discrete:
            return np.eye(self.number)[int(self.index(np.array([value]))[0])]
        return np.array([np.interp(value, self.centres, one) for one in np.eye(self.number)])

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

    def belief(self, weights: np.ndarray, kernel: Kernel) -> Histogram | PointEmbedding:
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


def choose_bins(
    samples: Mapping, directions: list[Direction], number: int | None, equal: str | None
) -> tuple[dict[Hashable, Bins], Smoothing, float]:
    """Bins of each kind, smoothing, and their held-out mean of log p(x_s | x_t).

    Of all that are tried the best; or rather, of those within a standard error of it, the fewest bins, because a sweep
    costs their square.
    """
    values = {name: sample.points[:, 0] for name, sample in samples.items()}
    levels = {name for name, value in values.items() if number is None and _are_levels(value)}
    judges = [directions[i] for i in spread_rows(len(directions), MOST_JUDGES)]
    ends = [
        tuple(values[name][d.pairs[spread_rows(len(d.pairs), CHOICE_PAIRS), side]] for name, side in _sides(d))
        for d in judges
    ]
    all_levels = len(levels) == len(values)
    tried = []
    for k in (number,) if number or all_levels else NUMBERS:
        for way in (equal,) if equal or all_levels else ("mass", "width"):
            sizes = {name: None if name in levels else k for name in values}
            scores = _scores(values, judges, ends, sizes, way or "mass")
            tried += [(k, way, smoothing, score) for smoothing, score in scores.items()]
    best = max(tried, key=lambda each: each[3].mean())
    error = {id(each): (best[3] - each[3]).std(ddof=1) / np.sqrt(FOLDS) for each in tried}
    close = [each for each in tried if best[3].mean() - each[3].mean() <= error[id(each)]]
    k, way, smoothing, score = min(close, key=lambda each: (each[0] or 0, -each[3].mean()))
    bins = {name: Bins.of(v, None if name in levels else k, way or "mass", name) for name, v in values.items()}
    return bins, smoothing, float(score.mean())


def _sides(direction: Direction) -> tuple[tuple[Hashable, int], tuple[Hashable, int]]:
    return (direction.sender, 0), (direction.receiver, 1)


def _are_levels(values: np.ndarray) -> bool:
    return len(np.unique(values)) <= min(MOST_LEVELS, len(values) // SEEN_OFTEN)


def _scores(
    values: Mapping, judges: list[Direction], ends: list, sizes: Mapping, equal: str
) -> dict[Smoothing, np.ndarray]:
    """Held-out scores (folds,) of all ways of smoothing.

    Bins are cut without the held-out pairs, too: otherwise scores would be too optimistic.
    """
    found = {Smoothing(added, blur): np.zeros(FOLDS) for blur in BLURS for added in COUNTS}
    for fold in range(FOLDS):
        pairs = 0
        for direction, (sent, received) in zip(judges, ends, strict=True):
            held = np.arange(len(sent)) % FOLDS == fold
            known: dict[Hashable, list[np.ndarray]] = {direction.sender: [], direction.receiver: []}
            known[direction.sender].append(sent[~held])
            known[direction.receiver].append(received[~held])
            bins = {name: Bins.of(np.concatenate(part), sizes[name], equal, name) for name, part in known.items()}
            learned, tested = (
                table(bins[direction.sender], bins[direction.receiver], sent[which], received[which])
                for which in (~held, held)
            )
            pairs += int(held.sum())
            for smoothing, score in found.items():
                joint = smoothing(learned)
                conditional = joint / joint.sum(axis=-1, keepdims=True) / bins[direction.receiver].widths
                score[fold] += (tested * np.log(np.maximum(conditional, np.finfo(float).tiny))).sum()
        for score in found.values():
            score[fold] /= pairs
    return found


def table(sender: Bins, receiver: Bins, sent: np.ndarray, received: np.ndarray) -> np.ndarray:
    """Counts of pairs (k_t, k_s)."""
    flat = sender.index(sent) * receiver.number + receiver.index(received)
    return np.bincount(flat, minlength=sender.number * receiver.number).reshape(sender.number, -1).astype(float)
