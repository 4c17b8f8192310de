"""Columns of smooth regressions: a line, and parts of functions of a cause and of what is adjusted for."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.polynomial.legendre import legvander

from meanmap.bp.conditionals.breaks import Break, beyond
from meanmap.core.points import spread_rows

__all__ = ["SmoothParts"]

# Parts are spanned by at most this many rows, in this many directions, the smallest at least this share of the largest.
MOST_ROWS, MOST_DIRECTIONS, LEAST_DIRECTION = 300, 100, 1e-4
# This many first directions of a part change slowly.
SLOW = 12
# Gentle curves are polynomials of ranks of this degree.
GENTLE = 3
# Linear directions smaller than this share of the columns are dropped; beside breaks, the second number applies.
FLAT, ALIKE = 1e-6, 1e-3
# Squares of adjustment variables are constant from this many standard deviations on.
FARTHEST = 4.0
# Half the interquartile range of a standard Normal.
QUARTILE = 0.6745


@dataclass(frozen=True)
class Part:
    """The functions of a part, and whether they are rough.

    `detail` is 0 for functions of the adjustment variables alone, 1 for their products with a line in the cause, 2 for
    gentle curves of it, 3 for any curves, 4 for the products of these with the adjustment variables, and 5 for rough
    functions of the cause.
    """

    detail: int
    rough: bool = False


@dataclass(frozen=True, eq=False)
class SmoothParts:
    """Regression features of a cause t and of adjustment variables z.

    Features are linear in all columns, polynomials of the ranks of t, and functions of Matérn 5/2 kernels: of numbers
    in t; of each number in z, added up; of all of z together; and of z and squares in it, times a line in t, and times
    a line and such a function of t. Labels, coded as indicators, have the kernel of equal labels. The scale of a kernel
    is that of its column, by quartiles or the standard deviation.

    Breaks are linear columns; those of z and of t also have products with the other variable and with each other.
    Smaller breaks are left to rough parts: random walks along the ranks of each number, and products of those of t and
    of z.

    Attributes
    ----------
    rows : array (m, a + q)
        Rows whose kernel functions span the features.
    widths : tuple of int
        The number of columns of each variable, those of the cause first.
    of_cause : int
        The number of these variables that belong to the cause.
    mean, scale, units : array (a + q,)
        Location and scale of the columns, over all rows.
    turned : array (a + q, l)
        The map from standardised columns to independent ones.
    maps : tuple of arrays (m, r)
        The maps from kernels at the rows to features.
    kinds : tuple of Part
    ranks : tuple of pairs of arrays
        Values of each column and their ranks, from 0 to 1.
    breaks : tuple of Break
    rough : bool
        Whether there are rough parts.
    """

    rows: np.ndarray
    widths: tuple[int, ...]
    of_cause: int
    mean: np.ndarray
    scale: np.ndarray
    units: np.ndarray
    turned: np.ndarray
    maps: tuple[np.ndarray, ...]
    kinds: tuple[Part, ...]
    ranks: tuple[tuple[np.ndarray, np.ndarray], ...]
    breaks: tuple[Break, ...] = ()
    rough: bool = True

    @classmethod
    def of(
        cls,
        rows: np.ndarray,
        widths: Sequence[int],
        of_cause: int,
        breaks: Sequence[Break] = (),
        rough: bool = True,
    ) -> "SmoothParts":
        """Construct features from rows (n, a + q)."""
        mean, scale = rows.mean(axis=0), rows.std(axis=0)
        scale = np.where(scale > FLAT * np.abs(mean), scale, np.inf)
        low, high = np.quantile(rows, [0.25, 0.75], axis=0)
        middle = (high - low) / (2 * QUARTILE)
        units = np.where(middle > 0, np.minimum(middle, scale), scale)
        units = np.where(np.isfinite(units), units, 1.0)
        for block, width in zip(_blocks(widths), widths, strict=True):
            units[block] = units[block] if width == 1 else 1.0
        line = np.concatenate([(rows - mean) / scale, beyond(rows, breaks)], axis=1)
        _, sizes, right = np.linalg.svd((line - line.mean(axis=0)) / np.sqrt(len(rows)), full_matrices=False)
        kept = sizes > (ALIKE if breaks else FLAT)
        turned = right[kept].T / sizes[kept]
        ranks = tuple(map(_ranks, rows.T)) if rough else ()
        some = rows[spread_rows(len(rows), MOST_ROWS)]
        found = cls(some, tuple(widths), of_cause, mean, scale, units, turned, (), (), ranks, tuple(breaks), rough)
        maps, kinds = [], []
        for kind, kernel in found._kernels(found.rows):
            kinds.append(kind)
            values, vectors = np.linalg.eigh(kernel)
            order = np.argsort(-values)[:MOST_DIRECTIONS]
            order = order[values[order] > LEAST_DIRECTION * values.max()]
            among = kernel @ (vectors[:, order] / np.sqrt(values[order]))
            size = np.sqrt(np.mean(np.sum((among - among.mean(axis=0)) ** 2, axis=1)))
            maps.append(vectors[:, order] / np.sqrt(values[order]) / max(size, FLAT))
        return replace(found, maps=tuple(maps), kinds=tuple(kinds))

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of columns of a design in the linear part, and in each other part."""
        return 1 + self.turned.shape[1], *(each.shape[1] for each in self.maps)

    @property
    def walks(self) -> np.ndarray:
        """Whether columns of a design belong to rough parts, (p,)."""
        return np.repeat([False, *(kind.rough for kind in self.kinds)], self.sizes)

    @property
    def of_the_cause(self) -> np.ndarray:
        """Whether columns of a design make the effect of the cause nonlinear or varying, (p,)."""
        return np.repeat([False, *(kind.detail > 0 for kind in self.kinds)], self.sizes)

    @property
    def curved(self) -> np.ndarray:
        """Whether columns of a design make the effect of the cause nonlinear, (p,)."""
        return np.repeat([False, *(kind.detail > 1 for kind in self.kinds)], self.sizes)

    @property
    def slow(self) -> np.ndarray:
        """Whether columns of a design are curves of the cause that change slowly, (p,): the first ones of each part."""
        first = np.concatenate([np.arange(size) < SLOW for size in self.sizes])
        curves = [not kind.rough and kind.detail in (2, 3) for kind in self.kinds]
        return first & np.repeat([False, *curves], self.sizes)

    @property
    def models(self) -> list[np.ndarray]:
        """The parts of each regression, the simplest first.

        They are linear in a cause that is a number, then add curves of it, their products with the adjustment
        variables, and rough parts; up to curves, with one slope and with a slope that varies with the adjustment
        variables. Labels, and numbers with a break, have all parts.
        """
        details = np.array([kind.detail for kind in self.kinds])
        if self.widths[0] > 1 or any(each.column == 0 for each in self.breaks):
            return [np.full(len(details), True)]
        among = [kept for most in (0, 2, 3) for kept in ((details <= most) & (details != 1), details <= max(most, 1))]
        among += [details <= most for most in (4, 5)]
        return [np.array(each) for each in dict.fromkeys(tuple(kept.tolist()) for kept in among)]

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        """The design (m, p) of rows (m, a + q)."""
        line = np.concatenate([(rows - self.mean) / self.scale, beyond(rows, self.breaks)], axis=1) @ self.turned
        parts = [kernel @ each for (_, kernel), each in zip(self._kernels(rows), self.maps, strict=True)]
        return np.concatenate([np.ones((len(rows), 1)), line, *parts], axis=1)

    def _kernels(self, rows: np.ndarray) -> list[tuple[Part, np.ndarray]]:
        """Each part, with its kernel between these rows and those that span it."""
        blocks = _blocks(self.widths)
        alone = [self._between(rows, block) for block in blocks]
        numbers = [k for k, width in enumerate(self.widths) if width == 1]
        of_t, of_z = range(self.of_cause), range(self.of_cause, len(blocks))
        rough = {k: self._walk(rows, blocks[k].start) for k in numbers} if self.rough else {}
        parts = [(Part(2), self._gentle(rows, blocks[k].start)) for k in of_t if k in numbers and self.rough]
        parts += [(Part(3), alone[k]) for k in of_t if k in numbers]
        walks = [(Part(5 if k in of_t else 0, rough=True), walk) for k, walk in rough.items()]
        if not of_z:
            return parts + walks
        standard, spanning = (rows - self.mean) / self.scale, (self.rows - self.mean) / self.scale
        start = blocks[self.of_cause].start
        z = slice(start, None)
        of_both = [[each for each in self.breaks if (each.column >= start) == side] for side in (False, True)]
        broken_t, broken_z = (beyond(rows, some) @ beyond(self.rows, some).T for some in of_both)
        own = [alone[k] + standard[:, b] @ spanning[:, b].T for k, b in enumerate(blocks[: self.of_cause])]
        added = [alone[k] for k in of_z if k in numbers]
        with_cause = np.sum([alone[k] for k in of_z], axis=0) + standard[:, z] @ spanning[:, z].T + broken_z
        of_numbers = [blocks[k].start for k in of_z if k in numbers]
        with_cause = with_cause + _squares(standard, spanning, of_numbers)
        parts += [(Part(0), np.sum(added, axis=0))] if added else []
        if len(of_z) > 1:
            together = self._between(rows, z, len(of_z))
            parts.append((Part(0), together + broken_z**2))
            with_cause = with_cause + len(of_z) * together
        lines = [standard[:, [k]] @ spanning[:, [k]].T for k in (blocks[k].start for k in of_t if k in numbers)]
        parts += [(Part(1), np.sum(lines, axis=0) * with_cause / len(of_z))] if lines else []
        parts.append((Part(4), (np.sum(own, axis=0) + broken_t) * with_cause / len(of_z)))
        if rough:
            both = (np.sum([rough.get(k, alone[k]) for k in side], axis=0) for side in (of_t, of_z))
            walks.append((Part(5, rough=True), np.prod(list(both), axis=0)))
        return parts + walks

    def _gentle(self, rows: np.ndarray, column: int) -> np.ndarray:
        """That of polynomials of the ranks of a number, which are bounded wherever it lies."""
        of_rows, spanning = (
            legvander(2 * np.interp(each[:, column], *self.ranks[column]) - 1, GENTLE)[:, 1:]
            for each in (rows, self.rows)
        )
        return of_rows * (2 * np.arange(1, GENTLE + 1) + 1) @ spanning.T

    def _walk(self, rows: np.ndarray, column: int) -> np.ndarray:
        """That of a random walk along the ranks of a number, from whatever it is at the ends."""
        a, b = (np.interp(each[:, column], *self.ranks[column]) for each in (rows, self.rows))
        return 1 - np.abs(a[:, None] - b)

    def _between(self, rows: np.ndarray, columns: slice, variables: int = 1) -> np.ndarray:
        """The kernel of some columns: of distances in their units, root mean squares over several variables."""
        a, b = (each[:, columns] / self.units[columns] for each in (rows, self.rows))
        squares = np.sum(a**2, axis=1)[:, None] + np.sum(b**2, axis=1) - 2 * a @ b.T
        away = np.sqrt(5 * np.maximum(squares, 0) / variables)
        return (1 + away + away**2 / 3) * np.exp(-away)


def _squares(rows: np.ndarray, spanning: np.ndarray, columns: list[int]) -> np.ndarray:
    """That of the squares of some standardised columns, without what is linear in them. A Matérn kernel alone follows a
    parabola only among rows: with one arm rare at its ends, effects were shrunk by half a standard error.
    """
    rows, spanning = (np.clip(each[:, columns], -FARTHEST, FARTHEST) for each in (rows, spanning))
    skewness = np.mean(spanning**3, axis=0)
    of_rows, of_spanning = (each**2 - 1 - skewness * each for each in (rows, spanning))
    return of_rows @ of_spanning.T / 2


def _ranks(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    found, counts = np.unique(values, return_counts=True)
    return found, (np.cumsum(counts) - counts / 2) / len(values)


def _blocks(widths: Sequence[int]) -> list[slice]:
    ends = np.cumsum([0, *widths]).tolist()
    return [slice(first, last) for first, last in pairwise(ends)]
