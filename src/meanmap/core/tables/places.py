"""Columns of an array, which have positions and no names: their number and kind."""

from dataclasses import dataclass

import numpy as np

from meanmap.core.errors import ColumnError, KindError
from meanmap.core.tables.kinds import HELD_BY, described, family_of, holds_objects
from meanmap.core.tables.table import Table
from meanmap.core.types import Data

__all__ = ["Places", "has_names"]

# Data types that say what a column holds.
KNOWN = "fiubmMU"


@dataclass(frozen=True)
class Places:
    """What elements and features store about the array they were made from, at no cost for any number of columns."""

    number: int
    family: str

    @classmethod
    def of(cls, data: Data) -> "Places | None":
        """From an array or list of columns; None for tables, and for others, which only their kernel can read."""
        if not isinstance(data, list | tuple | np.ndarray) or Table.looks_like_one(data) or holds_objects(data):
            return None
        array = np.asarray(data)
        if array.ndim not in (1, 2) or array.dtype.kind not in KNOWN:
            return None
        return cls(array.shape[1] if array.ndim > 1 else 1, family_of(array))

    def check(self, data: Data, argument: str) -> None:
        """Refuse tables with names, and data of another kind than the array; kernels check the number of columns."""
        if Table.has_names(data):
            raise has_names(data, argument, self.number)
        if not isinstance(data, list | tuple | np.ndarray) or Table.looks_like_one(data) or holds_objects(data):
            return
        array = np.asarray(data)
        if array.size and array.dtype.kind in KNOWN and family_of(array) != self.family:
            raise KindError(
                f"{argument} holds {described(array.ravel())}; expected {HELD_BY[self.family]}, as before. Convert it "
                "first."
            )


def has_names(data: Data, argument: str, number: int) -> ColumnError:
    """The error for a table passed to something made from an array."""
    names = ", ".join(map(repr, Table.names_in(data, argument)))
    return ColumnError(
        f"{argument} has columns with names ({names}); expected {number} columns without, as before: pass "
        f"{argument}.to_numpy()."
    )
