"""First guesses of pixels, their errors in similar surroundings, and corrections by held-out images."""

from dataclasses import dataclass

import numpy as np

from meanmap.bp.conditionals.trees import Trees
from meanmap.core.progress import track

__all__ = ["ErrorForest", "Reader", "Rows"]

# Trees of a forest, each grown on this many pixels, and the share of columns by whose best they cut.
TREES, GROWN, SHARE = 12, 6000, 0.3
# The first guess is the best single level as much as if this many pixels had said so.
SINGLE = 500
# Pixels that are judged in each part that is left out.
MOST_JUDGED = 20_000
# Errors are counted between this many quantiles of them, and beliefs are read at this many levels.
EDGES, LEVELS = 64, 64
# Half the width, as a share of the range of pixels, of a bin that holds one error that many pixels have.
NARROW = 0.5e-6
# Errors that trees have never seen may happen: this share of each belief is that of all errors.
ANYTHING = 0.02
# Pixels left out in learning correct beliefs about an image as much as this many pixels of its own do.
AS_MANY_PIXELS = 500
# Between these shares of the errors lies what beliefs have to reach.
OUTERMOST = (0.002, 0.998)


@dataclass(frozen=True, eq=False)
class Rows:
    """Pixels to learn from: `levels` (m, a) that grow with the image, `others` (m, b) that do not, the truth (m,), the
    part (m,) that each is left out with, and how many of them a leaf holds at least.
    """

    levels: np.ndarray
    others: np.ndarray
    truth: np.ndarray
    fold: np.ndarray
    leaf: int


