"""Batches that are copies of rows of the reference or of an earlier batch."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from meanmap.core.tables.doubts import row_digests
from meanmap.core.values import Value

__all__ = ["LEAST_ROWS", "Copies", "Copy"]

# A batch is a copy if this share of its rows is also in an earlier table, in which at most this share of rows repeats
# another one. In tables of few columns with few values, rows are equal by chance.
COPIED, BY_CHANCE = 0.5, 0.05
LEAST_ROWS = 20
# The number of rows of the latest batches that are remembered; a batch with more rows is remembered as a whole.
MOST_REMEMBERED = 100_000


class Copy(NamedTuple):
    """The number of rows of a batch that are also in an earlier one (counted from 1; 0 is the reference), and whether
    both have exactly these rows.
    """

    source: int
    same: int
    rows: int
    whole: bool

    def note(self, name: str) -> str:
        """The note on this copy, with the name of the batch or reference that it copies."""
        said = f"{self.same} of {self.rows} rows are also in {name}"
        return f"{said}: a copy of known rows says nothing about new ones. If it is a mistake, leave this batch out."


@dataclass(frozen=True, eq=False, repr=False)
class Copies(Value):
    """The rows of the reference and of the latest batches, as hashes.

    Attributes
    ----------
    reference, rows : int array
        The distinct rows of the reference, sorted, and the rows of batches.
    batches : int array
        The batch of each row of `rows`.
    """

    reference: np.ndarray
    rows: np.ndarray
    batches: np.ndarray

    @classmethod
    def of(cls, reference: Sequence[np.ndarray]) -> "Copies":
        """The state before the first batch."""
        rows = _numbers(reference)
        none = np.zeros(0, np.int32)
        return cls(np.unique(rows) if _telling(rows) else rows[:0], none.astype(np.uint32), none)

    def step(self, batch: Sequence[np.ndarray], number: int) -> "Copies":
        """The state after one more batch."""
        rows = _numbers(batch)
        if not _telling(rows):
            return self
        rows = np.unique(rows)
        kept = self._latest(MOST_REMEMBERED - len(rows))
        batches = np.full(len(rows), number, np.int32)
        return replace(
            self, rows=np.concatenate([self.rows[kept:], rows]), batches=np.concatenate([self.batches[kept:], batches])
        )

    def find(self, batch: Sequence[np.ndarray]) -> Copy | None:
        """The batch or reference that this batch copies; None if it is not a copy."""
        rows = _numbers(batch)
        n = len(rows)
        if n < LEAST_ROWS:
            return None
        seen = np.flatnonzero(np.isin(self.rows, rows))
        for number in np.unique(self.batches[seen]) if _telling(rows) else ():
            if np.array_equal(self.rows[self.batches == number], np.unique(rows)):
                return Copy(int(number), n, n, True)
        shares = {0: np.isin(rows, self.reference).sum()}
        shares |= {
            number: np.isin(rows, self.rows[self.batches == number]).sum() for number in np.unique(self.batches[seen])
        }
        source = max(shares, key=lambda number: shares[number])
        return None if shares[source] < COPIED * n else Copy(int(source), int(shares[source]), n, False)

    def _latest(self, most: int) -> int:
        """The first row of the latest whole batches that together have at most this many rows."""
        most = max(most, 0)
        if len(self.rows) <= most:
            return 0
        at = len(self.rows) - most
        return int(np.searchsorted(self.batches, self.batches[at - 1], side="right"))


def _numbers(columns: Sequence[np.ndarray]) -> np.ndarray:
    return row_digests(columns).astype(np.uint32) if columns else np.zeros(0, np.uint32)


def _telling(rows: np.ndarray) -> bool:
    """Whether there are enough rows, and so few repeated ones that other tables would not share them by chance."""
    return len(rows) >= LEAST_ROWS and len(rows) - len(np.unique(rows)) <= BY_CHANCE * len(rows)
