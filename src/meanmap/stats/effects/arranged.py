"""Samples whose rows lie in strata or clusters, or have weights, as effects take them, and what is said of them."""

from collections.abc import Sequence
from typing import Any

from meanmap.core.errors import InputError
from meanmap.core.points import in_columns
from meanmap.stats.designs.exchanges import Exchange
from meanmap.stats.designs.reading import design_of, without_design
from meanmap.stats.effects.cells import Cells
from meanmap.stats.effects.effect import FEW, doubt_about_mean
from meanmap.stats.effects.groups import Difference
from meanmap.stats.samples.samples import Samples, columns_of
from meanmap.stats.samples.spread import Spread
from meanmap.stats.settings import LEAST_POINTS

__all__ = ["arranged", "cells_of", "doubts_of", "tails_of", "tails_of_other"]


def arranged(
    samples: Sequence[Any], names: Sequence[str], said: tuple[Any, Any, Any], missing: str, by: str | None
) -> tuple[list[Any], Exchange | None]:
    """The samples without the columns of `within`, `clusters` and `weights`, and the design that these say."""
    design = design_of(samples, names, *said, missing, by)
    return without_design(samples, names, *said), design


def cells_of(sizes: Sequence[int], names: Sequence[str], design: Exchange | None) -> Cells | None:
    """The cells of a design; refused where so few rows weigh so much that nothing says how much a mean varies."""
    if design is None:
        return None
    cells = Cells.of(sizes, design)
    for name, effective in zip(names, cells.effective(sizes), strict=True):
        if effective < LEAST_POINTS:
            raise InputError(
                f"{name} counts as {effective:.2g} rows or clusters of one weight, which does not say how much its "
                f"mean varies; expected at least {LEAST_POINTS}. Pass weights= that are more even, or finer clusters=."
            )
    return cells


def doubts_of(found: Difference, samples: Samples, cells: Cells | None) -> tuple[str, ...]:
    """What is said of strata that say nothing, and of means of few rows or clusters, or of few that weigh much."""
    if cells is None:
        return doubt_about_mean(*samples.sizes)
    quiet, n = ~cells.weights.any(axis=1) & (cells.mass > 0), len(cells.cell)
    alone = int((quiet & (cells.strata == cells.left_out)).sum())
    silent = int(quiet.sum()) - alone
    told = (f"{silent} of {n} rows are in strata of one sample only and say nothing.",) if silent else ()
    if alone:
        told += (f"{alone} of {n} rows are left out: their stratum has one row, or one cluster, of a sample.",)
    fewest = min(cells.effective(samples.sizes))
    if fewest >= FEW:
        return told
    things = "rows, clusters or strata of one weight that vary on their own"
    return (*told, f"the normal law of means is doubtful for what counts as {fewest:.3g} {things}.")


def tails_of(found: Difference, samples: Samples, instead: str) -> tuple[str, ...]:
    """What is said where tails leave open how large a standard deviation is, and what to do instead."""
    if found.shifts is None:
        return ()
    known = columns_of(samples) if in_columns(samples.pooled) else ()
    return found.shifts.spread.doubts(known, samples.sizes[0], instead)


def tails_of_other(found: Difference, pair: Samples, names: Sequence[str], so: str) -> tuple[str, ...]:
    """What is said where the second sample has heavy tails and the first, whose deviations are the unit, shows none."""
    other = Spread.of(pair[1])
    if other is None or found.shifts is None or not set(other.unknown) - set(found.shifts.spread.unknown):
        return ()
    x, y = names
    unit = f"the unit is the standard deviation of {x}: if both have such tails, it is larger than it seems"
    return (f"{y} has heavy tails that the rows of {x} do not show; {unit}, and {so}",)
