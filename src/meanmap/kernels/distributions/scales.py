"""Widths of kernels on distributions from the distributions themselves."""

from itertools import starmap
from typing import Any

import numpy as np

from meanmap.core.door import Door, is_concrete
from meanmap.core.errors import EmptyError, InputError
from meanmap.core.points import count, library_of, rows
from meanmap.core.settings import one_of
from meanmap.core.types import Array, Data, Points
from meanmap.families.base import Distribution
from meanmap.kernels.base import Kernel
from meanmap.kernels.distributions.bags import Bags
from meanmap.kernels.distributions.domain import Messages, label, per_variable, settings, variables
from meanmap.kernels.distributions.laws import moments, resolve_coordinate
from meanmap.kernels.medians import nonzero_median
from meanmap.kernels.stationary import RBF

__all__ = ["MOST_MESSAGES", "in_places", "inner_kernels", "median_of_pairs", "spread_out"]

# The median of half a million pairs is within a percent of the median of all pairs.
MOST_MESSAGES = 1000


def inner_kernels(
    messages: object, coordinate: object, widths: str, door: Door
) -> tuple[tuple[Kernel, ...], tuple[str, ...], tuple[Any, ...]]:
    """An RBF kernel, a coordinate and a name for each variable of some distributions."""
    one_of(widths, "widths", ("total", "within"))
    names, laws, places = in_places(Messages().read(messages, "messages", door), coordinate)
    kernels = tuple(_kernel(law, place, widths, name) for law, place, name in zip(laws, places, names, strict=True))
    return kernels, places, names


def in_places(messages: Points, coordinate: object) -> tuple[tuple[Any, ...], tuple[Any, ...], tuple[str, ...]]:
    """Names and distributions of the variables of messages, and the coordinate of each."""
    names, laws = variables(messages)
    wanted = per_variable(*settings(coordinate, "coordinate"), names, "coordinate", "messages")
    return names, laws, tuple(starmap(resolve_coordinate, zip(wanted, laws, names, strict=True)))


def _kernel(law: Distribution | Bags, place: str, widths: str, name: object) -> Kernel:
    mean, variance = moments(law, place)
    square = variance.mean(axis=0)
    if widths == "total":
        square = square + mean.var(axis=0)
    if is_concrete(square) and not (np.asarray(square) > 0).all():
        raise InputError(
            f"{label('messages', name)} has no spread in some column, so no lengthscale can be chosen. Pass one, "
            "as in RBF(1.0)."
        )
    return RBF(library_of(square).sqrt(square))


def spread_out(points: Data, most: int = MOST_MESSAGES) -> Any:
    """At most this many of the points, evenly spaced along their order."""
    n = count(points)
    return points if n <= most else rows(points, np.linspace(0, n - 1, most).round().astype(int))


def median_of_pairs(distances: Array, what: str) -> Any:
    """The median of an (n, n) matrix of distances over pairs i < j; if it is zero, of the positive ones."""
    n = distances.shape[0]
    if n < 2:
        raise EmptyError(f"messages holds {n} point; expected at least 2 to take {what} from.")
    median = nonzero_median(distances[np.triu_indices(n, 1)])
    if is_concrete(median) and bool(np.isnan(median)):
        raise InputError(f"all messages are equal: there is no distance to take {what} from. Give one.")
    return median
