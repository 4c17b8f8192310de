"""Whole numbers that may be codes, of sites or people: the number of rows that share a value, and notes on them."""

import numpy as np

from meanmap.core.held import holds_numbers, holds_text, holds_truth

__all__ = [
    "LEAST_CODES",
    "ROWS_A_LABEL",
    "ROWS_A_STRATUM",
    "ROWS_TO_COMPARE",
    "ROWS_TO_DOUBT",
    "if_codes",
    "may_be_codes",
]

# Rows for each value on average: this many are strata to permute within, as fewer would leave little to permute;
ROWS_A_STRATUM = 6
# this many make each value a label, too, as an indicator costs a row, so that this takes an eighth of the rows at most;
ROWS_A_LABEL = 8
# of at least as many whole numbers, this many make doubtful whether regressions follow them;
LEAST_CODES, ROWS_TO_DOUBT = 10, 2
# and this many allow to compare residuals among the values.
ROWS_TO_COMPARE = 3


def may_be_codes(column: object) -> bool:
    """Whether values may be codes: labels and whole numbers."""
    column = np.asarray(column)
    whole = holds_numbers(column) and bool(np.all(column == np.round(column)))
    return column.ndim == 1 and (holds_text(column) or holds_truth(column) or whole)


def if_codes(then: str) -> str:
    """The end of a note on numbers.

    Examples
    --------
    >>> if_codes("pass them as within=, too")
    'If they are codes (of sites, people), pass them as within=, too.'
    """
    return f"If they are codes (of sites, people), {then}."
