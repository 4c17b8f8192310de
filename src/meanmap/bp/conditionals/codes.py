"""Whole numbers that may be codes, and times with weekdays and hours: residuals of the outcome differ among these."""

from collections.abc import Hashable, Mapping, Sequence

import numpy as np

from meanmap.bp.conditionals.columns import CodedColumn
from meanmap.bp.conditionals.given_parents import MOST_ROWS, GivenParents
from meanmap.bp.conditionals.in_range import InRange
from meanmap.bp.conditionals.laws import Law
from meanmap.core.points import spread_rows
from meanmap.core.tables.codes import ROWS_TO_COMPARE, if_codes
from meanmap.core.tables.doubts import copied_rows

__all__ = ["notes_of_codes", "notes_of_law"]

# The least number of codes, and the p-value below which differences among them are noted.
LEAST_VALUES, DIFFERENT = 5, 1e-4
# What comes back in times: its seconds, and how often in a period.
DAY = 86400.0
CYCLES = {"the weekday": (DAY, 7), "the hour": (DAY / 24, 24)}


def notes_of_codes(
    columns: Mapping[Hashable, CodedColumn],
    numbers: Mapping[Hashable, np.ndarray],
    adjusted: Sequence[Hashable],
    on: Hashable,
    left: np.ndarray,
    outcome: np.ndarray,
) -> tuple[str, ...]:
    """Notes on integers among the adjustment variables that predict the outcome (n, 1) better as codes than as numbers,
    and on times of which the weekday or the hour does.

    `left` (n,) are residuals of held-out predictions; their means in rows with the same integer, weekday or hour are
    compared by the F test. Not where rows are copies, which have a note of their own: they share their residual, and a
    row is not held out whose copy is not.
    """
    notes = []
    for name in adjusted:
        column = columns[name]
        if column.column.kind == "time":
            notes += _cycles(column.in_unit(numbers[name][:, 0]), name, on, left)
        if column.column.kind not in ("number", "count") or column.told is not None:
            continue
        values = column.back(numbers[name][:, 0])
        found, group = np.unique(np.round(values), return_inverse=True)
        whole = np.allclose(values, np.round(values), rtol=0, atol=1e-6)
        if whole and len(found) >= LEAST_VALUES and _differ(left, group) < DIFFERENT:
            notes.append(
                f"{name!r} counts as a number, whose effects are smooth, but {on!r} varies more among its {len(found)} "
                "values than smooth effects explain. "
                + if_codes(f"answers are wrong: pass kinds={{{str(name)!r}: 'label'}}")
            )
    if notes and copied_rows([np.concatenate([*numbers.values(), outcome], axis=1)], ["data"]):
        return ()
    return tuple(notes)


def notes_of_law(
    columns: Mapping[Hashable, CodedColumn],
    numbers: Mapping[Hashable, np.ndarray],
    name: Hashable,
    outcome: np.ndarray,
    law: Law,
) -> tuple[str, ...]:
    """Notes on integers among the parents of a number, (n, width) each, that predict it better as codes."""
    of_number = law.law if isinstance(law, InRange) else law
    if not isinstance(of_number, GivenParents) or not numbers:
        return ()
    some = spread_rows(len(next(iter(numbers.values()))), MOST_ROWS)  # whose residuals it keeps
    parents = {parent: values[some] for parent, values in numbers.items()}
    return notes_of_codes(columns, parents, tuple(parents), name, of_number.values, outcome[some])


def _cycles(seconds: np.ndarray, name: Hashable, on: Hashable, left: np.ndarray) -> list[str]:
    """Notes on what comes back, of which effects that are smooth in time know nothing."""
    notes = []
    for cycle, (unit, number) in CYCLES.items():
        group = np.unique(np.floor(seconds / unit) % number, return_inverse=True)[1].ravel()
        if group.max() and _differ(left, group) < DIFFERENT:
            notes.append(
                f"{name!r} counts as a number, whose effects are smooth, but {on!r} varies with {cycle} of {name!r}: "
                "make it a column of its own, and draw its arrows."
            )
    return notes


def _differ(left: np.ndarray, group: np.ndarray) -> float:
    """The p-value of different means of groups; 1 where they have few rows each."""
    from scipy.special import fdtrc

    n, counts, away = len(left), np.bincount(group), left - left.mean()
    if n < ROWS_TO_COMPARE * len(counts):
        return 1.0
    between = float(np.sum(np.bincount(group, away) ** 2 / counts))
    within = max(float(np.sum(away**2)) - between, np.finfo(float).tiny)
    k = len(counts)
    return float(fdtrc(k - 1, n - k, between / (k - 1) / (within / (n - k))))
