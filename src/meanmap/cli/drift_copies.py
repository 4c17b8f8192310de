"""Batches of `meanmap drift` that are copies: of the reference, or of an earlier batch."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from meanmap.cli.drift_watched import complete
from meanmap.core.tables.doubts import row_digests

__all__ = ["Copies"]

# A batch is a copy if this share of its rows are also those of an earlier table, of whose own rows few repeat another:
# where tables have few columns with few values, rows agree by chance.
COPIED, BY_CHANCE = 0.5, 0.05
LEAST_ROWS = 20


class Copy(NamedTuple):
    """What is said of a copy, and whether it holds nothing but the rows of one earlier batch."""

    said: str
    whole: bool


@dataclass
class Copies:
    """The rows of all files so far, as numbers that stand for them: the reference, and batches."""

    reference: str
    known: dict[str, np.ndarray] = field(default_factory=dict)

    def add(self, path: str, data: Mapping[str, Any]) -> None:
        """Batches are compared with these rows from now on."""
        rows = _digests(data)
        if _telling(rows):
            self.known[path] = np.unique(rows)

    def find(self, path: str, data: Mapping[str, Any], same: str = "") -> Copy | None:
        """What is said of a batch that is a copy; `same` is a file of an earlier run that had the same content."""
        rows = _digests(data)
        if len(rows) < LEAST_ROWS:
            return None
        if _telling(rows):
            batches = (other for other in self.known if other != self.reference)
            same = same or next((other for other in batches if np.array_equal(self.known[other], np.unique(rows))), "")
            if same:
                name, other = (path, same) if Path(path).name == Path(same).name else (Path(path).name, Path(same).name)
                return Copy(f"{name} holds the same rows as {other}: a copy says nothing about new rows.", True)
        shares = {other: float(np.isin(rows, seen).mean()) for other, seen in self.known.items()}
        source = max(shares, key=lambda other: shares[other], default="")
        if not source or shares[source] < COPIED:
            return None
        said = f"{round(shares[source] * len(rows))} of {len(rows)} rows are also in {Path(source).name}"
        advice = "a copy of known rows says nothing about new ones. If it is a mistake, leave this batch out"
        return Copy(f"{said}: {advice}.", False)


def _digests(data: Mapping[str, Any]) -> np.ndarray:
    return row_digests([np.asarray(column) for column in complete(dict(data)).columns.values()])


def _telling(rows: np.ndarray) -> bool:
    """Whether there are enough rows, and so few repeat another that others would not agree by chance."""
    return len(rows) >= LEAST_ROWS and len(rows) - len(np.unique(rows)) <= BY_CHANCE * len(rows)