@dataclass(frozen=True, eq=False)
class Reader:
    """Beliefs about pixels of one kind, observed or missing.

    Attributes
    ----------
    weights : array (a,)
        Of the levels in the first guess; their sum is one.
    forest : ErrorForest
        What errors it makes.
    corrected : array (K,)
        The levels of a belief at which the quantiles (k + 1/2) / K of the truth are found.
    held : array
        The share of each part that was left out that 90% intervals held, corrected by the other parts.
    """

    weights: np.ndarray
    forest: "ErrorForest"
    corrected: np.ndarray
    held: np.ndarray

    @classmethod
    def fit(cls, rows: Rows, generator: np.random.Generator) -> "Reader":
        """The first guess, and trees of as many pixels in all folds, so that all are as sure."""
        weights = _weights(rows.levels, rows.truth)
        guess = rows.levels @ weights
        errors, inputs = rows.truth - guess, _about(rows.levels, rows.others, guess)
        edges = _edges(errors, NARROW * max(float(np.ptp(rows.truth)), 1.0))
        folds = np.unique(rows.fold)
        grown = min(GROWN, *(int(np.count_nonzero(rows.fold != part)) or len(errors) for part in folds))
        leaf = int(np.ceil(rows.leaf * grown / len(errors)))

        def forest(kept: np.ndarray) -> ErrorForest:
            return ErrorForest.fit(inputs[kept], errors[kept], edges, grown, leaf, generator)

        judged = []
        for part in track(folds, "judging trees"):
            out = np.flatnonzero(rows.fold == part)[:MOST_JUDGED]
            kept = np.flatnonzero(rows.fold != part) if len(folds) > 1 else out
            judged.append((out, _at(forest(kept).below(inputs[out]), edges, errors[out])))
        known, levels = (np.concatenate(each) for each in zip(*judged, strict=True))
        fold, wanted = rows.fold[known], (np.arange(LEVELS) + 0.5) / LEVELS
        every = forest(np.arange(len(errors)))
        return cls(weights, every, _correction(levels, fold, wanted), _held(levels, fold))

    def values(self, levels: np.ndarray, others: np.ndarray, corrected: np.ndarray | None = None) -> np.ndarray:
        """K equally likely values of each pixel, (n, K), by other corrections where they are given."""
        guess = levels @ self.weights
        below = self.forest.below(_about(levels, others, guess))
        corrected = self.corrected if corrected is None else corrected
        wanted = np.broadcast_to(corrected, (len(levels), len(corrected)))
        return guess[:, None] + _inverse(below, self.forest.edges, wanted)

    def levels_of(self, truth: np.ndarray, levels: np.ndarray, others: np.ndarray) -> np.ndarray:
        """The levels (n,) of beliefs at which the truth lies, before corrections."""
        guess = levels @ self.weights
        return _at(self.forest.below(_about(levels, others, guess)), self.forest.edges, truth - guess)

    def corrected_by(self, own: np.ndarray) -> np.ndarray:
        """Corrections for an image of which levels of the truth are known."""
        count, own_count = len(self.corrected), len(own)
        share = own_count / (own_count + AS_MANY_PIXELS)
        found = np.concatenate([self.corrected, own])
        order = np.argsort(found)
        weights = np.repeat([(1 - share) / count, share / max(own_count, 1)], [count, own_count])[order]
        return np.interp((np.arange(count) + 0.5) / count, np.cumsum(weights) - weights / 2, found[order])

    def ends(self, levels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Nearly the least and the largest guess, and the least and largest error."""
        errors = self.forest.edges[np.searchsorted(self.forest.overall, OUTERMOST)]
        return np.quantile(levels @ self.weights, OUTERMOST), errors


def _edges(errors: np.ndarray, narrow: float) -> np.ndarray:
    """Quantiles of errors, where half of the weight is in proportion to their size: few large ones matter as much as
    many small ones. One that several of the quantiles meet, as where a guess is exact, has a narrow bin of its own.
    """
    errors = np.sort(errors)
    size = np.abs(errors)
    mass = 1 + size / (size.mean() or 1.0)
    middle = np.cumsum(mass) - mass / 2
    found, times = np.unique(np.interp(np.linspace(middle[0], middle[-1], EDGES), middle, errors), return_counts=True)
    met = found[times > 1]
    return np.unique(np.concatenate([found[times == 1], met - narrow, met + narrow]))


def _weights(levels: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """The weights (a,) of levels, with sum one, of least squared error, by a ridge towards the best single level."""
    best = int(np.argmin(np.mean((levels - truth[:, None]) ** 2, axis=0)))
    away = levels - levels[:, [best]]
    products = away.T @ away
    products[np.diag_indices(len(products))] *= 1 + SINGLE / len(truth)
    weights = np.linalg.lstsq(products, away.T @ (truth - levels[:, best]))[0]
    weights[best] += 1 - weights.sum()
    return weights


def _about(levels: np.ndarray, others: np.ndarray, guess: np.ndarray) -> np.ndarray:
    """The inputs of trees: levels less the first guess. Trees do not see the brightness: from three images they
    would learn that of plain parts and be overconfident about a fourth.
    """
    return np.concatenate([levels - guess[:, None], others], axis=1)


@dataclass(frozen=True, eq=False)
class ErrorForest:
    """Trees with the share of errors below each edge in each leaf, (nodes, E), and among all."""

    trees: Trees
    edges: np.ndarray
    shares: np.ndarray
    overall: np.ndarray

    @classmethod
    def fit(
        cls, inputs: np.ndarray, errors: np.ndarray, edges: np.ndarray, grown: int, leaf: int, rng: np.random.Generator
    ) -> "ErrorForest":
        """Each tree grown on some of the `inputs` (m, c); all errors are counted between `edges` (E,)."""
        trees, leaves = Trees.fit(inputs, errors, TREES, leaf, int(rng.integers(2**32)), SHARE, grown)
        place = np.clip(np.searchsorted(edges, errors, side="right"), 1, len(edges) - 1)
        cells = (leaves * len(edges) + place[:, None]).ravel()
        counts = np.bincount(cells, minlength=trees.nodes * len(edges)).reshape(-1, len(edges))
        shares = np.cumsum(counts, axis=1) / np.maximum(counts.sum(axis=1, keepdims=True), 1)
        overall = np.cumsum(np.bincount(place, minlength=len(edges))) / len(place)
        return cls(trees, edges, shares.astype(np.float32), overall)

    def below(self, inputs: np.ndarray) -> np.ndarray:
        """The probability that the error lies below each edge, (n, E)."""
        leaves = self.trees.leaves(inputs)
        share = sum(self.shares[nodes] for nodes in leaves.T) / leaves.shape[1]
        return (1 - ANYTHING) * share + ANYTHING * self.overall


def _correction(levels: np.ndarray, fold: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """The levels at which the truth's quantiles `wanted` are to be found in an image that has no part in this.

    Images differ more than pixels: what K of them say about their own pixels is too sure for another. By how much K − 1
    are too sure for the one that is left out is measured, and for K it is (K − 1) / K of that: it falls as 1 / K.
    """
    parts = np.unique(fold)
    if len(parts) > 1:
        others = [np.sort(levels[fold != part]) for part in parts]
        places = [np.searchsorted(o, levels[fold == part]) / len(o) for o, part in zip(others, parts, strict=True)]
        wanted = wanted + (1 - 1 / len(parts)) * (np.quantile(np.concatenate(places), wanted) - wanted)
    return np.quantile(levels, wanted)


def _held(levels: np.ndarray, fold: np.ndarray) -> np.ndarray:
    """The share of each part that 90% intervals hold, corrected by the other parts; None for a single part."""
    shares, parts = [], np.unique(fold)
    for part in parts if len(parts) > 1 else ():
        here, others = fold == part, fold != part
        low, high = _correction(levels[others], fold[others], np.array([0.05, 0.95]))
        shares.append(np.mean((low <= levels[here]) & (levels[here] <= high)))
    return np.array(shares)


def _at(below: np.ndarray, edges: np.ndarray, values: np.ndarray) -> np.ndarray:
    """The probability below a value of each row, linear between edges."""
    values = np.clip(values, edges[0], edges[-1])
    right = np.clip(np.searchsorted(edges, values, side="right"), 1, len(edges) - 1)
    rows = np.arange(len(values))
    share = (values - edges[right - 1]) / (edges[right] - edges[right - 1])
    return below[rows, right - 1] + share * (below[rows, right] - below[rows, right - 1])


def _inverse(below: np.ndarray, edges: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """The values up to which the probabilities `levels` (n, K) lie, linear between edges."""
    right = np.stack([np.count_nonzero(below < level[:, None], axis=1) for level in levels.T], axis=1)
    right = np.clip(right, 1, len(edges) - 1)
    low, high = (np.take_along_axis(below, at, axis=1) for at in (right - 1, right))
    share = np.clip((levels - low) / np.maximum(high - low, 1e-12), 0, 1)
    return edges[right - 1] + share * (edges[right] - edges[right - 1])
