"""Errors about cells that are Python objects, neither numbers nor labels, and what to type instead."""

import numbers
from typing import Any

import numpy as np

from meanmap.core.errors import KindError

__all__ = ["check_cells", "texts_of_categories", "unread_object"]

# By the name of their type, told without importing pandas: what makes numbers or times of one such value.
MADE_OF = {
    "Interval": ("numbers, use their midpoints", "v.mid"),
    "Period": ("times, use the start of each", "v.to_timestamp()"),
    "time": ("numbers, take hours", "v.hour + v.minute / 60"),
    "Fraction": ("numbers", "float(v)"),
}
# Types that are labels as they are, and labels that have a name of their own.
LABELS = (str, bytes, bool, int, float, np.generic)
NAMES = {"Enum": "v.name"}


def check_cells(array: np.ndarray, argument: str) -> None:
    """Refuse an array of objects with one that is neither a label nor a number."""
    strange = next((each for each in array.flat if not isinstance(each, LABELS)), None)
    if strange is not None:
        raise unread_object(strange, argument)
    if not any(isinstance(each, str | bytes) for each in array.flat):
        long = next((each for each in array.flat if type(each) is int and not -(2**63) <= each < 2**64), None)
        if long is not None:
            raise unread_object(long, argument)


def unread_object(value: object, argument: str) -> KindError:
    """The error for a column that holds such a value.

    Examples
    --------
    >>> from fractions import Fraction
    >>> print(unread_object(Fraction(1, 3), "x"))
    x holds Python objects such as Fraction(1, 3) (Fraction); expected numbers or labels. As labels: [str(v) for v in \
x]. As numbers: [float(v) for v in x].
    """
    if isinstance(value, numbers.Integral):
        return KindError(
            f"{argument} holds whole numbers of more than 64 bits, such as {value!r}; expected shorter ones. As "
            f"labels: [str(v) for v in {argument}]. As numbers: [float(v) for v in {argument}]."
        )
    if isinstance(value, dict):
        return KindError(
            f"{argument} holds dicts, such as {value!r}; expected one value per row, or a table. Make a table of them: "
            f"pandas.DataFrame({argument})."
        )
    ancestors = [each.__name__ for each in type(value).__mro__]
    label = next((NAMES[each] for each in ancestors if each in NAMES), "str(v)")
    said = f"As labels: [{label} for v in {argument}]."
    made = next((MADE_OF[each] for each in ancestors if each in MADE_OF), None)
    if made:
        said += f" As {made[0]}: [{made[1]} for v in {argument}]."
    return KindError(
        f"{argument} holds Python objects such as {value!r} ({type(value).__name__}); expected numbers or labels. "
        f"{said}"
    )


def texts_of_categories(column: Any) -> Any:
    """A column of pandas' categories that are objects, such as the bins of `pandas.cut`, with their texts instead.

    They are declared as labels, and their order is kept; anything else is unchanged.
    """
    categories = getattr(column.dtype, "categories", None)
    if categories is None or all(isinstance(each, LABELS) for each in categories):
        return column
    texts = [each if isinstance(each, LABELS) else str(each) for each in categories]
    categorical = getattr(column, "cat", column)
    return categorical.rename_categories(texts) if len(set(texts)) == len(texts) else column
