"""Repeated values of z: rows with the same values form strata, within which x and y are permuted in an exact test."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from meanmap.core.containers import is_sparse
from meanmap.core.door import Door
from meanmap.core.language import counted, in_python
from meanmap.core.rng import Rng
from meanmap.core.tables.codes import (
    LEAST_CODES,
    ROWS_A_LABEL,
    ROWS_A_STRATUM,
    ROWS_TO_DOUBT,
    if_codes,
    may_be_codes,
)
from meanmap.core.tables.cycles import notes_on_cycles
from meanmap.core.tables.table import Table
from meanmap.core.types import Data
from meanmap.stats.asked import Found
from meanmap.stats.conditional.variables import MOST_VALUES, table_of
from meanmap.stats.designs.exchanges import Exchange
from meanmap.stats.independence.exchanged import MOST_ROWS
from meanmap.stats.independence.independence import in_strata

__all__ = [
    "codes_told",
    "found_in_strata",
    "many_told",
    "other_reading",
    "rows_together",
    "strata_told",
]


def rows_together(z: Data, least: float = ROWS_A_STRATUM, beside: np.ndarray | None = None) -> np.ndarray | None:
    """The stratum of each row, counted from 0: rows of a stratum share all values of z, and of `beside` if given.

    None if strata have fewer than `least` rows on average, or if there is only one.

    Examples
    --------
    >>> rows_together(np.repeat([3, 1], 8)).tolist()
    [1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0]
    >>> rows_together(np.arange(16.0)) is None
    True
    """
    table = _table(z)
    if table is None:
        return None
    n = len(table)
    places = np.zeros(n, int) if beside is None else beside
    for column in map(np.asarray, table.columns.values()):
        if column.ndim != 1:
            return None
        codes = np.unique(column, return_inverse=True)[1].ravel()
        places = np.unique(places * n + codes, return_inverse=True)[1].ravel()
        if least * (1 + places.max(initial=0)) > n:
            return None
    return places if places.max(initial=0) > 0 else None


def found_in_strata(
    sides: Sequence[Any], kernels: Sequence[Any], strata: np.ndarray, n_draws: int, random: Rng, door: Door
) -> Found:
    """The independence test of x and y within strata, which tests whether they are independent given the strata."""
    n = len(strata)
    found = in_strata(sides, kernels, Exchange(strata, np.arange(n), np.ones(n)), n_draws, random, door)
    return replace(found, method=f"conditional {found.method}")


def strata_told(z: Data, strata: np.ndarray) -> tuple[str, ...]:
    """A note if numbers in z are treated as labels; none for labels."""
    table = table_of(z, "z")
    if not any(table.is_real(name) for name in table.names):
        return ()
    k, n = 1 + int(strata.max()), len(strata)
    said = f"z has {k} different values, each in {n / k:.0f} rows on average: x and y were permuted within these, which"
    return (f"{said} is exact whatever the effect of z. To regress on z as a number pass method='kci'.",)


def many_told(z: Data, kinds: Mapping[str, Any] | None) -> tuple[str, ...]:
    """A note on integers that would form strata if there were fewer rows."""
    table = table_of(z, "z")
    if any(name in (kinds or {}) or not table.is_real(name) or not may_be_codes(table[name]) for name in table.names):
        return ()
    strata = rows_together(z)
    k, n = 0 if strata is None else 1 + int(strata.max()), len(table)
    if k <= MOST_VALUES:  # each value is then also treated as a label
        return ()
    remedy = _within_z()
    remedy += f" of whole sites, {MOST_ROWS} rows at most" if n > MOST_ROWS else ""
    said = f"z has {k} different whole numbers, each in {n / k:.0f} rows on average, and is regressed on"
    said += ", as there are so many rows; regression follows smooth effects"
    return (f"{said}. {if_codes(remedy)}",)


def other_reading(
    z: Data, sides: Sequence[Any], kernels: Sequence[Any], pvalue: float, n_draws: int, random: Rng, door: Door
) -> tuple[str, ...]:
    """A note on integers with few rows each that were regressed on, with the p-value if they are codes; on times of
    which a weekday or an hour matters.
    """
    table = _table(z)
    if table is None:
        return ()
    given = {"z" if len(table.names) == 1 else str(name): column for name, column in table.columns.items()}
    if found := notes_on_cycles(given, dict(zip("xy", sides, strict=True))):
        return found
    if not any(map(table.is_real, table.names)) or not all(map(may_be_codes, table.columns.values())):
        return ()
    strata = rows_together(z, ROWS_TO_DOUBT)
    if strata is None:
        return ()
    found = found_in_strata(sides, kernels, strata, n_draws, random, door)
    other, k = found.null.pvalue(found.statistic), 1 + int(strata.max())
    if other <= max(2 * pvalue, 0.05):
        return ()
    said = (
        f"z has {counted(k, 'different whole number')}, each in {len(strata) / k:.1f} rows on average, and counts as "
    )
    return (f"{said}a number with smooth effects. {if_codes(f'the p-value is {other:.2g}: {_within_z()}')}",)


def codes_told(z: Data, *, beside: bool = False) -> tuple[str, ...]:
    """Notes on integers in z that are used as numbers in regressions; `beside` other columns only if not labels as
    well.

    Examples
    --------
    >>> codes_told(np.repeat(np.arange(5), 12)), len(codes_told(np.repeat(np.arange(20), 3)))
    ((), 1)
    """
    table = _table(z)
    if table is None:
        return ()
    n, notes = len(table), []
    for name, column in table.columns.items():
        k = len(np.unique(np.asarray(column))) if table.is_real(name) and may_be_codes(column) else 0
        if k >= LEAST_CODES and ROWS_TO_DOUBT <= n / k < (ROWS_A_LABEL if beside else np.inf):
            which = "z" if len(table.names) == 1 else f"column {name!r} of z"
            notes.append(
                f"{which} has {k} different whole numbers, each in {n / k:.1f} rows on average, and is regressed on; "
                f"regression follows smooth effects. {if_codes('pass them as within=, too')}"
            )
    return tuple(notes)


def _within_z() -> str:
    """Advice if numbers in z are codes."""
    return in_python(
        "ask independence_test(x, y, within=z)",
        "ask meanmap test independence with the columns of --z behind --within",
    )


def _table(z: Data) -> Table | None:
    """The columns of z; None if they are sparse, which are neither strata nor codes."""
    return None if is_sparse(z) else table_of(z, "z")
