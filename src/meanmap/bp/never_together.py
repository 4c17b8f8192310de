"""Labels of two columns that no row has together, though chance would have given some rows both."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from meanmap.core.notes import in_rows
from meanmap.core.points import spread_rows
from meanmap.core.values import label_shown

__all__ = ["NeverTogether"]

# Rows times pairs of labels that are compared, the most labels, and the least number of rows expected of independent
# labels: by chance none of these has both with a probability of .05.
MOST_COMPARED, MOST_LABELS, EXPECTED = 2_000_000_000, 4000, 3.0


@dataclass(frozen=True, eq=False)
class NeverTogether:
    """Pairs of labels of two columns that were expected together, and were not.

    What a model says of such a pair is its assumption: where each label alone would decide, and they contradict each
    other, shares are near those without evidence.

    Attributes
    ----------
    rows : int
        The number of rows that were compared.
    labels : dict
        The labels of each column.
    pairs : array (k, 2)
        The numbers of both labels among those of all columns one after the other.

    Examples
    --------
    >>> codes = {"a": np.arange(40) % 2, "b": np.arange(40) % 2}
    >>> found = NeverTogether.of(codes, {"a": ["left", "right"], "b": ["up", "down"]})
    >>> found.notes({"a": np.array([0]), "b": np.array([1])})[0][:56]
    "none of 40 rows has 'a' = 'left' together with 'b' = 'do"
    """

    rows: int = 0
    labels: Mapping[Hashable, Sequence[Any]] = field(default_factory=dict)
    pairs: np.ndarray = field(default_factory=lambda: np.zeros((0, 2), dtype=int))

    @classmethod
    def of(cls, codes: Mapping[Hashable, np.ndarray], labels: Mapping[Hashable, Sequence[Any]]) -> "NeverTogether":
        """From the rows that a model learns from: the number of each label (n,), −1 in gaps."""
        width, size = sum(map(len, labels.values())), len(next(iter(codes.values()), ()))
        if width > MOST_LABELS or len(codes) < 2:
            return cls()
        some, empty = spread_rows(size, max(MOST_COMPARED // max(width**2, 1), 1)), cls(size, labels)
        part = {name: each[some] for name, each in codes.items()}
        hits = empty._hits(part).astype(np.float32).toarray()
        there = np.stack([each >= 0 for each in part.values()], axis=1).astype(np.float32)
        column = np.repeat(np.arange(len(labels)), [len(each) for each in labels.values()])
        alone = (hits.T @ there).astype(float)[:, column]  # rows with a label in which the column of the other is there
        both = np.maximum((there.T @ there)[column][:, column], 1)
        lacking = (hits.T @ hits == 0) & (alone * alone.T / both >= EXPECTED) & (column[:, None] < column)
        return cls(len(some), labels, np.argwhere(lacking))

    def codes(self, name: Hashable, labels: Iterable[Any]) -> np.ndarray:
        """The numbers of labels of a column, −1 of others."""
        known = self._known[name]
        return np.array([known.get(label, -1) for label in labels], dtype=int)

    def notes(self, codes: Mapping[Hashable, np.ndarray]) -> tuple[str, ...]:
        """Notes on rows that have such pairs, from numbers of labels (m,), −1 where nothing is known."""
        if not len(self.pairs) or not codes:
            return ()
        told: list[list[str]] = [[] for _ in next(iter(codes.values()))]
        every = [(name, label) for name, labels in self.labels.items() for label in labels]
        hits = self._hits(codes).tocsc()
        for one, other in self.pairs[(hits.sum(axis=0)[self.pairs] > 0).all(axis=1)]:
            both = hits[:, [one]].multiply(hits[:, [other]])
            first, second = (f"{name!r} = {label_shown(label)!r}" for name, label in (every[one], every[other]))
            for row in both.nonzero()[0].tolist():
                told[row].append(
                    f"none of {self.rows} rows has {first} together with {second}: what follows from both rests on "
                    "assumptions of the model, not on rows like this."
                )
        return tuple(in_rows(told))

    def _hits(self, codes: Mapping[Hashable, np.ndarray]) -> csr_array:
        """Ones where a row has a label, (m, W), from numbers of labels of some columns."""
        ends = np.cumsum([0, *map(len, self.labels.values())]).tolist()
        start = dict(zip(self.labels, ends, strict=False))
        at = [(np.flatnonzero(each >= 0), start[name] + each[each >= 0]) for name, each in codes.items()]
        rows, columns = (np.concatenate(each) for each in zip(*at, strict=True))
        return csr_array((np.ones(len(rows)), (rows, columns)), shape=(len(next(iter(codes.values()))), ends[-1]))

    @cached_property
    def _known(self) -> dict[Hashable, dict[Any, int]]:
        return {name: {label: k for k, label in enumerate(labels)} for name, labels in self.labels.items()}
