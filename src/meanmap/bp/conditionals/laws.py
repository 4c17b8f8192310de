"""Distributions of variables given their parents: regressions of numbers, counts or logistic regressions of labels."""

from collections.abc import Hashable, Iterable, Mapping, Sequence

import numpy as np

from meanmap.bp.beliefs.tails import with_tails
from meanmap.bp.conditionals.at_points import AtPoints
from meanmap.bp.conditionals.columns import FAR, CodedColumn
from meanmap.bp.conditionals.given_parents import GivenParents, joined
from meanmap.bp.conditionals.in_range import InRange, number_given
from meanmap.bp.conditionals.labels_given_parents import LabelsGivenParents
from meanmap.core.held import holds_floats

__all__ = ["Law", "beyond_data", "law_given", "log_score", "pooled_labels", "pooled_note"]

# In scores, tails of numbers begin this many standard deviations from the mean.
TAILS = 3.0

Law = GivenParents | InRange | AtPoints | LabelsGivenParents


def law_given(parents: Sequence[np.ndarray], values: np.ndarray, column: CodedColumn) -> Law:
    """Learn from the numbers of each parent in n rows, (n, width), those of the variable, and its code."""
    rows = joined(list(parents), len(values))
    if values.shape[1] == 1:
        return AtPoints.fit(parents, values, column) or number_given(rows, values, column)
    return LabelsGivenParents.fit(rows, tuple(each.shape[1] for each in parents), values)


def log_score(law: Law, column: CodedColumn, rows: np.ndarray, values: np.ndarray) -> np.ndarray:
    """The logarithm of the density of numbers or labels (m, width) at rows of the parents, of numbers that are not
    rounded with tails: where a parent is far from all rows, one value would weigh more than all others.
    """
    logs = law.log_chance(rows, values)
    if column.labels is not None or column.step:
        return logs
    tails = with_tails(logs, values, np.array([-TAILS]), np.array([TAILS]))
    return np.where(np.isin(values[:, 0], law.points), logs, tails) if isinstance(law, AtPoints) else tails


def beyond_data(
    columns: Mapping[Hashable, CodedColumn],
    laws: Mapping[Hashable, Law],
    parents: Mapping[Hashable, Sequence[Hashable]],
    known: Mapping[Hashable, np.ndarray],
    names: Iterable[Hashable],
) -> tuple[str, ...]:
    """Notes on known numbers, (1, 1), beyond all that the distributions of these variables were learned with."""
    notes: list[str] = []
    for name in names:
        starts = np.cumsum([0, *(columns[parent].width for parent in parents[name])])
        for parent, start in zip(parents[name], starts.tolist(), strict=False):
            if parent in known and columns[parent].labels is None:
                notes.append(_beyond(columns[parent], float(known[parent][0, 0]), laws[name], start, (parent, name)))
    return tuple(filter(None, notes))


def pooled_labels(
    columns: Mapping[Hashable, CodedColumn],
    parents: Mapping[Hashable, Sequence[Hashable]],
    names: Iterable[Hashable],
) -> tuple[str, ...]:
    """Notes on parents of these variables whose rarest labels were merged."""
    heard: dict[Hashable, Hashable] = {}
    for name in names:
        for parent in parents[name]:
            heard.setdefault(parent, name)
    return tuple(filter(None, (pooled_note(columns[parent], parent, name) for parent, name in heard.items())))


def _beyond(column: CodedColumn, value: float, law: Law, start: int, of: tuple[Hashable, Hashable]) -> str:
    """A note if the value of a parent is outside the range of the data of the fit, or empty text."""
    low, high = law.ends(start)
    out = max(low - value, value - high)
    number = law.number if isinstance(law, AtPoints) else law
    regression = isinstance(number, GivenParents | InRange)
    at_end = isinstance(number, InRange) and not number.extrapolates
    if out <= 0 or (regression and not at_end and out > FAR * (high - low)):  # which is noted where evidence is read
        return ""
    ends = column.back(np.array([low, high]))
    first, last = (f"{end:.4g}" if holds_floats(ends) else str(end) for end in ends)
    labels = "its probabilities are those at the nearest end, shrunk towards those of all rows."
    numbers = "its mean is extrapolated, without support from the data."
    inside = "its distribution is that at the nearest end."
    then = inside if at_end else numbers
    return (
        f"the value of {of[0]!r} is outside the range from which {of[1]!r} was learned ({first} to {last}): "
        f"{then if regression else labels}"
    )


def pooled_note(column: CodedColumn, parent: Hashable, name: Hashable) -> str:
    """A note on pooled labels, or nothing."""
    labels = 0 if column.labels is None else len(column.labels)
    if labels <= column.width:
        return ""
    return (
        f"the {labels - column.width + 1} rarest of the {labels} labels of {parent!r} count as one: {name!r} is not "
        "adjusted for differences among them."
    )
