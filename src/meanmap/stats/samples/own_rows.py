"""Columns of samples, each with all rows that have it: rows with a gap elsewhere say as much about it as the others."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from meanmap.core.absent import unmasked
from meanmap.core.errors import InputError, KindError
from meanmap.core.meant import respelled
from meanmap.core.pieces.sources import comes_in_pieces
from meanmap.core.tables.doubts import columns_in
from meanmap.core.tables.kinds import as_kind
from meanmap.core.tables.marks import policy_and_marks, without_marks
from meanmap.core.tables.missing import present, take
from meanmap.core.tables.schema import chosen_kinds
from meanmap.core.tables.table import Table
from meanmap.core.types import Data
from meanmap.core.values import label_shown

__all__ = ["Columns", "called", "own_rows"]

# The columns of a sample, by name.
Columns = Mapping[str, np.ndarray]


def called(label: object) -> str:
    """What a column is called: its name, or its number in an array; None stands for an array of one dimension."""
    return label if isinstance(label, str) else "value" if label is None else f"column {label}"


def own_rows(
    samples: Sequence[Data], names: Sequence[str], missing: object, kinds: Mapping[str, Any] | None, by: str | None
) -> Mapping[str, Columns]:
    """By sample, or by group of the column `by` of one table. Nothing unless rows with missing values are dropped.

    Examples
    --------
    >>> table = {"arm": ["a", "b", "b", "a"], "age": [31.0, None, 47.0, 20.0], "cost": [1.0, 2.0, 3.0, None]}
    >>> found = own_rows([table], [], "drop", None, "arm")
    >>> {name: {column: values.tolist() for column, values in each.items()} for name, each in found.items()}
    {'arm=a': {'age': [31.0, 20.0], 'cost': [1.0]}, 'arm=b': {'age': [47.0], 'cost': [2.0, 3.0]}}
    """
    policy, marks = policy_and_marks(missing)
    if policy != "drop" or not samples or any(map(comes_in_pieces, samples)):
        return {}
    if by is None:
        return {name: _read(sample, name, marks, kinds) for name, sample in zip(names, samples, strict=True)}
    raw = _raw(samples[0], "the table", marks)
    name = respelled(by, raw)
    (groups,) = _values({name: raw.pop(name)}, kinds).values()
    found: dict[str, dict[str, np.ndarray]] = {f"{name}={label_shown(value)}": {} for value in np.unique(groups[0])}
    for column, (values, there) in _values(raw, kinds).items():
        placed = np.zeros(len(there), dtype=groups[0].dtype)
        placed[groups[1]] = groups[0]
        for value in np.unique(groups[0]):
            found[f"{name}={label_shown(value)}"][column] = values[(groups[1] & (placed == value))[there]]
    return found


def _raw(sample: Data, name: str, marks: Sequence[Any]) -> dict[str, Any]:
    sample = unmasked(sample)
    marked = without_marks(sample, name, marks) if marks else sample
    return {called(label): column for label, column in columns_in(marked, name)}


def _read(sample: Data, name: str, marks: Sequence[Any], kinds: Mapping[str, Any] | None) -> dict[str, np.ndarray]:
    return {column: values for column, (values, _) in _values(_raw(sample, name, marks), kinds).items()}


def _values(raw: Mapping[str, Any], kinds: Mapping[str, Any] | None) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """What is there of each column, and in which rows."""
    ours = {name: kind for name, kind in (kinds or {}).items() if respelled(name, raw) in raw}
    declared, found = chosen_kinds(ours, raw, "the table"), {}
    for name, column in raw.items():
        there = present(column)
        try:
            values = Table.of({name: take(column, np.flatnonzero(there))}, "the table").columns[name]
            values = as_kind(values, declared[name], name) if name in declared else np.asarray(values)
        except (InputError, KindError):  # an odd cell of a row that is left out
            continue
        found[name] = values, there
    return found
