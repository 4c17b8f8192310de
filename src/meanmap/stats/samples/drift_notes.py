"""Notes on a batch of a monitor: columns that the reference lacks, and numbers outside of its range."""

from collections.abc import Collection
from typing import Any

import numpy as np

from meanmap.core.held import holds_floats
from meanmap.core.language import in_few_words
from meanmap.core.tables.apart import without
from meanmap.core.tables.schema import Schema
from meanmap.core.tables.table import Table, named_columns
from meanmap.stats.samples.drift_strata import Strata

__all__ = ["HARM", "added_columns", "notes_on", "without_added"]

# Numbers are noted as outside of the range of the reference if at least this share of them is, in at least five rows.
OUTSIDE, LEAST_ROWS = 0.5, 5
# A note names at most this many columns.
MOST_NAMED = 5
# The consequence of serially dependent batches, and what to do.
HARM = (
    "batches of neighbouring rows differ by more than chance, and false alarms are too frequent. Monitor the "
    "residuals of structure.prewhiten, or rows that lie far enough apart"
)


def added_columns(names: Collection[object], known: Collection[object], where: str = "batch") -> tuple[str, ...]:
    """A note on the columns of a batch that the reference lacks.

    Examples
    --------
    >>> added_columns(["a", "b"], ["a"])
    ("batch has the column 'b', which the reference lacks: it is not watched.",)
    >>> added_columns(["a"], ["a", "b"])
    ()
    """
    new = [repr(name) for name in names if name not in known]
    if not new:
        return ()
    if len(new) == 1:
        return (f"{where} has the column {new[0]}, which the reference lacks: it is not watched.",)
    named = in_few_words(new, MOST_NAMED)
    return (f"{where} has the columns {named}, which the reference lacks: they are not watched.",)


def without_added(batch: Any, names: Collection[str], strata: Strata | None) -> tuple[Any, tuple[str, ...]]:
    """A batch without the columns that the reference lacks, whose missing values would cost rows, and a note on them;
    the batch itself if the reference has no names.
    """
    columns = named_columns(batch, "batch") if names else {}
    known = [*names, *(strata.columns if strata else ())]
    added = [name for name in columns if name not in known]
    if len(added) == len(columns):  # another table, or one with misspelt names: an error when it is read
        return batch, ()
    return without(batch, added, "batch"), added_columns(columns, known)


def notes_on(schema: Schema, table: Table) -> tuple[str, ...]:
    """A note on each column with new labels, numbers far outside of the range of the reference, or most numbers
    outside of it.

    Examples
    --------
    >>> schema = Schema.of({"temp": [10.0, 20.0, 30.0]})
    >>> notes_on(schema, Table.of({"temp": [50.0, 29.0, 49.0, 51.0, 52.0, 48.0]}))
    ("5 of 6 values of batch['temp'] are outside of 10 to 30, the range of the reference.",)
    """
    found = []
    for name, values in table.columns.items():
        column, where = schema[name], f"batch[{name!r}]"
        found.append(_outside(column, values, where) or column.odd(values, where, unseen="not in the reference"))
    return tuple(note for note in found if note)


def _outside(column: Any, values: Any, where: str) -> str:
    """A note if most numbers are outside of the range of the reference."""
    low, high = column.low, column.high
    numbers = np.ndim(values) == 1 and holds_floats(np.asarray(values)) and len(values) >= LEAST_ROWS
    if not numbers or low is None or high is None or low == high:
        return ""
    count = int(np.count_nonzero((values < low) | (values > high)))
    if count < OUTSIDE * len(values):
        return ""
    return f"{count} of {len(values)} values of {where} are outside of {low:g} to {high:g}, the range of the reference."
