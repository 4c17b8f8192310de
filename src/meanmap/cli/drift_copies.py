"""Batches of `meanmap drift` that are copies: of the reference, or of an earlier batch."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from meanmap.cli.drift_watched import complete
from meanmap.core.tables.doubts import row_digests

__all__ = ["Copies"]

# A batch is a copy if this share of its rows are also those of an earlier table, of whose own rows few repeat another:
# where tables have few columns with few values, rows agree by chance.
COPIED, BY_CHANCE = 0.5, 0.05
LEAST_ROWS = 20


@dataclass
class Copies:
    """The rows of the reference and of all batches so far, as numbers that stand for them."""

    known: dict[str, np.ndarray] = field(default_factory=dict)

    def note(self, name: str, data: Mapping[str, Any]) -> str:
        """The note on a batch that is a copy, or empty; it is compared with from now on."""
        rows = row_digests([np.asarray(column) for column in complete(dict(data)).columns.values()])
        shares = {other: float(np.isin(rows, seen).mean()) for other, seen in self.known.items()} if len(rows) else {}
        distinct = np.unique(rows)
        if len(rows) >= LEAST_ROWS and len(rows) - len(distinct) <= BY_CHANCE * len(rows):
            self.known[name] = distinct
        source = max(shares, key=lambda other: shares[other], default="")
        if not source or len(rows) < LEAST_ROWS or shares[source] < COPIED:
            return ""
        copied = round(shares[source] * len(rows))
        said = f"{copied} of {len(rows)} rows are also in {source}"
        return f"{said}: a copy of known rows says nothing about new ones. If it is a mistake, leave this batch out"
