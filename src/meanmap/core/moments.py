"""Times: ISO 8601 text with and without a zone, arrays that remember whether they had one, and seconds."""

import datetime
import re

import numpy as np

from meanmap.core.errors import KindError, NonFiniteError
from meanmap.core.held import holds_times
from meanmap.core.language import in_python

__all__ = [
    "UNITS",
    "Zoned",
    "clocks_in",
    "has_zone",
    "in_one_unit",
    "is_clock",
    "is_column_of_times",
    "is_date",
    "is_time",
    "is_zoned",
    "seconds",
    "times_in",
    "times_of",
]

# Times reach from before the first to after the last year of any calendar; float64 seconds are no finer.
UNITS = {"M": "datetime64[us]", "m": "timedelta64[ns]"}

ISO = re.compile(r"\s*\d{4}(-\d\d|\s*$)")
# A zone behind a time of day: 12:30Z, 12:30+02:00, 12+02.
ZONE = re.compile(r"([T ]\d\d[\d:.]*)(Z|[+-]\d\d(?::?\d\d)?)$")

# With points the day comes first, wherever such dates are written: 31.1.2026 or 31.01.2026 7:30.
DOTTED = re.compile(r"(\d{1,2})\.(\d{1,2})\.(\d{4})(?:[T ]+(\d{1,2}(?=:))?(.*))?$")

# A date with a time on a clock of twelve hours: 2026-01-31 7:30 PM.
TWELVE = re.compile(r"(.*\d)[T ]+(0?[1-9]|1[0-2]):([\d:.]+)\s*([AaPp])\.?[Mm]\.?$")

# A time without a date, on either clock: 19:30, 7:30:15 pm.
CLOCK = re.compile(r"\s*(\d{1,2}):(\d\d)(?::(\d\d(?:\.\d+)?))?\s*(?:([ap])\.?m\.?)?\s*", re.IGNORECASE)

HALF_A_ZONE = re.compile(r"[Zz]|[T ].*[-+]")


class Zoned(np.ndarray):
    """Times in UTC that had a zone; NumPy's own times have none."""


def is_time(word: str) -> bool:
    """Whether a text is a year, a date or a time in ISO 8601, or a date with points; NumPy would also read 20260131 as
    a year.

    Examples
    --------
    >>> [is_time(word) for word in ("2026", "2026-01-31 12:30", "31.1.2026", "31.01.2026 7:30", "31.13.2026")]
    [True, True, True, True, False]
    >>> [is_time(word) for word in ("2026-01-31 7:30 PM", "31.1.2026 12:05 am", "7:30 PM", "2026-01-31 19:30 PM")]
    [True, True, False, False]
    """
    word = _in_iso(word)
    text = ZONE.sub(r"\1", word)
    if HALF_A_ZONE.search(text) or text.endswith(("M", "m")):
        return False  # NumPy reads some, with a warning
    try:
        np.datetime64(text, "us")
    except ValueError:
        return False
    return ISO.match(word) is not None


def is_date(word: str) -> bool:
    """Whether a text is more than a year: at least a month."""
    return is_time(word) and "-" in _in_iso(word)


def _in_iso(word: str) -> str:
    """A date with points or a clock of twelve hours as in ISO 8601; another text as it is, without spaces around it."""
    word = word.strip()
    if (twelve := TWELVE.fullmatch(word)) is not None:
        date, hour, rest, half = twelve.groups()
        word = f"{date} {int(hour) % 12 + 12 * (half in 'Pp'):02}:{rest}"
    if (found := DOTTED.fullmatch(word)) is None:
        return word
    day, month, year, hour, rest = found.groups()
    date = f"{year}-{int(month):02}-{int(day):02}"
    return date if rest is None else f"{date}T{f'{int(hour):02}' if hour else ''}{rest}"


def is_clock(word: str) -> bool:
    """Whether a text is a time of day without a date.

    Examples
    --------
    >>> [is_clock(word) for word in ("7:30", "19:30:15", "7:30 PM", "19:30 pm", "24:10", "2026-01-31 7:30")]
    [True, True, True, False, False, False]
    """
    return _on_clock(word) is not None


