"""Values of functions on the host computed in a run, stored by function and by the other arguments of a row."""

import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from meanmap.ep.piecewise.jumps import JUMPS, jumps
from meanmap.ep.piecewise.patches import Patches
from meanmap.ep.piecewise.pieces import MARKS, Pieces
from meanmap.ep.piecewise.probes import OF_BELIEF, OF_INCOMING, cells, cells_of_two

if TYPE_CHECKING:
    from meanmap.ep.piecewise.surface import Surface

__all__ = ["FINE", "KNOWN", "SHOWN", "Kept", "Memory", "memory_of", "remembering"]

# A memory that is kept from run to run is replaced after this many rows, or this many evaluations for one row: at twice
# as many evaluations, interpolation is abandoned.
_LINES, _OFTEN = 10_000, 8192

# Allowed error of the log tilted density at its peak caused by interpolating a function.
FINE = 1e-7
# Whatever is known is enough: no function is called for more.
KNOWN = np.inf

# Points with values that are shown to a rule beside those that it asks for: marks, and both sides of jumps.
SHOWN = MARKS + 2 * JUMPS

_numbers, _memories = count(1), weakref.WeakValueDictionary[int, "Memory"]()


class Kept(NamedTuple):
    """What compiled programs receive: the number of a memory, and how accurate functions have to be at present."""

    number: Any
    enough: Any = np.float64(FINE)


