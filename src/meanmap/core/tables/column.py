"""One column of a table: its unit and range, and how later values are read and checked."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import Any

import numpy as np

from meanmap.core.errors import EmptyError, KindError
from meanmap.core.held import holds_text, holds_whole, is_plain
from meanmap.core.language import counted, in_python, with_article
from meanmap.core.moments import is_time, is_zoned, seconds
from meanmap.core.points import slices
from meanmap.core.tables.kinds import (
    FAMILIES,
    OF_TIMES,
    Kind,
    advice,
    as_kind,
    described,
    family_of,
    holds_objects,
    kind_of,
    levels_of,
)
from meanmap.core.tables.missing import MISSING_LABEL, length, present, take
from meanmap.core.tables.sentinels import Sentinels
from meanmap.core.tables.table import Table, read_column
from meanmap.core.tables.written import Written, words_of
from meanmap.core.tables.zones import one_zone
from meanmap.core.types import Array, Data

__all__ = ["Column", "check_alike", "middle_units", "robust_scales", "scale_of_sorted"]

# This many labels are remembered, to tell later ones that were never seen.
MOST_LABELS = 1000
# A number is far outside if it is this many times the range of all numbers seen away from them.
FAR = 10.0
# Labels that are printed. For integers with few values their number is shown: they may be labels.
SHOWN, FEW = 5, 10
# Evenly spaced order statistics stand for a column: the median of their distances is within a percent of that of all
# pairs, whatever the number and the order of the rows. The least and the largest value are among them, so that a
# column of rare values does not look constant.
QUANTILES = 101
COLUMNS_AT_ONCE = 64


@dataclass(frozen=True)
class Column:
    """Facts about one column.

    Attributes
    ----------
    name : str, or what a variable of a graph is called
    kind : str
        "number", "count" (whole numbers from 0), "vector" (a block of numbers), "label", "ordered label" (categories
        with an order, compared as labels), "text" (nearly every row has its own), "boolean", "time", "duration",
        "whole object" (a rotation, a picture: known to its kernel alone); or the kind that was declared.
    missing, distinct : int
        Missing values, and distinct ones among the others.
    centre, scale : float or None
        The median, and the median distance between two rows, of numbers; in seconds, of times.
    low, high : float or None
        The least and the largest number.
    labels : tuple of str
        All labels, where they are at most 1000; of an order all levels, in it.
    sentinels : Sentinels or None
        Numbers that may be codes for missing values.
    written : Written or None
        What labels look like if they are too many to be groups: numbers or dates.
    zoned : bool or None
        Whether times have a zone, if known.
    """

    name: Any
    kind: str
    missing: int
    distinct: int
    centre: float | None = None
    scale: float | None = None
    low: float | None = None
    high: float | None = None
    labels: tuple[str, ...] = ()
    sentinels: Sentinels | None = None
    written: Written | None = None
    zoned: bool | None = None

    @classmethod
    def of(cls, name: object, parts: Sequence[Any], arguments: Sequence[str], told: Kind | None = None) -> "Column":
        """From a column's values in several samples, before conversion; `arguments` name the samples."""
        where = [f"{argument}[{name!r}]" for argument in arguments]
        if any(map(holds_objects, parts)):
            odd = [each for each, part in zip(where, parts, strict=True) if not holds_objects(part)]
            if odd or told:
                raise KindError(f"{(odd or where)[0]} cannot be read as {told or 'a whole object, as the others are'}.")
            return cls(name, "whole object", 0, sum(map(length, parts)))
        read, missing = [], 0
        for part, argument, here in zip(parts, arguments, where, strict=True):
            there = present(part)
            if not there.any():
                raise EmptyError(f"{here} has no observed values.")
            missing += int((~there).sum())
            values = part if there.all() else take(part, np.flatnonzero(there))
            values = _read(name, values, argument)
            read.append(values if told is None else as_kind(values, told, here))
        check_alike(read, name, arguments)
        order = levels_of(parts[0]) if told is None else ()
        found = _measured(name, np.concatenate([np.asarray(part) for part in read]), missing, told, order)
        if all(map(is_plain, parts)):
            return found
        words = None if told else words_of(parts)
        written = Written.of(words) if words else None
        zones = [is_zoned(part, here, read_as_times=told in OF_TIMES) for part, here in zip(parts, where, strict=True)]
        if {True, False} <= set(zones):
            raise one_zone(where[zones.index(True)], where[zones.index(False)])
        found = replace(found, zoned=zones[0]) if found.kind in OF_TIMES else found
        return replace(found, written=written) if written is not None and written.many else found

    def read(self, values: Data, argument: str, told: Kind | None = None, called: object = None) -> Any:
        """Later values of this column, converted to its declared kind; those of another kind are refused. `called` is
        their name in errors, by default that of the column.
        """
        if self.kind == "whole object":
            return values
        called = self.name if called is None else called
        where = f"{argument}[{called!r}]"
        self.check_zone(values, where, told)
        read = _read(called, values, argument)
        read = read if told is None else as_kind(read, told, where)
        if self.kind == "boolean" and family_of(read) == "number" and np.isin(read, (0, 1)).all():
            read = read == 1
        block = read.ndim > 1 and told is None
        if family_of(read) != FAMILIES[self.kind] or block != (self.kind == "vector"):
            if _of_nothing(read):
                raise KindError(
                    f"{where} has no observed values, and missing='category' makes a label of gaps; expected "
                    f"{with_article(self.kind)} column, as in the earlier table. Leave these rows out, or fill them in."
                )
            if self.kind == "time":
                raise KindError(f"{where} holds {described(read)}; {self._expected_times(read)}")
            convert = (advice(read, where) if holds_text(read) else "") or "Convert it first."
            raise KindError(
                f"{where} holds {described(read)}; expected {with_article(self.kind)} column, as in the earlier table. "
                f"{convert.strip()}"
            )
        return read

    def check_zone(self, values: Data, where: str, told: Kind | None = None) -> None:
        """Refuse later times with a zone if those before had none, and the other way round."""
        zoned = None if self.zoned is None else is_zoned(values, where, read_as_times=told in OF_TIMES)
        if zoned is not None and zoned != self.zoned:
            raise one_zone(*((where, "the table before") if zoned else ("the table before", where)))

    def _expected_times(self, values: np.ndarray) -> str:
        """What to type for values that are no times: the first of them as a time, if it reads as one."""
        text = holds_text(values) and is_time(str(values[0]))
        moment = str(values[0]) if text else _moment(self.low).removesuffix("T00:00:00")
        column = "; pandas.to_datetime converts a column" if text else ""
        typed = in_python(f"np.datetime64({moment!r}){column}", moment)
        return f"expected times, as the data have, such as {typed}."

    def strange(self, where: str) -> tuple[str, ...]:
        """Why the column may not be what it seems: no or one sentence. `called` is its name."""
        if self.written is not None:
            return (self.written.note(where, self.name),)
        return () if self.sentinels is None else (self.sentinels.note(where, "put nan there"),)

    def odd(self, values: Array, where: str, far: float = FAR, unseen: str = "never seen before") -> str:
        """Unusual values: labels `unseen`, and numbers outside the range by `far` times the range. Empty if
        there are none.
        """
        if self.kind == "whole object":
            return ""
        values = np.asarray(values)
        if self.labels and self.kind != "text" and holds_text(values):
            new = sorted(set(np.unique(values).tolist()) - set(self.labels))
            return f"{where} has {counted(len(new), 'label')} {unseen}, such as {new[0]!r}." if new else ""
        if values.dtype.kind not in "fiumM" or values.ndim > 1 or self.low is None or self.high is None:
            return ""
        numbers = seconds(values)
        if self.low == self.high and (other := (numbers != self.low) & ~np.isnan(numbers)).any():
            rows = counted(int(other.sum()), "row")
            return f"{where} was always {self.low:g} before, and differs in {rows} now, such as {numbers[other][0]:g}."
        reach = far * (self.high - self.low)
        outside = (numbers < self.low - reach) | (numbers > self.high + reach)
        if not (reach > 0 and outside.any()):
            return ""
        return (
            f"{where} has {counted(int(outside.sum()), 'value')} far outside {self.low:g} to {self.high:g}, such as "
            f"{numbers[outside][0]:g}."
        )

    def __str__(self) -> str:
        """One line about the values."""
        absent = f", {self.missing} missing" if self.missing else ""
        if self.kind == "whole object":
            return ""
        if self.low is not None and np.isfinite(self.low) and self.scale is not None:
            show = _moment if self.kind == "time" else "{:.6g}".format
            unit = " s" if self.kind in ("time", "duration") else ""
            span = f"{show(self.low)} to {show(self.high)}, median {show(self.centre)}"
            few = f", {counted(self.distinct, 'value')}" if self.kind == "count" and self.distinct <= FEW else ""
            far = f"; far from all others: {self.sentinels}, for a missing value?" if self.sentinels else ""
            return f"{span}, scale {self.scale:.6g}{unit}{few}{absent}{far}"
        between = " < " if self.kind in ("ordered label", "rank") else ", "
        some = between.join(self.labels[:SHOWN]) + (f"{between}..." if len(self.labels) > SHOWN else "")
        like = f"; looks like {self.written}" if self.written else ""
        return f"{counted(self.distinct, 'value')}{': ' if some else ''}{some}{absent}{like}"


