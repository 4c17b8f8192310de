"""Data read piece by piece: arrays, memory maps, tables, Parquet files and iterators, cut into blocks of equal length.

The cut does not depend on how the data came: an iterator's pieces are regrouped, so that a sum over blocks has the same
rounding, and a test the same p-value, whatever the size of the pieces.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any

import numpy as np

from meanmap.core.arrays import plain
from meanmap.core.errors import ColumnError, KindError, NonFiniteError, ShapeError
from meanmap.core.pieces.files import ParquetFiles, batches, is_lazy, taken
from meanmap.core.pieces.partitions import lengths, rows_at, whole
from meanmap.core.pieces.sources import is_file, is_stream
from meanmap.core.points import is_dask, is_sparse, refuse_unread
from meanmap.core.tables.missing import length
from meanmap.core.tables.table import Table, raw_columns
from meanmap.core.types import Data, Index

__all__ = [
    "chunks_of",
    "count_rows",
    "in_memory",
    "paired_chunks",
    "pieces_of",
    "sampled",
    "side_by_side",
    "take_rows",
]


def count_rows(source: Data) -> int | None:
    """How many rows there are; None for an iterator, which does not know."""
    if is_stream(source):
        return None
    if is_lazy(source):
        import polars

        return int(source.select(polars.len()).collect().item())
    if is_file(source):
        return ParquetFiles.of(source).count()
    if is_dask(source):
        return sum(lengths(source, "the collection"))
    if isinstance(source, Table):
        return len(source)
    if isinstance(source, Mapping):
        return len(next(iter(source.values()), ()))
    return length(source)


def in_memory(source: Data, argument: str = "the collection") -> Any:
    """What a file or a collection of Dask holds, as a frame or an array; anything else as it is."""
    if is_lazy(source):
        return source.collect()
    if is_file(source):
        return ParquetFiles.of(source).frame()
    return whole(source, argument) if is_dask(source) else source


def pieces_of(source: Data, rows: int, argument: str = "data") -> Iterator[Any]:
    """Successive pieces of about so many rows, as they come: those of iterators are neither cut nor joined.

    A collection of Dask has none here: its partitions are worked on where they lie.
    """
    if is_stream(source):
        yield from source
    elif is_lazy(source):
        yield from batches(source, rows)
    elif is_file(source):
        yield from ParquetFiles.of(source).batches(rows)
    else:
        yield from _cuts(source, rows, argument)


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
    if is_stream(source):
        yield from _regrouped(source, rows, argument)
        return
    if is_file(source):
        yield from _regrouped(pieces_of(source, rows, argument), rows, argument)
        return
    yield from _cuts(source, rows, argument)


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
            raise ShapeError(f"{listed} points; expected as many of each, row by row.")
        seen = lengths[0]
        yield blocks


def take_rows(source: Data, index: np.ndarray) -> Any:
    """The rows at `index` of a source that is not an iterator, read without the others."""
    if is_file(source):
        return taken(source, index) if is_lazy(source) else ParquetFiles.of(source).take(index)
    if is_dask(source):
        return rows_at(source, index, lengths(source, "the collection"), "the collection")
    return _cut(plain(source, "data") if isinstance(source, list | tuple) else source, index)


def sampled(sources: Sequence[Any], generator: np.random.Generator, names: Sequence[str], most: int) -> list[Any]:
    """At most so many rows, in memory, of sources that lie side by side and are no iterators, in their order.

    They are chosen by their numbers alone, hence the same rows wherever the data lie and however they are divided.
    """
    parts = [lengths(source, name) if is_dask(source) else [] for source, name in zip(sources, names, strict=True)]
    n = sum(parts[0]) if parts[0] else count_rows(sources[0]) or 0
    if n <= most:
        return [in_memory(source, name) for source, name in zip(sources, names, strict=True)]
    index = np.sort(generator.choice(n, most, replace=False))
    return [
        rows_at(source, index, sizes, name) if is_dask(source) else take_rows(source, index)
        for source, sizes, name in zip(sources, parts, names, strict=True)
    ]


def side_by_side(members: Sequence[Any], argument: str, most: int) -> list[Any]:
    """Samples that lie side by side, in memory: as they came, or at most so many rows of files and collections.

    Of a file with one column that column.
    """
    if not any(is_file(member) or is_dask(member) for member in members):
        return list(members)
    sizes = [count_rows(member) for member in members]
    if len(set(sizes)) > 1:
        raise ShapeError(f"{argument} has samples of {sizes} rows; expected as many of each.")
    names = [f"{argument}[{i}]" for i in range(len(members))]
    found = sampled(members, np.random.default_rng(0), names, most)
    alone = [is_file(member) and part.shape[1] == 1 for member, part in zip(members, found, strict=True)]
    return [part.to_series() if one else part for one, part in zip(alone, found, strict=True)]


def _cuts(source: Data, rows: int, argument: str) -> Iterator[Any]:
    """Slices of what is in memory or mapped into it."""
    refuse_unread(source, argument)
    if isinstance(source, list | tuple):
        source = plain(source, argument)
    for start in range(0, count_rows(source) or 0, rows):
        yield _cut(source, slice(start, start + rows))


def _cut(data: Data, index: Index) -> Any:
    if isinstance(data, Table):
        return Table({name: column[index] for name, column in data.columns.items()})
    if isinstance(data, Mapping):
        return {name: np.asarray(column)[index] for name, column in data.items()}
    if hasattr(data, "iloc"):
        return data.iloc[index]
    return data[index]


def _regrouped(pieces: Iterator[Any], rows: int, argument: str) -> Iterator[Any]:
    """Pieces of any length as blocks of `rows` rows; what is waiting is never longer than a piece and a block."""
    waiting: list[tuple[Any, ...]] = []
    held, alone = 0, True
    for piece in pieces:
        alone = not isinstance(piece, tuple)
        parts = tuple(_piece(part, argument) for part in (piece if isinstance(piece, tuple) else (piece,)))
        lengths = [count_rows(part) or 0 for part in parts]
        if len(set(lengths)) > 1:
            raise ShapeError(f"a piece of {argument} has members of {lengths} rows; expected as many of each.")
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


def _piece(part: Any, argument: str) -> Any:
    if is_sparse(part):
        return part.tocsr()
    if Table.looks_like_one(part):
        try:
            return Table.of(part, f"a piece of {argument}")
        except NonFiniteError:  # whoever reads the rows says what becomes of missing values
            names, columns = raw_columns(part, f"a piece of {argument}")
            return {name: np.asarray(column) for name, column in zip(names, columns, strict=True)}
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
