"""Labels of a reference that no longer occur: their last occurrence may be many batches ago."""

from collections.abc import Collection
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.special import gammaln

from meanmap.core.language import in_percent
from meanmap.core.tables.kinds import family_of
from meanmap.core.tables.table import Table
from meanmap.core.values import Value, label_text

__all__ = ["SHARE_OF_LOST", "LostLabels", "labels_of"]

# The share of false alarms that lost labels may raise, and the least number of rows of the reference with a label that
# is looked for.
SHARE_OF_LOST, LEAST = 0.02, 5


@dataclass(frozen=True, eq=False, repr=False)
class LostLabels(Value):
    """The number of rows since each label was last seen.

    Attributes
    ----------
    names, labels : tuples of str
        The column of each label, and the label.
    counts : int array
        Its rows in the reference, of `n`.
    n : int
    unseen : int array
        The rows of batches since the last one with the label; -1 once an alarm was raised, until it occurs again.
    limit : float
        The largest probability of an alarm for each label.
    causes : dict
        The probability of the absence of each lost label, by column and label, until it occurs again.
    """

    names: tuple[str, ...]
    labels: tuple[str, ...]
    counts: np.ndarray
    n: int
    unseen: np.ndarray
    limit: float
    causes: dict[tuple[str, str, str], float] = field(default_factory=dict)

    @classmethod
    def of(cls, reference: Table, run_length: float) -> "LostLabels | None":
        """The state before the first batch; None without labels."""
        names, labels, counts = [], [], []
        for name, found in labels_of(reference).items():
            for label, number in zip(*found, strict=True):
                if number >= LEAST:
                    names.append(name)
                    labels.append(label)
                    counts.append(number)
        if not names:
            return None
        limit = SHARE_OF_LOST / run_length / len(names)
        return cls(tuple(names), tuple(labels), np.array(counts), len(reference), np.zeros(len(names), int), limit)

    @property
    def gone(self) -> list[str]:
        """The labels of which an alarm says that they are lost, with their columns."""
        return [f"{self.labels[k]!r} of column {self.names[k]!r}" for k in np.flatnonzero(self.unseen < 0)]

    def step(self, batch: Table, apart: Collection[str] = ()) -> tuple["LostLabels", tuple[str, ...]]:
        """The state after one more batch, and notes on labels that are lost; columns set `apart` were not observed.

        Of n + N exchangeable rows c have the label: the probability that none of the last N has it is hypergeometric.
        At most one such stretch of batches begins with each batch, so alarms for a label are at most as frequent as
        this probability.
        """
        here = {name: set(found) for name, (found, _) in labels_of(batch).items() if name not in apart}
        unseen = self.unseen.copy()
        for k, (name, label) in enumerate(zip(self.names, self.labels, strict=True)):
            if name in here and (label in here[name] or unseen[k] >= 0):
                unseen[k] = 0 if label in here[name] else unseen[k] + len(batch)
        n, c = self.n, self.counts
        since = np.maximum(unseen, 0)
        logs = gammaln(n + since - c + 1) + gammaln(n + 1) - gammaln(n - c + 1) - gammaln(n + since + 1)
        lost = np.flatnonzero((unseen > 0) & (logs <= np.log(self.limit)))
        notes = tuple(
            f"{self.labels[k]!r} of column {self.names[k]!r} is in none of the latest {unseen[k]} rows, and in "
            f"{in_percent(c[k] / n)}% of the reference."
            for k in lost
        )
        unseen[lost] = -1
        still = {(self.names[k], "share", self.labels[k]) for k in np.flatnonzero(unseen < 0)}
        causes = {key: p for key, p in self.causes.items() if key in still}
        causes |= {(self.names[k], "share", self.labels[k]): float(np.exp(logs[k])) for k in lost}
        return replace(self, unseen=unseen, causes=causes), notes


def labels_of(table: Table) -> dict[str, tuple[list[str], list[int]]]:
    """The labels of each column of labels as texts, and their numbers of rows."""
    found = {}
    for name, column in table.columns.items():
        if family_of(column) == "label":
            labels, counts = np.unique(column, return_counts=True)
            found[name] = [label_text(label) for label in labels], counts.tolist()
    return found
