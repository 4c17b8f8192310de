"""Data read piece by piece: arrays, memory maps, tables, Parquet files and iterators, cut into blocks of equal length.

Blocks do not depend on the container: an iterator's pieces are regrouped, so that a sum over blocks has the same
rounding, and a test the same p-value, whatever the size of the pieces.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest
from typing import Any

import numpy as np

from meanmap.core.arrays import plain
from meanmap.core.containers import is_pandas, is_sparse
from meanmap.core.errors import ColumnError, KindError, NonFiniteError, ParameterError, ShapeError
from meanmap.core.foreign import readable
from meanmap.core.pieces.source import Source
from meanmap.core.pieces.sources import comes_in_pieces, elsewhere, lies_elsewhere
from meanmap.core.points import slices
from meanmap.core.rng import Rng
from meanmap.core.tables.missing import length
from meanmap.core.tables.table import Table, raw_columns
from meanmap.core.types import Data, Index, Seed

__all__ = [
    "any_once",
    "brought",
    "chunks_of",
    "count_rows",
    "paired_chunks",
    "sampled",
    "side_by_side",
    "source_of",
    "tables_of",
]


# One-dimensional pieces of equal length, not longer than this, may be rows.
WIDE = 100


@dataclass(frozen=True, eq=False)
class Memory(Source):
    """Data in memory, or mapped into it: an array, a sparse matrix, a table, a list of points."""

    data: Any
    called: str = "data"

    @cached_property
    def _columns(self) -> dict[str, Any]:
        return raw_columns(self.data, self.called)

    @property
    def named(self) -> bool:
        """Those of tables have names."""
        return Table.looks_like_one(self.data)

    @property
    def names(self) -> Sequence[str]:
        """The names of the columns."""
        return list(self._columns)

    def count(self, argument: str = "data") -> int:
        """As its first column says."""
        return length(self.data)

    def chosen(self, names: Sequence[str]) -> dict[str, Any]:
        """By name, as they came."""
        return {name: self._columns[name] for name in names}

    def take(self, index: np.ndarray, argument: str = "data") -> Any:
        """Of the same kind."""
        return _cut(plain(self.data, "data") if isinstance(self.data, list | tuple) else self.data, index)

    def pieces(self, rows: int, argument: str = "data") -> Iterator[Any]:
        """Slices of exactly this many rows."""
        listed = isinstance(self.data, list | tuple)
        source = plain(self.data, argument) if listed else self.data
        yield from (_cut(source, part) for part in slices(self.count(), rows))

    def whole(self, argument: str = "data") -> Any:
        """As it came."""
        return self.data


def source_of(data: Data, called: str = "data") -> Source:
    """Data as a source of rows."""
    return elsewhere(data) or Memory(data, called)


def any_once(data: Iterable[Any]) -> bool:
    """Whether some of these data are iterators, whose rows are read once and in order."""
    return any(source_of(each).once for each in data)


def tables_of(samples: Sequence[Any], names: Sequence[str]) -> list[dict[str, Any]]:
    """The original columns of each sample by name; none unless all samples are tables in memory."""
    if any(comes_in_pieces(sample) or not Table.looks_like_one(sample) for sample in samples):
        return []
    return [raw_columns(sample, name) for sample, name in zip(samples, names, strict=True)]


def count_rows(data: Data) -> int | None:
    """The number of rows; None for an iterator."""
    return source_of(data).count()


def chunks_of(source: Data, rows: int, argument: str = "data") -> Iterator[Any]:
    """Successive blocks of `rows` rows, the last one shorter: arrays or tables, ready for a kernel to read.

    Parameters
    ----------
    source : array, memory map, sparse matrix, table, Parquet files, or iterator of pieces
        Pieces of an iterator are arrays or tables of any lengths, or tuples of these: pairs (x, y), say, whose members
        have equal lengths; blocks are then tuples too. Parquet files are read through polars, once and batch by batch:
        give a path, a folder, a pattern or a list of these, or `polars.scan_parquet(path).select("age", "town")` for
        some of the columns. With polars before 1.34 a lazy frame that filters or sorts does so again for each block:
        collect it first.
    rows : int
        Rows of a block.
    argument : str
        The name of `source` in errors.

    Examples
    --------
    >>> [len(block) for block in chunks_of(np.zeros((5, 2)), 2)]
    [2, 2, 1]
    >>> pieces = iter([np.zeros((3, 2)), np.ones((2, 2))])
    >>> [block[:, 0].tolist() for block in chunks_of(pieces, 4)]
    [[0.0, 0.0, 0.0, 1.0], [1.0]]
    """
    known = source_of(source)
    pieces = known.pieces(rows, argument)
    pieces = _no_rows(pieces, argument) if known.once else pieces
    yield from pieces if isinstance(known, Memory) else _regrouped(pieces, rows, argument)


def paired_chunks(sources: Sequence[Any], rows: int, names: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    """Blocks of several sources side by side, refused where their lengths differ."""
    streams = [chunks_of(source, rows, name) for source, name in zip(sources, names, strict=True)]
    seen = 0
    for blocks in zip_longest(*streams):
        lengths = [seen + (0 if block is None else count_rows(block) or 0) for block in blocks]
        if len(set(lengths)) > 1:
            known = [count_rows(source) for source in sources]
            counts = [n if m is None else m for n, m in zip(lengths, known, strict=True)]
            listed = " and ".join(f"{name} has {n}" for name, n in zip(names, counts, strict=True))
            raise ShapeError(f"{listed} points; expected the same number of each, row by row.")
        seen = lengths[0]
        yield blocks


def sampled(data: Sequence[Any], generator: np.random.Generator, names: Sequence[str], most: int) -> list[Any]:
    """At most this many rows, in memory, of data that lie side by side, in their order; iterators are refused.

    They are chosen by their numbers alone, hence the same rows wherever the data lie and however they are divided.
    """
    sources = list(zip(map(source_of, data), names, strict=True))
    for name in (name for source, name in sources if source.once):
        raise ParameterError(f"{name} is an iterator, which a plan would consume: pass some of its rows.")
    n = sources[0][0].count(names[0]) or 0
    if n <= most:
        return [source.whole(name) for source, name in sources]
    index = np.sort(generator.choice(n, most, replace=False))
    return [source.take(index, name) for source, name in sources]


def brought(data: Data, rng: Seed, argument: str, most: int) -> Any:
    """At most this many rows of files and collections of Dask; what is in memory as it is."""
    return sampled([data], Rng.of(rng).generator, [argument], most)[0] if lies_elsewhere(data) else data


def side_by_side(members: Sequence[Any], argument: str, most: int) -> list[Any]:
    """Samples that lie side by side, in memory: as they came, or at most this many rows of files and collections.

    Of a file with one column that column.
    """
    if not any(map(lies_elsewhere, members)):
        return list(members)
    sizes = [count_rows(member) for member in members]
    if len(set(sizes)) > 1:
        raise ShapeError(f"{argument} has samples of {sizes} rows; expected the same number of each.")
    names = [f"{argument}[{i}]" for i in range(len(members))]
    found = sampled(members, np.random.default_rng(0), names, most)
    beside = zip(members, found, strict=True)
    return [p.to_series() if lies_elsewhere(m) and getattr(p, "width", 0) == 1 else p for m, p in beside]


def _cut(data: Any, index: Index) -> Any:
    if isinstance(data, Table):
        return Table({name: column[index] for name, column in data.columns.items()})
    if isinstance(data, Mapping):
        return {name: np.asarray(readable(column, name))[index] for name, column in data.items()}
    if is_pandas(data):
        return data.iloc[index]
    return data[index]


def _regrouped(pieces: Iterator[Any], rows: int, argument: str) -> Iterator[Any]:
    """Pieces of any length as blocks of `rows` rows; the buffer is never longer than a piece and a block."""
    waiting: list[tuple[Any, ...]] = []
    held, alone = 0, True
    for piece in pieces:
        alone = not isinstance(piece, tuple)
        parts = tuple(_piece(part, argument) for part in (piece if isinstance(piece, tuple) else (piece,)))
        lengths = [count_rows(part) or 0 for part in parts]
        if len(set(lengths)) > 1:
            raise ShapeError(f"a piece of {argument} has members of {lengths} rows; expected the same number of each.")
        start = 0
        while held + lengths[0] - start >= rows:
            end = start + rows - held
            waiting.append(tuple(_cut(part, slice(start, end)) for part in parts))
            yield _joined(waiting, alone)
            waiting, held, start = [], 0, end
        if start < lengths[0]:
            waiting.append(tuple(_cut(part, slice(start, None)) for part in parts))
            held += lengths[0] - start
    if held:
        yield _joined(waiting, alone)


def _no_rows(pieces: Iterator[Any], argument: str) -> Iterator[Any]:
    """The pieces of an iterator, refused if they look like rows: a one-dimensional piece is points of one column."""
    before = None
    for piece in pieces:
        flat = isinstance(piece, list) and piece and not isinstance(piece[0], list | tuple | np.ndarray)
        shape = piece.shape if isinstance(piece, np.ndarray) else (len(piece),) if flat else ()
        if shape == before and len(shape) == 1 and shape[0] <= WIDE:
            raise ShapeError(
                f"{argument} is an iterator of pieces of shape {shape}: of rows, or of points of one column? Of rows "
                f"pass numpy.stack(list({argument})), and of points pieces of shape ({shape[0]}, 1)."
            )
        before = shape
        yield piece


def _piece(part: Any, argument: str) -> Any:
    if is_sparse(part):
        return part.tocsr()
    if Table.looks_like_one(part):
        try:
            return Table.of(part, f"a piece of {argument}")
        except NonFiniteError:  # the reader of the rows decides about missing values
            return {name: np.asarray(each) for name, each in raw_columns(part, f"a piece of {argument}").items()}
    array = plain(part, f"a piece of {argument}")
    if array.ndim == 0:
        raise KindError(f"{argument} is an iterator that gives {part!r}; expected pieces: arrays or tables of rows.")
    return array


def _joined(waiting: list[tuple[Any, ...]], alone: bool) -> Any:
    joined = tuple(_join(parts) for parts in zip(*waiting, strict=True))
    return joined[0] if alone else joined


def _join(parts: tuple[Any, ...]) -> Any:
    first = parts[0]
    if len(parts) == 1:
        return first
    if all(isinstance(part, Table) for part in parts):
        tables = [part.select(first.names) for part in parts]
        return Table({name: np.concatenate([table.columns[name] for table in tables]) for name in first.names})
    if isinstance(first, Table | dict):
        held = [part.columns if isinstance(part, Table) else part for part in parts]
        lacking = [name for columns in held for name in held[0] if name not in columns]
        if lacking:
            raise ColumnError(f"pieces differ in their columns: one has no {lacking[0]!r}.")
        return {name: np.concatenate([columns[name] for columns in held]) for name in held[0]}
    if is_sparse(first):
        import scipy.sparse

        return scipy.sparse.vstack(parts).tocsr()
    widths = {part.shape[1:] for part in parts}
    if len(widths) > 1:
        raise ShapeError(f"pieces differ in their columns: rows of shapes {sorted(widths)}.")
    return np.concatenate(parts)
