"""Where a regression jumps or bends: cut points that explain significantly more than smooth functions."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse

__all__ = ["Break", "beyond", "breaks"]

# So many candidates in each column, with this many rows on both sides at least.
CANDIDATES, LEAST_BESIDE = 200, 20
# A jump is clear where its score is so many squared standard errors, a bend so many: in 18 regressions on two numbers
# with lines, sines and saturation bends had 5 at most, true bends 10 to 20, and so had parabolas with little noise, to
# which a bend does no harm but wider intervals. At most so many are found.
JUMP, BEND, MOST = 20.0, 9.0, 8
# What others follow of a break up to this share is nothing new.
LEAST_NEW = 0.01


@dataclass(frozen=True)
class Break:
    """A column, its cut point, and whether the slope or the level changes there."""

    column: int
    at: float
    bends: bool


def beyond(rows: np.ndarray, found: Sequence[Break]) -> np.ndarray:
    """A column for each break, (n, k): ±1 on its two sides, or the distance of rows beyond it.

    Examples
    --------
    >>> beyond(np.array([[0.0], [3.0]]), [Break(0, 1.0, False), Break(0, 1.0, True)]).tolist()
    [[-1.0, 0.0], [1.0, 2.0]]
    """
    columns = [_beyond(rows[:, each.column], each) for each in found]
    return np.stack(columns, axis=1) if columns else np.zeros((len(rows), 0))


def breaks(
    rows: np.ndarray, columns: Sequence[int], design: np.ndarray, inverse: np.ndarray, left: np.ndarray
) -> tuple[Break, ...]:
    """The most significant breaks in the columns of rows, selected one after the other.

    Each is tested as an additional column of a smooth regression by its score statistic (Rao 1948): the covariance of
    the residuals with the part of the column that the regression does not explain.

    Parameters
    ----------
    rows : array (n, q)
        Numbers, and labels as zeros and ones.
    columns : ints
        Which of them are numbers.
    design, inverse : array (n, p), (p, p)
        Of the regression, and the covariance of its weights for noise of variance one.
    left : array (n, k)
        Its residuals.
    """
    tried = _Tried.of(rows, columns)
    if not tried.found:
        return ()
    noise = np.sum(left**2, axis=0) / max(len(rows) - np.sum((design @ inverse) * design), 1.0)
    noise = np.maximum(noise, np.finfo(float).tiny)
    scores, of_design, own = tried.sums(left), tried.sums(design), tried.squares()
    followed = of_design @ inverse
    free = np.maximum(own - np.sum(followed * of_design, axis=1), 0)
    needed = np.where([each.bends for each in tried.found], BEND, JUMP)
    kept: list[int] = []
    among = np.zeros((len(own), 0))
    while len(kept) < MOST:
        # Less what those that were taken already say.
        shares = np.linalg.pinv(among[kept], hermitian=True) @ among.T
        rest = free - np.sum(among.T * shares, axis=0)
        new = rest > LEAST_NEW * free
        gains = np.max((scores - shares.T @ scores[kept]) ** 2 / noise, axis=1) / np.where(new, rest, np.inf) / needed
        best = int(np.argmax(gains))
        if gains[best] < 1:
            break
        kept.append(best)
        with_best = tried.sums(beyond(rows, [tried.found[best]]))[:, 0] - followed @ of_design[best]
        among = np.column_stack([among, with_best])
    return tuple(tried.found[k] for k in kept)


@dataclass(frozen=True, eq=False)
class _Tried:
    """Candidates; for each column its cuts, and the bin between two cuts of each row, as a sparse (cuts + 1, n)."""

    rows: np.ndarray
    found: list[Break]
    bins: list[tuple[int, np.ndarray, scipy.sparse.csr_array]]

    @classmethod
    def of(cls, rows: np.ndarray, columns: Sequence[int]) -> "_Tried":
        found, bins, n = [], [], len(rows)
        for k in columns:
            cuts = _cuts(rows[:, k])
            if len(cuts):
                at = np.searchsorted(cuts, rows[:, k], side="right"), np.arange(n)
                bins.append((k, cuts, scipy.sparse.csr_array((np.ones(n), at), shape=(len(cuts) + 1, n))))
                found += [Break(k, float(cut), bends) for bends in (False, True) for cut in cuts]
        return cls(rows, found, bins)

    def sums(self, values: np.ndarray) -> np.ndarray:
        """Products of the columns of candidates and values (n, m): (candidates, m)."""
        parts, total = [], values.sum(axis=0)
        for k, cuts, bins in self.bins:
            here = self.rows[:, k]
            above, times = (_above(bins @ each) for each in (values, here[:, None] * values))
            parts += [2 * above - total, times - cuts[:, None] * above]
        return np.concatenate(parts)

    def squares(self) -> np.ndarray:
        """Sums of squares of the columns of candidates."""
        parts = []
        for k, cuts, bins in self.bins:
            here = self.rows[:, k]
            number, sums, squares = _above(bins @ np.stack([np.ones(len(here)), here, here**2], axis=1)).T
            parts += [np.full(len(cuts), float(len(here))), squares - 2 * cuts * sums + cuts**2 * number]
        return np.concatenate(parts)


def _beyond(values: np.ndarray, one: Break) -> np.ndarray:
    return np.maximum(values - one.at, 0) if one.bends else np.where(values >= one.at, 1.0, -1.0)


def _above(sums: np.ndarray) -> np.ndarray:
    """Sums over all rows above each cut, from sums over bins."""
    return np.cumsum(sums[::-1], axis=0)[::-1][1:]


def _cuts(values: np.ndarray) -> np.ndarray:
    """Midpoints of adjacent values, spread over the rows."""
    seen, counts = np.unique(values, return_counts=True)
    below = np.cumsum(counts)[:-1]
    inside = np.flatnonzero((below >= LEAST_BESIDE) & (len(values) - below >= LEAST_BESIDE))
    if len(seen) < 3 or not len(inside):
        return np.zeros(0)
    wanted = np.linspace(below[inside[0]], below[inside[-1]], CANDIDATES)
    chosen = inside[np.unique(np.searchsorted(below[inside], wanted))]
    return (seen[chosen] + seen[chosen + 1]) / 2
