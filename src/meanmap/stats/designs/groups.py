"""The samples of one table: a group of rows for each value of a column, in which order, and with which columns."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from meanmap.core.arrays import reader_of
from meanmap.core.containers import refuse_unread
from meanmap.core.errors import ColumnError, EmptyError, KindError
from meanmap.core.language import counted
from meanmap.core.meant import no_column, respelled
from meanmap.core.settings import is_whole
from meanmap.core.tables.apart import without_ids
from meanmap.core.tables.assigned import Kept, without_units
from meanmap.core.tables.chunks import source_of
from meanmap.core.tables.kinds import categories_of
from meanmap.core.tables.labels_meant import written_in_two_ways
from meanmap.core.tables.schema import admitted
from meanmap.core.tables.table import Table, named_columns
from meanmap.core.types import Data
from meanmap.core.values import is_sequence, label_shown, label_text
from meanmap.stats.settings import LEAST_POINTS

__all__ = ["MOST_GROUPS", "grouped", "order_of_groups", "split"]

MOST_GROUPS = 100
# The group of these names comes first, so that differences are those to it.
CONTROLS = {"control", "controls", "ctrl", "baseline", "placebo", "reference", "before"}


def grouped(
    frame: Data, by: object, missing: str, kinds: Mapping[str, Any] | None, keeps: Kept | None = None
) -> tuple[dict[str, Table], tuple[str, ...]]:
    """The samples of one table, one for each value of the column `by`, and notes. They are in the order of its
    categories, if it has any, or of its sorted values, a control group first.

    Columns that only identify or date the rows are left out unless they are in `keeps`, or this is None.
    """
    if isinstance(frame, str | bytes | Path):
        raise KindError(
            f"by= is for a table in memory, and {str(frame)!r} is the name of a file: read it first, for example with "
            f"{reader_of(frame)}."
        )
    refuse_unread(frame, "the table")
    by = str(by) if is_whole(by) else by
    if not isinstance(by, str) or not source_of(frame).named:
        raise KindError(f"by is {by!r}; expected the name of a column of the one table that is given.")
    heard = ()
    if keeps is not None:  # before rows are left out, for no value that is missing there
        (frame,), heard = without_ids((frame,), ("the table",), (by, *keeps.names), kinds)
    (frame,), told = admitted((frame,), ("the table",), missing, kinds, least=LEAST_POINTS)
    told += heard
    table = Table.of(frame, "the table")
    by = respelled(by, table.names)
    if by not in table.names:
        raise no_column("the table", by, table.names)
    values, places = np.unique(np.asarray(table.columns[by]), return_inverse=True)
    words = [value for value in values.tolist() if isinstance(value, str)]
    where = f"column {by!r}"
    if not written_in_two_ways(words, where):  # else it was told as of any column
        told += written_in_two_ways(words, where, least=1)
    others = [name for name in table.names if name != by]
    if not others:
        raise ColumnError(
            f"the table has no column but {by!r}, which names the groups: there is nothing left to compare."
        )
    levels = (kinds or {}).get(by)
    labels = values.tolist() if not is_sequence(levels) else [levels[int(code)] for code in values.tolist()]
    declared = categories_of((named_columns(frame, "the table") or {}).get(by))[0] or ()
    declared = levels if is_sequence(levels) and not declared else declared
    found = split({each: table.columns[each] for each in others}, by, labels, places, declared)
    left, heard = without_units([*found.values()], [*found], keeps, kinds)
    return dict(zip(found, left, strict=True)), (*told, *heard)


def split(
    columns: Mapping[str, Any], by: str, labels: Sequence[Any], places: np.ndarray, declared: Sequence[Any]
) -> dict[str, Table]:
    """A table of these columns for each label of the column `by`, in the order of the groups; `places` has the place of
    each row's label.
    """
    if not 2 <= len(labels) <= MOST_GROUPS:
        raise ColumnError(f"the column {by!r} has {len(labels)} values; expected 2 to {MOST_GROUPS} groups.")
    found = {}
    for k in order_of_groups(labels, declared):
        name, rows = f"{by}={label_shown(labels[k])}", places == k
        if rows.sum() < LEAST_POINTS:
            raise EmptyError(
                f"{name} has {counted(int(rows.sum()), 'row')}; expected at least {LEAST_POINTS} in each group: "
                "leave such rows out."
            )
        found[name] = Table({each: np.asarray(column)[rows] for each, column in columns.items()})
    return found


def order_of_groups(labels: Sequence[Any], declared: Sequence[Any]) -> list[int]:
    """The places of sorted labels in the order of the groups: that of `declared` labels or, without any, a control
    group first. Differences are those to the first group.

    Examples
    --------
    >>> order_of_groups(["blue", "control"], []), order_of_groups(["blue", "green"], ["green", "blue"])
    ([1, 0], [1, 0])
    """
    place = {label_text(each): k for k, each in enumerate(declared)}
    if not place:
        place = {label_text(each): -1 for each in labels if label_text(each).strip().lower() in CONTROLS}
    return sorted(range(len(labels)), key=lambda k: place.get(label_text(labels[k]), k))
