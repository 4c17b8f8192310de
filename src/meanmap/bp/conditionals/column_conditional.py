"""One variable given any of the others: several beliefs from rows like this one, mixed by what predicts held-out rows.

The others come with gaps. A joint normal law fills them and says what it expects of the variable and how surely; with
that every regression knows what a row without some of its cells can know. For a number y with expectation m and
deviation s the beliefs are

- N(m, s²);
- m + s r with the residuals r of the training rows, all alike;
- m + s r, weighted by each regression of residuals on what is known;
- the training rows' values themselves, weighted by each regression.

For labels they are the shares of the training rows, alike and weighted.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtr

from meanmap.bp.conditionals.joint_normal import JointNormal
from meanmap.bp.conditionals.row_weights import row_weights
from meanmap.bp.conditionals.stacking import mixture_weights

__all__ = ["ColumnConditional", "Member", "thresholds"]

# Thresholds of distribution functions: quantiles of the values, and evenly spread ones from half a range below to half
# a range above them.
QUANTILES, EVEN = 120, 40
# A value of this share of all has a bin to itself, as wide as this share of the least step between values.
OFTEN, NARROW = 0.02, 0.01
# Whatever held-out rows say, so much weight is the normal law's, or the plain shares': no value is impossible.
LEAST_SMOOTH = 0.01
# Rows are answered so many at a time.
ROWS_AT_ONCE = 500


def thresholds(values: np.ndarray) -> np.ndarray:
    """Where the distribution function of a number is known, rising; on both sides of values that often come back."""
    low, high = values.min(), values.max()
    reach = max(high - low, 1e-6)
    quantiles = np.quantile(values, np.linspace(0, 1, QUANTILES))
    even = np.linspace(low - reach / 2, high + reach / 2, EVEN)
    found, counts = np.unique(values, return_counts=True)
    often = found[counts >= OFTEN * len(values)]
    step = NARROW * np.min(np.diff(found), initial=reach)
    return np.unique(np.concatenate([quantiles, even, often, often - step]))


@dataclass(frozen=True, eq=False)
class Member:
    """The beliefs of one part of the rows.

    Attributes
    ----------
    rows : array (n, q)
        What is known of each training row: the other columns filled in, expectations and deviations of this one.
    values : array (n,) or (n, L)
        Their values: numbers, or zeros and ones.
    residuals : array (n,) or None
        (y − m) / s, of numbers.
    of_values, of_residuals : tuple
        Fitted regressions.
    """

    rows: np.ndarray
    values: np.ndarray
    residuals: np.ndarray | None
    of_values: tuple[Any, ...]
    of_residuals: tuple[Any, ...]

    @classmethod
    def fit(cls, rows: np.ndarray, values: np.ndarray, regressions: Sequence[Any]) -> "Member":
        """From training rows whose last two columns are m and s where the variable is a number."""
        from sklearn.base import clone

        fresh: Any = clone
        fitted = tuple(fresh(each).fit(rows, values) for each in regressions)
        if values.ndim == 2:
            return cls(rows, values, None, fitted, ())
        residuals = (values - rows[:, -2]) / rows[:, -1]
        return cls(rows, values, residuals, fitted, tuple(fresh(each).fit(rows, residuals) for each in regressions))

    def beliefs(self, new: np.ndarray, at: np.ndarray) -> np.ndarray:
        """Distribution functions at thresholds (K, m, G), or shares of labels (K, m, L)."""
        parts = [self._beliefs(new[start : start + ROWS_AT_ONCE], at) for start in range(0, len(new), ROWS_AT_ONCE)]
        return np.concatenate(parts, axis=1)

    def _beliefs(self, new: np.ndarray, at: np.ndarray) -> np.ndarray:
        weights = [row_weights(each, self.rows, new) for each in self.of_values]
        if self.residuals is None:
            plain = np.broadcast_to(self.values.mean(axis=0), (len(new), self.values.shape[1]))
            return np.stack([plain, *(each @ self.values for each in weights)])
        standard = (at - new[:, -2:-1]) / new[:, -1:]
        alike = np.full((1, len(self.rows)), 1 / len(self.rows))
        shifted = [alike, *(row_weights(each, self.rows, new) for each in self.of_residuals)]
        return np.stack(
            [
                ndtr(standard),
                *(_distribution(self.residuals, each, standard) for each in shifted),
                *(_distribution(self.values, each, np.broadcast_to(at, standard.shape)) for each in weights),
            ]
        )


@dataclass(frozen=True, eq=False)
class ColumnConditional:
    """p(x_j | any of the others): the mixture of beliefs, averaged over parts of the rows that were left out in turn.

    Attributes
    ----------
    block : slice
        The columns of numbers that stand for the variable.
    at : array (G,)
        Thresholds, or zeros for labels.
    members : tuple of Member
        One for each part.
    mixture : array (K,)
        What each belief counts.
    """

    block: slice
    at: np.ndarray
    members: tuple[Member, ...]
    mixture: np.ndarray

    @classmethod
    def fit(
        cls,
        block: slice,
        masked: np.ndarray,
        values: np.ndarray,
        part: np.ndarray,
        laws: Sequence[JointNormal],
        regressions: Sequence[Any],
    ) -> "ColumnConditional":
        """From rows with gaps (n, d), the values (n, width) of the variable in them, the part of each row, and a law
        for each part, learned without it.
        """
        number = values.shape[1] == 1
        at = thresholds(values[:, 0]) if number else np.zeros(values.shape[1])
        targets = values[:, 0] if number else values
        members, errors, hidden = [], [], masked.copy()
        hidden[:, block] = np.nan
        for p, law in enumerate(laws):
            known = cls.known(block, *law.given(hidden))
            left = part == p
            member = Member.fit(known[~left], targets[~left], regressions)
            truth = values[left] <= at if number else values[left]
            errors.append(member.beliefs(known[left], at) - truth)
            members.append(member)
        widths = np.append(np.diff(at), 0.0) if number else np.ones(len(at))
        mixture = mixture_weights(np.concatenate(errors, axis=1), widths)
        mixture = (1 - LEAST_SMOOTH) * mixture + LEAST_SMOOTH * (np.arange(len(mixture)) == 0)
        return cls(block, at, tuple(members), mixture)

    @staticmethod
    def known(block: slice, means: np.ndarray, deviations: np.ndarray) -> np.ndarray:
        """What regressions get: the others filled in, then expectations and deviations of the variable's own."""
        others = np.delete(means, np.arange(means.shape[1])[block], axis=1)
        return np.concatenate([others, means[:, block], deviations[:, block]], axis=1)

    def __call__(self, filled: Sequence[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
        """The distribution function (m, G), or shares of labels (m, L), from means and deviations by each law."""
        found = 0.0
        for member, (means, deviations) in zip(self.members, filled, strict=True):
            beliefs = member.beliefs(self.known(self.block, means, deviations), self.at)
            found = found + np.tensordot(self.mixture, beliefs, 1) / len(self.members)
        return np.asarray(found)


def _distribution(points: np.ndarray, weights: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Σᵢ wᵢ 1{pointᵢ ≤ t} for rows of weights (m or 1, n) and of thresholds (m, G)."""
    order = np.argsort(points)
    rising = np.concatenate([np.zeros((len(weights), 1)), np.cumsum(weights[:, order], axis=1)], axis=1)
    place = np.searchsorted(points[order], at, side="right")
    return np.take_along_axis(np.broadcast_to(rising, (len(at), rising.shape[1])), place, axis=1)
