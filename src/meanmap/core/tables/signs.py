"""How to make numbers of text with signs or units, in one line of pandas."""

import re
from collections.abc import Collection

__all__ = ["decimal_marks", "to_numbers"]

# A comma that is not followed by exactly three digits, or follows a point, is a decimal mark.
DECIMAL_COMMA = re.compile(r"\.\d*,|,(?!\d{3}(?!\d))\d*")
# A point that is not followed by exactly three digits is one, too.
DECIMAL_POINT = re.compile(r"\.(?!\d{3}(?!\d))")


def decimal_marks(words: Collection[str]) -> str:
    """The decimal marks in numbers with signs or units: a point, a comma, or both where people wrote either.

    Examples
    --------
    >>> decimal_marks(["€ 12,50"]), decimal_marks(["$1,250.00"]), decimal_marks(["1.250,00 kg"])
    (',', '.', ',')
    """
    comma = any(DECIMAL_COMMA.search(word) for word in words)
    return "," * comma + "." * (not comma or any(DECIMAL_POINT.search(word) for word in words))


def to_numbers(marks: str) -> str:
    """The calls after a column of pandas that leave its digits, minus signs and decimal marks, and make numbers of
    them.

    Examples
    --------
    >>> print(to_numbers(","))
    .str.replace(r'[^\\d,-]', '', regex=True).str.replace(',', '.').astype(float)
    >>> print(to_numbers("."))
    .str.replace(r'[^\\d.-]', '', regex=True).astype(float)
    """
    swapped = ".str.replace(',', '.')" * ("," in marks)
    return f".str.replace(r'[^\\d{marks}-]', '', regex=True){swapped}.astype(float)"