def clocks_in(words: np.ndarray) -> np.ndarray:
    """Times of day as seconds since midnight.

    Examples
    --------
    >>> clocks_in(np.array(["7:30 PM", "12:05 am", "0:05:01.5"])).tolist()
    [70200.0, 300.0, 301.5]
    """
    distinct, places = np.unique(words, return_inverse=True)
    return np.array([_on_clock(word) for word in distinct.tolist()], float)[places.ravel()]


def _on_clock(word: str) -> float | None:
    """Seconds since midnight; None for text that is no time of day."""
    if (found := CLOCK.fullmatch(word)) is None:
        return None
    hour, minute, second, half = int(found[1]), int(found[2]), float(found[3] or 0), found[4]
    if minute > 59 or second >= 60 or (hour > 23 if half is None else not 1 <= hour <= 12):
        return None
    return 3600.0 * (hour if half is None else hour % 12 + 12 * (half in "pP")) + 60 * minute + second


def has_zone(word: str) -> bool:
    """Whether the text of a time has a zone.

    Examples
    --------
    >>> [has_zone(word) for word in ("2026-01-31T12:30Z", "2026-01-31 12:30-05:00", "2026-01-31")]
    [True, True, False]
    """
    return ZONE.search(_in_iso(word)) is not None


def times_in(words: np.ndarray, where: str) -> np.ndarray:
    """Texts as times, those with a zone in UTC; a mixture of times with and without a zone is refused.

    Examples
    --------
    >>> times_in(np.array(["2026-01-31T12:30+02:00", "2026-01-31T12:30Z"]), "x").tolist()
    [datetime.datetime(2026, 1, 31, 10, 30), datetime.datetime(2026, 1, 31, 12, 30)]
    """
    distinct, places = np.unique(words, return_inverse=True)
    texts = [_in_iso(word) for word in distinct.tolist()]
    zones = [found.group(2) if (found := ZONE.search(word)) else None for word in texts]
    if None in zones and len(set(zones)) > 1:
        raise _mixed(where)
    times = np.array([ZONE.sub(r"\1", word) for word in texts], "datetime64[us]")
    if None in zones or not zones:
        return times[places.ravel()]
    shifts = [_minutes(zone) for zone in zones if zone is not None]
    return (times - np.array(shifts, "timedelta64[m]"))[places.ravel()].view(Zoned)


def _minutes(zone: str) -> int:
    """How far ahead of UTC a zone is."""
    if zone == "Z":
        return 0
    size = 60 * int(zone[1:3]) + int(zone[3:].strip(":") or 0)
    return -size if zone[0] == "-" else size


def is_zoned(column: object, where: str = "the column", *, read_as_times: bool = False) -> bool | None:
    """Whether the times of a column have a zone; None for other columns, and for NumPy's times, which have none because
    NumPy knows no zones. Texts are checked only if they are to be read as times.

    Examples
    --------
    >>> is_zoned([datetime.datetime(2026, 1, 31, tzinfo=datetime.UTC)]), is_zoned([1.5])
    (True, None)
    >>> is_zoned(["2026-01-31T12:30Z"]), is_zoned(["2026-01-31T12:30Z"], read_as_times=True)
    (None, True)
    """
    if isinstance(column, Zoned):
        return True
    dtype = getattr(column, "dtype", None)
    held = getattr(dtype, "pyarrow_dtype", dtype)  # of pandas, where Arrow holds the values
    if any(getattr(held, zone, None) is not None for zone in ("tz", "time_zone")):
        return True
    if isinstance(column, np.ndarray) and column.dtype.kind == "M":
        return None
    if getattr(dtype, "kind", "") == "M" or type(dtype).__name__.lower() == "datetime":
        return False
    written = read_as_times and getattr(dtype, "kind", "O") in "OUT"
    if not (isinstance(column, list | tuple) or dtype == np.dtype(object) or written):
        return None
    values = column if isinstance(column, list | tuple) else np.asarray(column).ravel().tolist()
    found = {value.tzinfo is not None for value in values if _is_time(value)}
    if read_as_times:
        found |= {has_zone(word) for word in {value for value in values if isinstance(value, str)} if word.strip()}
    if len(found) > 1:
        raise _mixed(where)
    return next(iter(found), None)


