"""Parquet files as one table: a path, a folder, a pattern or a list, read batch by batch, only the wanted columns."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from glob import escape, glob, has_magic
from os import PathLike
from os.path import isdir
from pathlib import Path
from typing import Any

import numpy as np

from meanmap.core.containers import is_lazy
from meanmap.core.errors import ColumnError, EmptyError, KindError, ParameterError
from meanmap.core.extras import optional
from meanmap.core.meant import composed, no_column
from meanmap.core.pieces.source import Source
from meanmap.core.types import Data

__all__ = ["LazyFrame", "ParquetFiles", "matching", "natural"]


@dataclass(frozen=True)
class ParquetFiles(Source):
    """Files that hold consecutive rows of one table; `columns` are those to read, all if None.

    Made by `ParquetFiles.of`, which looks at the names and kinds of the columns of each file, and at no row.
    """

    paths: tuple[Path, ...]
    columns: tuple[str, ...] | None = None

    @staticmethod
    def holds(data: Data) -> bool:
        """Whether data are such files, or name some: a path, text ending in .parquet or naming a folder, or a list."""
        if isinstance(data, list | tuple):
            # A bare word in a list is a label, though there may be a folder of that name.
            return len(data) > 0 and all(map(_is_path, data)) and not all(map(_is_word, data))
        return isinstance(data, ParquetFiles) or _is_path(data)

    @classmethod
    def of(cls, source: object, columns: Sequence[str] | None = None) -> "ParquetFiles":
        """The files that a path, a folder, a pattern such as "2026/*.parquet", or a list of these names.

        Files of a folder or a pattern are sorted by name, with numbers by value: part-2 before
        part-10. Files whose names begin with a dot or an underscore are left out.
        """
        if isinstance(source, ParquetFiles):
            return source if columns is None else cls(source.paths, tuple(columns))
        columns = None if columns is None else [composed(name) for name in columns]
        listed = source if isinstance(source, list | tuple) else [source]
        paths = tuple(path for each in listed for path in _found(each))
        files = cls(paths, None if columns is None else tuple(columns))
        files._check()
        return files

    @property
    def names(self) -> tuple[str, ...]:
        """The columns that are read."""
        return self.columns or tuple(self.kinds)

    @property
    def kinds(self) -> dict[str, Any]:
        """The data types of all columns of the first file, by name."""
        return _schema(self.paths[0])

    @property
    def shared(self) -> list[str]:
        """The columns that all files have, in the order of the first one."""
        schemas = [_schema(path) for path in self.paths]
        return [name for name in schemas[0] if all(name in schema for schema in schemas)]

    def count(self, argument: str = "data") -> int:
        """As the footers of the files say."""
        rows = 0
        for path in self.paths:
            with _read(path):
                rows += LazyFrame(_scanned(path), path).count()
        return rows

    def chosen(self, names: Sequence[str]) -> "ParquetFiles":
        """These files, restricted to some columns."""
        return ParquetFiles(self.paths, tuple(names))

    def pieces(self, rows: int, argument: str = "data") -> Iterator[Any]:
        """Frames, one after another; each file is read once."""
        for frame in self._frames():
            yield from frame.pieces(rows)

    def take(self, index: np.ndarray, argument: str = "data") -> Any:
        """A frame of the rows at these numbers, counted through all files."""
        start, found = 0, []
        for frame in self._frames():
            stop = start + frame.count()
            found.append(frame.take(index[(index >= start) & (index < stop)] - start))
            start = stop
        return _polars(self.paths[0]).concat(found)

    def whole(self, argument: str = "data") -> Any:
        """One frame of polars with the rows of all files."""
        return _polars(self.paths[0]).concat([frame.whole() for frame in self._frames()])

    def _frames(self) -> "Iterator[LazyFrame]":
        """Each file as a lazy frame with the same columns, order and data types."""
        polars = _polars(self.paths[0])
        schemas = [_schema(path) for path in self.paths]
        kinds = {name: reduce(_common, (schema[name] for schema in schemas)) for name in self.names}
        for path, schema in zip(self.paths, schemas, strict=True):
            columns = {name: polars.col(name) for name in kinds}
            cast = [columns[name] if schema[name] == kind else columns[name].cast(kind) for name, kind in kinds.items()]
            yield LazyFrame(_scanned(path).select(cast), path)

    def _check(self) -> None:
        """Refuse files whose columns differ from those of the first one."""
        first: dict[str, Any] = {}
        for path in self.paths:
            found = _schema(path)
            for name in self.columns or ():
                if name not in found:
                    raise no_column(path, name, found)
            first = first or found
            for name in first if self.columns is None else self.columns:
                if name not in found:
                    raise ColumnError(
                        f"{path} has no column {name!r}, which {self.paths[0]} has; it has "
                        f"{', '.join(map(repr, found))}. Leave the file out, or name the columns that all files have."
                    )
                if first[name] != found[name] and not (first[name].is_numeric() and found[name].is_numeric()):
                    raise KindError(
                        f"the column {name!r} holds {found[name]} in {path} and {first[name]} in {self.paths[0]}; "
                        "expected one kind in all files of a table."
                    )
            more = [name for name in found if name not in first]
            if self.columns is None and more:
                raise ColumnError(
                    f"{path} has a column {more[0]!r}, which {self.paths[0]} lacks. Leave the file out, or name the "
                    "columns that all files have."
                )


@dataclass(frozen=True, eq=False)
class LazyFrame(Source):
    """A lazy frame of polars, perhaps of the file at `path`, which errors then name."""

    data: Any
    path: Path | None = None

    @staticmethod
    def holds(data: Data) -> bool:
        """Whether data are a lazy frame."""
        return is_lazy(data)

    @property
    def names(self) -> Sequence[str]:
        """As given by its query."""
        return list(self.data.collect_schema().names())

    def count(self, argument: str = "data") -> int:
        """Runs its query."""
        polars = _polars(self.path)
        with _read(self.path):
            return int(self.data.select(polars.len()).collect().item())

    def foreseen(self) -> int | None:
        """Only its query knows."""
        return None

    def chosen(self, names: Sequence[str]) -> Any:
        """A lazy frame again."""
        return self.data.select(list(names))

    def pieces(self, rows: int, argument: str = "data") -> Iterator[Any]:
        """From one run of its query where polars can."""
        with _read(self.path):
            if hasattr(self.data, "collect_batches"):
                yield from self.data.collect_batches(chunk_size=rows, engine="streaming")
            else:
                yield from (self.data.slice(start, rows).collect() for start in range(0, self.count(), rows))

    def take(self, index: np.ndarray, argument: str = "data") -> Any:
        """The others are read and forgotten."""
        import polars

        name = "number of the row"
        chosen = self.data.with_row_index(name).filter(polars.col(name).is_in(index.tolist()))
        with _read(self.path):
            streams = hasattr(self.data, "collect_batches")
            found = chosen.collect(engine="streaming") if streams else chosen.collect()
        return found.sort(name).drop(name)

    def whole(self, argument: str = "data") -> Any:
        """A frame of polars, from one run of its query."""
        with _read(self.path):
            return self.data.collect()


def _common(one: Any, other: Any) -> Any:
    """The common data type of a column of numbers with these types in two files: integers stay integers."""
    import polars

    return one if one == other else polars.Int64 if one.is_integer() and other.is_integer() else polars.Float64


def _scanned(path: Path) -> Any:
    """The rows of one file, whatever its name: to polars a[1].parquet is a pattern."""
    frame = _polars(path).scan_parquet(path, glob=False)
    odd = {name: composed(name) for name in frame.collect_schema().names() if name != composed(name)}
    return frame.rename(odd) if odd else frame


def _schema(path: Path) -> dict[str, Any]:
    with _read(path):
        return dict(_scanned(path).collect_schema())


@contextmanager
def _read(path: Path | None) -> Iterator[None]:
    """Errors about damaged data or incompatible columns name the file, or the lazy frame, in one sentence."""
    polars = _polars(path)
    try:
        yield
    except FileNotFoundError:
        raise ParameterError(f"there is no file {str(path)!r}.") from None
    except (polars.exceptions.PolarsError, polars.exceptions.PanicException, OSError) as problem:
        what = "the lazy frame cannot be read" if path is None else f"{path} cannot be read as Parquet"
        raise KindError(f"{what}: {str(problem).splitlines()[0]}") from None


def _is_word(source: str | PathLike) -> bool:
    return isinstance(source, str) and not re.search(r"[/\\.]", source)


def _is_path(source: Data) -> bool:
    if isinstance(source, str):
        return source.endswith(".parquet") or isdir(source)
    return isinstance(source, PathLike)


def _found(source: Any) -> list[Path]:
    path = Path(source)
    if path.is_dir():
        found = [each for each in path.rglob("*.parquet") if not each.name.startswith((".", "_"))]
        if not found:
            raise EmptyError(f"the folder {str(source)!r} holds no file whose name ends in .parquet.")
        return sorted(found, key=natural)
    if path.exists():
        if path.suffix != ".parquet":
            raise KindError(
                f"{str(source)!r} is not a Parquet file. Read it first; for a large array use numpy.load(path, "
                "mmap_mode='r')."
            )
        return [path]
    if has_magic(str(source)):
        return matching(path)
    _polars(source)
    if path.suffix != ".parquet":
        raise KindError(
            f"{str(source)!r} is not a Parquet file. Read it first; for a large array use numpy.load(path, "
            f"mmap_mode='r')."
        )
    raise ParameterError(f"there is no file {str(source)!r}.")


def matching(path: Path) -> list[Path]:
    """The files that a pattern matches, in the order of their names; folders that exist are themselves.

    h[1]/*.parquet is about h[1] if there is one, not h1.
    """
    there = next(folder for folder in path.parents if folder.is_dir() or folder == folder.parent)
    pattern = str(Path(escape(str(there))) / path.relative_to(there))
    found = [Path(each) for each in glob(pattern, recursive=True)]
    if not found:
        raise EmptyError(f"no file matches {str(path)!r}.")
    return sorted(found, key=natural)


def natural(path: Path) -> list[Any]:
    """The sorting key of files: numbers in a name are compared as numbers."""
    return [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in re.split(r"(\d+)", str(path))]


def _polars(source: object) -> Any:
    with optional(f"{str(source)!r} is the path of a file, and reading Parquet"):
        import polars
    return polars
