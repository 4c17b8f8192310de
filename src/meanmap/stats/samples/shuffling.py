"""Points with one of their columns shuffled, whatever kinds of columns they have."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from meanmap.core.domains import Columns, Each
from meanmap.core.points import in_columns
from meanmap.core.types import Points

__all__ = ["Place", "places_of_columns", "with_shuffled"]


class Place(NamedTuple):
    """Where a column's values are: positions into nested tuples of arrays, and the place in that array."""

    path: tuple[int, ...]
    column: int


def places_of_columns(domain: Any, points: Points, names: Sequence[str] = ()) -> dict[str, list[Place]]:
    """The places of each column, which several kernels may read; `names` are those of points that are plain rows."""
    if in_columns(points):
        return {name: [Place((), j)] for j, name in enumerate(names)}
    found: dict[str, list[Place]] = {}
    for name, place in _places(domain, points, ()):
        found.setdefault(str(name), []).append(place)
    return found


def with_shuffled(points: Points, places: Sequence[Place], order: np.ndarray) -> Any:
    """The points with a column's values in another order, the same one at all its places."""
    for path, column in places:
        points = _reordered(points, path, column, order)
    return points


def _places(domain: Any, points: Points, path: tuple[int, ...]):
    if isinstance(domain, Each):
        for i, (part, leaf) in enumerate(zip(domain.parts, points, strict=True)):
            yield from _places(part, leaf, (*path, i))
    elif isinstance(domain, Columns) and isinstance(points, np.ndarray) and points.shape[1:2] == (len(domain.names),):
        # Labels have a third axis, the two words of their codes.
        for j, name in enumerate(domain.names):
            yield name, Place(path, j)


def _reordered(points: Points, path: tuple[int, ...], column: int, order: np.ndarray) -> Any:
    if path:
        first, *rest = path
        inner = _reordered(points[first], tuple(rest), column, order)
        return (*points[:first], inner, *points[first + 1 :])
    points = points.copy()
    points[:, column] = points[order, column]
    return points
