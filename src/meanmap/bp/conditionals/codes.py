"""What smooth effects do not follow: codes, weekdays and hours, steps. Residuals of the outcome differ among these."""

from collections.abc import Collection, Hashable, Mapping, Sequence

import numpy as np

from meanmap.bp.conditionals.breaks import ROUNDED
from meanmap.bp.conditionals.columns import CodedColumn
from meanmap.bp.conditionals.given_parents import MOST_ROWS, GivenParents
from meanmap.bp.conditionals.in_range import InRange
from meanmap.bp.conditionals.laws import Law
from meanmap.bp.conditionals.parent_columns import HeavyTails
from meanmap.core.points import spread_rows
from meanmap.core.tables.codes import if_codes
from meanmap.core.tables.cycles import cycles, differ
from meanmap.core.tables.doubts import are_coarse, copied_rows

__all__ = ["notes_about", "notes_of_codes", "notes_of_law"]

# The least number of codes.
LEAST_VALUES = 5
# Codes that fewer rows have are compared only if most rows have such codes.
LEAST_OF_CODE = 10
# Numbers with steps or waves are cut into at most this many parts of equal size, of this many rows and units at least.
# Polynomials of this degree are no steps.
MOST_PARTS, LEAST_IN_PART, LEAST_UNITS, DEGREE = 50, 10, 4, 3
# The p-value below which they are noted: in none of 249 tables with smooth effects, or clusters that differ.
UNEVEN = 1e-6
# The second on numbers with long tails, such as money that acts as its logarithm.
OF_STEPS = "in steps or waves that smooth effects do not follow: if you know where they are, cut it there into labels."
OF_TAILS = (
    "in steps or waves, or more steeply than smooth effects follow. It has long tails: if its logarithm may be what "
    "acts, pass that in its place; if there are steps, cut it there into labels."
)
OF_GROUPS = " If rows with equal values are of one site or person, they may differ for other reasons."


def notes_of_codes(
    columns: Mapping[Hashable, CodedColumn],
    numbers: Mapping[Hashable, np.ndarray],
    adjusted: Sequence[Hashable],
    on: Hashable,
    left: np.ndarray,
    outcome: np.ndarray,
    units: np.ndarray | None = None,
) -> tuple[str, ...]:
    """Notes on integers among the adjustment variables that predict the outcome (n, 1) better as codes than as numbers,
    on times of which the weekday or the hour does, and on numbers with steps or waves.

    `left` (n,) are residuals of held-out predictions; their means in rows with the same integer, weekday or hour are
    compared by the F test; means in those of one of the `units` (n,), if rows of these depend on one another, as they
    differ anyway. Not where rows are copies, which have a note of their own: they share their residual, and a
    row is not held out whose copy is not. Nor where nothing but rounding is left.
    """
    if left.std() <= ROUNDED * outcome.std():
        return ()
    notes = []
    for name in adjusted:
        column = columns[name]
        if column.column.kind == "time":
            times = column.in_unit(numbers[name][:, 0])
            found = cycles(times, left, units)
            notes += [
                f"{name!r} counts as a number with smooth effects, but {on!r} varies with {cycle} of {name!r}: "
                "make it a column of its own, and draw its arrows."
                for cycle in found
            ]
            if not found and _is_uneven(times, left, units):
                notes.append(f"{name!r} counts as a number with smooth effects, but {on!r} varies with it {OF_STEPS}")
        if column.column.kind not in ("number", "count") or column.told is not None:
            continue
        values = column.back(numbers[name][:, 0])
        found, group = np.unique(np.round(values), return_inverse=True)
        whole = np.allclose(values, np.round(values), rtol=0, atol=1e-6)
        if not whole and _is_uneven(values, left, units):
            notes.append(
                f"{name!r} counts as a number with smooth effects, but {on!r} varies with it "
                + (OF_TAILS if len(HeavyTails.of(values[:, None]).columns) else OF_STEPS)
                + OF_GROUPS * (units is None and 2 * len(np.unique(values)) <= len(values))
            )
        if whole and len(found) >= LEAST_VALUES and _among_codes(left, group, units) < UNEVEN:
            notes.append(
                f"{name!r} counts as a number with smooth effects, but {on!r} varies more among its {len(found)} "
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


def notes_about(notes: Sequence[str], names: Collection[Hashable], parents: Collection[Hashable]) -> tuple[str, ...]:
    """Of the notes of a fit those on what smooth effects do not follow in these variables, and on odd values in what
    they depend on.
    """
    on, of = (tuple(f"but {name!r} varies " for name in names), tuple(f"column {name!r} of data " for name in parents))
    return tuple(note for note in notes if note.startswith(of) or any(each in note for each in on))


def _among_codes(left: np.ndarray, group: np.ndarray, units: np.ndarray | None) -> float:
    """The p-value of different means of residuals among codes.

    One row in the long tail of costs is a large mean where few others have its code: by the F test alone p-values of
    costs that grow smoothly along a geometric number were below 1e-6 in a sixth to a half of the tables.
    """
    found = differ(left, group, units, unequal=True)
    often = np.bincount(group)[group] >= LEAST_OF_CODE
    if often.all() or 2 * np.count_nonzero(often) < len(group):
        return found
    codes = np.unique(group[often], return_inverse=True)[1]
    return max(found, differ(left[often], codes, None if units is None else units[often], unequal=True))


def _is_uneven(values: np.ndarray, left: np.ndarray, units: np.ndarray | None) -> bool:
    """Whether residuals (n,) have steps or waves in numbers (n,), more than their units differ, or groups of rows with
    equal numbers that are not rounded.
    """
    distinct, equal = np.unique(values, return_inverse=True)
    units = np.arange(len(values)) if units is None else units
    units = equal if len(distinct) <= units.max() and not are_coarse(distinct) else units
    part = _parts(values, units)
    powers = np.polynomial.legendre.legvander(2 * part / max(part.max(), 1) - 1, min(DEGREE, part.max()))
    smooth = np.linalg.qr(powers)[0]
    return differ(left - smooth @ (smooth.T @ left), part, units, unequal=True) < UNEVEN


def _parts(values: np.ndarray, units: np.ndarray) -> np.ndarray:
    """The part of each number (n,): cut by rank into as many as have enough rows and units; equal ones are together."""
    number = max(min(MOST_PARTS, len(values) // LEAST_IN_PART), 1)
    place = np.searchsorted(np.sort(values), values)
    while True:
        part = np.unique(place * number // len(values), return_inverse=True)[1].ravel()
        if len(np.unique(part * len(values) + units)) >= LEAST_UNITS * number or number == 1:
            return part
        number = number // 2
