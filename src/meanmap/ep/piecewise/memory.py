"""What a run has paid for: values of functions on the host, by function and by the other arguments of a row."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from threading import Lock
from typing import Any

import numpy as np

from meanmap.ep.piecewise.pieces import Pieces

__all__ = ["Memory", "memory_of", "remembering"]


class Memory:
    """Pieces of functions, kept for one run, because the next may find another function behind the same name."""

    def __init__(self) -> None:
        self._functions: dict[Any, _Rows] = {}
        self._lock = Lock()  # each device calls from a thread of its own

    def ask(
        self,
        known_as: Any,
        evaluate: Callable[[np.ndarray, list[np.ndarray]], np.ndarray],
        z: np.ndarray,
        wanted: np.ndarray,
        arguments: list[np.ndarray],
    ) -> tuple[np.ndarray, np.ndarray]:
        """Values and errors at points of several rows.

        Parameters
        ----------
        known_as : hashable
            What tells one function from another.
        evaluate : callable
            From points (n,) and arguments (n, ...) to values (n,).
        z, wanted : arrays (rows, points)
            Points, and where errors are too large.
        arguments : list of arrays (rows, ...)
            Of the function besides z.
        """
        with self._lock:
            return self._functions.setdefault(known_as, _Rows()).ask(evaluate, z, wanted, arguments)


class _Rows:
    """One function: a line for each value of its other arguments."""

    def __init__(self) -> None:
        self.numbers: dict[bytes, int] = {}
        self.arguments: list[np.ndarray] = []  # of all lines
        self.pieces = Pieces(self._values)
        self.evaluate: Any = None

    def ask(self, evaluate: Any, z: np.ndarray, wanted: np.ndarray, arguments: list[np.ndarray]) -> Any:
        self.evaluate = evaluate
        lines = self._lines(len(z), arguments)
        span = np.ptp(z, axis=1)
        line = np.repeat(lines, z.shape[1])
        value, error = self.pieces.ask(line, z.ravel(), wanted.ravel(), float(span[span > 0].min(initial=np.inf)))
        return value.reshape(z.shape), error.reshape(z.shape)

    def _lines(self, rows: int, arguments: list[np.ndarray]) -> np.ndarray:
        """The number of each row's line; rows that are new get the next ones."""
        keys = [b"".join(each[row].tobytes() for each in arguments) for row in range(rows)]
        new = {key: row for row, key in enumerate(keys) if key not in self.numbers}
        self.numbers |= {key: len(self.numbers) + at for at, key in enumerate(new)}
        more = [each[list(new.values())] for each in arguments]
        old = self.arguments or [each[:0] for each in more]
        self.arguments = [np.concatenate(pair) for pair in zip(old, more, strict=True)]
        return np.array([self.numbers[key] for key in keys])

    def _values(self, line: np.ndarray, z: np.ndarray) -> np.ndarray:
        return self.evaluate(z, [each[line] for each in self.arguments])


_numbers, _memories = count(1), dict[int, Memory]()


@contextmanager
def remembering() -> Iterator[np.uint32]:
    """A memory for the time of a run, under a number that compiled programs can hand on."""
    number = next(_numbers) % 2**32
    _memories[number] = Memory()
    try:
        yield np.uint32(number)
    finally:
        del _memories[number]


def memory_of(number: int) -> Memory | None:
    """The memory of a number, while its run lasts."""
    return _memories.get(number)
