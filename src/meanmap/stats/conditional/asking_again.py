"""Richer regressions, with steps and narrow bends, for small p-values with correlated residuals of neighbours in z."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from meanmap.core.tables.order import LEAST, LEAST_ROWS, is_sorted, series_note
from meanmap.stats.conditional.leftover import NOTHING, Agreement, Leftover, Neighbours
from meanmap.stats.conditional.residuals import Residuals, Unread
from meanmap.stats.conditional.variables import Variable

__all__ = ["DOUBTED", "asked_again", "doubted", "is_doubtful", "leftover", "told_in_order", "told_of"]

# Above this p-value no usual level rejects, so functions that the regressions missed do no harm.
DOUBTED = 0.2
# Richer regressions are tried if pure noise would show such correlation between neighbours with a probability below
# this. They cost power and some tenths of a second, and are not needed if the bias moves the statistic by less than its
# standard deviation.
TRIED = 0.01
# The same bound for the note on serially dependent rows.
SERIES = 0.0005
HARMLESS = 0.1
# No doubt is raised if the p-value hardly changes when the possible contribution of missed functions is removed.
CLEAR = 0.01
# Above this score a note says that even the richer regressions miss functions of z.
TOLD = 1.0


def leftover(left: Residuals, right: Residuals) -> dict[str, Leftover]:
    """The correlation of residuals on both sides, between neighbours and with functions of some columns of z, by part.

    The score of such functions stays high even if the regressions leave almost nothing of them. They are therefore
    ignored if they can add no more than a tenth of the mean of the statistic, which does no harm.
    """
    one, other = left.agreements, right.agreements
    found = {name: Leftover.of(one[name], other[name]) for name in one if name in other}
    for name in ("products", "waves"):
        if name in found:
            harmless = len(left.left) * found[name].bias < HARMLESS
            found[name] = NOTHING if harmless else found[name].of_all_places()
    return found


def doubted(left: Residuals, right: Residuals) -> Leftover | None:
    """What regressions may have missed; None if noise explains the correlation of the residuals."""
    most = _most(leftover(left, right))
    return None if most.chance > TRIED else most


def asked_again(
    left: Residuals, right: Residuals, refitted: Callable[[], Sequence[Residuals]]
) -> tuple[Residuals, Residuals, Leftover] | None:
    """Residuals of richer regressions, and what these regressions still miss; None if nothing needs correction."""
    if doubted(left, right) is None:
        return None
    left, right = refitted()
    parts = leftover(left, right)
    # Features of unregressed numbers are rougher functions of z than the numbers, and only serve to increase power.
    if "plain" in parts and parts["plain"].score >= TOLD:
        left, right = (replace(side, plain=None, third=None) for side in (left, right))
        del parts["plain"]
    return left, right, _most(parts)


def is_doubtful(found: Leftover, pvalue: float) -> bool:
    """Whether functions of z that no regression found may explain a small p-value."""
    return found.score >= TOLD and pvalue <= DOUBTED


def told_of(found: Leftover, pvalue: float, sure: float) -> str:
    """The note on functions of z that no regression found; empty if they do not matter.

    They do not matter if the p-value stays nearly the same after subtracting their largest contribution
    (`Leftover.bias`).
    """
    if not is_doubtful(found, pvalue) or sure <= max(2 * pvalue, CLEAR):
        return ""
    x, y = (f"{max(share, 0.001):.2g}" for share in found.shares)
    return (
        "residuals of rows that are neighbours in z are still correlated after all regressions: functions of z that "
        f"were missed make up about {x} of the residual variance of x and {y} of that of y. They look like dependence: "
        f"without their contribution the p-value may be {sure:.2g}, which is the one to trust."
    )


def told_in_order(
    left: Residuals, right: Residuals, sides: Sequence[Variable | Unread], pvalue: float
) -> tuple[str, ...]:
    """The note on serially dependent rows, if the residuals of both sides are serially correlated.

    Series x and y alone are no reason for the note: given z the rows may still be independent. Rows sorted by one of
    the columns, and rows of known clusters, are not taken for a series.
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
    if 4 * most.chance > SERIES or min(most.shares) < LEAST:  # two signs on each of two sides
        return ()
    shares = [sign * share for sign, share in zip(signs, most.shares, strict=True)]
    return (series_note(["x", "y"], [f"{share:.2f} given z" for share in shares], shares, len(rows)),)


def _most(parts: dict[str, Leftover]) -> Leftover:
    most = max(parts.values(), key=lambda each: each.score, default=NOTHING)
    return replace(most, bias=max((each.bias for each in parts.values()), default=0.0))
