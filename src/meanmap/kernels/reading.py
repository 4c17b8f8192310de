"""From what users pass to points that fit a kernel and each other."""

from typing import Any

import jax

from meanmap.core.domains import Columns, Domain, Each, Real
from meanmap.core.door import Door
from meanmap.core.errors import ColumnError, KindError, ShapeError
from meanmap.core.labels import Labels
from meanmap.core.points import count, is_sparse
from meanmap.core.table import Table

__all__ = ["check_alike", "read_pair", "read_points"]


def read_points(kernel: Any, data: Any, argument: str, door: Door) -> Any:
    """The points in `data` as the kernel reads them, checked to fit its hyperparameters."""
    if not hasattr(kernel, "domain"):
        raise KindError(f"kernel is {kernel!r}; expected a kernel such as mm.kernels.RBF(1.0).")
    points = kernel.domain.read(data, argument, door)
    kernel.check(points, argument)
    return points


def read_pair(kernel: Any, x: Any, y: Any, door: Door) -> tuple[Any, Any, Any]:
    """The kernel in the door's dtype and the points of x and y (`None` stays), checked to fit it and each other."""
    first = read_points(kernel, x, "x", door)
    second = None if y is None else read_points(kernel, y, "y", door)
    if second is not None:
        check_alike(first, second, "x", "y")
        if Table.looks_like_one(x) and Table.looks_like_one(y):
            _check_names(kernel.domain, x, y)
    return door.cast(kernel), first, second


def check_alike(first: Any, second: Any, name: str, other: str) -> None:
    """Refuse two sets of points, already read, that differ in anything but their number."""
    for a, b in zip(*(jax.tree.leaves(p, is_leaf=_has_rows) for p in (first, second)), strict=True):
        if _row_shape(a) != _row_shape(b):
            shapes = [(count(p), *_row_shape(p)) for p in (a, b)]
            raise ShapeError(
                f"{name} and {other} differ in their columns: shapes {shapes[0]} and {shapes[1]}. "
                "Both need the same number of columns, one row per point."
            )


def _has_rows(points: Any) -> bool:
    """Sparse matrices, and points that say themselves what their rows must share (bags of samples)."""
    return is_sparse(points) or hasattr(points, "row_shape")


def _row_shape(points: Any) -> tuple[int, ...]:
    return points.row_shape if hasattr(points, "row_shape") else tuple(points.shape[1:])


def _check_names(domain: Domain, x: Any, y: Any) -> None:
    """Refuse tables whose columns differ by name where a kernel would match them by position."""
    names = [Table.names_in(data, argument) for data, argument in ((x, "x"), (y, "y"))]
    if names[0] != names[1] and _by_position(domain):
        raise ColumnError(
            f"x and y differ in their columns: x has {', '.join(map(repr, names[0]))} and y has "
            f"{', '.join(map(repr, names[1]))}. Give both the same columns in the same order."
        )


def _by_position(domain: Domain) -> bool:
    if isinstance(domain, Each):
        return any(map(_by_position, domain.parts))
    return isinstance(domain, Real | Labels) or (isinstance(domain, Columns) and isinstance(domain.names[0], int))
