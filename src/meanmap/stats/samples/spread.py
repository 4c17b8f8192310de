"""Standard deviations of the numeric columns of a sample, their standard errors, and rows shifted by them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from meanmap.core.language import in_few_words, with_and
from meanmap.core.tables.sentinels import Sentinels
from meanmap.core.types import Points
from meanmap.stats.samples.tails import inflated_spread

__all__ = ["Spread"]

# With more than this many columns, adjacent ones share one derivative.
MOST_BLOCKS = 12


@dataclass(frozen=True)
class Spread:
    """Means and standard deviations of all columns of numbers, one after another.

    Values that may be codes for missing ones are excluded from standard deviations and are not moved. With -999 in a
    twentieth of the rows the standard deviation of an age would be twenty times as large.

    Attributes
    ----------
    means, deviations : array (columns,)
        Means and standard deviations of weighted rows, the latter with divisor n − 1 or its equivalent for weights.
    codes : mapping of column to array
        Values that are codes, not numbers.
    block : int array (columns,)
        The block of each column, with a common derivative.
    beyond : array (columns,)
        The excess of `inflated_spread` over the standard error of the log standard deviation; infinite if the rows do
        not determine whether there is a standard deviation.
    """

    means: np.ndarray
    deviations: np.ndarray
    codes: dict[int, np.ndarray]
    block: np.ndarray
    beyond: np.ndarray

    @classmethod
    def of(cls, points: Points, mass: np.ndarray | None = None) -> "Spread | None":
        """The spread of these rows with weights `mass`; None if no numeric column varies."""
        leaves = [leaf for leaf in jax.tree.leaves(points) if _holds_numbers(leaf)]
        if not any(np.ptp(leaf, axis=0).any() for leaf in leaves):
            return None
        columns = [column for leaf in leaves for column in leaf.reshape(len(leaf), -1).T]
        found = {j: codes.values for j, codes in enumerate(map(Sentinels.of, columns)) if codes is not None}
        codes = {j: np.array(values) for j, values in found.items()}
        means, deviations, beyond = np.zeros((3, len(columns)))
        for j, column in enumerate(columns):
            kept = ~np.isin(column, codes[j]) if j in codes else np.ones(len(column), bool)
            numbers, weight = column[kept].astype(float), None if mass is None else mass[kept]
            means[j], deviations[j], error = _moments(numbers, weight)
            counted = numbers if weight is None else numbers[weight > 0]
            beyond[j] = max(inflated_spread(counted) - error, 0.0)
        block = np.arange(len(columns)) * min(len(columns), MOST_BLOCKS) // len(columns)
        return cls(means, deviations, codes, block, beyond)

    @property
    def blocks(self) -> int:
        """The number of derivatives."""
        return int(self.block[-1]) + 1

    @property
    def unknown(self) -> np.ndarray:
        """The positions of columns whose rows do not determine whether they have a standard deviation."""
        return np.flatnonzero(np.isinf(self.beyond))

    def doubts(self, names: Sequence[str], size: int, instead: str) -> tuple[str, ...]:
        """The note on the `unknown` columns, followed by advice `instead`; `names` are those of the columns, if any."""
        places = self.unknown.tolist()
        if not places:
            return ()
        known = [name if name == f"column {j}" else f"column {name!r}" for j, name in enumerate(names)]
        named = [known[j] for j in places if j < len(known)]
        shown = with_and(named) if len(named) <= 3 else in_few_words(named, 3)
        which = "the numbers" if len(known) == 1 else shown or "some columns"
        told = f"tails may be so heavy that {size} rows do not determine the standard deviation"
        return (f"{which}: {told}. {instead}",)

    def moved(self, points: Points, shift: float, factors: np.ndarray | None = None) -> Any:
        """The rows moved by this many standard deviations, times the factor of each column's block."""
        steps = shift * self.deviations * (1.0 if factors is None else factors[self.block])
        place = 0

        def move(leaf: Any) -> Any:
            nonlocal place
            if not _holds_numbers(leaf):
                return leaf
            numbers = np.array(leaf.reshape(len(leaf), -1))
            for column, j in zip(numbers.T, range(place, place + numbers.shape[1]), strict=True):
                column += steps[j] * self._counts(column, j)
            place += numbers.shape[1]
            return numbers.reshape(leaf.shape)

        return jax.tree.map(move, points)

    def influence(self, points: Points) -> np.ndarray:
        """The influence of each row on the log standard deviations, (rows, blocks), zero on average."""
        leaves = [leaf.reshape(len(leaf), -1) for leaf in jax.tree.leaves(points) if _holds_numbers(leaf)]
        found, size = np.zeros((len(leaves[0]), self.blocks)), np.bincount(self.block)
        for j, column in enumerate(column for leaf in leaves for column in leaf.T):
            if self.deviations[j] > 0:
                kept = self._counts(column, j)
                own = ((column - self.means[j]) ** 2 / self.deviations[j] ** 2 - 1) / 2
                found[:, self.block[j]] += np.where(kept, own / np.mean(kept), 0.0) / size[self.block[j]]
        return found

    def _counts(self, column: np.ndarray, j: int) -> Any:
        return ~np.isin(column, self.codes[j]) if j in self.codes else True


def _holds_numbers(leaf: object) -> bool:
    return isinstance(leaf, np.ndarray | jax.Array) and np.issubdtype(leaf.dtype, np.floating) and leaf.ndim <= 2


def _moments(numbers: np.ndarray, mass: np.ndarray | None) -> tuple[float, float, float]:
    """The mean, the standard deviation, and the standard error of the log standard deviation."""
    share = np.full(len(numbers), 1 / len(numbers)) if mass is None else mass / mass.sum()
    mean = float(np.mean(numbers)) if mass is None else float(share @ numbers)
    squares, lost = (numbers - mean) ** 2, float(share @ share)
    variance = float(share @ squares) / (1 - lost)
    relative = squares / variance - 1 if variance > 0 else np.zeros(len(numbers))
    return mean, float(np.sqrt(variance)), float(np.sqrt(lost * (share @ relative**2))) / 2
