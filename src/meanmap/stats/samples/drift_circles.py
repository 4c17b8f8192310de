"""Times of day, and other columns on a circle, as they are shown: by parts of the cycle, and by their mean."""

from collections.abc import Mapping
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from meanmap.stats.samples.by_column import ColumnDifference

__all__ = ["MeanPlace", "parts_of"]

# A mean is given if the points of the reference have a mean of at least this length: round the clock there is none.
LEAST_LENGTH = 0.2
# Rounding errors of places, in parts: 03:00 is in the part that begins with it.
ROUNDING = 1e-6
# The parts of a day and of a turn; a day of the week by number, from the first of January 1970; months.
PARTS, MINUTES = 8, 1440
DAYS = ("Thursday", "Friday", "Saturday", "Sunday", "Monday", "Tuesday", "Wednesday")
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
# The length of a cycle in the unit of differences.
LENGTHS = {
    "time of day": (24.0, " hours"),
    "time of week": (7.0, " days"),
    "time of year": (365.2425, " days"),
    "angle": (2 * np.pi, ""),
}


def parts_of(points: np.ndarray, kind: str) -> np.ndarray:
    """The part of the cycle of each point on the circle, as a label: three hours, a weekday, a month, or a sector.

    Examples
    --------
    >>> angles = 2 * np.pi * np.array([3.0, 23.5]) / 24
    >>> parts_of(np.stack([np.cos(angles), np.sin(angles)], axis=1), "time of day").tolist()
    ['03:00 to 06:00', '21:00 to 24:00']
    """
    turns = _turns(points)
    if kind == "time of week":
        return np.array(DAYS)[_part(turns, len(DAYS)) % len(DAYS)]
    if kind == "time of year":
        return np.array(MONTHS)[_days_of_year(turns).astype("datetime64[M]").astype(int) % len(MONTHS)]
    ends = np.arange(PARTS + 1) / PARTS
    said = [f"{24 * end:02.0f}:00" if kind == "time of day" else f"{2 * np.pi * end:.3g}" for end in ends]
    labels = [f"{low} to {high}" for low, high in pairwise(said)]
    return np.array(labels)[_part(turns, PARTS) % PARTS]


class MeanPlace(NamedTuple):
    """The mean of a column on a circle: that of the reference is the centre, from which points lie up to half a cycle
    to both sides.
    """

    name: str
    kind: str
    centre: float

    @classmethod
    def of_all(cls, kinds: Mapping[str, str], reference: Mapping[str, np.ndarray]) -> "dict[str, MeanPlace]":
        """The means of these columns of a reference, by key, but of those that are all round the circle."""
        means = {name: reference[name].mean(axis=0) for name in kinds if name in reference}
        found = [
            cls(name, kinds[name], float(_turns(mean[None])[0]))
            for name, mean in means.items()
            if np.hypot(*mean) >= LEAST_LENGTH
        ]
        return {place.key: place for place in found}

    @property
    def key(self) -> str:
        """The name of the column of differences from the centre."""
        return f"mean of {self.name}"

    def around(self, points: np.ndarray) -> np.ndarray:
        """The differences of points from the centre, in hours, days or radians."""
        return ((_turns(points) - self.centre + 0.5) % 1 - 0.5) * LENGTHS[self.kind][0]

    def row(self, each: ColumnDifference) -> dict[str, Any]:
        """The means, and their difference, as a part of a row."""
        length, unit = LENGTHS[self.kind]
        means = [_said((self.centre + mean / length) % 1, self.kind) for mean in (each.first, each.second)]
        by = each.difference
        cells = [*means, f"{by.estimate:.3g} ({by.low:.3g} to {by.high:.3g}){unit}"]
        row = {"column": self.name, "what": f"mean {self.name}", "reference": means[0], "batches": means[1]}
        return {**row, "cells": cells, "of": ""}


def _turns(points: np.ndarray) -> np.ndarray:
    """The place of points on the circle, from 0 to 1."""
    return np.arctan2(points[:, 1], points[:, 0]) / (2 * np.pi) % 1


def _part(turns: np.ndarray, number: float) -> np.ndarray:
    return np.floor(turns * number + ROUNDING).astype(int)


def _days_of_year(turns: np.ndarray) -> np.ndarray:
    return np.datetime64("2001-01-01") + _part(turns, LENGTHS["time of year"][0])


def _said(turn: float, kind: str) -> str:
    """A place on the circle as a text."""
    if kind == "angle":
        return f"{2 * np.pi * turn:.3g}"
    if kind == "time of year":
        day = _days_of_year(np.array([turn]))
        month = day.astype("datetime64[M]")
        return f"{(day - month).astype(int)[0] + 1} {MONTHS[month.astype(int)[0] % len(MONTHS)]}"
    days, day = divmod(turn * len(DAYS), 1) if kind == "time of week" else (0, turn)
    minutes = round(day * MINUTES) % MINUTES
    clock = f"{minutes // 60:02}:{minutes % 60:02}"
    return f"{DAYS[int(days)]} {clock}" if kind == "time of week" else clock
