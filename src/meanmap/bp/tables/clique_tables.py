"""Tables of cliques: products that neither underflow nor overflow, sums and maxima over some variables. A factor e⁻¹⁰⁰⁰
from a thousand neighbours may be offset by a thousand others. Plain numbers are kept where they hold every product;
elsewhere each value has a power of two of its own, as in `engine.products`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from meanmap.bp.engine.products import LOWEST, split

__all__ = ["CliqueTable"]

# Plain numbers hold products of two whose smallest values are above 2 to this power.
PLAIN = -500.0
# Relative to the largest value of a sum, values below 2 to this power are negligible.
NOTHING = -1100


@dataclass(frozen=True, eq=False)
class CliqueTable:
    """Values v ≥ 0, or v · 2^power, of joint states (B, ...), for B queries or, with B = 1, for all of them.

    Attributes
    ----------
    values : array (B, ...)
    powers : array (B, ...) of int, or None
    least : float
        The logarithm to base 2 of a number below every plain value above zero.
    """

    values: np.ndarray
    powers: np.ndarray | None = None
    least: float = 0.0

    @classmethod
    def of(cls, values: np.ndarray) -> tuple["CliqueTable", np.ndarray]:
        """Scaled, and the logarithm of the scale (B,)."""
        return cls(*split(np.asarray(values, dtype=float))).scaled()

    @classmethod
    def ones(cls, axes: int) -> "CliqueTable":
        """The constant table, with axes of one state."""
        return cls(np.ones((1,) * (1 + axes)))

    def __mul__(self, other: "CliqueTable") -> "CliqueTable":
        least = self.least + other.least
        if self.powers is None and other.powers is None and least > 2 * PLAIN:
            return CliqueTable(self.values * other.values, None, least)
        (first, power), (second, more) = self._split(), other._split()
        return CliqueTable(*split(first * second, np.maximum(power + more, LOWEST)))

    def __truediv__(self, other: "CliqueTable") -> "CliqueTable":
        """Zero where both are."""
        (first, power), (second, less) = self._split(), other._split()
        ratio = np.divide(first, second, out=np.zeros(np.broadcast_shapes(first.shape, second.shape)), where=second > 0)
        return CliqueTable(*split(ratio, np.where(ratio > 0, power - less, 0)))

    def scaled(self) -> tuple["CliqueTable", np.ndarray]:
        """The largest value of each query between 1/2 and 1, and the logarithm of the scale (B,): −∞ for zeros."""
        values, powers = self._split()
        axes = tuple(range(1, values.ndim))
        top = powers.max(axis=axes, keepdims=True)
        relative = np.where(values > 0, powers - top, 0)
        least = float(relative.min(initial=0)) - 1
        whole = values.max(axis=axes) > 0
        log = np.where(whole, top.ravel() * np.log(2), -np.inf)
        if least > PLAIN:
            return CliqueTable(np.ldexp(values, relative), None, least), log
        return CliqueTable(values, np.where(values > 0, relative, LOWEST)), log

    def among(self, scope: Sequence[int], clique: Sequence[int]) -> "CliqueTable":
        """A table on some variables of a clique, with axes of one state for the others."""
        order = sorted(range(len(scope)), key=lambda axis: clique.index(scope[axis]))

        def placed(array: np.ndarray) -> np.ndarray:
            ordered = array.transpose(0, *(1 + axis for axis in order))
            sizes = dict(zip((scope[axis] for axis in order), ordered.shape[1:], strict=True))
            return ordered.reshape(len(array), *(sizes.get(i, 1) for i in clique))

        return self._each(placed)

    def wide(self, shape: Sequence[int]) -> "CliqueTable":
        """The table broadcast to all states of a clique."""
        return self._each(lambda array: np.broadcast_to(array, (len(array), *shape)))

    def onto(self, clique: Sequence[int], kept: Sequence[int], reduce: Any) -> "CliqueTable":
        """A clique's table summed, or maximised, over all variables but some, which keep their order."""
        axes = tuple(1 + axis for axis, i in enumerate(clique) if i not in kept)
        if self.powers is None:
            return CliqueTable(reduce(self.values, axis=axes), None, self.least)
        top = self.powers.max(axis=axes, keepdims=True)
        values = np.ldexp(self.values, np.maximum(self.powers - top, NOTHING))
        return CliqueTable(*split(reduce(values, axis=axes), top.squeeze(axes)))

    def at(self, index: Any) -> np.ndarray:
        """Plain values at some states (B, ...), up to a scale for each query."""
        if self.powers is None:
            return self.values[index]
        values, powers = self.values[index], self.powers[index]
        top = powers.max(axis=tuple(range(1, powers.ndim)), keepdims=True)
        return np.ldexp(values, np.maximum(powers - top, NOTHING))

    def _split(self) -> tuple[np.ndarray, np.ndarray]:
        return split(self.values) if self.powers is None else (self.values, self.powers)

    def _each(self, change: Any) -> "CliqueTable":
        powers = None if self.powers is None else change(self.powers)
        return CliqueTable(change(self.values), powers, self.least)
