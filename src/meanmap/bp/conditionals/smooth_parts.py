"""Smooth regressions: a line, and smooth parts whose variances are found by restricted maximum likelihood."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from meanmap.core.points import spread_rows

__all__ = ["Smooth", "SmoothParts"]

# Parts are functions of so many rows at most, in so many directions, the smallest this share of the largest.
MOST_ROWS, MOST_DIRECTIONS, LEAST_DIRECTION = 300, 100, 1e-4
# What is thought of the variance of a part before rows are seen: an inverse chi-squared law of one degree of freedom
# at a tenth of the variance of the target. Without it the likelihood puts weak parts at zero, and intervals are narrow.
THOUGHT, OF_SO_MANY = 0.1, 1.0
# Steps of the likelihood, and what they may change in the end.
STEPS, AT_REST = 100, 1e-2
# Directions of a line that are this much smaller than the columns are none.
FLAT = 1e-6
# Half the range between quartiles of a normal number.
QUARTILE = 0.6745


@dataclass(frozen=True, eq=False)
class SmoothParts:
    """Numbers that stand for rows of a cause t and of what is adjusted for, z.

    A line in all columns, and functions of the Matérn kernel with 5/2: of numbers in t; of each number in z, added up;
    of all of z together; and of z, times a line and such a function of t. Of labels, zeros and ones, kernels are those
    of equal labels. Kernels are as wide as columns spread, by their quartiles or standard deviation.

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
    """

    rows: np.ndarray
    widths: tuple[int, ...]
    of_cause: int
    mean: np.ndarray
    scale: np.ndarray
    units: np.ndarray
    turned: np.ndarray
    maps: tuple[np.ndarray, ...]

    @classmethod
    def of(cls, rows: np.ndarray, widths: Sequence[int], of_cause: int) -> "SmoothParts":
        """From rows (n, a + q)."""
        mean, scale = rows.mean(axis=0), rows.std(axis=0)
        scale = np.where(scale > FLAT * np.abs(mean), scale, np.inf)
        low, high = np.quantile(rows, [0.25, 0.75], axis=0)
        middle = (high - low) / (2 * QUARTILE)
        units = np.where(middle > 0, np.minimum(middle, scale), scale)
        units = np.where(np.isfinite(units), units, 1.0)
        for block, width in zip(_blocks(widths), widths, strict=True):
            units[block] = units[block] if width == 1 else 1.0
        _, sizes, right = np.linalg.svd((rows - mean) / scale / np.sqrt(len(rows)), full_matrices=False)
        kept = sizes > FLAT
        turned = right[kept].T / sizes[kept]
        found = cls(rows[spread_rows(len(rows), MOST_ROWS)], tuple(widths), of_cause, mean, scale, units, turned, ())
        maps = []
        for kernel in found._kernels(found.rows):
            values, vectors = np.linalg.eigh(kernel)
            order = np.argsort(-values)[:MOST_DIRECTIONS]
            order = order[values[order] > LEAST_DIRECTION * values.max()]
            among = kernel @ (vectors[:, order] / np.sqrt(values[order]))
            size = np.sqrt(np.mean(np.sum((among - among.mean(axis=0)) ** 2, axis=1)))
            maps.append(vectors[:, order] / np.sqrt(values[order]) / max(size, FLAT))
        return cls(found.rows, tuple(widths), of_cause, mean, scale, units, turned, tuple(maps))

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many columns of a design are the line, and each part."""
        return 1 + self.turned.shape[1], *(each.shape[1] for each in self.maps)

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        """The design (m, p) of rows (m, a + q)."""
        line = ((rows - self.mean) / self.scale) @ self.turned
        parts = [kernel @ each for kernel, each in zip(self._kernels(rows), self.maps, strict=True)]
        return np.concatenate([np.ones((len(rows), 1)), line, *parts], axis=1)

    def _kernels(self, rows: np.ndarray) -> list[np.ndarray]:
        """Of each part, between rows and those that span it."""
        blocks = _blocks(self.widths)
        alone = [self._between(rows, block) for block in blocks]
        numbers = [k for k, width in enumerate(self.widths) if width == 1]
        of_t, of_z = range(self.of_cause), range(self.of_cause, len(blocks))
        standard, spanning = (rows - self.mean) / self.scale, (self.rows - self.mean) / self.scale
        parts = [alone[k] for k in of_t if k in numbers]
        if not of_z:
            return parts
        own = [alone[k] + standard[:, b] @ spanning[:, b].T for k, b in enumerate(blocks[: self.of_cause])]
        added = [alone[k] for k in of_z if k in numbers]
        start = blocks[self.of_cause].start
        z = slice(start, None)
        with_cause = np.sum([alone[k] for k in of_z], axis=0) + standard[:, z] @ spanning[:, z].T
        parts += [np.sum(added, axis=0)] if added else []
        if len(of_z) > 1:
            together = self._between(rows, z, len(of_z))
            parts.append(together)
            with_cause = with_cause + len(of_z) * together
        return [*parts, np.sum(own, axis=0) * with_cause / len(of_z)]

    def _between(self, rows: np.ndarray, columns: slice, variables: int = 1) -> np.ndarray:
        """The kernel of some columns: of distances in their units, and of so many variables their root mean square."""
        a, b = (each[:, columns] / self.units[columns] for each in (rows, self.rows))
        squares = np.sum(a**2, axis=1)[:, None] + np.sum(b**2, axis=1) - 2 * a @ b.T
        away = np.sqrt(5 * np.maximum(squares, 0) / variables)
        return (1 + away + away**2 / 3) * np.exp(-away)


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
    def fit(cls, design: np.ndarray, sizes: Sequence[int], targets: np.ndarray) -> "Smooth":
        """Variances are where the restricted likelihood of all targets has its mode (MacKay 1992 has the step).

        Targets are standardised numbers, of about one variance.
        """
        n, line = len(design), sizes[0]
        gram, sums, squares = design.T @ design, design.T @ targets, np.sum(targets**2, axis=0)
        parts = [slice(b.start + line, b.stop + line) for b in _blocks(sizes[1:])]
        ratios, usual = np.full(len(parts), 0.2), max(float(np.mean(targets.var(axis=0))), np.finfo(float).tiny)
        found = cls._with(gram, sums, sizes, ratios)
        for _ in range(STEPS):
            weights = found.weights
            pinned = [np.trace(found.inverse[b, b]) / ratio for b, ratio in zip(parts, ratios, strict=True)]
            free = np.maximum(np.array(sizes[1:]) - pinned, 0)
            squared = np.array([np.mean(np.sum(weights[b] ** 2, axis=0)) for b in parts])
            left = np.mean(squares - 2 * np.sum(weights * sums, axis=0) + np.sum(weights * (gram @ weights), axis=0))
            noise = max(left / max(n - line - free.sum(), 1.0), FLAT * usual)
            before, ratios = ratios, (squared + OF_SO_MANY * THOUGHT * usual) / (free + OF_SO_MANY) / noise
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
