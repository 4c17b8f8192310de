"""Columns of a table that a model learns from: their rows, missing values, and notes."""

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from meanmap.core.arrays import check_lengths, refuse_name
from meanmap.core.containers import refuse_unread
from meanmap.core.errors import EmptyError, InputError, KindError, ParameterError
from meanmap.core.foreign import unmasked
from meanmap.core.language import a_type
from meanmap.core.meant import no_column
from meanmap.core.pieces.sources import lies_elsewhere
from meanmap.core.settings import by_name
from meanmap.core.tables.chunks import count_rows, sampled, source_of
from meanmap.core.tables.doubts import copied_rows, doubts
from meanmap.core.tables.filling import columns_of
from meanmap.core.tables.marks import policy_and_marks
from meanmap.core.tables.missing import by_pairs, gaps_in, length, present, take
from meanmap.core.tables.selection import selection_notes
from meanmap.core.tables.table import named_columns
from meanmap.core.tables.wild import without_wild_cells
from meanmap.core.types import Data

__all__ = ["LEAST_PAIRS", "Variables", "drawn_rows", "meant"]

LEAST_PAIRS = 5


@dataclass(frozen=True, eq=False)
class Variables:
    """The variables of a table after reading.

    Attributes
    ----------
    values : dict
        The values that are there, as they came.
    there : dict of arrays (n,) of bool
        In which rows they are; wild cells count as missing.
    rows : int
        The number of rows of the data, of which n are used for learning.
    notes : tuple of str
        What was missing, and what looks like something else.
    """

    values: Mapping[Any, Any]
    there: Mapping[Any, np.ndarray]
    rows: int
    notes: tuple[str, ...]

    @classmethod
    def of(
        cls,
        data: Data,
        names: Sequence[Hashable] | None,
        most: int,
        missing: str,
        kinds: Mapping[Any, Any] | None = None,
        numbers: Collection[Hashable] | None = None,
    ) -> "Variables":
        """Read a table, with at most this many rows, always the same ones; by default all columns are variables.

        Columns of `kinds` were declared; `numbers` are those that may hold wild cells, by default all
        others.
        """
        data, number, argument = _where_they_lie(data, names, most, missing)
        if names is None:
            raw: dict[Any, Any] = dict(columns_of(data, "data"))
        else:
            columns = named_columns(data, "data") or data
            raw = {name: _column(columns, name) for name in names}
        check_lengths({name: length(column) for name, column in raw.items()}, "data")
        by_text = {str(name): column for name, column in raw.items()}
        table, gaps = by_pairs(by_text, argument, missing, LEAST_PAIRS)
        kinds, here = kinds or {}, length(next(iter(table.values())))
        far: dict[Any, tuple[np.ndarray, str]] = {
            name: without_wild_cells(table[str(name)], f"data[{name!r}]", name)
            for name in raw
            if (name not in kinds if numbers is None else name in numbers)
        }
        wild = {name: rows for name, (rows, note) in far.items() if note}
        # Cells noted as wild are not noted again as codes. Without labels of rows, of which columns now have different.
        others = table | {str(name): np.asarray(table[str(name)])[~rows] for name, rows in wild.items()}
        seen = (*doubts([others], [argument], list(map(str, kinds))), *copied_rows([table], [argument]))
        unlike = _unlike(by_text, argument, missing, wild, kinds) if gaps else ()
        notes = (*gaps, *unlike, *seen, *(note for _, note in far.values() if note))
        some, values, there = drawn_rows(here, most), {}, {}
        for name in raw:
            column = table[str(name)] if len(some) == here else take(table[str(name)], some)
            mask = present(column)
            if not mask.any():
                raise EmptyError(f"data[{name!r}] has no observed values.")
            mask = mask & ~wild[name][some] if name in wild else mask
            values[name] = column if mask.all() else take(column, np.flatnonzero(mask))
            there[name] = mask
        return cls(values, there, max(here, number), notes)


def _unlike(
    columns: Mapping[str, Any], argument: str, missing: object, wild: Mapping[Any, np.ndarray], kinds: Mapping[Any, Any]
) -> tuple[str, ...]:
    """Notes on gaps that go with the values of other columns, if rows with gaps are left out; wild cells are gaps where
    these are the rows that are read.
    """
    if policy_and_marks(missing)[0] not in ("pairwise", "drop"):
        return ()
    gaps = gaps_in(columns, argument, missing).values()
    there = {name: ~each for name, each in zip(columns, gaps, strict=True)}
    for name, rows in wild.items():
        if len(rows) == len(there[str(name)]):
            there[str(name)] &= ~rows
    return selection_notes(columns, there, {str(name): kind for name, kind in kinds.items()})


def meant(kinds: Mapping[Any, Any] | None) -> dict[Any, Any]:
    """The kinds of columns, by name."""
    return by_name(kinds, "kinds", '{"zip": "label"}')


def drawn_rows(number: int, most: int) -> np.ndarray:
    """Rows that are learned from, in order: all, or at most this many, always the same for the same number."""
    if number <= most:
        return np.arange(number)
    return np.sort(np.random.default_rng(0).choice(number, most, replace=False))


def _where_they_lie(data: Data, names: Sequence[Hashable] | None, most: int, missing: str) -> tuple[Data, int, str]:
    """A table in memory as it is; of files and collections of Dask the rows that are learned from, how many rows there
    are, and what messages call them.
    """
    if not lies_elsewhere(data):
        refuse_unread(data, "data")
        return data, 0, "data"
    if missing != "pairwise":
        raise ParameterError(
            f"missing={missing!r} is for tables in memory: pass missing='pairwise', or handle missing values in the "
            f"files or the collection."
        )
    if names is not None and source_of(data).named:
        data = source_of(data).select([str(name) for name in names])
    number = count_rows(data) or 0
    (rows,) = sampled([data], np.random.default_rng(0), ["data"], most)
    return rows, number, "data" if number <= most else f"the {most} rows drawn from data"


def _column(data: Data, name: Any) -> Any:
    """One variable of a table, before reading."""
    if isinstance(data, Mapping):
        if str(name) not in data:
            raise no_column("data", name, data)
        return data[str(name)]
    refuse_name(data, "data")
    array = np.asarray(unmasked(data))
    if array.ndim != 2:
        raise KindError(
            f"data is {a_type(data)}; expected a table with a column for each node, an (n, d) array for nodes "
            "0 to d − 1, or a mapping from edges to pairs of samples."
        )
    if not str(name).isdigit() or int(name) >= array.shape[1]:
        raise InputError(f"data has columns 0 to {array.shape[1] - 1}, and the graph a node {name!r}.")
    return array[:, int(name)]
