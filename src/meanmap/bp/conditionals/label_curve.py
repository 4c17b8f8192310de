"""Labels given numbers: multinomial logistic regression, with a kernel part where that predicts better."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from meanmap.bp.beliefs.gain import clearly_better
from meanmap.bp.conditionals.given_parents import apart
from meanmap.bp.conditionals.parent_columns import ParentColumns
from meanmap.bp.conditionals.softmax import log_shares, softmax_weights
from meanmap.bp.edges.coordinates import MOST_FEATURES, TOLERANCE, coordinates, transformed
from meanmap.core.door import Door
from meanmap.core.points import slices, spread_rows
from meanmap.features.lowrank import PivotedCholesky
from meanmap.learning.default import kernel_for

__all__ = ["LabelCurve"]

# The linear part uses all rows, or fewer if rows × columns × labels exceed this.
MOST_NUMBERS = 200_000_000
# The kernel part is learned from MOST_ROWS rows, and chosen on CHOOSING_ROWS with CHOOSING_FEATURES features.
MOST_ROWS, CHOOSING_ROWS, CHOOSING_FEATURES = 4000, 2000, 100
# The number of folds. The ridge of the linear part is chosen on more rows, up to CHOOSING_NUMBERS rows × columns ×
# labels, because rare labels are informative only among many rows.
FOLDS, CHOOSING_NUMBERS = 3, 1_000_000
# Ridges that are compared on held-out rows, strongest first. The weakest hardly changes weights per standard deviation
# up to ± 4.5 on the logit scale, and keeps them finite if labels are separated.
RIDGES = (100.0, 10.0, 1.0, 0.1)
# Label parents interact with numbers if they have at most this many joint states.
MOST_STATES = 30
# At this share of the range outside the data, logits have moved from those at the edge to those of all rows by 1 − 1/e.
REACH = 0.5


@dataclass(frozen=True, eq=False)
class LabelCurve:
    """The shares of L labels given numbers, and labels as zeros and ones, side by side.

    A multinomial logistic regression on all columns, which may jump at values that many rows have; on their products
    with the states of labels, or on a kernel's features, one of each column or one of all together, if that makes
    held-out rows more probable by more than two standard errors. Ridges are those under which held-out rows are most
    probable; that of the linear part is the weakest unless another improves held-out predictions by more than a
    standard error, as rare differences would be shrunk to zero. Outside the range of the data a number counts as its
    nearest end, and logits shrink towards those of all rows with the distance.

    Attributes
    ----------
    widths : tuple of int
        Of the parents: 1 of a number, and of each column beside these.
    beside : ParentColumns
        Values that many rows have, at which shares may jump, and scores of numbers with heavy tails.
    low, high : array (q,)
        Of the parents in the data.
    centre, scale : array (d,)
        Of all columns.
    base : array (L,)
        The logarithms of the shares of all rows.
    crossed : bool
        Whether states of labels have slopes of their own.
    line : array (q, L)
        Weights of the columns.
    features : PivotedCholesky or None
    weights : array (r, L) or None
        Of features.
    """

    widths: tuple[int, ...]
    beside: ParentColumns
    low: np.ndarray
    high: np.ndarray
    centre: np.ndarray
    scale: np.ndarray
    base: np.ndarray
    crossed: bool
    line: np.ndarray
    features: PivotedCholesky | None
    weights: np.ndarray | None

    @classmethod
    def fit(cls, rows: np.ndarray, widths: tuple[int, ...], hits: np.ndarray) -> tuple["LabelCurve", int]:
        """Fit to rows of the parents and indicators (n, L); also returns how many rows the linear part used."""
        n, number = hits.shape
        beside, ends = ParentColumns.of(rows), (rows.min(axis=0), rows.max(axis=0))
        rows, widths = beside(rows), (*widths, *(1,) * beside.added)
        own = np.repeat([width == 1 for width in widths], widths)
        scale = np.where(rows.std(axis=0) > 0, rows.std(axis=0), np.inf)
        shares = (hits.sum(axis=0) + 0.5) / (n + number / 2)
        units = np.where(own, rows.mean(axis=0), 0.0), np.where(own, scale, 1.0)
        plain = cls(widths, beside, *ends, *units, np.log(shares), False, np.zeros((0, number)), None, None)
        law, ridges = _chosen(plain, rows, hits)
        if law.features is not None:
            few, offset = _some_of_each(hits, MOST_ROWS)
            features = coordinates(law.features.kernel, rows[few], TOLERANCE, MOST_FEATURES)
            line, phi = law._columns(rows[few]), _transformed(features, rows[few])
            both, penalty = np.concatenate([line, phi], axis=1), _penalty(line, ridges[0], phi, ridges[1])
            weights = softmax_weights(both, hits[few], penalty, law.base + offset)[line.shape[1] :]
            law = replace(law, features=features, weights=weights)
        width = law._columns(rows[:1]).shape[1] * number
        every = spread_rows(n, max(MOST_NUMBERS // width, MOST_ROWS))
        line = law._columns(rows[every])
        extra = line[:, plain._columns(rows[:1]).shape[1] :]
        penalty = _penalty(line[:, : line.shape[1] - extra.shape[1]], ridges[0], extra, ridges[1])
        found = softmax_weights(line, hits[every], penalty, law.base + law._bent(rows[every]))
        return replace(law, line=found), len(every)

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        """Shares (m, L) at rows of the parents."""
        within = np.clip(rows, self.low, self.high)
        marked = self.beside(within)
        logits = log_shares(self.base + self._columns(marked) @ self.line + self._bent(marked))
        span = np.where(self.high > self.low, self.high - self.low, 1.0)
        near = np.exp(-np.sum(((rows - within) / (REACH * span)) ** 2, axis=1, keepdims=True))
        return np.exp(log_shares(self.base + near * (logits - self.base)))

    def _columns(self, rows: np.ndarray) -> np.ndarray:
        """Ones, all columns in their units, and their products with states of labels."""
        columns, blocks = (rows - self.centre) / self.scale, np.split(rows, np.cumsum(self.widths)[:-1], axis=1)
        line = np.concatenate([np.ones((len(rows), 1)), columns], axis=1)
        if not self.crossed:
            return line
        states = np.ones((len(rows), 1))
        for block, width in zip(blocks, self.widths, strict=True):
            if width > 1:
                states = (states[:, :, None] * block[:, None]).reshape(len(rows), -1)
        numbers = np.concatenate([np.ones((len(rows), 1)), columns[:, self._numbers]], axis=1)
        return np.concatenate([line, (states[:, :, None] * numbers[:, None]).reshape(len(rows), -1)], axis=1)

    @property
    def _numbers(self) -> np.ndarray:
        """Whether each column is a number."""
        return np.repeat([width == 1 for width in self.widths], self.widths)

    def _bent(self, rows: np.ndarray) -> np.ndarray | float:
        """The kernel part of the logits."""
        if self.features is None or self.weights is None:
            return 0.0
        parts = [_transformed(self.features, rows[part]) @ self.weights for part in slices(len(rows), MOST_ROWS)]
        return np.concatenate([np.zeros((0, len(self.base))), *parts])


def _chosen(plain: LabelCurve, rows: np.ndarray, hits: np.ndarray) -> tuple[LabelCurve, tuple[float, float]]:
    """A line, or a line crossed with states of labels or with a kernel, and the ridges of both parts."""
    some = spread_rows(len(rows), max(CHOOSING_NUMBERS // (rows.shape[1] * hits.shape[1]), CHOOSING_ROWS))
    line = plain._columns(rows[some])
    _, ridge = _left_out(line, line[:, :0], hits[some], None, plain.base)
    some, offset = _some_of_each(hits, CHOOSING_ROWS)
    line, hits, base = plain._columns(rows[some]), hits[some], plain.base + offset
    best, law, ridges = None, plain, (ridge, ridge)
    for other, extra in _richer(plain, rows[some]):
        if best is None:
            best, _ = _left_out(line, line[:, :0], hits, ridge, base)
        logs, own = _left_out(line, extra, hits, ridge, base)
        gain = logs - best
        if clearly_better(gain):
            best, law, ridges = logs, other, (ridge, own)
    return law, ridges


def _richer(plain: LabelCurve, rows: np.ndarray) -> Iterator[tuple[LabelCurve, np.ndarray]]:
    """Distributions beyond a line, with the columns (n, r) that they add."""
    states = prod(width for width in plain.widths if width > 1)
    if 1 < states <= MOST_STATES:
        crossed = replace(plain, crossed=True)
        yield crossed, crossed._columns(rows)[:, plain._columns(rows).shape[1] :]
    with Door():
        kernels = [kernel_for(rows)] if rows.shape[1] == 1 else [apart(rows), kernel_for(rows)]
    for kernel in kernels:
        features = coordinates(kernel, rows, TOLERANCE, CHOOSING_FEATURES)
        yield replace(plain, features=features), _transformed(features, rows)


def _left_out(
    line: np.ndarray, extra: np.ndarray, hits: np.ndarray, ridge: float | None, base: np.ndarray
) -> tuple[np.ndarray, float]:
    """log p of each row (n,) by fits without its fold, at the ridge of the largest mean, of `extra` or, with none given
    for it, of the line: there at the least one unless another gains more than a standard error over it.
    """
    tried = RIDGES if ridge is None or extra.shape[1] else (ridge,)
    design, found = np.concatenate([line, extra], axis=1), np.empty((len(tried), len(line)))
    fold = np.random.default_rng(0).permutation(len(line)) % FOLDS
    for k in range(FOLDS):
        left, start = fold == k, None
        for logs, own in zip(found, tried, strict=True):
            penalty = _penalty(line, own if ridge is None else ridge, extra, own)
            start = softmax_weights(design[~left], hits[~left], penalty, base, start)
            logs[left] = np.sum(log_shares(base + design[left] @ start) * hits[left], axis=1)
    means = found.mean(axis=1)
    if ridge is None:  # of the linear part: small differences are kept unless held-out rows contradict them
        gain = found - found[-1]
        means[:-1][means[:-1] - means[-1] <= gain[:-1].std(axis=1) / np.sqrt(len(line))] = -np.inf
    best = int(np.argmax(means))
    return found[best], tried[best]


def _some_of_each(hits: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray]:
    """Select at most this many rows: a fraction of those of frequent labels, all of those of rare ones.

    Also returns the logs of the fractions: with these as offsets of the logits, the same regression is learned
    (Prentice & Pyke 1979).
    """
    labels, counts = hits.argmax(axis=1), hits.sum(axis=0).astype(int)
    kept, left = np.zeros(len(counts), dtype=int), most
    for place, label in enumerate(np.argsort(counts)):
        kept[label] = min(counts[label], left // (len(counts) - place))
        left -= kept[label]
    some = [np.flatnonzero(labels == k)[spread_rows(c, m)] for k, (c, m) in enumerate(zip(counts, kept, strict=True))]
    return np.sort(np.concatenate(some)), np.log(np.maximum(kept, 1) / np.maximum(counts, 1))


def _penalty(line: np.ndarray, ridge: float, extra: np.ndarray, own: float) -> np.ndarray:
    """The ridge of each column; of the constant, which is beside the shares of all rows, the least."""
    return np.concatenate([RIDGES[-1:], np.full(line.shape[1] - 1, ridge), np.full(extra.shape[1], own)])


def _transformed(features: PivotedCholesky, rows: np.ndarray) -> np.ndarray:
    with Door():
        return np.asarray(transformed(features, rows))
