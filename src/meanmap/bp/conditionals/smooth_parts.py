"""Smooth regressions: a line, and parts whose variances are found by restricted maximum likelihood."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from meanmap.bp.conditionals.breaks import Break, beyond
from meanmap.core.points import spread_rows

__all__ = ["Smooth", "SmoothParts"]

# Parts are functions of so many rows at most, in so many directions, the smallest this share of the largest.
MOST_ROWS, MOST_DIRECTIONS, LEAST_DIRECTION = 300, 100, 1e-4
# What is thought of the variance of a part before rows are seen: an inverse chi-squared law of one degree of freedom
# at a tenth of the variance of the target. Without it the likelihood puts weak parts at zero, and intervals are narrow.
# Of rough parts it is much less, or intervals were wide where nothing is rough; where a number has a break, whose place
# is not quite known, it is more.
THOUGHT, OF_ROUGH, OF_BROKEN, OF_SO_MANY = 0.1, 0.003, 0.03, 1.0
# Steps of the likelihood, and what they may change in the end.
STEPS, AT_REST = 100, 1e-2
# Directions of a line that are this much smaller than the columns are none; beside breaks, this much.
FLAT, ALIKE = 1e-6, 1e-3
# Half the range between quartiles of a normal number.
QUARTILE = 0.6745


@dataclass(frozen=True, eq=False)
class SmoothParts:
    """Numbers that stand for rows of a cause t and of what is adjusted for, z.

    A line in all columns, and functions of the Matérn kernel with 5/2: of numbers in t; of each number in z, added up;
    of all of z together; and of z, times a line and such a function of t. Of labels, zeros and ones, kernels are those
    of equal labels. Kernels are as wide as columns spread, by their quartiles or standard deviation.

    Breaks are columns of the line, and those of z and of t have products with the other, and with each other. Smaller
    ones are left to rough parts: random walks along the ranks of each number, and products of those of t and of z.

    Attributes
    ----------
    rows : array (m, a + q)
        Those that functions are spanned by.
    widths : tuple of int
        How many columns stand for each variable, those of the cause first.
    of_cause : int
        How many of these variables are the cause.
    mean, scale, units : array (a + q,)
        Of all rows.
    turned : array (a + q, l)
        From standardised columns to independent ones.
    maps : tuple of arrays (m, r)
        From kernels at the rows to numbers.
    thoughts : tuple of float
        What is thought of the variance of each part.
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
    thoughts: tuple[float, ...]
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
        """From rows (n, a + q)."""
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
        maps, thoughts = [], []
        for thought, kernel in found._kernels(found.rows):
            thoughts.append(thought)
            values, vectors = np.linalg.eigh(kernel)
            order = np.argsort(-values)[:MOST_DIRECTIONS]
            order = order[values[order] > LEAST_DIRECTION * values.max()]
            among = kernel @ (vectors[:, order] / np.sqrt(values[order]))
            size = np.sqrt(np.mean(np.sum((among - among.mean(axis=0)) ** 2, axis=1)))
            maps.append(vectors[:, order] / np.sqrt(values[order]) / max(size, FLAT))
        return replace(found, maps=tuple(maps), thoughts=tuple(thoughts))

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many columns of a design are the line, and each part."""
        return 1 + self.turned.shape[1], *(each.shape[1] for each in self.maps)

    @property
    def walks(self) -> np.ndarray:
        """Which columns of a design are rough parts, (p,) of bool."""
        return np.repeat([False, *(thought != THOUGHT for thought in self.thoughts)], self.sizes)

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        """The design (m, p) of rows (m, a + q)."""
        line = np.concatenate([(rows - self.mean) / self.scale, beyond(rows, self.breaks)], axis=1) @ self.turned
        parts = [kernel @ each for (_, kernel), each in zip(self._kernels(rows), self.maps, strict=True)]
        return np.concatenate([np.ones((len(rows), 1)), line, *parts], axis=1)

    def _kernels(self, rows: np.ndarray) -> list[tuple[float, np.ndarray]]:
        """What is thought of each part, and its kernel between rows and those that span it."""
        blocks = _blocks(self.widths)
        alone = [self._between(rows, block) for block in blocks]
        numbers = [k for k, width in enumerate(self.widths) if width == 1]
        of_t, of_z = range(self.of_cause), range(self.of_cause, len(blocks))
        rough = {k: self._walk(rows, blocks[k].start) for k in numbers} if self.rough else {}
        parts = [(THOUGHT, alone[k]) for k in of_t if k in numbers]
        broken = {each.column for each in self.breaks}
        walks = [(OF_BROKEN if blocks[k].start in broken else OF_ROUGH, walk) for k, walk in rough.items()]
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
        parts += [(THOUGHT, np.sum(added, axis=0))] if added else []
        if len(of_z) > 1:
            together = self._between(rows, z, len(of_z))
            parts.append((THOUGHT, together + broken_z**2))
            with_cause = with_cause + len(of_z) * together
        parts.append((THOUGHT, (np.sum(own, axis=0) + broken_t) * with_cause / len(of_z)))
        if rough:
            both = (np.sum([rough.get(k, alone[k]) for k in side], axis=0) for side in (of_t, of_z))
            walks.append((OF_ROUGH, np.prod(list(both), axis=0)))
        return parts + walks

    def _walk(self, rows: np.ndarray, column: int) -> np.ndarray:
        """That of a random walk along the ranks of a number, from whatever it is at the ends."""
        a, b = (np.interp(each[:, column], *self.ranks[column]) for each in (rows, self.rows))
        return 1 - np.abs(a[:, None] - b)

    def _between(self, rows: np.ndarray, columns: slice, variables: int = 1) -> np.ndarray:
        """The kernel of some columns: of distances in their units, and of so many variables their root mean square."""
        a, b = (each[:, columns] / self.units[columns] for each in (rows, self.rows))
        squares = np.sum(a**2, axis=1)[:, None] + np.sum(b**2, axis=1) - 2 * a @ b.T
        away = np.sqrt(5 * np.maximum(squares, 0) / variables)
        return (1 + away + away**2 / 3) * np.exp(-away)


def _ranks(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    found, counts = np.unique(values, return_counts=True)
    return found, (np.cumsum(counts) - counts / 2) / len(values)


def _blocks(widths: Sequence[int]) -> list[slice]:
    ends = np.cumsum([0, *widths]).tolist()
    return [slice(first, last) for first, last in pairwise(ends)]


@dataclass(frozen=True, eq=False)
class Smooth:
    """A regression of targets (n, k) on a design: the line is free, each part has normal weights of one variance.

    Attributes
    ----------
    weights : array (p, k)
    inverse : array (p, p)
        Their covariance given the targets, for noise of variance one.
    variances : array (p,)
        Those of weights before targets are seen, for noise of variance one; 0 for the line, which has none.
    """

    weights: np.ndarray
    inverse: np.ndarray
    variances: np.ndarray

    @classmethod
    def fit(cls, design: np.ndarray, parts: SmoothParts, targets: np.ndarray) -> "Smooth":
        """Variances are where the restricted likelihood of all targets has its mode (MacKay 1992 has the step).

        Targets are standardised numbers, of about one variance.
        """
        n, sizes, thoughts = len(design), parts.sizes, OF_SO_MANY * np.array(parts.thoughts)
        line = sizes[0]
        gram, sums, squares = design.T @ design, design.T @ targets, np.sum(targets**2, axis=0)
        blocks = [slice(b.start + line, b.stop + line) for b in _blocks(sizes[1:])]
        ratios, usual = np.full(len(blocks), 0.2), max(float(np.mean(targets.var(axis=0))), np.finfo(float).tiny)
        found = cls._with(gram, sums, sizes, ratios)
        for _ in range(STEPS):
            weights = found.weights
            pinned = [np.trace(found.inverse[b, b]) / ratio for b, ratio in zip(blocks, ratios, strict=True)]
            free = np.maximum(np.array(sizes[1:]) - pinned, 0)
            squared = np.array([np.mean(np.sum(weights[b] ** 2, axis=0)) for b in blocks])
            left = np.mean(squares - 2 * np.sum(weights * sums, axis=0) + np.sum(weights * (gram @ weights), axis=0))
            noise = max(left / max(n - line - free.sum(), 1.0), FLAT * usual)
            before, ratios = ratios, (squared + thoughts * usual) / (free + OF_SO_MANY) / noise
            found = cls._with(gram, sums, sizes, ratios)
            if (np.abs(np.log(ratios / before)) < AT_REST).all():
                break
        return found

    @classmethod
    def _with(cls, gram: np.ndarray, sums: np.ndarray, sizes: Sequence[int], ratios: np.ndarray) -> "Smooth":
        """With variances of parts as they are, for noise of variance one."""
        variances = np.concatenate([np.zeros(sizes[0]), np.repeat(ratios, sizes[1:])])
        penalty = np.divide(1.0, variances, out=np.zeros_like(variances), where=variances > 0)
        inverse = np.linalg.inv(gram + np.diag(penalty))
        return cls(inverse @ sums, inverse, variances)

    def __call__(self, design: np.ndarray) -> np.ndarray:
        """At rows of a design, (m, k)."""
        return design @ self.weights
