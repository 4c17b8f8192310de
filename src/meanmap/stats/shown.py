"""Some rows of the data behind an answer, and the charts that its page begins with."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from meanmap.core.language import with_and
from meanmap.core.pieces.sources import comes_in_pieces, lies_elsewhere
from meanmap.core.points import spread_rows
from meanmap.core.tables.chunks import any_once, source_of
from meanmap.core.tables.missing import length, take
from meanmap.core.tables.table import Table, raw_columns, single_columns, values_of
from meanmap.core.values import Value
from meanmap.features.states.reading import Reading
from meanmap.plots.columns import MOST_COLUMNS, Columns, Tally, groups_chart, pairs_chart
from meanmap.plots.facts import Chart

__all__ = ["MOST_CALLED", "Shown"]

# Rows of a sample that are kept; fewer of wide tables.
MOST_ROWS, MOST_NUMBERS = 2000, 200_000
# A variable of more columns, and more samples, are not listed in a sentence.
MOST_CALLED = 3


@dataclass(frozen=True, eq=False, repr=False)
class Shown(Value):
    """Rows of each part, evenly spread over all of its rows, how many it has, and whether rows are paired by number.

    Samples of which not all rows are kept have a chart of all rows, `drawn`.
    """

    names: tuple[str, ...]
    parts: tuple[Any, ...]
    sizes: tuple[int, ...]
    paired: bool = True
    drawn: Chart | None = None

    @classmethod
    def of(
        cls,
        parts: Sequence[Any],
        names: Sequence[Any],
        paired: bool,
        first: Sequence[str] = (),
        wider: Mapping[str, Columns] | None = None,
    ) -> "Shown | None":
        """Copies of some rows; None for those of iterators and collections of Dask, and where there are no columns.

        The chart of all rows of samples begins with the columns `first`; `wider` are columns of the samples that have
        more rows than the others, as where rows with missing values are left out.
        """
        if any_once(parts) or any(source_of(part).parts() is not None for part in parts):
            return None
        taken, sizes = [], []
        for part, name in zip(parts, names, strict=True):
            source = source_of(part)
            if lies_elsewhere(part):
                n = source.count(str(name)) or 0
                part = source.take(spread_rows(n, _most(len(source.names))), str(name))
            rows: Any = raw_columns(part, str(name)) if source.named else _values(part, str(name))
            if rows is None:
                return None
            width = len(rows) if source.named else max(rows.size // max(len(rows), 1), 1)
            some = spread_rows(length(part), _most(width))
            taken.append({key: take(column, some) for key, column in rows.items()} if source.named else rows[some])
            sizes.append(source.count(str(name)) or 0)
        found = cls(tuple(map(str, names)), tuple(taken), tuple(sizes), paired)
        if paired or any(map(comes_in_pieces, parts)) or (not wider and found._is_whole):
            return found
        groups = replace(found, parts=tuple(parts)).groups()
        for name, columns in groups.items():
            columns.update({each: part for each, part in (wider or {}).get(name, {}).items() if each in columns})
        return replace(found, drawn=_distributions(groups, first))

    def columns(self, part: int) -> dict[str, np.ndarray]:
        """The columns of a part, each of one number or label per row; those of arrays are numbered."""
        return _columns(self.parts[part], self.names[part])

    def counted(self, sources: Sequence[Any], reading: Reading) -> "Shown":
        """With a chart of all rows of sources that are read piece by piece."""
        tallies: list[dict[str, Tally]] = []
        for source, name in zip(sources, self.names, strict=True):
            found: dict[str, Tally] = {}
            for piece, *_ in reading.pieces(source, name):
                columns = {} if piece is None else _columns(piece, name)
                for each in list(columns)[:MOST_COLUMNS]:
                    found[each] = found[each].joined(columns[each]) if each in found else Tally.of(columns[each])
            tallies.append(found)
        return replace(self, drawn=_distributions(self._by_sample(tallies), ()))

    def to_save(self) -> "Shown":
        """With columns as arrays, whatever library they came from."""
        named = [source_of(part).named for part in self.parts]
        parts = [Table.of(p, n).columns if q else p for p, n, q in zip(self.parts, self.names, named, strict=True)]
        return replace(self, parts=tuple(parts))

    def groups(self) -> dict[str, dict[str, np.ndarray]]:
        """The columns of each sample by the name of the sample."""
        return self._by_sample([self.columns(k) for k in range(len(self.names))])

    def _by_sample(self, tables: Sequence[dict[str, Any]]) -> dict[str, dict[str, Any]]:
        if all(len(table) == 1 for table in tables):  # a column of an array is called after its sample
            alike = len({next(iter(table)) for table in tables}) == 1
            tables = tables if alike else [{"value": next(iter(table.values()))} for table in tables]
        return dict(zip(self.names, tables, strict=True))

    def charts(self, first: Sequence[str] = ()) -> tuple[Chart, ...]:
        """Variables against each other, or the distribution of each column in each sample, those of `first` first."""
        if self.paired:
            x, y, *others = map(self.columns, range(len(self.names)))
            beside = {name: each for columns in others for name, each in columns.items()}
            found = pairs_chart(f"{self.called(1)} against {self.called(0)}, a dot for each row", {**x, **beside}, y)
        else:
            found = self.drawn or _distributions(self.groups(), first)
        return () if found is None else (found,)

    def called(self, part: int) -> str:
        """The name of a variable in a sentence: its columns if they have names and are few."""
        rows, name = self.parts[part], self.names[part]
        names = list(map(str, source_of(rows).names)) if source_of(rows).named else []
        return with_and(names) if 0 < len(names) <= MOST_CALLED else name

    @property
    def note(self) -> str:
        """The note if not all rows are shown."""
        if self._is_whole or self.drawn is not None:
            return ""
        counts = " and ".join(f"{length(part)} of {n}" for part, n in zip(self.parts, self.sizes, strict=True))
        return f"Pictures show {counts} rows, evenly spread."

    @property
    def _is_whole(self) -> bool:
        """Whether all rows are kept."""
        return tuple(map(length, self.parts)) == self.sizes


def _columns(rows: Any, name: str) -> dict[str, np.ndarray]:
    if source_of(rows).named:
        return single_columns(Table.of(rows, name).columns)
    values = np.asarray(rows)
    if values.ndim == 1 or values.shape[1] == 1:
        return {name: values.ravel()}
    return {f"column {j}": values[:, j] for j in range(values.shape[1])}


def _distributions(groups: Mapping[str, Columns], first: Sequence[str]) -> Chart | None:
    title = f"The distribution {_of(next(iter(groups.values())))} in each group"
    return groups_chart(title, groups, first)


def _of(columns: Mapping[str, Any]) -> str:
    return f"of {next(iter(columns))}" if len(columns) == 1 else "of each column"


def _values(part: Any, name: str) -> np.ndarray | None:
    """A sample as an array, texts of a Series too, which are objects; None for data without columns."""
    found = values_of(part, name)
    if found is not None or getattr(getattr(part, "dtype", None), "kind", "") != "O" or np.ndim(part) != 1:
        return found
    words = list(part)
    return np.array(words, dtype=str) if all(isinstance(word, str) for word in words) else None


def _most(width: int) -> int:
    """The number of rows of this many columns that are kept."""
    return min(MOST_ROWS, max(MOST_NUMBERS // max(width, 1), 20))
