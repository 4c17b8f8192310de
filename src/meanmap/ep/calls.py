"""Calls of a user's function on the host: at many points, counted, timed, and with its errors as it raised them."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from meanmap.core.errors import InputError, KindError, ShapeError
from meanmap.core.language import in_digits
from meanmap.core.progress import beside

__all__ = ["Host", "Spent", "accounting", "has_failed", "in_words", "user_errors", "without_copies"]


@contextmanager
def user_errors() -> Iterator[None]:
    """Raise the error of a user's function, or an interruption, once the program that called it has ended."""
    raised: list[BaseException] = []
    _waiting.append(raised)
    try:
        yield
    except Exception:
        if not raised:
            raise
    finally:
        _waiting.pop()
    if raised:
        raise raised[0]


# The runtime prints an exception of a callback and turns it into text. So the exception waits here, in the list of each
# scope of `user_errors`, and what is computed from then on is not a number.
_waiting: list[list[BaseException]] = []


def has_failed() -> bool:
    """Whether an error waits to be raised, so that nothing need be computed any more."""
    return bool(_waiting and _waiting[-1])


class Spent(NamedTuple):
    """What a function on the host took in a run, its slowest call of single values with its arguments, and how many
    evaluations gave "nan", "inf" and "-inf", each with the arguments of the first.
    """

    evaluations: int = 0
    seconds: float = 0.0
    slowest: float = 0.0
    there: tuple[Any, ...] = ()
    not_finite: Mapping[str, tuple[int, tuple[Any, ...]]] = {}


# While functions are called, how it goes is shown so often, in seconds.
_EVERY = 1.0

_accounts: list[dict[str, Spent]] = []


@contextmanager
def accounting() -> Iterator[dict[str, Spent]]:
    """What functions on the host take meanwhile, by the name of their factor."""
    account: dict[str, Spent] = {}
    _accounts.append(account)
    try:
        yield account
    finally:
        _accounts[:] = [each for each in _accounts if each is not account]


Points = list[np.ndarray]
Through = Callable[[Callable[[Points], np.ndarray], Points], np.ndarray]


