"""Logarithms, square roots or log odds of numeric columns, if these are closer to normal and linear."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from meanmap.bp.beliefs.gain import clearly_better
from meanmap.bp.conditionals.columns import CodedTable
from meanmap.bp.conditionals.joint_normal import JointNormal
from meanmap.core.points import spread_rows

__all__ = ["KINDS", "LEAST_VALUES", "MOST_GAIN", "Transformation", "chosen"]

# The most rows used, rounds over the columns, and the fewest distinct values of a column to be transformed.
MOST_ROWS, ROUNDS, LEAST_VALUES = 1000, 2, 5
# The gain of a row is limited to this, in nats: the largest values of a skewed column gain so much that they alone
# would determine the standard error.
MOST_GAIN = 1.0
# The covariance of the columns is shrunk towards its diagonal by this share.
PRIOR = 1e-6
# Ridge of the regressions that fill in gaps of a transformed column, as if one more row were at the mean.
RIDGE = 1.0
KINDS = ("log", "root", "log odds")


class _Shape(NamedTuple):
    """g, its inverse, and the logarithm of its derivative."""

    of: Callable[[np.ndarray], np.ndarray]
    back: Callable[[np.ndarray], np.ndarray]
    log_slope: Callable[[np.ndarray], np.ndarray]


_SHAPES = {
    "plain": _Shape(lambda v: v, lambda g: g, lambda v: np.zeros(len(v))),
    "log": _Shape(np.log, np.exp, lambda v: -np.log(v)),
    "root": _Shape(
        np.sqrt, lambda g: np.maximum(g, 0.0) ** 2, lambda v: -np.log(2 * np.sqrt(np.maximum(v, np.finfo(float).tiny)))
    ),
    "log odds": _Shape(
        lambda v: np.log(v) - np.log1p(-v), lambda g: 1 / (1 + np.exp(-g)), lambda v: -np.log(v) - np.log1p(-v)
    ),
}


@dataclass(frozen=True)
class Transformation:
    """v ↦ (g(v + shift) − centre) / scale with g the identity ("plain"), the logarithm, root or log odds.

    Attributes
    ----------
    kind : str
    shift : float
        For the logarithm, half of the smallest positive value if there are zeros.
    least, most : float
        The range in which g is defined; values outside are clipped to it.
    centre, scale : float

    Examples
    --------
    >>> found = Transformation.of("log", np.array([1.0, np.e**2]))
    >>> found(np.array([1.0, np.e**3])).tolist(), found.back(np.array([1.0])).round(1).tolist()
    ([-1.0, 2.0], [7.4])
    """

    kind: str
    shift: float
    least: float
    most: float
    centre: float
    scale: float

    @classmethod
    def of(cls, kind: str, values: np.ndarray) -> "Transformation":
        """The transformation of this kind for raw values."""
        low, positive = float(values.min()), values[values > 0]
        shift = float(positive.min()) / 2 if kind == "log" and low <= 0 and len(positive) else 0.0
        least, most = -np.inf, np.inf
        if kind != "plain":
            least = 0.0 if kind == "root" or shift else low / 2
        if kind == "log odds":
            most = (1 + float(values.max())) / 2
        plain = cls(kind, shift, least, most, 0.0, 1.0)
        found = plain(values)
        return cls(kind, shift, least, most, float(found.mean()), float(found.std()) or 1.0)

    @classmethod
    def possible(cls, kind: str, values: np.ndarray) -> bool:
        """Whether all values have a finite g."""
        low, high = values.min(), values.max()
        return bool({"log": low >= 0, "root": low >= 0, "log odds": low > 0 and high < 1}[kind])

    def __call__(self, values: np.ndarray) -> np.ndarray:
        """Standardised values of numbers; those outside the range of g are clipped."""
        return (_SHAPES[self.kind].of(self._within(values)) - self.centre) / self.scale

    def back(self, standard: np.ndarray) -> np.ndarray:
        """The inverse: raw values of standardised ones."""
        return _SHAPES[self.kind].back(self.centre + self.scale * standard) - self.shift

    def log_slopes(self, values: np.ndarray) -> np.ndarray:
        """The logarithm of the derivative of each."""
        return _SHAPES[self.kind].log_slope(self._within(values)) - np.log(self.scale)

    def _within(self, values: np.ndarray) -> np.ndarray:
        return np.clip(values, self.least, self.most) + self.shift


def chosen(table: CodedTable, numbers: np.ndarray) -> Mapping[int, Transformation]:
    """The transformations chosen for columns of rows (n, d), NaN in gaps, by their position.

    Stepwise: the transformation with the largest likelihood of the rows if each number is normal and linear in all
    other columns, summed over all columns, because transforming one column changes the linearity of the others. It is
    accepted if the gain over rows exceeds two standard errors. Gaps are filled in by a joint normal
    distribution, those of a transformed column by its regression on all others.
    """
    columns, blocks = list(table.columns.values()), table.blocks
    rows = numbers[spread_rows(len(numbers), MOST_ROWS)]
    there = ~np.isnan(rows)
    own = [block.start for block, column in zip(blocks, columns, strict=True) if column.labels is None]
    tried: dict[int, list[Transformation]] = {}
    for block, column in zip(blocks, columns, strict=True):
        seen = rows[there[:, block.start], block.start]
        if column.labels is None and column.column.kind in ("number", "count") and len(np.unique(seen)) >= LEAST_VALUES:
            kinds = [kind for kind in KINDS if Transformation.possible(kind, seen)]
            if kinds:
                tried[block.start] = [Transformation.of(kind, seen) for kind in ("plain", *kinds)]
    if not tried:
        return {}
    plain = table.standard(rows)
    filled = plain.copy() if there.all() else JointNormal.fit(plain).given(plain)[0]
    for j in tried:
        filled[:, j] = _filled(filled, there, j, filled[there[:, j], j])
    used = {j: each[0] for j, each in tried.items()}
    best = _log_chances(filled, rows, there, own, used)
    for _ in range(ROUNDS):
        before = dict(used)
        for j, each in tried.items():
            for transformation in each:
                if transformation == used[j]:
                    continue
                other = filled.copy()
                other[:, j] = _filled(filled, there, j, transformation(rows[there[:, j], j]))
                logs = _log_chances(other, rows, there, own, used | {j: transformation})
                gain = np.clip(logs - best, -MOST_GAIN, MOST_GAIN)
                if logs.sum() > best.sum() and clearly_better(gain):
                    filled, best, used[j] = other, logs, transformation
        if used == before:
            break
    return {j: each for j, each in used.items() if each.kind != "plain"}


def _filled(filled: np.ndarray, there: np.ndarray, j: int, seen: np.ndarray) -> np.ndarray:
    """Column j (n,) with the values seen, and a ridge regression on the other columns of rows (n, d) in its gaps."""
    here, found, others = there[:, j], np.empty(len(filled)), np.delete(filled, j, axis=1)
    found[here] = seen
    if not here.all():
        middle = others[here].mean(axis=0)
        away = others[here] - middle
        slopes = np.linalg.solve(away.T @ away + RIDGE * np.eye(away.shape[1]), away.T @ seen)
        found[~here] = seen.mean() + (others[~here] - middle) @ slopes
    return found


def _log_chances(
    filled: np.ndarray, rows: np.ndarray, there: np.ndarray, own: Sequence[int], used: Mapping[int, Transformation]
) -> np.ndarray:
    """For each row, the sum over observed numbers of the log density given all other columns, (n,)."""
    middle = filled - filled.mean(axis=0)
    covariance = middle.T @ middle / len(middle)
    precision: Any = np.linalg.inv(covariance + PRIOR * np.diag(np.diag(covariance) + PRIOR))
    variance = 1 / np.diag(precision)
    logs = -((middle @ precision) ** 2) * variance / 2 - np.log(variance) / 2
    for j, transformation in used.items():
        logs[there[:, j], j] += transformation.log_slopes(rows[there[:, j], j])
    return np.sum(np.where(there, logs, 0.0)[:, own], axis=1)
