"""A column given a few others: a regression of its own, as rows with just these known are rare among all patterns."""

from collections.abc import Sequence
from functools import partial

import numpy as np

from meanmap.bp.conditionals.column_conditional import ColumnConditional
from meanmap.bp.conditionals.joint_normal import JointNormal
from meanmap.bp.conditionals.row_weights import Learner, grown
from meanmap.bp.conditionals.standard import Standard
from meanmap.bp.conditionals.two_part import TwoPart

__all__ = ["MOST_KNOWN", "given_few"]

# The most columns that are known, and the fewest rows that are learned from.
MOST_KNOWN, LEAST_ROWS = 3, 100
# The fewest rows in a leaf, of small trees for relations that change quickly and of large ones for the others.
LEAVES = 5, 25


def given_few(
    conditional: ColumnConditional | TwoPart,
    place: int,
    known: np.ndarray,
    scale: Standard,
    rows: np.ndarray,
    laws: Sequence[JointNormal],
) -> ColumnConditional | TwoPart:
    """The variable at a place given only those that are `known` (variables,), from the rows (n, d) in which all of them
    are; as it was where these rows are few.
    """
    wholes = scale.wholes
    there = ~np.isnan(rows[:, [whole.start for whole in wholes]])
    those = np.flatnonzero(there[:, place] & there[:, known].all(axis=1))
    if len(those) < LEAST_ROWS:
        return conditional
    shown, own = np.repeat(known, [len(whole) for whole in wholes]), wholes[place]
    unit = 1 / list(scale.table.columns.values())[place].scale
    if isinstance(conditional, TwoPart):
        points, number = own[:-1], own[-1:]
        which = conditional.which.given_only(shown, rows, rows[:, points], those, unit, laws, _forests(False))
        shown = shown | np.isin(np.arange(len(shown)), points)
        those = those[~np.isnan(rows[those, number.start])]
        law = conditional.number.given_only(shown, rows, rows[:, number], those, unit, laws, _forests(True))
        return TwoPart(conditional.components, which, law, {})
    forests = _forests(conditional.thresholds is not None)
    return conditional.given_only(shown, rows, rows[:, own], those, unit, laws, forests)


def _forests(number: bool) -> list[Learner]:
    """Of residuals of numbers, or of labels."""
    return [partial(grown, of=1 if number else None, least=least) for least in LEAVES]
