"""Cells far outside the range of a reference that come in batch after batch."""

from collections.abc import Collection
from dataclasses import dataclass, field, replace

import numpy as np

from meanmap.core.tables.kinds import family_of
from meanmap.core.tables.schema import Schema
from meanmap.core.tables.table import Table
from meanmap.core.values import Value

__all__ = ["SHARE_OF_FAR", "FarCells"]

# The share of false alarms that far cells may raise; how far outside they are, in ranges of the reference; and the
# number of batches in a row with such cells that an alarm needs, and without them that end it.
SHARE_OF_FAR, RANGES, LEAST = 0.002, (10.0, 1000.0), 3


@dataclass(frozen=True, eq=False, repr=False)
class FarCells(Value):
    """The latest batches that all hold cells far outside the range of a column.

    Attributes
    ----------
    names : tuple of str
        The columns of numbers.
    lows, highs : arrays
        Their ranges in the reference of `n` rows.
    ranges : array
        How far outside cells are; each column is there once for each distance.
    limit : float
        The largest probability of an alarm for each column.
    batches, rows, cells : int arrays
        The latest batches without a gap that hold such cells, their rows, and these cells.
    quiet : int array
        The batches without such cells since the latest alarm about them; -1 without an alarm.
    causes : dict
        The probability of the cells of each column whose alarm has not ended.
    """

    names: tuple[str, ...]
    lows: np.ndarray
    highs: np.ndarray
    ranges: np.ndarray
    n: int
    limit: float
    batches: np.ndarray
    rows: np.ndarray
    cells: np.ndarray
    quiet: np.ndarray
    causes: dict[tuple[str, str, None], float] = field(default_factory=dict)

    @classmethod
    def of(cls, reference: Table, schema: Schema, run_length: float) -> "FarCells | None":
        """The state before the first batch; None without columns of numbers that vary."""
        names = [name for name, column in reference.columns.items() if family_of(column) == "number"]
        ends = {name: (schema[name].low, schema[name].high) for name in names if np.ndim(reference.columns[name]) == 1}
        ends = {name: end for name, end in ends.items() if None not in end and end[0] != end[1]}
        if not ends:
            return None
        names, ranges = [*ends] * len(RANGES), np.repeat(RANGES, len(ends))
        none = np.zeros(len(names), int)
        lows, highs = np.array([ends[name] for name in names], float).T
        limit = SHARE_OF_FAR / run_length / len(names)
        return cls(tuple(names), lows, highs, ranges, len(reference), limit, none, none, none, none - 1)

    @property
    def gone_on(self) -> list[str]:
        """What alarms about such cells say, while they have not ended."""
        told = [
            f"batch after batch holds values of {name!r} far outside {low:g} to {high:g}"
            for name, low, high, quiet in zip(self.names, self.lows, self.highs, self.quiet, strict=True)
            if quiet >= 0
        ]
        return [*dict.fromkeys(told)]

    def step(self, batch: Table, apart: Collection[str] = ()) -> tuple["FarCells", tuple[str, ...]]:
        """The state after one more batch, and notes on an alarm; columns set `apart` were not observed.

        If a row is outside the range with probability V, and r ranges away with at most V/r, as for tails no heavier
        than those of Cauchy's distribution, then the probability of c such cells in N rows is at most
        C(N, c) E V^c / r^c, for V ~ Beta(2, n − 1). One stretch of batches begins with each batch at most, and its k-th
        batch raises an alarm at the limit / k (k + 1).
        """
        far = np.zeros(len(self.names), int)
        seen = np.array([name not in apart for name in self.names])
        for k in np.flatnonzero(seen):
            values, reach = (
                np.asarray(batch.columns[self.names[k]], float),
                self.ranges[k] * (self.highs[k] - self.lows[k]),
            )
            far[k] = np.count_nonzero((values < self.lows[k] - reach) | (values > self.highs[k] + reach))
        batches, rows, cells = (
            np.where(seen, (before + added) * (far > 0), before)
            for before, added in ((self.batches, 1), (self.rows, len(batch)), (self.cells, far))
        )
        quiet = np.where((self.quiet >= 0) & seen, np.where(far > 0, 0, self.quiet + 1), self.quiet)
        quiet = np.where(quiet >= LEAST, -1, quiet)
        logs = np.array(
            [self._log_chance(*each) for each in zip(cells.tolist(), rows.tolist(), self.ranges, strict=True)]
        )
        most = np.log(self.limit / np.maximum(batches * (batches + 1), 1))
        new = np.flatnonzero((quiet < 0) & (batches >= LEAST) & (logs <= most))
        notes = dict.fromkeys(
            f"{cells[k]} values of {self.names[k]!r} in the latest {rows[k]} rows are far outside {self.lows[k]:g} to "
            f"{self.highs[k]:g}, the range of the reference: more than a single slip."
            for k in new
        )
        quiet[new] = 0
        still = {(self.names[k], "far", None) for k in np.flatnonzero(quiet >= 0)}
        causes = {key: p for key, p in self.causes.items() if key in still}
        causes |= {(self.names[k], "far", None): float(np.exp(logs[k])) for k in new}
        after = replace(self, batches=batches, rows=rows, cells=cells, quiet=quiet, causes=causes)
        return after, tuple(notes)

    def _log_chance(self, cells: int, rows: int, ranges: float) -> float:
        """The logarithm of the bound on the probability of these cells in these rows."""
        i = np.arange(cells)
        return float(np.sum(np.log(np.maximum(rows - i, 1) * (2 + i) / ((1 + i) * ranges * (self.n + 1 + i)))))
