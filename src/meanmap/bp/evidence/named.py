"""Evidence as users pass it: by name, single values or a column of them, one for each query."""

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np

from meanmap.core.containers import refuse_unread
from meanmap.core.errors import InputError, KindError, ShapeError
from meanmap.core.language import a_type
from meanmap.core.tables.missing import is_missing, length, present
from meanmap.core.tables.table import named_columns
from meanmap.core.types import Data
from meanmap.core.values import entries_of

__all__ = ["as_columns", "named", "number_of_queries", "refuse_missing"]


def named(evidence: Any, argument: str = "evidence") -> Mapping[Any, Any]:
    """Evidence as a mapping: the columns of a table, with a row for each query, or the values of a single row."""
    if evidence is None:
        return {}
    if isinstance(evidence, Mapping):
        return evidence
    if columns := named_columns(evidence, argument):
        return columns
    if (row := entries_of(evidence)) is not None:
        return row
    raise KindError(f'{argument} is {a_type(evidence)}; expected a mapping such as {{"height": 1.8}}.')


def number_of_queries(sizes: Mapping[Hashable, int]) -> int:
    """The number of queries in columns of evidence, one where there is no column."""
    if len(set(sizes.values())) > 1:
        raise ShapeError(f"evidence has different numbers of queries: {dict(sizes)}.")
    return next(iter(sizes.values()), 1)


def refuse_missing(value: object, where: str) -> None:
    """Refuse a single value that is missing."""
    if is_missing(value):
        raise InputError(f"{where} is missing ({value!r}); leave out what is not known.")


def as_columns(evidence: Data, argument: str = "evidence") -> tuple[dict[Hashable, Any], dict[Hashable, int]]:
    """Single values and columns as columns of one length, and how many values each had that came as a column."""
    known, sizes = named(evidence, argument), {}
    for name, value in known.items():
        where = f"{argument}[{name!r}]"
        if callable(value):
            raise KindError(f"{where} is a function; expected a value: mm.KernelGraph takes functions as likelihoods.")
        refuse_unread(value, where)
        if isinstance(value, str) or np.ndim(value) == 0:
            refuse_missing(value, where)
            continue
        sizes[name] = length(value)
        if not present(value).all():
            raise InputError(f"{where} has missing values: use predict for tables with missing values.")
    size = number_of_queries(sizes)
    return {name: value if name in sizes else [value] * size for name, value in known.items()}, sizes
