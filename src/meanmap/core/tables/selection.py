"""Gaps that go with the values of other columns, so that rows without them are not like all rows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from meanmap.core.containers import is_rotations, is_sparse
from meanmap.core.foreign import unmasked
from meanmap.core.language import in_few_words
from meanmap.core.moments import seconds, times_of
from meanmap.core.tables.kinds import as_kind, holds_objects, wanted_kind
from meanmap.core.tables.marks import policy_and_marks
from meanmap.core.tables.missing import gaps_in, take
from meanmap.core.tables.sample import seen
from meanmap.core.tables.table import read_column

__all__ = ["UNLIKE", "notes_on_gaps", "selection_notes"]

# What every note ends with.
UNLIKE = "Answers may hold only for rows without gaps, not for all."
# Gaps at random are noted in fewer tables than this.
CHANCE = 0.001
# Numbers are compared by the shares above these quantiles, and labels by those of labels that a share FREQUENT has.
QUANTILES, FREQUENT = (0.02, 0.1, 0.25, 0.5, 0.75, 0.9, 0.98), 0.01
# Differences between all rows and those without gaps that matter: of a share, and of a mean in standard deviations.
SHARE, SHIFT = 0.01, 0.02
# A mean is named if it moved by this many standard errors; otherwise it is a share that moved.
CLEAR = 2.0
# The most columns whose gaps have a note, and the most columns that a note names beside the clearest.
MOST, MOST_BESIDE = 3, 3
# The significant digits of a figure, and the most where two would look alike: rounding changes their difference by at
# most this share. Numbers below WRITTEN_OUT have no exponent.
DIGITS, MOST_DIGITS, ROUNDED, WRITTEN_OUT = 3, 9, 0.25, 1e9


@dataclass(frozen=True, eq=False)
class Facts:
    """What is compared of one column, in the rows where it is known.

    Attributes
    ----------
    hits : array (n, k) of bool
        Whether each row counts for each share.
    shown : sequence of str
        What each share is of, in words.
    numbers : array (n,) or None
        The values, in seconds for times.
    kind : str
        The kind of its array: "M" for times, "m" for durations.
    """

    hits: np.ndarray
    shown: Sequence[str]
    numbers: np.ndarray | None
    kind: str

    @classmethod
    def of(cls, values: np.ndarray) -> "Facts":
        """Of numbers, times, labels or truth values without gaps."""
        kind = values.dtype.kind
        if kind in "fiumM":
            numbers = seconds(values)
            cuts = np.unique(np.quantile(numbers, QUANTILES, method="inverted_cdf"))
            above = numbers[:, None] > cuts
            # Where many rows have the value of a cut, reaching it is another question than exceeding it.
            reached = cuts[(numbers[:, None] == cuts).mean(axis=0) >= FREQUENT]
            hits = np.concatenate([above, numbers[:, None] >= reached], axis=1)
            shown = [f"it is above {_value(cut, kind)}" for cut in cuts]
            shown += [f"it is at least {_value(cut, kind)}" for cut in reached]
            return cls(hits, shown, numbers, kind)
        labels, codes, counts = np.unique(values, return_inverse=True, return_counts=True)
        often = np.flatnonzero(counts >= FREQUENT * len(values))
        often = often[::-1] if kind == "b" else often  # True is named rather than False
        return cls(codes.reshape(-1, 1) == often, [f"it is {label!r}" for label in labels[often].tolist()], None, kind)

    def difference(self, known: np.ndarray, k: int, those: str) -> str:
        """How the mean, or the k-th share, differs between all rows and `those`, the known ones; empty if it hardly
        does.
        """
        share, other = float(self.hits[:, k].mean()), float(self.hits[known, k].mean())
        moved = abs(share - other) >= SHARE
        if self.numbers is not None:
            centre = float(np.mean(self.numbers))
            apart, sd = float(np.mean(self.numbers[known] - centre)), float(np.std(self.numbers - centre))
            error = sd * np.sqrt((~known).mean() / known.sum())
            if abs(apart) >= max(CLEAR * error, 0.0 if moved else SHIFT * sd):
                first, second = _two(centre, centre + apart, self.kind)
                return f"its mean is {first} in all rows and {second} in {those}"
        if not moved:
            return ""
        first, second = _two(100 * share, 100 * other, "f")
        return f"{self.shown[k]} in {first}% of all rows and in {second}% of {those}"


def notes_on_gaps(
    samples: Sequence[Any], names: Sequence[str], missing: object, kinds: Mapping[str, Any] | None, paired: bool
) -> tuple[str, ...]:
    """`selection_notes` of samples, if `missing` leaves rows out: of each by itself, or of variables of the same rows
    (`paired`) together.

    Examples
    --------
    >>> cost = np.r_[np.zeros(60), np.full(60, 50.0)]
    >>> x, y = {"cost": cost}, {"severity": np.r_[np.full(40, np.nan), np.arange(80.0)]}
    >>> len(notes_on_gaps([x, y], ["x", "y"], "drop", None, paired=True))
    1
    """
    if policy_and_marks(missing)[0] not in ("pairwise", "drop"):
        return ()
    columns: dict[str, dict[str, Any]] = {}
    for sample, argument in zip(seen(samples, names), names, strict=True):
        mine = columns.setdefault("" if paired or len(names) == 1 else argument, {})
        for label, column in ((each.label, each.came) for each in sample.columns):
            name = argument if label is None else label if isinstance(label, str) else f"column {label}"
            mine[f"{name} of {argument}" if name in mine or (len(names) > 1 and name != label) else name] = column
    notes = []
    for where, mine in columns.items():
        gaps = gaps_in(mine, where or "the table", missing).values() if mine else ()
        there = {name: ~each for name, each in zip(mine, gaps, strict=True)}
        found = selection_notes(mine, there, kinds) if len({len(each) for each in there.values()}) == 1 else ()
        notes += [f"{where}: {note}" if where else note for note in found]
    return tuple(notes)


def selection_notes(
    columns: Mapping[Any, Any],
    there: Mapping[Any, np.ndarray],
    kinds: Mapping[Any, Any] | None = None,
    against: Sequence[Any] | None = None,
) -> tuple[str, ...]:
    """Notes on columns whose gaps go with the values of another: there rows without gaps are not like all rows. Gaps
    at random have a note in less than one of 1000 tables, whatever the distribution of the columns.

    Parameters
    ----------
    columns : mapping of name to column
        As they came; what is neither numbers, times, labels nor truth values is passed over.
    there : mapping of name to array (n,) of bool
        Where each is known.
    kinds : mapping of name to kind, optional
        The kinds that were declared.
    against : names, optional
        The columns that gaps are compared with, by default all.

    Notes
    -----
    Each share is compared between the rows with and without the gap by the hypergeometric distribution, which is exact
    for gaps at random, and all p-values are multiplied by their number (Bonferroni).

    Examples
    --------
    >>> cost = np.r_[np.zeros(60), np.full(60, 50.0)]
    >>> there = {"cost": np.ones(120, bool), "severity": np.arange(120) >= 40}
    >>> selection_notes({"cost": cost, "severity": np.arange(120.0)}, there)[0][:80]
    "the gaps of 'severity' go with 'cost': its mean is 25 in all rows and 37.5 in th"
    """
    gappy = [name for name, here in there.items() if 0 < here.sum() < len(here)]
    if not gappy:
        return ()
    known = np.stack([there[name] for name in gappy], axis=1)
    facts, found, tests = {}, [], 0
    for name in columns if against is None else against:
        each = _facts(columns[name], there[name], (kinds or {}).get(name), f"data[{str(name)!r}]")
        if each is None or not each.hits.shape[1]:
            continue
        inside = known[there[name]]
        facts[name] = each
        logs = _log_chances(inside, each.hits)
        for j, gaps in enumerate(gappy):
            if gaps != name and 0 < inside[:, j].sum() < len(inside):
                tests += logs.shape[1]
                k = int(np.argmin(logs[j]))
                found.append((float(logs[j, k]), gaps, name, k))
    told: dict[Any, list[tuple[Any, str]]] = {}
    for log, gaps, name, k in sorted(found, key=lambda each: each[0]):
        if log + np.log(tests) < np.log(CHANCE):
            said = facts[name].difference(there[gaps][there[name]], k, f"those where {str(gaps)!r} is known")
            told.setdefault(gaps, []).extend([(name, said)] if said else [])
    return tuple(_note(gaps, pairs) for gaps, pairs in told.items() if pairs)[:MOST]


def _note(gaps: Any, pairs: Sequence[tuple[Any, str]]) -> str:
    """The note on the gaps of a column, from the columns that they go with, the clearest first."""
    (name, said), *others = pairs
    more = in_few_words([repr(str(other)) for other, _ in others], MOST_BESIDE)
    also = f" They also go with {more}." if more else ""
    return f"the gaps of {str(gaps)!r} go with {str(name)!r}: {said}.{also} {UNLIKE}"


def _facts(column: Any, there: np.ndarray, kind: Any, where: str) -> Facts | None:
    """The values of a column that are compared; None if they are neither numbers nor labels, or all are missing."""
    if is_sparse(column) or is_rotations(column) or holds_objects(column) or not there.any():
        return None
    column = unmasked(column)
    read = read_column(column if there.all() else take(column, np.flatnonzero(there)), where)
    values = np.asarray(read if kind is None else as_kind(read, wanted_kind(kind, column), where))
    values = values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values
    return Facts.of(values) if values.ndim == 1 else None


def _log_chances(known: np.ndarray, hits: np.ndarray) -> np.ndarray:
    """Logarithms of bounds on two-sided p-values, (c, k), that hits are as frequent where each column (n, c) is known.

    Probabilities of a hypergeometric number decrease beyond it by a factor that decreases, too: a geometric series
    bounds their sum.
    """
    size, marked, drawn = float(len(hits)), hits.sum(axis=0)[None, :], known.sum(axis=0)[:, None]
    both = known.astype(float).T @ hits.astype(float)
    upper = both * size >= marked * drawn
    # The lower tail is the upper one of the rows that are no hits.
    marked, both = np.where(upper, marked, size - marked), np.where(upper, both, drawn - both)
    log = _log_choose(marked, both) + _log_choose(size - marked, drawn - both) - _log_choose(size, drawn)
    ratio = (marked - both) * (drawn - both) / ((both + 1) * (size - marked - drawn + both + 1))
    # At or below the mode the series says nothing.
    bound = log - np.log1p(-np.where(ratio < 1, ratio, 0.0))
    return np.where(ratio < 1, np.minimum(bound + np.log(2), 0.0), 0.0)


def _log_choose(n: Any, k: Any) -> np.ndarray:
    from scipy.special import gammaln  # here: it takes longer to load than all of core

    return gammaln(n + 1.0) - gammaln(k + 1.0) - gammaln(n - k + 1.0)


def _two(first: float, second: float, kind: str) -> tuple[str, str]:
    """Two different numbers with three digits, or as many as show their difference."""
    if kind == "M":
        return _value(first, kind), _value(second, kind)
    pair = "", ""
    for digits in range(DIGITS, MOST_DIGITS + 1):
        pair = _number(first, digits), _number(second, digits)
        rounding = float(pair[0]) - float(pair[1]) - (first - second)
        if abs(rounding) <= ROUNDED * abs(first - second):
            break
    unit = " s" if kind == "m" else ""
    return pair[0] + unit, pair[1] + unit


def _value(number: float, kind: str) -> str:
    """A number in its unit; a time as a date, to the minute."""
    if kind == "M":
        return str(times_of(np.array([number]), "time").astype("datetime64[m]")[0]).replace("T", " ")
    return _number(number, DIGITS) + (" s" if kind == "m" else "")


def _number(number: float, digits: int) -> str:
    return f"{number:.0f}" if 10**digits <= abs(number) < WRITTEN_OUT else f"{number:.{digits}g}"