def check_alike(parts: Sequence[Any], column: Data, names: Sequence[str], option: str = "") -> None:
    """Refuse a column that holds, for example, numbers in one sample and text in another: no values could be equal.
    `option` is what turns both into labels, if that is not a Python call.
    """
    where = [f"{name}[{column!r}]" if column else name for name in names]
    for part, here in zip(parts[1:], where[1:], strict=True):
        if family_of(parts[0]) == family_of(part) and parts[0].shape[1:] == part.shape[1:]:
            continue
        pair = ((parts[0], where[0]), (part, here))
        absent = [there for values, there in pair if _of_nothing(values)]
        if absent:
            held = next(described(values) for values, there in pair if there != absent[0])
            other = next(there for _, there in pair if there != absent[0])
            raise KindError(
                f"{absent[0]} has no observed values, and {other} holds {held}: they cannot be compared. "
                "Leave the column out."
            )
        text = [(p, w) for p, w in pair if holds_text(p)]
        override = option or (f"kinds={{{column!r}: 'label'}}" if column else "text in both")
        raise KindError(
            f"{where[0]} holds {described(parts[0])}, and {here} holds {described(part)}: they cannot be compared. "
            f"{advice(*text[0]) if text else ''}If these are labels in both, say so: {override}."
        )


def _of_nothing(values: np.ndarray) -> bool:
    """Whether all values were missing and became a label."""
    return holds_text(values) and bool((values == MISSING_LABEL).all())


