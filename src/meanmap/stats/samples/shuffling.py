"""Points with one of their columns permuted, for columns of any kind."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from meanmap.core.domains import Columns, Each
from meanmap.core.points import in_columns
from meanmap.core.types import Points

__all__ = ["Place", "leaf_at", "places_of_columns", "with_shuffled"]


class Place(NamedTuple):
    """The location of a column's values: positions in nested tuples of arrays, and coordinates in the array found
    there; None means all coordinates.
    """

    path: tuple[int, ...]
    coordinates: slice | None


def places_of_columns(
    domain: object, points: Points, names: Sequence[str] = (), widths: Mapping[str, int] | None = None
) -> dict[str, list[Place]]:
    """The places of each column, which several kernels may read; `names` are those of points that are plain rows.

    `widths` are the numbers of coordinates of columns that have several, such as texts.
    """
    widths = widths or {}
    if in_columns(points):
        return {name: [Place((), part)] for name, part in _spans(names, widths).items()}
    found: dict[str, list[Place]] = {}
    for name, place in _places(domain, points, (), widths):
        found.setdefault(str(name), []).append(place)
    return found


def leaf_at(points: Any, place: Place) -> Any:
    """The array of a column's values at one of its places."""
    for step in place.path:
        points = points[step]
    return points if place.coordinates is None else points[:, place.coordinates]


def with_shuffled(points: Points, places: Sequence[Place], order: np.ndarray) -> Any:
    """The points with a column's values in another order, the same at all its places."""
    for path, coordinates in places:
        points = _reordered(points, path, coordinates, order)
    return points


def _spans(names: Sequence[Any], widths: Mapping[str, int]) -> dict[Any, slice]:
    """The coordinates of each column, side by side in order."""
    ends = np.cumsum([widths.get(str(name), 1) for name in names]).tolist()
    return {name: slice(end - widths.get(str(name), 1), end) for name, end in zip(names, ends, strict=True)}


def _places(
    domain: object, points: Points, path: tuple[int, ...], widths: Mapping[str, int]
) -> Iterator[tuple[Any, Place]]:
    if isinstance(domain, Each):
        for i, (part, leaf) in enumerate(zip(domain.parts, points, strict=True)):
            yield from _places(part, leaf, (*path, i), widths)
    elif isinstance(domain, Columns):
        # Labels have a third axis, the two words of their codes.
        spans = _spans(domain.names, widths)
        if isinstance(points, np.ndarray) and points.shape[1:2] == (list(spans.values())[-1].stop,):
            yield from ((name, Place(path, part)) for name, part in spans.items())
        else:  # counts of substrings, rotations and similar arrays have no separate columns
            yield ", ".join(map(str, domain.names)), Place(path, None)


def _reordered(points: Points, path: tuple[int, ...], coordinates: slice | None, order: np.ndarray) -> Any:
    if path:
        first, *rest = path
        inner = _reordered(points[first], tuple(rest), coordinates, order)
        return (*points[:first], inner, *points[first + 1 :])
    if coordinates is None:
        return points[order]
    points = points.copy()
    points[:, coordinates] = points[order, coordinates]
    return points
