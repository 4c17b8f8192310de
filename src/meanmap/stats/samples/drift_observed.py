"""The values of each column in all rows that have it, also those with missing values in other columns."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from meanmap.core.arrays import plain
from meanmap.core.errors import KindError
from meanmap.core.tables.kinds import described, family_of
from meanmap.core.tables.schema import Schema
from meanmap.core.types import Data
from meanmap.stats.samples.comparing import by_name
from meanmap.stats.samples.own_rows import own_rows

__all__ = ["check_widths", "columns_of_rows", "observed", "of_one_number"]


def columns_of_rows(data: Any) -> dict[str, np.ndarray]:
    """The columns of rows as a monitor reads them; empty without columns."""
    try:
        columns = {name: plain(column, "batch") for name, column in by_name(data, "batch").items()}
    except (TypeError, ValueError):
        return {}
    return {name: column for name, column in columns.items() if column.ndim <= 2}


def check_widths(batch: Mapping[str, np.ndarray], reference: Mapping[str, np.ndarray]) -> None:
    """Refuse vectors of another length than those of the reference."""
    for name, column in batch.items():
        known = reference.get(name, column)
        if column.ndim == known.ndim > 1 and column.shape[1] != known.shape[1]:
            held = f"batch[{name!r}] holds {described(column)}"
            raise KindError(f"{held}; expected {described(known)}, as in the reference.")


def of_one_number(columns: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The columns without those of several numbers in each row, as vectors and times of day have."""
    return {name: column for name, column in columns.items() if column.ndim == 1}


def observed(
    came: Data, complete: Mapping[str, np.ndarray], missing: str, schema: Schema | None
) -> dict[str, np.ndarray]:
    """The columns of rows as they came, without missing values, those of one number in each row; those of the
    `complete` rows if none is missing.

    Examples
    --------
    >>> came = {"age": [31.0, None, 47.0], "cost": [1.0, 2.0, None]}
    >>> {name: each.tolist() for name, each in observed(came, {"age": np.array([31.0])}, "drop", None).items()}
    {'age': [31.0, 47.0], 'cost': [1.0, 2.0]}
    """
    kinds = None if schema is None else dict(schema.kinds)
    own = own_rows([came], ["batch"], missing, kinds, None).columns.get("batch", {})
    alike = {
        name: column
        for name, column in own.items()
        if name not in complete or family_of(column) == family_of(complete[name])
    }
    return of_one_number({**complete, **alike})
