"""The numbers of rows with each label or repeated number, in the reference and in the latest batches together."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from meanmap.core.language import in_percent
from meanmap.core.tables.kinds import family_of
from meanmap.core.tables.table import Table
from meanmap.core.values import Value, label_text

__all__ = ["Part", "Risen", "after_part", "in_batch", "in_reference", "risen", "rows_with"]

# Kept are the latest batches, so many at most. Values of batches that the reference does not list are kept above this
# share of the rows; of numbers, those of more than one row and above the second share; and of the reference, numbers
# above the third.
BATCHES, RARE, RARE_NUMBER, KEPT_NUMBER = 64, 1 / 1000, 1 / 200, 1 / 1000
# So many neighbours of equal length are kept apart; two of one more merge.
APART = 8
# Counts less than so many standard deviations above their expectation raise no alarm.
DEVIATIONS = 2.0


@dataclass(frozen=True, eq=False, repr=False)
class Part(Value):
    """The reference, or one or several batches: by column the number of rows, and of those with each value.

    Attributes
    ----------
    batches : int
    rows : dict
    counts, beyond : dicts of dicts
        The rows with each value. A value that the reference does not list is counted only in batches where more rows
        than some number have it; `beyond` has the rows beyond this number.
    unlisted : dict
        The sum of these numbers: so many rows more than those beyond may have such a value.
    """

    batches: int
    rows: dict[str, int]
    counts: dict[str, dict[str, int]]
    beyond: dict[str, dict[str, int]]
    unlisted: dict[str, int]

    def merge(self, other: "Part") -> "Part":
        """The counts of both."""
        counts, beyond, rows, unlisted = (
            {name: _added(one[name], two[name]) for name in one}
            for one, two in (
                (self.counts, other.counts),
                (self.beyond, other.beyond),
                ({"": self.rows}, {"": other.rows}),
                ({"": self.unlisted}, {"": other.unlisted}),
            )
        )
        return Part(self.batches + other.batches, rows[""], counts, beyond, unlisted[""])


class Risen(NamedTuple):
    """A value that is more frequent in the latest batches than before: the number of these batches, its rows in them of
    all their rows, and before; the p-value, corrected for windows and values; and whether rows are bounds.
    """

    batches: int
    here: tuple[int, int]
    before: tuple[int, int]
    pvalue: float
    bounds: bool

    def said(self, what: str) -> str:
        """A note on it."""
        (c, m), (b, n) = self.here, self.before
        least, most = ("at least " if c < m else "", "at most ") if self.bounds else ("", "")
        share = f"{most}{in_percent(b / n)}% of the {n} before" if b else f"none of the {n} before"
        return f"{what} is in {least}{c} of the latest {m} rows, and in {share}."


def in_reference(table: Table) -> Part:
    """The rows of a reference with each label, and with numbers that are repeated."""
    rows, counts, unlisted = {}, {}, {}
    for name, column in _columns(table).items():
        numbers = family_of(column) == "number"
        most = max(1, int(len(column) * KEPT_NUMBER)) if numbers else 0
        rows[name], counts[name], unlisted[name] = len(column), _counted(column, most), most
    return Part(0, rows, counts, {name: {} for name in rows}, unlisted)


def in_batch(table: Table, reference: Part, apart: Collection[str]) -> Part:
    """The rows of a batch with values that the reference lists, and with others that are frequent."""
    columns = _columns(table)
    rows, unlisted = dict.fromkeys(reference.rows, 0), dict.fromkeys(reference.rows, 0)
    counts, beyond = ({name: {} for name in rows} for _ in range(2))
    for name, known in reference.counts.items():
        if name in apart or name not in columns:
            continue
        column = columns[name]
        m, numbers = len(column), family_of(column) == "number"
        most = max(1, int(m * RARE_NUMBER)) if numbers else int(m * RARE)
        found = _counted(column, 0)
        counts[name] = {value: number for value, number in found.items() if value in known or number > most}
        beyond[name] = {value: number - most for value, number in counts[name].items() if value not in known}
        rows[name], unlisted[name] = m, most
    return Part(1, rows, counts, beyond, unlisted)


def after_part(parts: Sequence[Part], new: Part) -> tuple[Part, ...]:
    """The reference and batches after one more. Two neighbours of equal length merge where there are too many: their
    number grows only with the logarithm of time, and does not depend on the data.
    """
    reference, *batches = (*parts, new)
    length = 1
    while len(same := [at for at, part in enumerate(batches) if part.batches == length]) > APART:
        first = same[0]
        batches[first : first + 2] = [batches[first].merge(batches[first + 1])]
        length *= 2
    while sum(part.batches for part in batches) > BATCHES:
        batches = batches[1:]
    return (reference, *batches)


def risen(parts: Sequence[Part]) -> dict[tuple[str, str], Risen]:
    """For each column and value the latest batches in which it is most surely more frequent than before them.

    Of n + m exchangeable rows T have the value: the number of these among the m of the latest batches is hypergeometric
    given T. The correction for all windows of latest batches, and all columns, is Bonferroni's; values have weights T/N
    of all N rows, which add to one, however many values are rare. Where all K values of a column are counted, weights
    are the mean of T/N and 1/K. Bounds make p-values larger.
    """
    from scipy.stats import hypergeom

    found: dict[tuple[str, str], Risen] = {}
    reference, windows = parts[0], len(parts) - 1
    for name, known in reference.counts.items():
        values = [*dict.fromkeys(value for part in parts[1:] for value in part.counts[name])]
        rows = np.array([part.rows[name] for part in parts])
        if not values or not rows[-1]:
            continue
        least = np.array([[part.counts[name].get(value, 0) for value in values] for part in parts])
        new, unlisted = np.array([value not in known for value in values]), [part.unlisted[name] for part in parts]
        beyond = np.array([[part.beyond[name].get(value, 0) for value in values] for part in parts])
        most = np.where(new, beyond + np.array(unlisted)[:, None], least)
        here, before = np.cumsum(least[::-1], axis=0)[::-1][1:], np.cumsum(most, axis=0)[:-1]
        m, n = np.cumsum(rows[::-1])[::-1][1:, None], np.cumsum(rows)[:-1, None]
        total, share = here + before, m / (m + n)
        high = here - total * share > DEVIATIONS * np.sqrt(total * share * (1 - share))
        pvalues = np.ones(high.shape)
        m, n = (np.broadcast_to(each, high.shape) for each in (m, n))
        pvalues[high] = hypergeom.sf(here[high] - 1, (m + n)[high], total[high], m[high])
        weights = least.sum(axis=0) / rows.sum()
        weights = weights if any(unlisted) else (weights + 1 / len({*known, *values})) / 2
        corrected = pvalues * windows * len(reference.counts) / weights
        for k in np.flatnonzero(high.any(axis=0)):
            at = int(np.argmin(corrected[:, k]))
            batches = sum(part.batches for part in parts[1 + at :])
            bounds = bool(new[k] and any(unlisted))
            latest, earlier = ((int(c[at, k]), int(of[at, k])) for c, of in ((here, m), (before, n)))
            found[name, values[k]] = Risen(batches, latest, earlier, min(1.0, float(corrected[at, k])), bounds)
    return found


def rows_with(column: np.ndarray, value: str) -> int:
    """The rows of a column with a value, given as text."""
    if family_of(column) == "number":
        return int(np.count_nonzero(column == float(value)))
    return _counted(column, 0).get(value, 0)


def _columns(table: Table) -> dict[str, np.ndarray]:
    """The columns of labels and of numbers."""
    columns = {name: np.asarray(column) for name, column in table.columns.items()}
    return {name: each for name, each in columns.items() if each.ndim == 1 and family_of(each) in ("label", "number")}


def _counted(column: np.ndarray, most: int) -> dict[str, int]:
    """The rows of each value that has more than this many."""
    values, counts = np.unique(column, return_counts=True)
    often = counts > most
    return dict(zip(map(label_text, values[often]), counts[often].tolist(), strict=True))


def _added(one: dict[str, int], two: dict[str, int]) -> dict[str, int]:
    return {key: one.get(key, 0) + two.get(key, 0) for key in one | two}
