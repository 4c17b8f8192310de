"""Labels of two columns that no row has together, though chance would have given some rows both."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from meanmap.bp.conditionals.columns import CodedColumn
from meanmap.core.notes import in_rows
from meanmap.core.points import spread_rows
from meanmap.core.values import label_shown

__all__ = ["NeverTogether"]

# Rows times pairs of labels that are compared, and the least number of rows expected of independent labels: by chance
# none of these has both with a probability of .05.
MOST_COMPARED, EXPECTED = 2_000_000_000, 3.0


@dataclass(frozen=True, eq=False)
class NeverTogether:
    """Pairs of labels of two columns that were expected together, and were not.

    What a model says of such a pair is its assumption: where each label alone would decide, and they contradict each
    other, shares are near those without evidence.

    Attributes
    ----------
    rows : int
        The number of rows that were compared.
    pairs : dict
        For two columns which of their labels, (A, B) of bool.
    """

    rows: int
    pairs: Mapping[tuple[Hashable, Hashable], np.ndarray]

    @classmethod
    def of(cls, columns: Mapping[Hashable, CodedColumn], numbers: Mapping[Hashable, np.ndarray]) -> "NeverTogether":
        """From the rows that a model learns from: of each column numbers (n, width), NaN in gaps."""
        names = [name for name, column in columns.items() if column.labels is not None]
        size = len(next(iter(numbers.values()), ()))
        width = sum(numbers[name].shape[1] for name in names)
        some = spread_rows(size, max(MOST_COMPARED // max(width**2, 1), 1))
        hits = {name: np.nan_to_num(numbers[name][some][:, : columns[name].own]).astype(np.float32) for name in names}
        found = {}
        for one, other in combinations(names, 2):
            both = np.isfinite(numbers[one][some, 0] + numbers[other][some, 0])
            alone = [hits[name][both].sum(axis=0, dtype=float) for name in (one, other)]
            expected = np.outer(*alone) / max(both.sum(), 1)
            lacking = (hits[one].T @ hits[other] == 0) & (expected >= EXPECTED)
            if lacking.any():
                found[one, other] = lacking
        return cls(len(some), found)

    def notes(self, columns: Mapping[Hashable, CodedColumn], numbers: Mapping[Hashable, np.ndarray]) -> tuple[str, ...]:
        """Notes on rows of numbers (m, width) that have such pairs, NaN where nothing is known."""
        told: list[list[str]] = [[] for _ in next(iter(numbers.values()), ())]
        for names, lacking in self.pairs.items():
            hits = [np.nan_to_num(numbers[name][:, :size]) for name, size in zip(names, lacking.shape, strict=True)]
            for row in np.flatnonzero(((hits[0] @ lacking) * hits[1]).any(axis=1)).tolist():
                labels = [columns[name].states[int(each[row].argmax())] for name, each in zip(names, hits, strict=True)]
                one, other = (f"{name!r} = {label_shown(label)!r}" for name, label in zip(names, labels, strict=True))
                told[row].append(
                    f"none of {self.rows} rows has {one} together with {other}: what follows from both rests on "
                    "assumptions of the model, not on rows like this."
                )
        return tuple(in_rows(told))
