"""How the rows of a large table are read: like those of the sample that the plan was made from."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from meanmap.core.pieces.files import is_lazy
from meanmap.core.points import on_host
from meanmap.core.progress import track
from meanmap.core.tables.chunks import count_rows, pieces_of
from meanmap.core.tables.doubts import doubts
from meanmap.core.tables.missing import MISSING_LABEL, seen_to
from meanmap.core.tables.schema import Schema, opened
from meanmap.core.tables.table import Table
from meanmap.core.types import Data
from meanmap.core.values import Value

__all__ = ["Reading", "left_out", "notes_of"]

# Rows of a file or an array that are read at once.
ROWS = 1 << 15


@dataclass(frozen=True, eq=False, repr=False)
class Reading(Value):
    """The columns of a sample, which later rows must have, and what happens to missing values.

    Attributes
    ----------
    schema : Schema or None
        None of data that only their kernel can read.
    table : bool
        Whether kernels are given tables, by the names of their columns.
    missing : {"raise", "drop", "category"}
    notes : tuple of str
        Which columns of the sample may not be what they seem.
    """

    schema: Schema | None
    table: bool
    missing: str
    notes: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, samples: Sequence[Any], names: Sequence[str], missing: str, kinds: Mapping[str, Any] | None, least: int
    ) -> tuple["Reading", list[Any]]:
        """From samples of the same columns, with these as they are read."""
        read, schemas, _ = opened(samples, names, missing, kinds, least=least)
        notes = doubts(read, names, kinds or ())
        return cls(schemas[0], Table.looks_like_one(read[0]), missing, notes), read

    def pieces(self, source: Data, name: str) -> Iterator[tuple[Any, int, Mapping[str, int]]]:
        """Pieces of a source for a kernel to read, how many rows came, and how many values of a column were missing.

        None stands for a piece all of whose rows were left out.
        """
        rows = 0
        source = on_host(source)
        total = None if is_lazy(source) else count_rows(source)  # of a lazy frame only its query knows
        for piece in track(
            pieces_of(source, ROWS, name), f"rows of {name}", total, lambda piece: count_rows(piece) or 0
        ):
            came = count_rows(piece) or 0
            if not came:
                continue
            where = f"{name}[{rows}:]" if rows else name
            found, gaps = seen_to(piece, where, self.missing)
            if not count_rows(found):
                found = None
            yield None if found is None else self.read(found, where), came, gaps
            rows += came

    def read(self, piece: Any, name: str) -> Any:
        """A piece with the columns of the sample, for a kernel to read."""
        if self.schema is None:
            return piece
        table = self.schema.read(piece, name)
        return table if self.table else piece


def notes_of(readings: Sequence[Reading]) -> tuple[str, ...]:
    """What is to be said of the samples from which it was learned how variables are read."""
    return tuple(note for reading in readings for note in reading.notes)


def left_out(name: str, rows: int, kept: int, gaps: Mapping[str, int]) -> tuple[str, ...]:
    """What a result says about missing values."""
    if not gaps:
        return ()
    where = ", ".join(f"{column} ({number})" for column, number in gaps.items())
    if kept == rows:
        return (f"missing values of {name} are a label, {MISSING_LABEL!r}: {where}.",)
    gone = rows - kept
    were = "was" if gone == 1 else "were"
    return (f"{gone} of {rows} rows of {name} {were} left out: a value is missing in {where}.",)