class Host:
    """A Python function of single points, or of many at once, as a function of arrays.

    Values of its first argument have this many `dimensions`. It is not called where one of the arguments at the
    positions `over` is no number: nothing is wanted there. Of an `output`, numbers that are too large for Python are
    infinite, as they are for NumPy.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        name: str,
        random: bool,
        vectorised: bool,
        dimensions: int = 0,
        over: tuple[int, ...] = (),
        output: bool = False,
    ):
        self.function, self.name, self.random, self.vectorised = function, name, random, vectorised
        self.dimensions, self.over, self.output = dimensions, over, output

    def __call__(self, *arrays: object, through: Through | None = None) -> np.ndarray:
        """Values for points as compiled programs hand them on: doubles in pairs of words."""
        values = [np.ascontiguousarray(array) for array in arrays]
        first = 1 if self.random else 0
        values[first:] = [value.view(np.float64)[..., 0] for value in values[first:]]
        batch = values[0].shape[:-1] if self.random else values[0].shape[: values[0].ndim - self.dimensions]
        wanted = without_copies(values)
        flat = [value[:wanted].reshape(-1, *value.shape[len(batch) :]) for value in values]
        told = np.ones(len(flat[0]), bool)
        for at in self.over:
            told &= ~np.isnan(flat[first + at]).reshape(len(told), -1).any(axis=1)
        out = np.full(len(told), np.nan)
        if told.any():
            out[told] = self.found(flat if told.all() else [value[told] for value in flat], through)
        filled = out.reshape(wanted, *batch[1:])[np.minimum(np.arange(batch[0]), wanted - 1)]
        return filled[..., None].view(np.uint32)

    def found(self, flat: list[np.ndarray], through: Through | None = None) -> np.ndarray:
        """Values for many points, `through` something that knows some of them; none after an error, which waits to be
        raised.
        """
        if has_failed():
            return np.full(len(flat[0]), np.nan)
        try:
            return self.counted(flat) if through is None else through(self.counted, flat)
        except BaseException as error:
            if not _waiting:
                raise
            _waiting[-1].append(error)
            return np.full(len(flat[0]), np.nan)

    def counted(self, flat: list[np.ndarray]) -> np.ndarray:
        """Values for many points, counted and timed for the run."""
        if not self.vectorised:
            found = self._each(flat)
        else:
            start = time.perf_counter()
            try:
                found = self._all(flat)
            finally:
                self._charge(Spent(len(flat[0]), time.perf_counter() - start))
        if not np.isfinite(found).all():
            self._charge(Spent(not_finite=_not_finite(found, flat[1:] if self.random else flat)))
        return found

    def _charge(self, more: Spent) -> None:
        for account in _accounts:
            known = account.get(self.name, Spent())
            slowest = max(known, more, key=lambda each: each.slowest)
            sums = known.evaluations + more.evaluations, known.seconds + more.seconds
            not_finite = dict(known.not_finite)
            for value, (count, there) in more.not_finite.items():
                before, first = not_finite.get(value, (0, there))
                not_finite[value] = before + count, first
            account[self.name] = Spent(*sums, slowest.slowest, slowest.there, not_finite)

    def _each(self, flat: list[np.ndarray]) -> np.ndarray:
        out, began, count = np.empty(flat[0].shape[0]), time.perf_counter(), 0
        slowest: tuple[float, tuple[Any, ...]] = 0.0, ()
        try:
            for at in range(len(out)):
                row = [_plain(value[at]) for value in flat]
                given = tuple(row[1:] if self.random else row)
                if self.random:
                    row[0] = np.random.default_rng(row[0])
                start, count = time.perf_counter(), count + 1
                out[at] = self._numbers(self._value(row, given), (), "one value", given)
                now = time.perf_counter()
                if now - start > slowest[0]:
                    slowest = now - start, given
                if now - began > _EVERY:
                    self._charge(Spent(count, now - began, *slowest))
                    self._show(given)
                    began, count = now, 0
        finally:
            self._charge(Spent(count, time.perf_counter() - began, *slowest))
        return out

    def _value(self, row: list[Any], given: tuple[Any, ...]) -> object:
        """What the function returns; an error that it raises is named with its arguments."""
        try:
            return self.function(*row)
        except Exception as error:
            if self.output and isinstance(error, OverflowError):
                return np.inf
            raise InputError(self._raised(error, given)) from error

    def _raised(self, error: Exception, given: tuple[Any, ...]) -> str:
        said = f"{type(error).__name__} ({error})" if str(error) else type(error).__name__
        instead = "nan where its inputs are impossible" if self.output else "-inf where the factor is zero"
        return (
            f"the function of {self.name} raised {said} when called with {in_words(given)}: correct it, or return "
            f"{instead}."
        )

    def _show(self, given: tuple[Any, ...]) -> None:
        """Beside the bar of a run, if there is one: how it goes with a function that takes seconds."""
        if _accounts:
            spent = _accounts[-1][self.name]
            each = spent.seconds / spent.evaluations
            beside(
                f"{self.name} called {spent.evaluations:,} times, {in_digits(each)} s each, last with {in_words(given)}"
            )

    def _all(self, flat: list[np.ndarray]) -> np.ndarray:
        count = flat[0].shape[0]
        if self.random:
            flat = [np.random.default_rng(flat[0].ravel()), *flat[1:]]  # pyright: ignore[reportAssignmentType]
        given = tuple(flat[1:] if self.random else flat)
        return np.array(self._numbers(self._value(flat, given), (count,), f"{count} values", given))

    def _numbers(self, value: object, shape: tuple[int, ...], asked: str, given: tuple[Any, ...]) -> np.ndarray:
        def where() -> str:
            return f"for {asked} of each argument, when called with {in_words(given)}"

        def wrong() -> str:
            return f"the function of {self.name} returned {value!r} {where()}; expected numbers."

        if value is None or isinstance(value, str | bytes) or getattr(value, "dtype", np.dtype(float)).kind in "USMmc":
            raise KindError(wrong())  # NumPy would read these as numbers: None as NaN, complex ones as their first part
        try:
            found = np.asarray(value, np.float64)
        except (TypeError, ValueError) as error:
            raise KindError(wrong()) from error
        if found.shape != shape:
            raise ShapeError(
                f"the function of {self.name} returned shape {found.shape} {where()}; "
                f"expected {'one number' if shape == () else f'shape {shape}'}."
            )
        return found


def without_copies(values: list[np.ndarray]) -> int:
    """The number before the copies of the last one that pad a batch: a simulator is not run for copies."""
    like_last = [(value == value[-1]).reshape(len(value), -1).all(axis=1) for value in values]
    others = np.flatnonzero(~np.logical_and.reduce(like_last))
    return min(int(others[-1]) + 2, len(values[0])) if len(others) else 1


def _not_finite(found: np.ndarray, given: list[np.ndarray]) -> dict[str, tuple[int, tuple[Any, ...]]]:
    """The number of values that are not finite, by kind, and the arguments of the first."""
    each = {"nan": np.isnan(found), "inf": found == np.inf, "-inf": found == -np.inf}
    return {
        name: (int(these.sum()), tuple(_plain(value[these.argmax()]) for value in given))
        for name, these in each.items()
        if these.any()
    }


def in_words(values: tuple[Any, ...]) -> str:
    """The arguments of a call on one line, as somebody reads them."""
    shown = {"precision": 6, "threshold": 8, "max_line_width": np.inf}
    return ", ".join(np.array2string(np.asarray(value), **shown) for value in values)


def _plain(value: np.ndarray) -> Any:
    return value.item() if value.ndim == 0 else value
