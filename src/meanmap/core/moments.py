"""Times: texts as ISO 8601 writes them, with a zone and without, and arrays that remember that theirs had one."""

import datetime
import re
from typing import Any

import numpy as np

from meanmap.core.errors import KindError

__all__ = ["Zoned", "has_zone", "is_date", "is_time", "is_zoned", "times_in"]

ISO = re.compile(r"\s*\d{4}(-\d\d|\s*$)")
# A zone behind a time of day: 12:30Z, 12:30+02:00, 12+02.
ZONE = re.compile(r"([T ]\d\d[\d:.]*)(Z|[+-]\d\d(?::?\d\d)?)$")

HALF_A_ZONE = re.compile(r"[Zz]|[T ].*[-+]")


class Zoned(np.ndarray):
    """Times in UTC that came with a zone; NumPy's own say nothing of one, and count as times without."""


def is_time(word: str) -> bool:
    """Whether a text is a year, a date or a time as ISO 8601 writes them; NumPy also reads 20260131 as a year."""
    text = ZONE.sub(r"\1", word.strip())
    if HALF_A_ZONE.search(text):
        return False  # NumPy reads some, with a warning
    try:
        np.datetime64(text, "us")
    except ValueError:
        return False
    return ISO.match(word) is not None


def is_date(word: str) -> bool:
    """Whether a text is more than a year: at least a month."""
    return is_time(word) and "-" in word


def has_zone(word: str) -> bool:
    """Whether a text of a time says its zone.

    Examples
    --------
    >>> [has_zone(word) for word in ("2026-01-31T12:30Z", "2026-01-31 12:30-05:00", "2026-01-31")]
    [True, True, False]
    """
    return ZONE.search(word.strip()) is not None


def times_in(words: np.ndarray, where: str) -> np.ndarray:
    """Texts of times as times, those with a zone in UTC; with a zone here and without one there they are refused.

    Examples
    --------
    >>> times_in(np.array(["2026-01-31T12:30+02:00", "2026-01-31T12:30Z"]), "x").tolist()
    [datetime.datetime(2026, 1, 31, 10, 30), datetime.datetime(2026, 1, 31, 12, 30)]
    """
    distinct, places = np.unique(words, return_inverse=True)
    texts = [word.strip() for word in distinct.tolist()]
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


def is_zoned(column: Any, where: str = "the column", *, read_as_times: bool = False) -> bool | None:
    """Whether the times of a column have a zone; None of a column of other things, and of NumPy's times, which have
    none because NumPy knows no zones. Texts are looked at only where they are to be read as times.

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


def _is_time(value: object) -> bool:
    return isinstance(value, datetime.datetime) and type(value).__name__ != "NaTType"


def _mixed(where: str) -> KindError:
    return KindError(
        f"{where} holds times with a zone and times without one, which cannot be compared. Give all of them the "
        "zone that is meant, for example with time.replace(tzinfo=datetime.UTC), or as in 2026-01-31T12:30Z."
    )
