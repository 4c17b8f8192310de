"""Labels and repeated numbers that are more frequent in a batch, or in the latest batches together, than before."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from meanmap.core.language import in_percent
from meanmap.core.tables.table import Table
from meanmap.core.values import Value
from meanmap.stats.samples.drift_lost import labels_of
from meanmap.stats.samples.drift_tally import Part, Risen, after_part, in_batch, in_reference, risen, rows_with
from meanmap.stats.samples.drift_unseen import UNSEEN, newer

__all__ = ["SHARE_OF_FREQUENT", "SHARE_OF_UNSEEN", "SHARE_TOGETHER", "FrequentLabels"]

# The share of false alarms that labels of the latest batch alone may raise, that of values of the latest batches
# together, and that of labels of one row.
SHARE_OF_FREQUENT, SHARE_TOGETHER, SHARE_OF_UNSEEN = 0.02, 0.04, 0.01
# A value is as frequent as before when it has not been above chance at this level in so many batches.
LEVEL, BATCHES = 0.05, 3
# The batches since a value has risen are kept from this p-value on.
SUSPECTED = 0.1

Key = tuple[str, str, str]


@dataclass(frozen=True, eq=False, repr=False)
class FrequentLabels(Value):
    """The rows of each label in the reference, by column, among all its labels.

    Features distinguish only labels of the rows that chose them, and all others count as one. Among 200 labels others
    may have 8% of the rows, so that a new one with 5% hardly changes their share; here each label counts by itself, and
    so does each number that is repeated. The latest batches are also counted together, and so are labels of one row.

    Attributes
    ----------
    counts : dict of dicts
        The rows of the reference with each label of each column.
    n : int
        The rows of the reference.
    limit : float
        The largest p-value of the latest batch alone that raises an alarm, corrected for all labels and columns.
    together : float
        That of the latest batches together.
    unseen : float
        That of labels that no other row has, in the latest batches together.
    parts : tuple of Part
        The values of the reference and of the latest batches.
    quiet : dict
        For each value that raised an alarm, the batches since it was last more frequent than chance explains.
    before : dict
        Its rows before that, and all rows.
    causes : dict
        The p-value of its alarm, by column and label, until a batch does not show it.
    since : int
        The number of batches from the one with which the most certain value has risen to the latest, or 0.
    raised : bool
        Whether the latest batch raised an alarm.
    """

    counts: dict[str, dict[str, int]]
    n: int
    limit: float
    together: float
    unseen: float
    parts: tuple[Part, ...]
    quiet: dict[Key, int] = field(default_factory=dict)
    before: dict[Key, tuple[int, int]] = field(default_factory=dict)
    causes: dict[Key, float] = field(default_factory=dict)
    since: int = 0
    raised: bool = False

    @classmethod
    def of(cls, reference: Table, run_length: float, together: bool = True) -> "FrequentLabels | None":
        """The state before the first batch, which counts the latest batches also `together`; None without values."""
        counts, part = _counts(reference), in_reference(reference if together else Table({}))
        if not (counts or part.counts):
            return None
        frequent, summed, unseen = (
            share / run_length for share in (SHARE_OF_FREQUENT, SHARE_TOGETHER, SHARE_OF_UNSEEN)
        )
        return cls(counts, len(reference), frequent, summed, unseen, (part,))

    @property
    def gone_on(self) -> list[str]:
        """What alarms about such values say, while they have not ended."""
        return [f"{self._said(*key)} is more frequent than in the reference" for key in self.quiet]

    def step(
        self, batch: Table, apart: Collection[str] = (), known: Collection[Any] = ()
    ) -> tuple["FrequentLabels", tuple[str, ...]]:
        """The state after one more batch, and notes on values that raise an alarm; columns set `apart` were not
        observed, and changes that are `known` raise no alarm.
        """
        quiet = {key: number + (key[0] not in apart) for key, number in self.quiet.items()}
        for key in quiet:
            if key[0] not in apart and self._is_high(key, batch):
                quiet[key] = 0
        ended = any(number >= BATCHES for number in quiet.values())
        quiet = {key: number for key, number in quiet.items() if number < BATCHES}
        parts = after_part(self.parts[:1] if ended else self.parts, in_batch(batch, self.parts[0], apart))
        together = {(name, "share", value): each for (name, value), each in risen(parts).items()}
        together = {key: each for key, each in together.items() if key not in quiet and key not in known}
        alone = {key: each for key, each in self._alone(batch, apart).items() if key not in quiet}
        unseen = {(name, UNSEEN, ""): each for name, each in self._newer(batch, parts, apart).items()}
        new = {key: each for key, each in together.items() if each.pvalue <= self.together}
        new |= {key: each for key, each in unseen.items() if each.pvalue <= self.unseen and key not in quiet}
        notes = [each.said(self._said(*key)) for key, each in new.items() if key not in alone]
        notes += [_note(key[0], key[2], each.here, each.before) for key, each in alone.items()]
        raised = new | alone
        both = {key: each for key, each in (together | unseen).items() if key not in quiet}
        suspected = [each for key, each in both.items() if each.pvalue <= SUSPECTED or key in raised]
        most = min(suspected or alone.values(), key=lambda each: each.pvalue, default=None)
        causes = {key: pvalue for key, pvalue in self.causes.items() if quiet.get(key) == 0}  # the batch shows it
        before = {key: counts for key, counts in self.before.items() if key in quiet}
        after = replace(
            self,
            parts=parts,
            quiet=quiet | dict.fromkeys(raised, 0),
            before=before | {key: (new | alone)[key].before for key in raised},
            causes=causes | {key: each.pvalue for key, each in raised.items()},
            since=0 if most is None else most.batches,
            raised=bool(raised),
        )
        return after, tuple(notes)

    def _newer(self, batch: Table, parts: Sequence[Part], apart: Collection[str]) -> dict[str, Risen]:
        """For each column of labels, how much more frequent labels of one row are in the latest batches."""
        here = {name: found for name, found in _counts(batch).items() if name not in apart}
        return newer(parts, self.counts if parts[0].counts else {}, here)

    def _said(self, name: str, what: str, value: str) -> str:
        if what == UNSEEN:
            return f"a label of column {name!r} that no other row has"
        return f"{value!r} of column {name!r}" if name in self.counts else f"the value {value} of column {name!r}"

    def _is_high(self, key: Key, batch: Table) -> bool:
        """Whether a value that raised an alarm is more frequent in a batch than chance explains."""
        from scipy.stats import hypergeom

        if key[1] == UNSEEN:
            here = self._newer(batch, (self.parts[0], in_batch(batch, self.parts[0], ())), ())
            return here[key[0]].pvalue <= LEVEL
        (count, n), m = self.before[key], len(batch)
        here = rows_with(np.asarray(batch.columns[key[0]]), key[2])
        return here > 0 and float(hypergeom.sf(here - 1, n + m, count + here, m)) <= LEVEL

    def _alone(self, batch: Table, apart: Collection[str]) -> dict[Key, Risen]:
        """The labels of the latest batch alone that raise an alarm, compared with the reference.

        Of n + m exchangeable rows c have the label: the number of these among the m of the batch is hypergeometric. By
        Bonferroni's correction for all labels of both, any of them is at most as frequent as the p-value says, however
        many labels are rare; one that a single row has raises no alarm.
        """
        found, m = {}, len(batch)
        for name, here in _counts(batch).items():
            if name in apart or name not in self.counts:
                continue
            before = self.counts[name]
            number = len(self.counts) * len(before.keys() | here.keys())
            for label, chance in self._chances(before, here, m).items():
                if number * chance <= self.limit:
                    sides = (here[label], m), (before.get(label, 0), self.n)
                    found[name, "share", label] = Risen(1, *sides, number * chance, False)
        return found

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
