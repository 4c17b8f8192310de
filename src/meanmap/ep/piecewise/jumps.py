"""Where functions are known to jump: there rules begin panels of their own."""

import numpy as np

from meanmap.ep.piecewise.chebyshev import evaluated
from meanmap.ep.piecewise.noise import AT_LEAST
from meanmap.ep.piecewise.pieces import Pieces

__all__ = ["JUMPS", "jumps"]

# At most this many are shown to a rule.
JUMPS = 64


def jumps(pieces: Pieces, line: np.ndarray, points: np.ndarray, height: np.ndarray) -> np.ndarray:
    """Places with the values before and behind, by turns, where each function jumps by more than its pieces are off.

    Returned are (lines, 2 JUMPS, 2), first of all where `height` at the sorted `points` is largest; the rest is NaN.
    """
    found = np.full((len(line), 2 * JUMPS, 2), np.nan)
    first, last = np.searchsorted(pieces.line, line), np.searchsorted(pieces.line, line, side="right")
    for row, (begin, end) in enumerate(zip(first, last, strict=True)):
        before, behind = np.arange(begin, end - 1), np.arange(begin + 1, end)
        ends = np.ones(len(before))
        one, other = (evaluated(pieces.coefficients[k], t) for k, t in ((before, ends), (behind, -ends)))
        off = np.maximum(pieces.error[before] + pieces.error[behind], AT_LEAST * pieces.noise[line[row]])
        same = (one == other) | (np.isnan(one) & np.isnan(other)) | (np.abs(one - other) <= off)
        at = np.flatnonzero(~same & (pieces.low[behind] == pieces.high[before]))
        place = pieces.low[behind[at]]
        order = np.argsort(-np.interp(place, points[row], height[row]), kind="stable")[:JUMPS]
        both = np.stack([one[at[order]], other[at[order]]], 1)
        found[row, : 2 * len(order)] = np.stack([np.repeat(place[order], 2), both.ravel()], 1)
    return found