def is_column_of_times(data: object) -> bool:
    """Whether data are one column of times that says whether these have a zone, as a pandas Series or a list does.

    Examples
    --------
    >>> is_column_of_times([datetime.datetime(2026, 1, 31)]), is_column_of_times(np.array(["2026-01-31"], "M8[D]"))
    (True, False)
    """
    return getattr(data, "ndim", 1) == 1 and is_zoned(data) is not None


def _is_time(value: object) -> bool:
    return isinstance(value, datetime.datetime) and type(value).__name__ != "NaTType"


def _mixed(where: str) -> KindError:
    return KindError(
        f"{where} holds times with a zone and times without one, which cannot be compared. Give all of them the "
        f"intended zone{in_python(', for example with time.replace(tzinfo=datetime.UTC), or')}, as in "
        "2026-01-31T12:30Z."
    )


def seconds(times: np.ndarray, where: str = "a column") -> np.ndarray:
    """Durations as seconds, dates and times as seconds since 1970, NaN if missing; numbers unchanged. Times that would
    become equal when rounded to microseconds are refused.
    """
    if not holds_times(times):
        return times.astype(np.float64, copy=False)
    missing = np.isnat(times)
    if times.dtype.kind == "M":
        if _too_fine(times):
            raise KindError(
                f"{where} holds times with nanoseconds, but times are read in microseconds. Subtract a constant time "
                f"from all of them, in all samples: durations keep nanoseconds. If the finer digits carry no "
                f"information, remove them: .astype('datetime64[us]')."
            )
        times = times - np.datetime64(0, "s")
    return np.where(missing, np.nan, times / np.timedelta64(1, "s"))


def _too_fine(times: np.ndarray) -> bool:
    """Whether times are finer than microseconds, and rounding makes some of them equal or all lie within a thousand."""
    if np.datetime_data(times.dtype)[0] not in ("ns", "ps", "fs", "as"):
        return False
    fine = np.unique(np.asarray(times)[~np.isnat(times)])
    coarse = fine.astype(UNITS["M"])
    if len(fine) < 2 or (coarse == fine).all():
        return False
    return bool((coarse[1:] == coarse[:-1]).any() or fine[-1] - fine[0] < np.timedelta64(1, "ms"))


def times_of(values: np.ndarray, kind: str) -> np.ndarray:
    """Seconds as times, or as durations."""
    scale, unit = (1e6, UNITS["M"]) if kind == "time" else (1e9, UNITS["m"])
    return np.asarray(np.round(np.asarray(values) * scale), dtype=np.int64).astype(unit)


def in_one_unit(times: np.ndarray, argument: str) -> np.ndarray:
    """Times in microseconds, or durations in nanoseconds; finer ones unchanged. Times out of range are refused, because
    NumPy before 2.5 would wrap around.
    """
    kind = times.dtype.kind
    if _too_fine(times):
        return times
    counts = np.where(np.isnat(times), 0, times.astype(np.int64)).astype(float)
    beyond = np.abs(counts) * _steps(times.dtype, UNITS[kind]) >= 2.0**63
    if beyond.any():
        which, row = "times" if kind == "M" else "durations", int(np.flatnonzero(beyond)[0])
        raise NonFiniteError(
            f"{argument} holds {int(beyond.sum())} {which} that are out of range, the first ({times[row]}) at row "
            f"{row}. Drop those rows, or put NaT there."
        )
    return times.astype(UNITS[kind])


def _steps(given: np.dtype, wanted: str) -> float:
    """The number of steps of one unit of time in a step of another; years and months are mean ones."""
    unit, count = np.datetime_data(given)
    if unit == "generic":
        return 0.0
    step = np.timedelta64(count, unit)
    step = step.astype("m8[s]") if unit in "YM" else step
    return step / np.timedelta64(1, np.datetime_data(wanted)[0])
