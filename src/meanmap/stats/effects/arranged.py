"""Samples with strata, clusters or weights, as effect sizes use them, and notes about them."""

from collections.abc import Sequence
from typing import Any

from meanmap.core.errors import InputError
from meanmap.core.language import in_few_words
from meanmap.core.points import in_columns
from meanmap.core.tables.order import alike_in_order
from meanmap.stats.designs.exchanges import Exchange
from meanmap.stats.designs.reading import design_of, without_design
from meanmap.stats.effects.effect import FEW, doubt_about_mean
from meanmap.stats.effects.groups import Difference
from meanmap.stats.samples.by_column import ColumnDifference
from meanmap.stats.samples.cells import Cells
from meanmap.stats.samples.samples import Samples, columns_of
from meanmap.stats.samples.spread import Spread
from meanmap.stats.settings import LEAST_POINTS

__all__ = ["arranged", "cells_of", "doubts_of", "says_little", "tails_of", "tails_of_other"]


def arranged(
    samples: Sequence[Any], names: Sequence[str], said: tuple[Any, Any, Any], missing: str, by: str | None
) -> tuple[list[Any], Exchange | None, tuple[str, ...]]:
    """The samples without the columns of `within`, `clusters` and `weights`, the design that these define, and notes.

    If neither strata nor clusters are given, the notes name serially dependent rows.
    """
    design = design_of(samples, names, *said, missing, by)
    alone, (within, clusters, _) = without_design(samples, names, *said), said
    return alone, design, alike_in_order(alone, names) if clusters is None and within is None else ()


def cells_of(sizes: Sequence[int], names: Sequence[str], design: Exchange | None) -> Cells | None:
    """The cells of a design; an error if the effective sample size is too small to estimate the variance of a mean."""
    if design is None:
        return None
    cells = Cells.of(sizes, design)
    for name, effective in zip(names, cells.effective(sizes), strict=True):
        if effective < LEAST_POINTS:
            raise InputError(
                f"{name} has an effective sample size of {effective:.2g} rows or clusters, too few to estimate the "
                f"variance of its mean; expected at least {LEAST_POINTS}. Pass more even weights=, or finer clusters=."
            )
    return cells


def doubts_of(found: Difference, samples: Samples, cells: Cells | None) -> tuple[str, ...]:
    """Notes on strata that contribute nothing, and on means of few rows or clusters, or of few with large weights."""
    if cells is None:
        return doubt_about_mean(*samples.sizes)
    quiet, n = ~cells.weights.any(axis=1) & (cells.mass > 0), len(cells.cell)
    alone = int((quiet & (cells.strata == cells.left_out)).sum())
    silent = int(quiet.sum()) - alone
    told = (f"{silent} of {n} rows are in strata with only one sample and contribute nothing.",) if silent else ()
    if alone:
        told += (f"{alone} of {n} rows are left out: their stratum has only one row, or one cluster, of a sample.",)
    fewest = min(cells.effective(samples.sizes))
    if fewest >= FEW:
        return told
    things = "independent rows, clusters or strata of equal weight"
    return (
        *told,
        f"the normal approximation of means is doubtful for an effective sample size of {fewest:.3g} {things}.",
    )


def tails_of(found: Difference, samples: Samples, instead: str) -> tuple[str, ...]:
    """The note if tails are too heavy for a standard deviation to be estimated, with what to do `instead`."""
    if found.shifts is None:
        return ()
    known = columns_of(samples) if in_columns(samples.pooled) else ()
    return found.shifts.spread.doubts(known, samples.sizes[0], instead)


def tails_of_other(found: Difference, pair: Samples, names: Sequence[str], so: str) -> tuple[str, ...]:
    """The note if the second sample has heavy tails, but not the first, whose standard deviation is the unit."""
    other = Spread.of(pair[1])
    if other is None or found.shifts is None or not set(other.unknown) - set(found.shifts.spread.unknown):
        return ()
    x, y = names
    unit = f"the unit is the standard deviation of {x}: if both have such tails, it is larger than estimated"
    return (f"{y} has heavy tails that the rows of {x} do not show; {unit}, and {so}",)


def says_little(columns: Sequence[ColumnDifference]) -> tuple[str, ...]:
    """The note on columns in which most rows have the same number, from differences in means of the other rows."""
    found = [f"{each.column} ({each.without})" for each in columns if each.without is not None]
    said = f"more than half of the rows have one number in {in_few_words(found, 3)}: standard deviations say little"
    return (f"{said} about such columns. Compare the share of that number, and the mean of the others.",) * bool(found)
