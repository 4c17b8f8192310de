"""The training data of kernels: rows of numbers, and landmarks among them."""

import jax
import numpy as np

from meanmap.core.arrays import check_rows
from meanmap.core.containers import refuse_sparse
from meanmap.core.door import Door
from meanmap.core.errors import ColumnError, ParameterError, ShapeError
from meanmap.core.meant import no_column
from meanmap.core.settings import is_number
from meanmap.core.tables.chunks import chunks_of, source_of
from meanmap.core.tables.table import named_columns
from meanmap.core.types import Data, Points
from meanmap.kernels.base import Kernel
from meanmap.kernels.reading import read_points
from meanmap.kernels.stationary import RBF
from meanmap.kernels.terms import names_of

__all__ = ["draw_landmarks", "places_of", "read_sample", "rows_used", "units_of"]

# In one and two dimensions the lengthscale follows the spacing of landmarks: few give a coarse scale, many a fine one.
LEAST_LANDMARKS = 20
MOST_LANDMARKS = 200


def _share(landmarks: float, n: int, d: int) -> int:
    """The number of landmarks for a share of n points in d columns."""
    return min(n, max(LEAST_LANDMARKS, 2 * d, min(MOST_LANDMARKS, round(landmarks * n / 10) * 10)))


def read_sample(
    x: Data, most: int, generator: np.random.Generator, door: Door
) -> tuple[np.ndarray, int, tuple[str, ...]]:
    """Rows of numbers, at most this many, how many there were, and the names of the columns."""
    refuse_sparse(x, "x", "and a learned kernel needs a density, which kernel='median' does not")
    if isinstance(x, jax.Array):
        x = np.asarray(x)
    source = source_of(x)
    if source.once:
        first = next(chunks_of(x, most, "x"), np.empty((0, 1)))
        x, n = first, len(first)
    else:
        n = source.count() or 0
        if n > most:
            x = source.take(np.sort(generator.choice(n, most, replace=False)))
    points = np.asarray(read_points(RBF(), x, "x", door))
    check_rows(len(points), "x", least=10)
    names = list(named_columns(x, "x")) or [f"x{j}" for j in range(points.shape[1])]
    return points, n, tuple(names if len(names) == points.shape[1] else map(str, range(points.shape[1])))


def places_of(kernel: Kernel, names: tuple[str, ...]) -> list[int]:
    """The numbers of the columns that a kernel is about: all, or those that `OnColumns` names."""
    wanted = names_of(kernel)
    places = [names.index(name) if name in names else name for name in wanted] or list(range(len(names)))
    for place in places:
        if isinstance(place, str):
            raise no_column("x", place, names)
        if not 0 <= place < len(names):
            raise ColumnError(f"x has no column {place}; it has {len(names)}, from 0.")
    return places  # pyright: ignore[reportReturnType]


def rows_used(x: Points, used: int, n: int) -> list[str]:
    """The note of a report where not all rows were used."""
    if source_of(x).once:
        return [f"the kernel was learned from the first {used} rows of the iterator."]
    return [f"the kernel was learned from {used} of {n} rows, drawn at random."] if used < n else []


def draw_landmarks(
    wanted: object, points: np.ndarray, n: int, draws: int, generator: np.random.Generator, door: Door
) -> np.ndarray:
    """Landmarks of each draw, (draws, m, d)."""
    d = points.shape[1]
    if is_number(wanted):
        share = isinstance(wanted, float | np.floating)
        if share and not 0 < wanted < 1:
            raise ParameterError(f"landmarks is {wanted!r}; expected a share between 0 and 1, a number, or points.")
        m = _share(float(wanted), n, d) if share else int(wanted)
        if m > len(points):
            raise ParameterError(f"landmarks is {m}; expected at most {len(points)}, the number of points in x.")
        chosen = [generator.choice(len(points), m, replace=False) for _ in range(draws)]
        z = np.stack([points[index] for index in chosen])
    else:
        z = np.asarray(read_points(RBF(), wanted, "landmarks", door))[None]
    if z.shape[2] != d:
        raise ShapeError(f"landmarks have {z.shape[2]} columns and x has {d}; expected as many.")
    if z.shape[1] < d:
        raise ShapeError(f"there are {z.shape[1]} landmarks for {d} columns; expected at least {d}, better {2 * d}.")
    return z


def units_of(points: np.ndarray, by_column: bool) -> np.ndarray:
    """The size of each column, or of all together: a base measure has a unit, which then is the sample's own."""
    spread = points.std(axis=0)
    return spread if by_column else np.full(len(spread), np.sqrt(np.mean(spread**2)))
