"""Converts users' data to points that fit a kernel and each other."""

from collections.abc import Sequence
from typing import Any, Protocol

import jax
import numpy as np

from meanmap.core.containers import handed_over
from meanmap.core.domains import Columns, Domain, Each, Real, holds_vectors
from meanmap.core.door import Door
from meanmap.core.errors import ColumnError, KindError, ShapeError
from meanmap.core.labels import Labels
from meanmap.core.points import count, has_rows, row_shape
from meanmap.core.tables.chunks import source_of
from meanmap.core.tables.table import named_columns
from meanmap.core.types import Array, Data, Points

__all__ = ["by_position", "check_alike", "is_flat", "read_alike", "read_pair", "read_points"]


class Reads(Protocol):
    """The part of a kernel used here: how it reads users' data, and which points it accepts."""

    @property
    def domain(self) -> Domain:
        """How users' data become points."""
        ...

    def check(self, points: Points, argument: str) -> None:
        """Refuse points that do not fit its hyperparameters."""
        ...


def is_flat(data: Any, kernel: Reads) -> bool:
    """Whether points were passed as plain numbers, so that their mean is a number and not a vector of length one."""
    return holds_vectors(kernel.domain) and np.ndim(data) == 1 and not source_of(data).named


def read_points(kernel: Reads, data: Data, argument: str, door: Door) -> Any:
    """The points in `data` as the kernel reads them, checked to fit its hyperparameters."""
    domain = getattr(kernel, "domain", None)
    if domain is None:
        raise KindError(f"kernel is {kernel!r}; expected a kernel such as mm.kernels.RBF(1.0).")
    points = domain.read(handed_over(data), argument, door)
    kernel.check(points, argument)
    return points


def read_pair(kernel: Reads, x: Data, y: Data, door: Door) -> tuple[Any, Any, Any]:
    """The kernel in the scope's dtype and the points of x and y (`None` stays None), checked to fit each other."""
    if y is None:
        return door.cast(kernel), read_points(kernel, x, "x", door), None
    return door.cast(kernel), *read_alike(kernel, (x, y), ("x", "y"), door)


def read_alike(kernel: Reads, samples: Sequence[Any], names: Sequence[str], door: Door) -> list[Any]:
    """The points of several samples, checked to fit the kernel and the first of them; `names` are for errors."""
    samples = list(map(handed_over, samples))
    points = [read_points(kernel, data, name, door) for data, name in zip(samples, names, strict=True)]
    for i in range(1, len(points)):
        check_alike(points[0], points[i], names[0], names[i])
        _check_names(kernel.domain, (samples[0], samples[i]), (names[0], names[i]))
    return points


def check_alike(first: Array, second: Array, name: str, other: str) -> None:
    """Refuse two sets of points, already read, that differ in anything but their number."""
    for a, b in zip(*(jax.tree.leaves(p, is_leaf=has_rows) for p in (first, second)), strict=True):
        if row_shape(a) != row_shape(b):
            shapes = [(count(p), *row_shape(p)) for p in (a, b)]
            raise ShapeError(
                f"{name} and {other} differ in their columns: shapes {shapes[0]} and {shapes[1]}. "
                "Both need the same number of columns, one row per point."
            )


def _check_names(domain: Domain, tables: Sequence[Any], arguments: Sequence[str]) -> None:
    """Refuse tables whose columns differ by name where a kernel would match them by position."""
    first, second = (list(named_columns(data, argument)) for data, argument in zip(tables, arguments, strict=True))
    if first and second and first != second and by_position(domain):
        raise ColumnError(
            f"{arguments[0]} and {arguments[1]} differ in their columns: {arguments[0]} has "
            f"{', '.join(map(repr, first))} and {arguments[1]} has {', '.join(map(repr, second))}. "
            "Give both the same columns in the same order."
        )


def by_position(domain: Domain) -> bool:
    """Whether columns of a table are matched by position, not by name."""
    if isinstance(domain, Each):
        return any(map(by_position, domain.parts))
    return isinstance(domain, Real | Labels) or (isinstance(domain, Columns) and isinstance(domain.names[0], int))
