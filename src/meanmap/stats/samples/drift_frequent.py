"""Labels that are far more frequent in a batch than in the reference, such as one that never occurred there."""

from collections.abc import Collection
from dataclasses import dataclass, field, replace

import numpy as np

from meanmap.core.language import in_percent
from meanmap.core.tables.table import Table
from meanmap.core.values import Value
from meanmap.stats.samples.drift_lost import labels_of

__all__ = ["SHARE_OF_FREQUENT", "FrequentLabels"]

# The share of false alarms that frequent labels may raise.
SHARE_OF_FREQUENT = 0.02
# A label is as frequent as before when it has not been above chance at this level in so many batches.
LEVEL, BATCHES = 0.05, 3


@dataclass(frozen=True, eq=False, repr=False)
class FrequentLabels(Value):
    """The rows of each label in the reference, by column, among all its labels.

    Features distinguish only labels of the rows that chose them, and all others count as one. Among 200 labels others
    may have 8% of the rows, so that a new one with 5% hardly changes their share; here each label counts by itself.

    Attributes
    ----------
    counts : dict of dicts
        The rows of the reference with each label of each column.
    n : int
        The rows of the reference.
    limit : float
        The largest p-value that raises an alarm, corrected for all labels and columns.
    quiet : dict
        For each label that raised an alarm, the batches since it was last more frequent than chance explains.
    causes : dict
        The p-value of its alarm, by column and label.
    """

    counts: dict[str, dict[str, int]]
    n: int
    limit: float
    quiet: dict[tuple[str, str, str], int] = field(default_factory=dict)
    causes: dict[tuple[str, str, str], float] = field(default_factory=dict)

    @classmethod
    def of(cls, reference: Table, run_length: float) -> "FrequentLabels | None":
        """The state before the first batch; None without labels."""
        counts = _counts(reference)
        return cls(counts, len(reference), SHARE_OF_FREQUENT / run_length) if counts else None

    @property
    def gone_on(self) -> list[str]:
        """What alarms about such labels say, while they have not ended."""
        return [f"{label!r} of column {name!r} is more frequent than in the reference" for name, _, label in self.quiet]

    def step(self, batch: Table, apart: Collection[str] = ()) -> tuple["FrequentLabels", tuple[str, ...]]:
        """The state after one more batch, and notes on labels that raise an alarm; columns set `apart` were not
        observed.

        Of n + m exchangeable rows c have the label: the number of these among the m of the batch is hypergeometric. By
        Bonferroni's correction for all labels of both, any of them is at most as frequent as the p-value says, however
        many labels are rare; one that a single row has raises no alarm.
        """
        quiet = {key: number + (key[0] not in apart) for key, number in self.quiet.items()}
        causes, notes, m = dict(self.causes), [], len(batch)
        for name, here in _counts(batch).items():
            if name in apart or name not in self.counts:
                continue
            before = self.counts[name]
            chances = self._chances(before, here, m)
            number = len(self.counts) * len(before.keys() | here.keys())
            for label, chance in chances.items():
                key = (name, "share", label)
                if key in quiet and chance <= LEVEL:
                    quiet[key] = 0
                elif number * chance <= self.limit and key not in quiet:
                    quiet[key], causes[key] = 0, number * chance
                    notes.append(_note(name, label, (here[label], m), (before.get(label, 0), self.n)))
        quiet = {key: number for key, number in quiet.items() if number < BATCHES}
        causes = {key: pvalue for key, pvalue in causes.items() if key in quiet}
        return replace(self, quiet=quiet, causes=causes), tuple(notes)

    def _chances(self, before: dict[str, int], here: dict[str, int], m: int) -> dict[str, float]:
        """The probability that by chance at least as many rows of a batch of m have each of its labels."""
        from scipy.stats import hypergeom

        inside = np.array([*here.values()])
        total = inside + [before.get(label, 0) for label in here]
        return dict(zip(here, hypergeom.sf(inside - 1, self.n + m, total, m).tolist(), strict=True))


def _note(name: str, label: str, here: tuple[int, int], before: tuple[int, int]) -> str:
    share = f"{in_percent(before[0] / before[1])}% of the reference" if before[0] else f"none of the {before[1]} before"
    return f"{label!r} of column {name!r} is in {here[0]} of {here[1]} rows, and in {share}."


def _counts(table: Table) -> dict[str, dict[str, int]]:
    """The rows with each label, of each column of labels."""
    return {name: dict(zip(*found, strict=True)) for name, found in labels_of(table).items()}
