"""p(label | parents): counts of all rows where the parents are labels, a logistic regression where some are numbers."""

from dataclasses import dataclass

import numpy as np

from meanmap.bp.beliefs.densities import pick
from meanmap.bp.conditionals.counted import CountedTables
from meanmap.bp.conditionals.label_curve import LabelCurve

__all__ = ["LabelsGivenParents"]


@dataclass(frozen=True, eq=False)
class LabelsGivenParents:
    """The distribution of a label given numbers (n, q) that stand for its parents: 1 of a number, zeros and a one of a
    label.

    Attributes
    ----------
    widths : tuple of int
        The number of numbers that represent each parent.
    law : CountedTables or LabelCurve
    rows : int
        Of how many rows it was learned; of their kernel's part fewer.
    """

    widths: tuple[int, ...]
    law: CountedTables | LabelCurve
    rows: int

    @classmethod
    def fit(cls, rows: np.ndarray, widths: tuple[int, ...], hits: np.ndarray) -> "LabelsGivenParents":
        """Fit to rows of the parents and indicators (n, L)."""
        if any(width == 1 for width in widths):
            return cls(widths, *LabelCurve.fit(rows, widths, hits))
        tables = CountedTables.fit(_codes(rows, widths), widths, hits.argmax(axis=1), hits.shape[1])
        return cls(widths, tables, len(rows))

    def ends(self, column: int) -> tuple[float, float]:
        """The observed range of a number that represents a parent; unbounded for zeros and ones."""
        if isinstance(self.law, CountedTables):
            return -np.inf, np.inf
        return float(self.law.low[column]), float(self.law.high[column])

    def shares(self, rows: np.ndarray) -> np.ndarray:
        """Probabilities of labels at rows of the parents, (m, L)."""
        return self.law(_codes(rows, self.widths) if isinstance(self.law, CountedTables) else rows)

    def draw(self, rows: np.ndarray, random: np.random.Generator) -> np.ndarray:
        """Draw one label, as indicators (m, L), for each row of the parents."""
        shares = self.shares(rows)
        return np.eye(shares.shape[1])[pick(shares, 1, random)[:, 0]]

    def log_chance(self, rows: np.ndarray, value: np.ndarray) -> np.ndarray:
        """The logarithm of the shares of labels (m, L) at rows of the parents."""
        with np.errstate(divide="ignore"):
            return np.log(np.sum(self.shares(rows) * value, axis=1))


def _codes(rows: np.ndarray, widths: tuple[int, ...]) -> np.ndarray:
    """The label of each parent (n, P), −1 where it is none of those that came."""
    blocks = np.split(rows, np.cumsum(widths)[:-1], axis=1) if widths else []
    codes = [np.where(block.any(axis=1), block.argmax(axis=1), -1) for block in blocks]
    return np.stack([np.zeros(len(rows), dtype=np.int64), *codes], axis=1)[:, 1:]
