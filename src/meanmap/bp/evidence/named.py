"""Evidence as users pass it: by name, single values or a column of them, one for each query."""

import inspect
from collections.abc import Collection, Hashable, Mapping
from numbers import Real
from typing import Any

import numpy as np

from meanmap.core.containers import refuse_unread
from meanmap.core.errors import InputError, KindError, ShapeError
from meanmap.core.held import holds_floats
from meanmap.core.language import a_type
from meanmap.core.meant import nearly, no_column_of
from meanmap.core.tables.missing import is_missing, length, present
from meanmap.core.tables.table import named_columns
from meanmap.core.values import entries_of

__all__ = ["are_weights", "as_columns", "named", "no_likelihood", "number_of_queries", "of_variables", "refuse_missing"]


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


def of_variables(
    evidence: Any, variables: Collection[Hashable], argument: str = "evidence", whole: bool = False
) -> tuple[Mapping[Any, Any], tuple[str, ...]]:
    """Evidence as a mapping, and notes on names.

    Of a table, a row of one, or a mapping that holds a `whole` row: what is known about the model's variables, without
    other columns and without missing values of a row. In a mapping that was written for the call, every name counts.
    """
    columns = named(evidence, argument)
    if evidence is None or (isinstance(evidence, Mapping) and not whole):
        return columns, ()
    names = set(map(str, variables))
    known = {name: value for name, value in columns.items() if str(name) in names}
    if not known:
        raise no_column_of(argument, list(columns), variables)
    gaps = [name for name, value in known.items() if _is_single(value) and is_missing(value)]
    notes = nearly(list(map(str, columns)), variables, argument)
    return {name: value for name, value in known.items() if name not in gaps}, notes


def number_of_queries(sizes: Mapping[Hashable, int]) -> int:
    """The number of queries in columns of evidence, one where there is no column."""
    if len(set(sizes.values())) > 1:
        raise ShapeError(f"evidence has different numbers of queries: {dict(sizes)}.")
    return next(iter(sizes.values()), 1)


def refuse_missing(value: object, where: str) -> None:
    """Refuse a single value that is missing."""
    if is_missing(value):
        raise InputError(f"{where} is missing ({value!r}); leave out what is not known.")


def as_columns(known: Mapping[Any, Any], argument: str = "evidence") -> tuple[dict[Hashable, Any], dict[Hashable, int]]:
    """Single values and columns as columns of one length, and how many values each had that came as a column."""
    sizes = {}
    for name, value in known.items():
        where = f"{argument}[{name!r}]"
        if callable(value) or isinstance(value, Mapping):
            raise no_likelihood(value, where)
        refuse_unread(value, where)
        if _is_single(value):
            refuse_missing(value, where)
            continue
        sizes[name] = length(value)
        if not present(value).all():
            raise InputError(f"{where} has missing values: use predict for tables with missing values.")
    size = number_of_queries(sizes)
    return {name: value if name in sizes else [value] * size for name, value in known.items()}, sizes


def no_likelihood(value: Any, where: str) -> KindError:
    """The refusal of likelihoods by a model that takes values."""
    given = "a function" if inspect.isfunction(value) else "numbers" if isinstance(value, np.ndarray) else a_type(value)
    return KindError(
        f"{where} is {given}; expected a value. If several values are possible ask about each of them, and average the "
        "answers, weighted by likelihood times probability of the value. mm.KernelGraph takes functions as likelihoods."
    )


def are_weights(value: Any, labels: Collection[Any]) -> bool:
    """Whether evidence about a variable with labels is a mapping from these, or floats, which none of them is."""
    if isinstance(value, Mapping):
        return True
    if isinstance(value, str) or any(isinstance(label, Real) for label in labels):
        return False
    return holds_floats(np.asarray(value))


def _is_single(value: Any) -> bool:
    """Whether a value is one, and no column."""
    return isinstance(value, str) or np.ndim(value) == 0
