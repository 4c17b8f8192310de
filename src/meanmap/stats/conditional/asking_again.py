"""A small p-value is asked again where neighbours in z still agree: by regressions that find steps and narrow bends."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from meanmap.core.tables.order import LEAST, LEAST_ROWS, is_sorted, series_note
from meanmap.stats.conditional.leftover import NOTHING, Agreement, Leftover, Neighbours
from meanmap.stats.conditional.residuals import Residuals, Unread
from meanmap.stats.conditional.variables import Variable

__all__ = ["DOUBTED", "asked_again", "is_doubtful", "leftover", "told_in_order", "told_of"]

# Where no level would reject, what regressions missed does no harm.
DOUBTED = 0.2
# Where noise would agree as far less often than this, other regressions are tried: they cost power, some tenths of a
# second, and are not needed where bias is so small that it moves the test by less than its standard deviation.
TRIED = 0.01
# The same for rows that follow each other, of which there is one meaning.
SERIES = 0.0005
# The score from which on it is told that those regressions miss something, too.
TOLD = 1.0


def leftover(left: Residuals, right: Residuals) -> dict[str, Leftover]:
    """How far both sides agree among neighbours, part by part."""
    one, other = left.agreements, right.agreements
    return {name: Leftover.of(one[name], other[name]) for name in one if name in other}


def asked_again(
    left: Residuals, right: Residuals, refitted: Callable[[], Sequence[Residuals]]
) -> tuple[Residuals, Residuals, Leftover] | None:
    """Residuals that miss less, and what they still miss; None where there is nothing to mend."""
    if _most(leftover(left, right)).chance > TRIED:
        return None
    left, right = refitted()
    parts = leftover(left, right)
    # Features of plain numbers are rougher functions of z than numbers are, and only there for their power.
    if "plain" in parts and parts["plain"].score >= TOLD:
        left, right = (replace(side, plain=None, third=None) for side in (left, right))
        del parts["plain"]
    return left, right, _most(parts)


def is_doubtful(found: Leftover, pvalue: float) -> bool:
    """Whether functions of z that no regression found may have made a small p-value."""
    return found.score >= TOLD and pvalue <= DOUBTED


def told_of(found: Leftover, pvalue: float, sure: float) -> str:
    """What is said of functions of z that no regression found; empty where they do not matter.

    They do not where the p-value stays as it is with all that they can add taken off, as `Leftover.bias` bounds it.
    """
    if not is_doubtful(found, pvalue) or sure <= pvalue:
        return ""
    x, y = (f"{max(share, 0.001):.2g}" for share in found.shares)
    return (
        f"rows that are neighbours in z still agree after all regressions: functions of z that were missed make about "
        f"{x} of what is left of x and {y} of y. They look like dependence: without what they can add the p-value may "
        f"be {sure:.2g}, and that is the one to trust."
    )


def told_in_order(
    left: Residuals, right: Residuals, sides: Sequence[Variable | Unread], pvalue: float
) -> tuple[str, ...]:
    """What is said of rows that follow each other as a series does, if that is seen in what is left of both sides.

    Given z they may still be independent where x and y themselves are series. Rows that are sorted by one of the
    columns say nothing, nor do such of known clusters.
    """
    given = left.given
    columns = [*given.columns.T, *(column for side in sides if isinstance(side, Variable) for column in side.numbers.T)]
    if pvalue > DOUBTED or given.units is not None or len(given.columns) < LEAST_ROWS or any(map(is_sorted, columns)):
        return ()
    rows = np.arange(len(given.columns))
    near = Neighbours(((rows[:-1], rows[1:]),), (False,))
    found = []
    for side in (left, right):
        numbers = None if side.first is None else (side.columns[:, : len(side.scales)], side.first)
        found.append(Agreement.of(*(numbers or (side.left, side.second)), near))
    signs = [float(np.sign(each.score[0])) for each in found]
    most = Leftover.of(*(replace(each, score=np.abs(each.score), share=np.abs(each.share)) for each in found))
    if 4 * most.chance > SERIES or min(most.shares) < LEAST:  # either sign, on either side
        return ()
    shares = [sign * share for sign, share in zip(signs, most.shares, strict=True)]
    return (series_note(["x", "y"], [f"{share:.2f} given z" for share in shares], shares, len(rows)),)


def _most(parts: dict[str, Leftover]) -> Leftover:
    most = max(parts.values(), key=lambda each: each.score, default=NOTHING)
    return replace(most, bias=max((each.bias for each in parts.values()), default=0.0))
