"""A number with components given others: which of them, and the number in its range if it is none of the points."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from meanmap.bp.conditionals.column_conditional import ColumnConditional
from meanmap.bp.conditionals.components import ColumnComponents
from meanmap.bp.conditionals.joint_normal import JointNormal
from meanmap.bp.conditionals.thresholds import Thresholds

__all__ = ["TwoPart"]


@dataclass(frozen=True, eq=False)
class TwoPart:
    """p(component | others), and p(number | others, range), as of Duan et al. (1983).

    Attributes
    ----------
    components : ColumnComponents
    which : ColumnConditional
        Of the components, as labels.
    number : ColumnConditional
        Of the number in rows in which it is none of the points.
    held : dict
        As of a `ColumnConditional`, "joint normal" with the same shares of components in all rows.
    """

    components: ColumnComponents
    which: ColumnConditional
    number: ColumnConditional
    held: Mapping[str, float]

    @property
    def thresholds(self) -> Thresholds | None:
        """Thresholds of numbers in the unit of the column; points have bins of their own."""
        return self.number.thresholds

    @property
    def block(self) -> range:
        """The columns of numbers that stand for the variable."""
        return self.which.block

    @property
    def inside(self) -> float:
        """That of the `ColumnConditional` of the number."""
        return self.number.inside

    @classmethod
    def fit(
        cls,
        components: ColumnComponents,
        which: ColumnConditional,
        number: ColumnConditional,
        unit: float,
        laws: Sequence[JointNormal],
        left_out: Sequence[tuple[np.ndarray, np.ndarray]],
    ) -> "TwoPart":
        """Combine both parts; `unit` scales distances, `laws` are joint normal distributions for each part of the rows.

        `left_out` has the rows of each part (m, d) with the variable hidden, and its values (m,) in the unit of the
        column.
        """
        found = cls(components, which, number, {})
        at = found.at
        widths, truths, this, normal = np.diff(at) * unit, [], [], []
        for p, (law, (rows, values)) in enumerate(zip(laws, left_out, strict=True)):
            whole = replace(found, which=which.of_part(p), number=number.of_part(p))
            plain = replace(whole, which=whole.which.of_belief(0), number=whole.number.of_belief(0))
            truths.append(values[:, None] <= at[:-1])
            for each, claims in ((whole, this), (plain, normal)):
                shares = each.shares((law,), rows)
                claims.append(np.cumsum(shares, axis=1) - shares)
        truth = np.concatenate(truths)

        def score(claim: np.ndarray) -> float:
            return float(np.mean(np.sum((claim - truth) ** 2 * widths, axis=1)))

        held = {"this": score(np.concatenate(this)), "alone": score(truth.mean(axis=0))}
        return replace(found, held=held | {"joint normal": score(np.concatenate(normal))})

    @property
    def at(self) -> np.ndarray:
        """The thresholds (G,)."""
        thresholds: Any = self.thresholds
        return thresholds.at

    def resampled(self, counts: np.ndarray) -> "TwoPart":
        """A model with the rows of the table counted this often (N,)."""
        return replace(self, which=self.which.resampled(counts), number=self.number.resampled(counts))

    def shares(self, laws: Sequence[JointNormal], rows: np.ndarray) -> np.ndarray:
        """Probabilities of bins between thresholds (m, G − 1) in rows that do not show the variable."""
        which, given, points = self.which.shares(laws, rows), rows.copy(), self.components.points
        thresholds: Any = self.thresholds
        bins, ranges = thresholds.bins(points[None])[0], self.components.ranges(thresholds.centres)
        found = np.zeros((len(rows), len(ranges)))
        for k in range(len(points), len(self.components)):
            given[:, self.block[:-1]] = np.arange(len(self.components)) == k
            shares = self.number.shares(laws, given) * (ranges == k - len(points))
            shares[:, bins] = 0.0
            found += shares * which[:, [k]] / shares.sum(axis=1, keepdims=True)
        found[:, bins] = which[:, : len(points)]
        return found
