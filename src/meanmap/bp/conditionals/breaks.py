"""Points where a regression jumps or bends: cuts that explain significantly more than smooth functions.

Cuts are in one column, or rules on two, such as whether their signs agree.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
import scipy.sparse

__all__ = ["ROUNDED", "Break", "beyond", "breaks"]

# The number of candidate cuts in each column, and the minimum number of rows on each side.
CANDIDATES, LEAST_BESIDE = 200, 20
# A jump is significant if its score is at least JUMP squared standard errors, and a bend at BEND. In 18 regressions on
# two numbers with linear, sine and saturating functions, spurious bends had scores of at most 5, and true bends 10 to
# 20. So had parabolas with little noise, where a bend only makes intervals wider. At most MOST breaks are found.
JUMP, BEND, MOST = 20.0, 9.0, 8
# Rules on two columns: candidates in each, the most pairs, and the least score, which is higher as more are tried.
GRID, PAIRS, RULE = 24, 20, 25.0
# A break is new only if the part of it that the others do not explain is at least this share.
LEAST_NEW = 0.01
# Residuals below this share of the standard deviation of the target are rounding errors.
ROUNDED = 1e-9


@dataclass(frozen=True)
class Break:
    """A column, its cut point, and whether the slope or the level changes there; of a rule the other break, too."""

    column: int
    at: float
    bends: bool
    beside: "Break | None" = None

    def moved(self, by: int) -> "Break":
        """A break in the same place if that many columns are inserted on the left."""
        beside = None if self.beside is None else self.beside.moved(by)
        return replace(self, column=self.column + by, beside=beside)


def beyond(rows: np.ndarray, found: Sequence[Break]) -> np.ndarray:
    """A column for each break, (n, k): ±1 on its two sides, or the distance of rows beyond it; of a rule the product.

    Examples
    --------
    >>> beyond(np.array([[0.0], [3.0]]), [Break(0, 1.0, False), Break(0, 1.0, True)]).tolist()
    [[-1.0, 0.0], [1.0, 2.0]]
    """
    columns = [_beyond(rows, each) for each in found]
    return np.stack(columns, axis=1) if columns else np.zeros((len(rows), 0))


def breaks(
    rows: np.ndarray, widths: Sequence[int], design: np.ndarray, inverse: np.ndarray, left: np.ndarray
) -> tuple[Break, ...]:
    """The most significant breaks in the columns of rows, selected one after the other.

    Each is tested as an additional column of a smooth regression by its score statistic (Rao 1948): the covariance of
    the residuals with the part of the column that the regression does not explain. A rule on two columns comes with the
    jumps of each, which it may lack: by whether two signs agree, neither has an effect of its own.

    Parameters
    ----------
    rows : array (n, q)
        Numbers, and labels as zeros and ones.
    widths : ints
        The number of columns that represent each variable, one for a number.
    design, inverse : array (n, p), (p, p)
        Of the regression, and the covariance of its weights for noise of variance one.
    left : array (n, k)
        Its residuals, of targets whose standard deviation is 1.
    """
    tried = _Tried.of(rows, widths, left)
    if not tried.found:
        return ()
    noise = np.sum(left**2, axis=0) / max(len(rows) - np.sum((design @ inverse) * design), 1.0)
    noise = np.maximum(noise, ROUNDED**2)
    scores, of_design, own = tried.sums(left), tried.sums(design), tried.squares()
    followed = of_design @ inverse
    free = np.maximum(own - np.sum(followed * of_design, axis=1), 0)
    needed = np.array([RULE if each.beside else BEND if each.bends else JUMP for each in tried.found])
    kept: list[int] = []
    among = np.zeros((len(own), 0))
    while len(kept) < MOST:
        # Remove the part explained by breaks that were chosen before.
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
    found = [tried.found[k] for k in kept]
    return tuple(dict.fromkeys(part for each in found for part in _with_parts(each)))


@dataclass(frozen=True, eq=False)
class _Tried:
    """Candidates: for each number its cuts, and the bin between two cuts of each row, as a sparse (cuts + 1, n); then
    rules, and their columns.
    """

    rows: np.ndarray
    found: list[Break]
    bins: list[tuple[int, np.ndarray, scipy.sparse.csr_array]]
    rules: np.ndarray

    @classmethod
    def of(cls, rows: np.ndarray, widths: Sequence[int], left: np.ndarray) -> "_Tried":
        found, bins, n = [], [], len(rows)
        for k in np.flatnonzero(np.repeat(np.array(widths) == 1, widths)).tolist():
            cuts = _cuts(rows[:, k], CANDIDATES)
            if len(cuts):
                at = np.searchsorted(cuts, rows[:, k], side="right"), np.arange(n)
                bins.append((k, cuts, scipy.sparse.csr_array((np.ones(n), at), shape=(len(cuts) + 1, n))))
                found += [Break(k, float(cut), bends) for bends in (False, True) for cut in cuts]
        rules = _rules(rows, widths, left)
        return cls(rows, found + rules, bins, beyond(rows, rules))

    def sums(self, values: np.ndarray) -> np.ndarray:
        """Products of the columns of candidates and values (n, m): (candidates, m)."""
        parts, total = [], values.sum(axis=0)
        for k, cuts, bins in self.bins:
            here = self.rows[:, k]
            above, times = (_above(bins @ each) for each in (values, here[:, None] * values))
            parts += [2 * above - total, times - cuts[:, None] * above]
        return np.concatenate([*parts, self.rules.T @ values])

    def squares(self) -> np.ndarray:
        """Sums of squares of the columns of candidates."""
        parts = []
        for k, cuts, bins in self.bins:
            here = self.rows[:, k]
            number, sums, squares = _above(bins @ np.stack([np.ones(len(here)), here, here**2], axis=1)).T
            parts += [np.full(len(cuts), float(len(here))), squares - 2 * cuts * sums + cuts**2 * number]
        return np.concatenate([*parts, np.sum(self.rules**2, axis=0)])


def _rules(rows: np.ndarray, widths: Sequence[int], left: np.ndarray) -> list[Break]:
    """Find rules on two columns of different variables, one of which has more than two values.

    For each pair, the cuts are those where the product of two centred jumps has the largest correlation with residuals
    (n, k). The best pairs are returned.
    """
    of, n = np.repeat(np.arange(len(widths)), widths), len(rows)
    cuts = [_cuts(values, GRID, least=2) for values in rows.T]
    bins = [np.searchsorted(each, values, side="right") for each, values in zip(cuts, rows.T, strict=True)]
    means = [2 * _above(np.bincount(each, minlength=len(at) + 1)) / n - 1 for each, at in zip(bins, cuts, strict=True)]
    units, found = left / np.sqrt(np.maximum(np.sum(left**2, axis=0), np.finfo(float).tiny)), []
    for j, k in combinations(range(rows.shape[1]), 2):
        shape = len(cuts[j]), len(cuts[k])
        if of[j] == of[k] or min(shape) == 0 or max(shape) == 1:
            continue
        free = np.outer(1 - means[j] ** 2, 1 - means[k] ** 2)
        of_both = bins[j] * (shape[1] + 1) + bins[k]
        for target in units.T:
            sums = np.bincount(of_both, weights=target, minlength=(shape[0] + 1) * (shape[1] + 1))
            sums = sums.reshape(shape[0] + 1, shape[1] + 1)
            total, of_j, of_k = sums.sum(), _above(sums.sum(axis=1)), _above(sums.sum(axis=0))
            both = _above(_above(sums).T).T
            jumps_j, jumps_k = 2 * of_j[:, None] - total, 2 * of_k - total
            score = 4 * both - 2 * of_j[:, None] - 2 * of_k + total
            score -= means[k] * jumps_j + means[j][:, None] * (jumps_k - means[k] * total)
            score = score**2 / free
            a, b = np.unravel_index(int(np.argmax(score)), shape)
            found.append((float(score[a, b]), j, float(cuts[j][a]), k, float(cuts[k][b]), target))
    best = sorted(found, key=lambda each: -each[0])[:PAIRS]
    return list(dict.fromkeys(_refined(rows, j, at_j, k, at_k, target) for _, j, at_j, k, at_k, target in best))


def _refined(rows: np.ndarray, j: int, at_j: float, k: int, at_k: float, target: np.ndarray) -> Break:
    """The rule with the best cut among all of a column, given that of the other, one after the other."""
    at = {j: at_j, k: at_k}
    for one, other in ((j, k), (k, j)):
        cuts = _cuts(rows[:, one], CANDIDATES, least=2)
        signed = target * _beyond(rows, Break(other, at[other], False))
        sums = np.bincount(np.searchsorted(cuts, rows[:, one], side="right"), weights=signed, minlength=len(cuts) + 1)
        above = np.cumsum(sums[::-1])[::-1]
        at[one] = float(cuts[np.argmax(np.abs(2 * above[1:] - above[0]))])
    return Break(j, at[j], False, beside=Break(k, at[k], False))


def _with_parts(one: Break) -> tuple[Break, ...]:
    return (one,) if one.beside is None else (replace(one, beside=None), one.beside, one)


def _beyond(rows: np.ndarray, one: Break) -> np.ndarray:
    values = rows[:, one.column]
    found = np.maximum(values - one.at, 0) if one.bends else np.where(values >= one.at, 1.0, -1.0)
    return found if one.beside is None else found * _beyond(rows, one.beside)


def _above(sums: np.ndarray) -> np.ndarray:
    """Sums over all rows above each cut, from sums over bins."""
    return np.cumsum(sums[::-1], axis=0)[::-1][1:]


def _cuts(values: np.ndarray, many: int, least: int = 3) -> np.ndarray:
    """Midpoints of adjacent values, this many, spread over the rows; none if there are fewer values than `least`."""
    seen, counts = np.unique(values, return_counts=True)
    below = np.cumsum(counts)[:-1]
    inside = np.flatnonzero((below >= LEAST_BESIDE) & (len(values) - below >= LEAST_BESIDE))
    if len(seen) < least or not len(inside):
        return np.zeros(0)
    wanted = np.linspace(below[inside[0]], below[inside[-1]], many)
    chosen = inside[np.unique(np.searchsorted(below[inside], wanted))]
    return (seen[chosen] + seen[chosen + 1]) / 2