def _read(name: Hashable, values: Data, argument: str) -> Any:
    """Values as a column of a table; a block of one column becomes a column."""
    if is_plain(values) and values.size:
        read = read_column(values, f"{argument}[{name!r}]")
    else:
        (read,) = Table.of({name: values}, argument).columns.values()
    return read[:, 0] if read.ndim == 2 and read.shape[1] == 1 else read


def _measured(name: object, values: np.ndarray, missing: int, told: Kind | None, order: tuple[str, ...]) -> Column:
    """Facts about a column from its values in all samples, without missing ones."""
    if isinstance(told, tuple):
        return Column(name, "rank", missing, len(np.unique(values)), labels=told)
    if values.ndim == 1 and family_of(values) in ("label", "boolean"):
        distinct = np.unique(values)
        kind = "ordered label" if order else kind_of(values, len(distinct))
        labels = order or tuple(map(str, distinct.tolist()))
        labels = labels if len(labels) <= MOST_LABELS else ()
        return Column(name, told or kind, missing, len(distinct), labels=labels)
    kind = kind_of(values)
    if kind == "vector":
        return Column(name, told or kind, missing, len(np.unique(values, axis=0)))
    numbers = np.sort(seconds(values))
    exact = np.sort(values) if holds_whole(values) else numbers
    distinct = 1 + int(np.count_nonzero(exact[1:] != exact[:-1]))
    middle = numbers[(len(numbers) - 1) // 2 : len(numbers) // 2 + 1]
    low, centre, high = float(numbers[0]), float(middle.mean()), float(numbers[-1])
    looked_at = kind in ("number", "count", "time") and told in (None, "number", "time")
    sentinels = Sentinels.in_column(values if kind == "time" else numbers) if looked_at else None
    found = Column(name, told or kind, missing, distinct, centre, scale_of_sorted(numbers), low, high)
    return found if sentinels is None else replace(found, sentinels=sentinels)


def _moment(second: float | None) -> str:
    return "" if second is None else str(np.datetime64(round(second), "s"))


def robust_scales(matrix: Array) -> np.ndarray:
    """The median distance between two values in each column; 0 for columns that do not vary.

    Where ties make the median zero (counts, rare events), it is the median of the distances that are not zero. It
    does not depend on the order of rows. O(n) per column.

    Examples
    --------
    >>> robust_scales([[0.0, 5.0], [1.0, 5.0], [30.0, 5.0]]).tolist()
    [29.0, 0.0]
    """
    matrix = np.asarray(matrix, dtype=np.float64)
    n, width = matrix.shape
    places = _places(n)
    scales = np.zeros(width)
    for part in slices(width if n > 1 else 0, COLUMNS_AT_ONCE):
        # Of a million rows in two thirds of the time of a sort.
        ordered = np.partition(np.ascontiguousarray(matrix[:, part].T), places, axis=1)[:, places]
        scales[part] = _median_distances(ordered)
    return scales


def middle_units(matrix: Array) -> np.ndarray:
    """A robust standard deviation of each column from the middle third of its values, exact for normal ones. The median
    absolute deviation may be much too small: if nearly half of a column is zero, the median is close to the zeros, and
    most distances from it are nearly zero.

    Examples
    --------
    >>> rain = [[0.0], [0.0], [0.0], [0.0], [0.01], [8.0], [9.0], [12.0], [20.0]]
    >>> round(float(middle_units(rain)[0]), 1)
    10.6
    """
    low, high = np.quantile(np.asarray(matrix, dtype=np.float64), (0.35, 0.65), axis=0)
    return (high - low) / 0.7706


def scale_of_sorted(values: np.ndarray) -> float:
    """The scale of one column whose values are already sorted.

    Examples
    --------
    >>> scale_of_sorted(np.array([0.0, 1.0, 30.0]))
    29.0
    """
    return float(_median_distances(values[None, _places(len(values))])[0]) if len(values) > 1 else 0.0


@cache
def _pairs(number: int) -> tuple[np.ndarray, ...]:
    return np.triu_indices(number, 1)


@lru_cache(16)
def _places(n: int) -> np.ndarray:
    """The positions of the order statistics that represent n values."""
    return np.round(np.linspace(0, n - 1, min(n, QUANTILES))).astype(int)


def _median_distances(ordered: np.ndarray) -> np.ndarray:
    """The median distance between two values, among positive distances if it is zero; for each row."""
    first, second = _pairs(ordered.shape[1])
    distances = ordered[:, second] - ordered[:, first]
    medians = np.median(distances, axis=1)
    for row in np.flatnonzero(medians == 0):
        above = distances[row][distances[row] > 0]
        medians[row] = np.median(above) if len(above) else 0.0
    return medians
