"""First guesses of pixels, their errors in similar surroundings, and corrections by held-out images."""

from dataclasses import dataclass

import numpy as np

from meanmap.bp.conditionals.trees import Trees
from meanmap.core.progress import track

__all__ = ["ErrorForest", "Reader", "Rows"]

# Trees of the forest, and of those that choose how coarse it is on images that they have not seen.
TREES, CHOOSING = 24, 8
# At least this many pixels in a leaf; the larger where the held-out error is within two per cent.
LEAVES = (15, 100)
INDIFFERENCE = 0.02
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
    """Pixels to learn from: `levels` (m, a) that grow with the image, `others` (m, b) that do not, the truth (m,), and
    the part (m,) that each is left out with.
    """

    levels: np.ndarray
    others: np.ndarray
    truth: np.ndarray
    fold: np.ndarray


@dataclass(frozen=True, eq=False)
class Reader:
    """Beliefs about pixels of one kind, observed or missing.

    Attributes
    ----------
    base : int
        Which of the levels is the first guess.
    forest : ErrorForest
        What errors it makes.
    corrected : array (K,)
        The levels of a belief at which the quantiles (k + 1/2) / K of the truth are found.
    held : array
        The share of each part that was left out that 90% intervals held, corrected by the other parts.
    """

    base: int
    forest: "ErrorForest"
    corrected: np.ndarray
    held: np.ndarray

    @classmethod
    def fit(cls, rows: Rows, generator: np.random.Generator) -> "Reader":
        """The first guess of least error; trees as coarse as does not cost more than two per cent of it."""
        base = int(np.argmin(np.mean((rows.levels - rows.truth[:, None]) ** 2, axis=0)))
        errors = rows.truth - rows.levels[:, base]
        edges = _edges(errors, NARROW * max(float(np.ptp(rows.truth)), 1.0))
        inputs = _about(rows.levels, rows.others, base)

        def judge(leaf: int, trees: int) -> tuple[float, np.ndarray]:
            return _judge(inputs, errors, rows.fold, edges, leaf, trees, generator)

        found = {leaf: judge(leaf, CHOOSING)[0] for leaf in track(LEAVES, "choosing trees")}
        leaf = max(leaf for leaf, error in found.items() if error <= (1 + INDIFFERENCE) * min(found.values()))
        # As many trees as beliefs are read off: those of fewer are wider.
        _, levels = judge(leaf, TREES)
        # Leaves hold as large a share of the rows as those of the forests that were judged: it is as sure as they.
        parts = len(np.unique(rows.fold))
        leaf = round(leaf * parts / max(parts - 1, 1))
        forest = ErrorForest.fit(inputs, errors, edges, TREES, leaf, generator)
        known = ~np.isnan(levels)
        levels, fold = levels[known], rows.fold[known]
        return cls(base, forest, _correction(levels, fold, (np.arange(LEVELS) + 0.5) / LEVELS), _held(levels, fold))

    def values(self, levels: np.ndarray, others: np.ndarray, corrected: np.ndarray | None = None) -> np.ndarray:
        """K equally likely values of each pixel, (n, K), by other corrections where they are given."""
        below = self.forest.below(_about(levels, others, self.base))
        corrected = self.corrected if corrected is None else corrected
        wanted = np.broadcast_to(corrected, (len(levels), len(corrected)))
        return levels[:, [self.base]] + _inverse(below, self.forest.edges, wanted)

    def levels_of(self, truth: np.ndarray, levels: np.ndarray, others: np.ndarray) -> np.ndarray:
        """The levels (n,) of beliefs at which the truth lies, before corrections."""
        below = self.forest.below(_about(levels, others, self.base))
        return _at(below, self.forest.edges, truth - levels[:, self.base])

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
        return np.quantile(levels[:, self.base], OUTERMOST), errors


def _edges(errors: np.ndarray, narrow: float) -> np.ndarray:
    """Quantiles of errors. One that several of them meet, as where a guess is exact on plain parts, has a narrow bin of
    its own, and those of the other errors are added.
    """
    wanted = np.linspace(0, 1, EDGES)
    found, times = np.unique(np.quantile(errors, wanted), return_counts=True)
    met = found[times > 1]
    if not len(met):
        return found
    others = errors[~np.isin(errors, met)]
    rest = np.quantile(others, wanted) if len(others) else others
    return np.unique(np.concatenate([found[times == 1], rest, met - narrow, met + narrow]))


def _about(levels: np.ndarray, others: np.ndarray, base: int) -> np.ndarray:
    """The inputs of trees: levels less the first guess. Trees do not see the brightness: from three images they
    would learn that of plain parts and be overconfident about a fourth.
    """
    return np.concatenate([np.delete(levels, base, axis=1) - levels[:, [base]], others], axis=1)


@dataclass(frozen=True, eq=False)
class ErrorForest:
    """Trees with the share of errors below each edge in each leaf, (nodes, E), and among all."""

    trees: Trees
    edges: np.ndarray
    shares: np.ndarray
    overall: np.ndarray

    @classmethod
    def fit(
        cls, inputs: np.ndarray, errors: np.ndarray, edges: np.ndarray, count: int, leaf: int, rng: np.random.Generator
    ) -> "ErrorForest":
        """Grown on `inputs` (m, c), and counted between `edges` (E,)."""
        trees, leaves = Trees.fit(inputs, errors, count, leaf, int(rng.integers(2**32)))
        place = np.clip(np.searchsorted(edges, errors, side="right"), 1, len(edges) - 1)
        counts = np.zeros((trees.nodes, len(edges)))
        for nodes in leaves.T:
            np.add.at(counts, (nodes, place), 1.0)
        shares = np.cumsum(counts, axis=1) / np.maximum(counts.sum(axis=1, keepdims=True), 1)
        overall = np.cumsum(np.bincount(place, minlength=len(edges))) / len(place)
        return cls(trees, edges, shares.astype(np.float32), overall)

    def below(self, inputs: np.ndarray) -> np.ndarray:
        """The probability that the error lies below each edge, (n, E)."""
        leaves = self.trees.leaves(inputs)
        share = sum(self.shares[nodes] for nodes in leaves.T) / leaves.shape[1]
        return (1 - ANYTHING) * share + ANYTHING * self.overall


def _judge(
    inputs: np.ndarray,
    errors: np.ndarray,
    fold: np.ndarray,
    edges: np.ndarray,
    leaf: int,
    trees: int,
    generator: np.random.Generator,
) -> tuple[float, np.ndarray]:
    """The mean squared error of errors in parts that were left out, and the probability below each true one, NaN where
    it was not judged.
    """
    levels, squares, count = np.full(len(errors), np.nan), 0.0, 0
    for part in np.unique(fold):
        kept, out = np.flatnonzero(fold != part), np.flatnonzero(fold == part)[:MOST_JUDGED]
        if len(kept) == 0:  # a single row of pixels
            kept = out
        below = ErrorForest.fit(inputs[kept], errors[kept], edges, trees, leaf, generator).below(inputs[out])
        middle = (edges[1:] + edges[:-1]) / 2
        squares += float(np.sum((np.diff(below, axis=1) @ middle - errors[out]) ** 2))
        count += len(out)
        levels[out] = _at(below, edges, errors[out])
    return squares / count, levels


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