class Memory:
    """Interpolated functions, kept for one run, because in the next run the same name may refer to another function.

    Compiled programs pass on its `number`. A memory `of_one` function, which the caller has identified, is kept longer,
    and serves that function whichever object represents it.
    """

    def __init__(self, of_one: bool = False) -> None:
        self.number, self.of_one = np.uint32(next(_numbers) % 2**32), of_one
        _memories[int(self.number)] = self
        self._functions: dict[Any, _OfOne | _OfTwo] = {}
        # Where points are sampled, values of one function may be learned: by the shapes of its arguments, and how it is
        # called. In use: one of them, and the scale that matters, by the spread of values.
        self.surfaces: dict[Any, Surface] = {}
        self.learned: tuple[Surface, Callable[[float], float]] | None = None
        self.seconds = 0.0  # of its calls
        self._lock = Lock()  # each device calls from a thread of its own

    def sampled(self, evaluate: Callable[[list[np.ndarray]], np.ndarray], arguments: list[np.ndarray]) -> np.ndarray:
        """Values at points that were drawn, (n, ...) of each argument: learned ones where that was asked for."""
        if self.learned is None:
            return evaluate(arguments)
        surface, scale = self.learned
        ends = np.cumsum([int(np.prod(each.shape[1:])) for each in arguments])[:-1]

        def called(x: np.ndarray) -> np.ndarray:
            parts = np.split(x, ends, axis=1)
            start = time.perf_counter()
            found = evaluate([part.reshape(-1, *each.shape[1:]) for part, each in zip(parts, arguments, strict=True)])
            self.seconds += time.perf_counter() - start
            return found

        with self._lock, np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            return surface.ask(called, np.concatenate([each.reshape(len(each), -1) for each in arguments], 1), scale)

    def ask(
        self,
        known_as: tuple[Any, ...],
        evaluate: Callable[[np.ndarray, list[np.ndarray]], np.ndarray],
        z: np.ndarray,
        wanted: np.ndarray,
        arguments: list[np.ndarray],
        incoming: np.ndarray | None = None,
        tilted: np.ndarray | None = None,
        look: np.ndarray | None = None,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Values and errors at points of several rows, and points with values where a function is finer, or jumps.

        Parameters
        ----------
        known_as : tuple
            The function first, then how it is called.
        evaluate : callable
            Maps points (n,), or (n, 2) for functions of two numbers, and arguments (n, ...) to values (n,).
        z : array (rows, points) or (rows, points, 2)
            Points; for functions of two numbers, an evenly spaced grid.
        wanted : array (rows, points)
            Where errors are too large.
        arguments : list of arrays (rows, ...)
            The other arguments of the function.
        incoming, tilted : arrays (rows, points), optional
            Log densities without and with the factor, where functions are also checked between nodes; NaN in rows that
            have not converged.
        look : array (rows, 2, n), optional
            Alternating centres and edges of cells along both axes, for a function of two numbers.
        """
        # Where a function overflows so do differences of its values; the report says where it gave no numbers.
        with self._lock, np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            known_as = known_as[1:] if self.of_one else known_as
            rows = self._functions.setdefault(known_as, _OfTwo() if z.ndim == 3 else _OfOne())
            return rows.ask(evaluate, z, wanted, arguments, incoming, tilted, look)

    def of_two(self, function: object) -> np.ndarray:
        """The evaluations that a function of two numbers has taken, for each value of its other arguments."""
        found = [rows for known, rows in self._functions.items() if known[0] == function and isinstance(rows, _OfTwo)]
        return np.concatenate([np.zeros(0, int), *(rows.pieces.evaluations for rows in found)])

    @property
    def is_worn(self) -> bool:
        """Whether a new memory is needed: this one is large, or interpolation in one row may soon be abandoned."""
        pieces = [rows.pieces for rows in self._functions.values()]
        return any(len(each.evaluations) > _LINES or each.evaluations.max(initial=0) > _OFTEN for each in pieces)


class _Rows:
    """One function. Each value of its other arguments has a number, which stands for the line or plane of a row."""

    def __init__(self) -> None:
        self.numbers: dict[bytes, int] = {}
        self.arguments: list[np.ndarray] = []  # of all lines
        self.evaluate: Any = None

    def _lines(self, rows: int, arguments: list[np.ndarray]) -> np.ndarray:
        """The number of each row's line; new rows get the next numbers."""
        keys = [b"".join(each[row].tobytes() for each in arguments) for row in range(rows)]
        new = {key: row for row, key in enumerate(keys) if key not in self.numbers}
        self.numbers |= {key: len(self.numbers) + at for at, key in enumerate(new)}
        more = [each[list(new.values())] for each in arguments]
        old = self.arguments or [each[:0] for each in more]
        self.arguments = [np.concatenate(pair) for pair in zip(old, more, strict=True)]
        return np.array([self.numbers[key] for key in keys])

    def _values(self, line: np.ndarray, z: np.ndarray) -> np.ndarray:
        return self.evaluate(z, [each[line] for each in self.arguments])


class _OfOne(_Rows):
    """A function of one number."""

    def __init__(self) -> None:
        super().__init__()
        self.pieces = Pieces(self._values)

    def ask(
        self,
        evaluate: object,
        z: np.ndarray,
        wanted: np.ndarray,
        arguments: list[np.ndarray],
        incoming: np.ndarray | None,
        tilted: np.ndarray | None,
        look: np.ndarray | None,
    ) -> Any:
        del look
        self.evaluate = evaluate
        lines = self._lines(len(z), arguments)
        marks = np.full((len(z), SHOWN, 2), np.nan)
        known = np.isfinite(z).all(1)
        if not known.all():  # rows without mass, whose nodes are no numbers
            value, error = np.full(z.shape, np.nan), np.zeros(z.shape)
            if known.any():
                came, own = (None if each is None else each[known] for each in (incoming, tilted))
                rest = [each[known] for each in arguments]
                found = self.ask(evaluate, z[known], wanted[known], rest, came, own, None)
                value[known], error[known], marks[known] = found
            return value, error, marks
        if tilted is not None and incoming is not None:
            self._probe(lines, cells(z, tilted, *OF_BELIEF))
            if len(self.numbers) == 1:
                self._probe(lines, cells(z, incoming, *OF_INCOMING))
        span = np.ptp(z, axis=1)
        line = np.repeat(lines, z.shape[1])
        value, error = self.pieces.ask(line, z.ravel(), wanted.ravel(), float(span[span > 0].min(initial=np.inf)))
        if tilted is not None:
            told = np.flatnonzero(~np.isnan(tilted).any(1))
            order = np.argsort(z[told], axis=1)
            points, height = (np.take_along_axis(each[told], order, 1) for each in (z, tilted))
            marks[told, :MARKS] = self.pieces.narrow(lines[told], points)
            marks[told, MARKS:] = jumps(self.pieces, lines[told], points, height)
        return value.reshape(z.shape), error.reshape(z.shape), marks

    def _probe(self, lines: np.ndarray, found: tuple[np.ndarray, np.ndarray, np.ndarray]) -> None:
        rows, ends, middle = found
        self.pieces.probe(lines[rows], ends, middle)


class _OfTwo(_Rows):
    """A function of two numbers; it marks points all over the mass of the incoming messages."""

    def __init__(self) -> None:
        super().__init__()
        self.pieces = Patches(self._values)
        # The last question: points, values, errors, lines, and the evaluations of these lines at that time.
        self.last = np.zeros((0, 0, 2)), np.zeros((0, 0)), np.zeros((0, 0)), np.zeros(0, int), np.zeros(0, int)

    def ask(
        self,
        evaluate: object,
        z: np.ndarray,
        wanted: np.ndarray,
        arguments: list[np.ndarray],
        incoming: np.ndarray | None,
        tilted: np.ndarray | None,
        look: np.ndarray | None,
    ) -> Any:
        self.evaluate = evaluate
        lines, told = self._lines(len(z), arguments), np.isfinite(z).all((1, 2))
        marks = np.full((len(z), SHOWN, 2), np.nan)
        if tilted is not None and incoming is not None and look is not None:
            for row in np.flatnonzero(told & ~np.isnan(incoming).any(1)):
                self.pieces.probe(lines[row], *cells_of_two(z[row], tilted[row]))
                found = self.pieces.look(lines[row], look[row]).ravel()
                marks[row] = np.append(found, np.full(2 * SHOWN - len(found), np.nan)).reshape(SHOWN, 2)
        # Rows whose grid points are not finite get NaN.
        value, error = np.full(wanted.shape, np.nan), np.zeros(wanted.shape)
        # If the same question is repeated and nothing was evaluated since, the answer is the same.
        points, *answers, of, calls = self.last
        if points.shape == z.shape:
            same = told & ~wanted.any(1) & (of == lines) & (points == z).all((1, 2))
            same[same] = self.pieces.evaluations[lines[same]] == calls[same]
            value[same], error[same] = (each[same] for each in answers)
            told &= ~same
        if told.any():
            own, places = np.repeat(lines[told], z.shape[1]), z[told].reshape(-1, 2)
            found = self.pieces.ask(own, places, wanted[told].ravel())
            value[told], error[told] = (each.reshape(wanted[told].shape) for each in found)
            self.last = z, value, error, lines, self.pieces.evaluations[lines]
        return value, error, marks


@contextmanager
def remembering() -> Iterator[Kept]:
    """A memory for the duration of a run, with a number that compiled programs can pass on."""
    memory = Memory()
    yield Kept(memory.number)


def memory_of(number: int) -> Memory | None:
    """The memory with this number, as long as a reference to it exists."""
    return _memories.get(number)
