"""Differences of the predictor between levels or numbers of a column or between groups, all else equal."""

from collections.abc import Mapping
from itertools import combinations, product
from typing import Any

import numpy as np
from scipy import sparse

from meanmap.core.errors import ParameterError
from meanmap.core.held import holds_floats
from meanmap.ep.linear.formula import Formula, Rows
from meanmap.ep.linear.scaled import Scaled

__all__ = ["differences", "named", "reference_grid"]

# The most levels whose pairs are listed, and the most rows in the grid of the other columns.
_MOST_LEVELS, _MOST_ROWS = 200, 1_000_000
# A group that occurs in no table.
_NO_GROUP = "\0"


def named(level: object) -> Any:
    """A group as it is typed; groups from several columns are values joined by colons, in quotes if they have some."""
    return (
        ":".join(repr(each) if ":" in str(each) else str(each) for each in level) if isinstance(level, tuple) else level
    )


def reference_grid(formula: Formula, column: str, at: Mapping[str, Any]) -> tuple[tuple[Any, ...], Rows]:
    """The levels of a column, and rows for each: numbers at their means, labels at all of their levels, no groups.

    Of a column of numbers, `at` has those to compare.
    """
    frame, labelled = formula.rows.frame, formula.labelled
    columns = tuple(column.split(":")) if column in formula.levels else (column,)
    numeric = column in formula.asked and not {column} & {*formula.levels, *labelled, *formula.truths}
    for name in at:
        if name not in formula.asked or (name in columns and not numeric):
            others = ", ".join(repr(each) for each in formula.asked if each not in columns)
            raise ParameterError(f"at has {name!r}; expected columns of the formula other than {column!r}: {others}.")
    if column in formula.levels:
        levels = formula.levels[column]
    elif column in labelled:
        levels = labelled[column]
    elif column in formula.truths:
        levels = (False, True)
    elif numeric and column in at:
        levels = tuple(at[column]) if np.ndim(at[column]) == 1 else ()
        if len(levels) < 2:
            raise ParameterError(f"at[{column!r}] is {at[column]!r}; expected the numbers to compare, such as [1, 2].")
    else:
        known = ", ".join(map(repr, dict.fromkeys([*labelled, *formula.truths, *formula.levels])))
        numbers = (
            f" It holds numbers: pass those to compare, at={{{column!r}: [1, 2]}}, or for labels type C({column}) in "
            "the formula."
            if column in formula.asked
            else ""
        )
        raise ParameterError(
            f"column is {column!r}; expected one of labels or groups: {known or 'there is none'}.{numbers}"
        )
    if len(levels) > _MOST_LEVELS:
        raise ParameterError(
            f"{column!r} has {len(levels)} levels, more than the {_MOST_LEVELS} whose pairs are listed; "
            "group_effects() and predict() give each by itself."
        )
    axes: dict[tuple[str, ...], list[tuple[Any, ...]]] = {
        columns: [level if isinstance(level, tuple) else (level,) for level in levels]
    }
    for name in (each for each in formula.asked if each not in columns):
        if name in at:
            axes[(name,)] = [(at[name],)]
        elif name in labelled:
            axes[(name,)] = [(level,) for level in labelled[name]]
        else:
            numeric = holds_floats(frame[name]) and name not in formula.grouping
            axes[(name,)] = [(float(frame[name].mean()) if numeric else _NO_GROUP,)]
    size = int(np.prod([len(values) for values in axes.values()]))
    if size > _MOST_ROWS:
        raise ParameterError(f"the labels of the other columns have {size} combinations; name some in at={{...}}.")
    rows = [[value for values in row for value in values] for row in product(*axes.values())]
    names = [name for together in axes for name in together]
    return levels, formula.later(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)))


def differences(levels: tuple[Any, ...], grid: Rows, scaled: Scaled) -> tuple[list[str], np.ndarray]:
    """Names of pairs, and contrasts (pairs, total) in the units of the data, averaged over the rows of a level."""
    matrix = scaled.predictor(grid).matrix
    each = len(grid.kept) // len(levels)
    shares = sparse.csr_array(np.kron(np.eye(len(levels)), np.full(each, 1 / each)))
    averages = (shares @ matrix).toarray() * scaled.unit
    first, second = np.array(list(combinations(range(len(levels)), 2)), int).reshape(-1, 2).T
    names = [f"{named(levels[a])} - {named(levels[b])}" for a, b in zip(first, second, strict=True)]
    return names, averages[first] - averages[second]
