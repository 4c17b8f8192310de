"""Rank correlations of pairs of columns that differ between two samples."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from scipy.special import ndtri

from meanmap.core.tables.kinds import family_of
from meanmap.core.values import Value, plain
from meanmap.stats.samples.scores import ranks

__all__ = ["LEAST_CHANCE", "Relation", "changed_relations"]

# The probability that any pair is named although no correlation changed.
LEAST_CHANCE = 1e-4
# Smaller differences, such as between correlations of 0.9993 and 0.9996, say nothing; printed they are 0.00.
LEAST = 0.005


@dataclass(frozen=True, eq=False, repr=False)
class Relation(Value):
    """Rank correlations of a pair of columns in two samples, and an interval for the second minus the first."""

    pair: tuple[str, str]
    first: float
    second: float
    low: float
    high: float

    @property
    def column(self) -> str:
        """Both columns, as a text."""
        return f"{self.pair[0]} and {self.pair[1]}"

    @property
    def estimate(self) -> float:
        """The second correlation minus the first."""
        return self.second - self.first

    def cells(self) -> tuple[str, str, str, str]:
        """The compared quantity, its value in both samples, and the difference with its interval, as texts."""
        change = f"{self.estimate:z.2f} ({self.low:z.2f} to {self.high:z.2f})"
        return f"rank correlation of {self.column}", f"{self.first:z.2f}", f"{self.second:z.2f}", change

    def to_dict(self) -> dict[str, Any]:
        """The relation as plain Python values, ready for JSON."""
        return {"columns": list(self.pair), **plain(self, "first", "second", "estimate", "low", "high")}


def changed_relations(
    first: Mapping[str, np.ndarray], second: Mapping[str, np.ndarray], names: Sequence[str], confidence: float = 0.95
) -> list[Relation]:
    """The pairs of these columns of numbers whose rank correlation differs, the largest difference first.

    Tests use differences of Fisher's z, with the standard errors of Bonett & Wright (2000) for Spearman's correlation.
    Tests and intervals are corrected for the number of pairs.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> a, b, c = rng.normal(size=(3, 400))
    >>> (found,) = changed_relations({"a": a, "b": a + b, "c": c}, {"a": b, "b": c, "c": a}, ["a", "b", "c"])
    >>> found.pair, round(found.first, 1), round(found.second, 1)
    (('a', 'b'), 0.7, 0.0)
    """
    samples = (first, second)
    used = [name for name in names if all(_is_number(each[name]) for each in samples)]
    if len(used) < 2 or min(len(each[used[0]]) for each in samples) < 5:
        return []
    each = [np.corrcoef([ranks(sample[name]) for name in used]) for sample in samples]
    sizes = [len(sample[used[0]]) for sample in samples]
    z = [np.arctanh(np.clip(r, -0.9999, 0.9999)) for r in each]
    errors = np.sqrt(sum((1 + r**2 / 2) / (n - 3) for r, n in zip(each, sizes, strict=True)))
    pairs = list(combinations(range(len(used)), 2))
    least, reach = (-float(ndtri(share / 2 / len(pairs))) for share in (LEAST_CHANCE, 1 - confidence))
    found = []
    for i, j in pairs:
        r, s = (float(correlations[i, j]) for correlations in each)
        if abs(z[1][i, j] - z[0][i, j]) <= least * errors[i, j] or abs(s - r) < LEAST:
            continue
        # The ends of the interval are by the method of Zou (2007), from an interval for each correlation.
        ends = [
            np.tanh(z[k][i, j] + reach * np.array([-1, 1]) * np.sqrt((1 + each[k][i, j] ** 2 / 2) / (sizes[k] - 3)))
            for k in range(2)
        ]
        low = s - r - np.hypot(s - ends[1][0], ends[0][1] - r)
        high = s - r + np.hypot(ends[1][1] - s, r - ends[0][0])
        found.append(Relation((used[i], used[j]), r, s, float(low), float(high)))
    return sorted(found, key=lambda relation: -abs(relation.second - relation.first))


def _is_number(column: np.ndarray) -> bool:
    """Whether a column has one number in each row, and at least two different ones."""
    return family_of(column) == "number" and column.ndim == 1 and bool((column[1:] != column[:-1]).any())
