"""Reads the rows of a large table like those of the sample that the plan was made from."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from meanmap.core.points import on_host
from meanmap.core.progress import track
from meanmap.core.tables.chunks import count_rows, source_of
from meanmap.core.tables.doubts import doubts
from meanmap.core.tables.missing import left_out, settle_pieces
from meanmap.core.tables.schema import Schema, opened
from meanmap.core.types import Data
from meanmap.core.values import Value

__all__ = ["Reading", "left_out_of", "notes_of"]

# Rows of a file or an array that are read at once.
ROWS = 1 << 15


@dataclass(frozen=True, eq=False, repr=False)
class Reading(Value):
    """The columns of a sample, which later rows must have, and what happens to missing values.

    Attributes
    ----------
    schema : Schema or None
        None for data that only their kernel can read.
    table : bool
        Whether kernels receive tables, with the names of their columns.
    missing : {"raise", "drop", "category"}
    notes : tuple of str
        Notes on columns of the sample that may not be what they seem.
    """

    schema: Schema | None
    table: bool
    missing: str
    notes: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, samples: Sequence[Any], names: Sequence[str], missing: str, kinds: Mapping[str, Any] | None, least: int
    ) -> tuple["Reading", list[Any]]:
        """The reading for samples with the same columns, and these samples after reading."""
        read, schemas, _ = opened(samples, names, missing, kinds, least=least)
        notes = doubts(read, names, kinds or ())
        return cls(schemas[0], source_of(read[0]).named, missing, notes), read

    def pieces(self, source: Data, name: str) -> Iterator[tuple[Any, int, Mapping[str, int]]]:
        """Pieces of a source for a kernel to read, with the numbers of rows and of missing values in each column.

        A piece is None if all of its rows were left out.
        """
        rows = 0
        there = source_of(on_host(source))
        pieces = there.pieces(ROWS, name)
        for piece in track(pieces, f"rows of {name}", there.foreseen(), lambda piece: count_rows(piece) or 0):
            came = count_rows(piece) or 0
            if not came:
                continue
            where = f"{name}[{rows}:]" if rows else name
            (found,), gaps = settle_pieces([piece], [where], self.missing)
            yield self.read(found, where) if count_rows(found) else None, came, gaps
            rows += came

    def read(self, piece: object, name: str) -> Any:
        """A piece with the columns of the sample, for a kernel to read."""
        if self.schema is None:
            return piece
        table = self.schema.read(piece, name)
        return table if self.table else piece


def notes_of(readings: Sequence[Reading]) -> tuple[str, ...]:
    """Notes on the samples that determine how variables are read."""
    return tuple(note for reading in readings for note in reading.notes)


def left_out_of(name: str, state: Any) -> tuple[str, ...]:
    """The note of a result on missing values in the rows of a state."""
    where = ", ".join(f"{column} ({number})" for column, number in state.gaps.items())
    return (left_out(name, state.rows, state.n, where),) if where else ()
