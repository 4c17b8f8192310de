"""Rows of a table, or points, wherever they are stored: what is known before and while they are read."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from meanmap.core.containers import refuse_unread
from meanmap.core.errors import KindError, ParameterError
from meanmap.core.language import a_type
from meanmap.core.meant import no_column
from meanmap.core.types import Data

__all__ = ["Source", "Stream", "unnamed"]


class Source(ABC):
    """Rows, wherever they are stored; those of an iterator are available only `once`. Nothing is read before it is
    needed.

    Errors call the rows `argument`.
    """

    once: ClassVar[bool] = False

    @property
    def named(self) -> bool:
        """Whether there are columns with names."""
        return True

    @property
    def names(self) -> Sequence[str]:
        """The names of the columns."""
        raise unnamed(self)

    @abstractmethod
    def count(self, argument: str = "data") -> int | None:
        """The number of rows; None for an iterator, which does not know it."""

    def foreseen(self) -> int | None:
        """The number of rows, if that is known without work."""
        return self.count()

    def select(self, names: Sequence[str]) -> Any:
        """Some of the columns, before anything is read."""
        there = self.names
        for name in (name for name in names if name not in there):
            raise no_column("data", name, there)
        return self.chosen(names)

    def chosen(self, names: Sequence[str]) -> Any:
        """As `select`, for names that were checked."""
        raise unnamed(self)

    def take(self, index: np.ndarray, argument: str = "data") -> Any:
        """The rows at these numbers, in that order, in memory."""
        raise ParameterError(f"{argument} is an iterator, whose rows are read once and in order.")

    @abstractmethod
    def pieces(self, rows: int, argument: str = "data") -> Iterator[Any]:
        """Successive pieces of about this many rows, in memory."""

    @abstractmethod
    def whole(self, argument: str = "data") -> Any:
        """All rows, in memory."""

    def parts(self, argument: str = "data") -> list[Any] | None:
        """Tasks for workers, each for some of the rows where they are stored; None for rows that are read here."""
        return None


@dataclass(frozen=True, eq=False)
class Stream(Source):
    """An iterator (a generator, say), which gives its rows once and in order: its pieces are neither cut nor joined."""

    data: Iterator[Any]
    once: ClassVar[bool] = True

    @property
    def named(self) -> bool:
        """Unknown before the first piece."""
        return False

    @property
    def names(self) -> Sequence[str]:
        """None are known; an error says how record batches become a table."""
        refuse_unread(self.data, "data")
        raise unnamed(self)

    @staticmethod
    def holds(data: Data) -> bool:
        """Whether data are an iterator."""
        return hasattr(data, "__next__")

    def count(self, argument: str = "data") -> int | None:
        """None, because it is unknown before the last piece."""
        return None

    def pieces(self, rows: int, argument: str = "data") -> Iterator[Any]:
        """As they come."""
        return self.data

    def whole(self, argument: str = "data") -> Any:
        """As it came."""
        return self.data


def unnamed(source: Any) -> KindError:
    """The error for columns requested by name that have no names."""
    return KindError(f"data is {a_type(source.data)}; expected a table with names of columns: files or a frame.")
