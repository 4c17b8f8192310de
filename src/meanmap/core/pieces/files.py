"""Parquet files as one table: a path, a folder, a pattern or a list, read batch by batch, only the wanted columns."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from glob import glob, has_magic
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from meanmap.core.errors import ColumnError, EmptyError, KindError, ParameterError
from meanmap.core.types import Data

__all__ = ["ParquetFiles", "is_lazy", "names_files"]


def is_lazy(source: Data) -> bool:
    """Whether `source` is a lazy frame of polars."""
    return hasattr(source, "collect") and hasattr(source, "with_row_index")


def names_files(source: Data) -> bool:
    """Whether `source` says where Parquet files are: a path, text that ends in .parquet or is a folder, or a list."""
    if isinstance(source, list | tuple):
        return len(source) > 0 and all(isinstance(each, str | PathLike) and _is_path(each) for each in source)
    return _is_path(source)


def _is_path(source: Data) -> bool:
    if isinstance(source, str):
        return source.endswith(".parquet") or (bool(re.search(r"[/\\]", source)) and Path(source).is_dir())
    return isinstance(source, PathLike)


@dataclass(frozen=True)
class ParquetFiles:
    """Files that hold the rows of one table, one after another; `columns` are those that are read, all if None.

    Made by [`ParquetFiles.of`][], which looks at the names and kinds of the columns of each file, and at no row.
    """

    paths: tuple[Path, ...]
    columns: tuple[str, ...] | None = None

    @classmethod
    def of(cls, source: Any, columns: Sequence[str] | None = None) -> "ParquetFiles":
        """The files that a path, a folder, a pattern such as "2026/*.parquet", or a list of these names.

        Files of a folder or a pattern come in the order of their names, numbers in these by size: part-2 before
        part-10. Files whose names begin with a dot or an underscore are left out.
        """
        if isinstance(source, ParquetFiles):
            return source if columns is None else cls(source.paths, tuple(columns))
        listed = source if isinstance(source, list | tuple) else [source]
        paths = tuple(path for each in listed for path in _found(each))
        files = cls(paths, None if columns is None else tuple(columns))
        files._check()
        return files

    @property
    def names(self) -> tuple[str, ...]:
        """The columns that are read."""
        return self.columns or tuple(_polars(self.paths[0]).read_parquet_schema(self.paths[0]))

    def count(self) -> int:
        """How many rows there are, as the ends of the files say."""
        polars = _polars(self.paths[0])
        return sum(int(polars.scan_parquet(path).select(polars.len()).collect().item()) for path in self.paths)

    def batches(self, rows: int) -> Iterator[Any]:
        """Frames of about so many rows, one after another; each file is read once."""
        for frame in self._frames():
            yield from batches(frame, rows)

    def take(self, index: np.ndarray) -> Any:
        """The rows at these numbers, counted through all files, in that order."""
        polars, start, found = _polars(self.paths[0]), 0, []
        for frame in self._frames():
            stop = start + int(frame.select(polars.len()).collect().item())
            here = index[(index >= start) & (index < stop)]
            found.append(taken(frame, here - start))
            start = stop
        return polars.concat(found, how="vertical_relaxed")

    def frame(self) -> Any:
        """All rows, in memory."""
        polars = _polars(self.paths[0])
        return polars.concat([frame.collect() for frame in self._frames()], how="vertical_relaxed")

    def _frames(self) -> Iterator[Any]:
        polars = _polars(self.paths[0])
        for path in self.paths:
            frame = polars.scan_parquet(path)
            yield frame if self.columns is None else frame.select(self.columns)

    def _check(self) -> None:
        """Refuse files whose columns differ from those of the first one."""
        polars = _polars(self.paths[0])
        first: dict[str, Any] = {}
        for path in self.paths:
            try:
                found = dict(polars.read_parquet_schema(path))
            except (polars.exceptions.PolarsError, OSError) as problem:
                raise KindError(f"{path} cannot be read as Parquet: {str(problem).splitlines()[0]}") from None
            for name in self.columns or ():
                if name not in found:
                    raise ColumnError(f"{path} has no column {name!r}; it has {', '.join(map(repr, found))}.")
            first = first or found
            for name in first if self.columns is None else self.columns:
                if name not in found:
                    raise ColumnError(
                        f"{path} has no column {name!r}, which {self.paths[0]} has; it has "
                        f"{', '.join(map(repr, found))}. Leave the file out, or name the columns that all have."
                    )
                if first[name] != found[name] and not (first[name].is_numeric() and found[name].is_numeric()):
                    raise KindError(
                        f"the column {name!r} holds {found[name]} in {path} and {first[name]} in {self.paths[0]}; "
                        "expected one kind in all files of a table."
                    )
            more = [name for name in found if name not in first]
            if self.columns is None and more:
                raise ColumnError(
                    f"{path} has a column {more[0]!r}, which {self.paths[0]} has not. Leave the file out, or name the "
                    "columns that all have."
                )


def batches(frame: Any, rows: int) -> Iterator[Any]:
    """The frames that a lazy frame gives one after another, from one run of its query where polars can."""
    if hasattr(frame, "collect_batches"):
        return iter(frame.collect_batches(chunk_size=rows, engine="streaming"))
    import polars

    number = int(frame.select(polars.len()).collect().item())
    return (frame.slice(start, rows).collect() for start in range(0, number, rows))


def taken(frame: Any, index: np.ndarray) -> Any:
    """Rows of a lazy frame by number, in that order, of which the others are read and forgotten."""
    import polars

    name = "number of the row"
    chosen = frame.with_row_index(name).filter(polars.col(name).is_in(index.tolist()))
    found = chosen.collect(engine="streaming") if hasattr(frame, "collect_batches") else chosen.collect()
    return found.sort(name).drop(name)


def _found(source: Any) -> list[Path]:
    path = Path(source)
    if path.is_dir():
        found = [each for each in path.rglob("*.parquet") if not each.name.startswith((".", "_"))]
        if not found:
            raise EmptyError(f"the folder {str(source)!r} holds no file whose name ends in .parquet.")
        return sorted(found, key=_natural)
    if path.exists():
        if path.suffix != ".parquet":
            raise KindError(
                f"{str(source)!r} is no Parquet file. Read it first; for a large array use numpy.load(path, "
                "mmap_mode='r')."
            )
        return [path]
    if has_magic(str(source)):
        found = [Path(each) for each in glob(str(source), recursive=True)]
        if not found:
            raise EmptyError(f"no file matches {str(source)!r}.")
        return sorted(found, key=_natural)
    _polars(source)
    if path.suffix != ".parquet":
        raise KindError(
            f"{str(source)!r} is no Parquet file. Read it first; for a large array use numpy.load(path, mmap_mode='r')."
        )
    raise ParameterError(f"there is no file {str(source)!r}.")


def _natural(path: Path) -> list[Any]:
    """Numbers in a name are compared as numbers."""
    return [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in re.split(r"(\d+)", str(path))]


def _polars(source: Any) -> Any:
    try:
        import polars
    except ImportError as error:
        raise KindError(
            f"{str(source)!r} is the path of a file, and reading Parquet needs polars: pip install polars."
        ) from error
    return polars
