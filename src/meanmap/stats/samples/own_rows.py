"""Columns of samples, each with all rows in which it is observed, also those with missing values in other columns."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from meanmap.core.errors import InputError, KindError
from meanmap.core.foreign import unmasked
from meanmap.core.meant import respelled
from meanmap.core.pieces.sources import comes_in_pieces
from meanmap.core.tables.kinds import as_kind
from meanmap.core.tables.marks import policy_and_marks, without_marks
from meanmap.core.tables.missing import present, take
from meanmap.core.tables.picked import names_of
from meanmap.core.tables.sample import Sample
from meanmap.core.tables.schema import chosen_kinds
from meanmap.core.tables.table import Table
from meanmap.core.types import Data
from meanmap.core.values import label_shown
from meanmap.stats.designs.exchanges import Exchange
from meanmap.stats.designs.reading import design_of

__all__ = ["Columns", "OwnRows", "called", "own_rows"]

# The columns of a sample, by name.
Columns = Mapping[str, np.ndarray]
# The observed values of a column, and the rows in which it is observed.
Part = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class OwnRows:
    """The observed values of the columns of samples.

    Attributes
    ----------
    columns : mapping of name to columns
        The columns of each sample, without missing values.
    design : Exchange, optional
        The design of the rows in which strata, clusters and weights are known, one sample after another; columns are
        those of these rows.
    there : mapping of column to array
        The rows, of these, in which a column is observed.
    gaps : mapping of column to mapping of name to array
        Which values of each sample are missing, for columns in which some are.
    """

    columns: Mapping[str, Columns] = field(default_factory=dict)
    design: Exchange | None = None
    there: Mapping[str, np.ndarray] = field(default_factory=dict)
    gaps: Mapping[str, Columns] = field(default_factory=dict)


def called(label: object) -> str:
    """The name of a column in notes: its own, or its number in an array; None stands for an array of one dimension."""
    return label if isinstance(label, str) else "value" if label is None else f"column {label}"


def own_rows(
    samples: Sequence[Data],
    names: Sequence[str],
    missing: object,
    kinds: Mapping[str, Any] | None,
    by: str | None,
    design: Sequence[Any] = (None, None, None),
) -> OwnRows:
    """The observed values of samples, or of groups of the column `by` of one table, with these names. The result is
    empty unless rows with missing values are dropped, and if the `design` (strata, clusters and weights) is not given
    by columns.

    Examples
    --------
    >>> table = {"arm": ["a", "b", "b", "a"], "age": [31.0, None, 47.0, 20.0], "cost": [1.0, 2.0, 3.0, None]}
    >>> found = own_rows([table], ["arm=a", "arm=b"], "drop", None, "arm").columns
    >>> {name: {column: values.tolist() for column, values in each.items()} for name, each in found.items()}
    {'arm=a': {'age': [31.0, 20.0], 'cost': [1.0]}, 'arm=b': {'age': [47.0], 'cost': [2.0, 3.0]}}
    """
    policy, marks = policy_and_marks(missing)
    said = [name for wanted in design for name in names_of(wanted)]
    arrays = any(wanted is not None and not names_of(wanted) for wanted in design)
    if policy != "drop" or not samples or arrays or any(map(comes_in_pieces, samples)):
        return OwnRows()
    raw = [_raw(sample, name, marks) for sample, name in zip(samples, names, strict=False)]
    if any(name not in columns for columns in raw for name in said):  # an array of texts
        return OwnRows()
    if by is None:
        read = dict(zip(names, (_values(columns, kinds) for columns in raw), strict=True))
    else:
        read = _of_groups(raw[0], respelled(by, raw[0]), names, kinds)
    if all(there.all() for each in read.values() for column, (_, there) in each.items() if column not in said):
        return OwnRows()  # no column has more rows than the complete ones
    shared = [column for column in next(iter(read.values())) if all(column in each for each in read.values())]
    if not said:
        columns = {name: {column: found[0] for column, found in each.items()} for name, each in read.items()}
        return OwnRows(columns, gaps=_gaps(read, shared))
    known = {name: np.all([each[column][1] for column in said], axis=0) for name, each in read.items()}
    tables = [Table({column: _among(*each[column], known[name])[0] for column in said}) for name, each in read.items()]
    parts = {name: {column: _among(*each[column], known[name]) for column in shared} for name, each in read.items()}
    return OwnRows(
        {name: {column: found[0] for column, found in each.items()} for name, each in parts.items()},
        design_of(tables, list(read), *design),
        {column: np.concatenate([each[column][1] for each in parts.values()]) for column in shared},
        _gaps(parts, shared),
    )


def _gaps(read: Mapping[str, Mapping[str, Part]], shared: Sequence[str]) -> dict[str, dict[str, np.ndarray]]:
    """Which values of each sample are missing, for the shared columns in which some are."""
    found = {column: {name: ~each[column][1] for name, each in read.items()} for column in shared}
    return {column: each for column, each in found.items() if any(gaps.any() for gaps in each.values())}


def _of_groups(
    raw: Mapping[str, Any], by: str, names: Sequence[str], kinds: Mapping[str, Any] | None
) -> dict[str, dict[str, Part]]:
    """The observed values of each column and their rows, by group."""
    groups, grouped = _values({by: raw[by]}, kinds)[by]
    read = _values({name: column for name, column in raw.items() if name != by}, kinds)
    found: dict[str, dict[str, Part]] = {}
    for value in np.unique(groups):
        rows = np.zeros(len(grouped), bool)
        rows[grouped] = groups == value
        mine = {column: (values[rows[there]], there[rows]) for column, (values, there) in read.items()}
        found[f"{by}={label_shown(value)}"] = mine
    return {name: found[name] for name in names if name in found}


def _among(values: np.ndarray, there: np.ndarray, rows: np.ndarray) -> Part:
    """The part of a column that lies in some of the rows."""
    return values[rows[there]], there[rows]


def _raw(sample: Data, name: str, marks: Sequence[Any]) -> dict[str, Any]:
    sample = unmasked(sample)
    marked = without_marks(sample, name, marks) if marks else sample
    return {called(column.label): column.came for column in Sample(marked, name).columns}


def _values(raw: Mapping[str, Any], kinds: Mapping[str, Any] | None) -> dict[str, Part]:
    """The observed values of each column and their rows."""
    ours = {name: kind for name, kind in (kinds or {}).items() if respelled(name, raw) in raw}
    declared, found = chosen_kinds(ours, raw, "the table"), {}
    for name, column in raw.items():
        there = present(column)
        try:
            values = Table.of({name: take(column, np.flatnonzero(there))}, "the table").columns[name]
            values = as_kind(values, declared[name], name) if name in declared else np.asarray(values)
        except (InputError, KindError):  # a cell that cannot be read, in a row that is left out
            continue
        found[name] = values, there
    return found
