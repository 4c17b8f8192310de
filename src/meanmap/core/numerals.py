"""The grammar of numbers: which texts are numbers, in files and in columns of text.

A number has digits from 0 to 9, optionally a sign, one decimal point, and an exponent such as e-3: 12, -0.5, .5, 1e-3.
Words such as inf are read, so that they can be refused as infinite. Anything else that Python accepts is text: 1_2,
digits of other scripts. Integers that begin with a zero, such as 007, and those of 20 digits and more are identifiers
unless a column is declared as numbers.
"""

import re
from functools import cache

__all__ = [
    "THOUSANDS_MARKS",
    "TYPESET",
    "TYPESET_ADVICE",
    "has_comma",
    "is_name",
    "reads_as_number",
    "with_point",
    "without_thousands",
]

NUMBER = re.compile(r"\s*[-+]?((\d+\.?\d*|\.\d+)(e[-+]?\d+)?|inf(inity)?)\s*", re.ASCII | re.IGNORECASE)
NAME = re.compile(r"\s*[-+]?(0\d+|\d{20,})\s*", re.ASCII)
# The same with a comma instead of the point, and what may be thousands: 1,234 and 12,345,678.
WITH_COMMA = re.compile(r"\s*[-+]?(\d+,?\d*|,\d+)(e[-+]?\d+)?\s*", re.ASCII | re.IGNORECASE)
THOUSANDS = re.compile(r"\s*[-+]?[1-9]\d{0,2}(,\d{3})+\s*", re.ASCII)
# As people and printers write numbers: − for a minus, (5) for -5, spaces between groups of three digits.
TYPESET = re.compile(r"\s*\(?\s*[-+\u2212]?\s*\d[\d.,]*([ \u00a0\u202f]\d{3})*([.,]\d+)?\s*\)?\s*")
TYPESET_ADVICE = "write negative numbers with -, and leave out parentheses and spaces"
# What may separate thousands, and how it is written: spaces may be protected ones.
THOUSANDS_MARKS = {",": ",", ".": r"\.", "'": "['\u2019]", " ": "[ \u00a0\u202f]"}


def reads_as_number(word: str | float) -> bool:
    """Whether a word is a number.

    Examples
    --------
    >>> [reads_as_number(word) for word in ("12", "-.5", "1e3", "007", "1_2", "1,5", "١٢")]
    [True, True, True, True, False, False, False]
    """
    return not isinstance(word, str) or NUMBER.fullmatch(word) is not None


def is_name(word: str) -> bool:
    """Whether a word made of digits is an identifier rather than a number, like a zip code or a long id.

    Examples
    --------
    >>> [is_name(word) for word in ("007", "0", "0.7", "12345678901234567890")]
    [True, False, False, True]
    """
    return NAME.fullmatch(word) is not None


def with_point(word: str) -> str:
    """A number with a decimal comma rewritten with a point; other words as text that is not a number.

    Examples
    --------
    >>> with_point("3,5"), with_point("3.5")
    ('3.5', '3·5')
    """
    return word.translate({ord("."): "·", ord(","): "."})


def has_comma(words: list[str]) -> bool | None:
    """Whether these words are numbers, some with a decimal comma; None if the comma may separate thousands."""
    if not all(WITH_COMMA.fullmatch(word) or THOUSANDS.fullmatch(word) for word in words):
        return False
    marked = [word for word in words if "," in word]
    if not marked or any(not WITH_COMMA.fullmatch(word) for word in marked):
        return None if marked else False
    return None if all(map(THOUSANDS.fullmatch, marked)) else True


def without_thousands(word: str, mark: str, point: str = ".") -> str:
    """A number without the marks between its groups of three digits; other words as they are.

    Examples
    --------
    >>> [without_thousands(word, ",") for word in ("1,174.24", "-12,000", "12,5", "1,1740")]
    ['1174.24', '-12000', '12,5', '1,1740']
    >>> without_thousands("1.174,24", ".", ",")
    '1174,24'
    """
    if not _grouped(mark, point).fullmatch(word):
        return word
    return re.sub(THOUSANDS_MARKS[mark], "", word.strip())


@cache
def _grouped(mark: str, point: str) -> re.Pattern[str]:
    between = THOUSANDS_MARKS[mark]
    return re.compile(rf"\s*[-+]?[1-9]\d{{0,2}}({between}\d{{3}})+({re.escape(point)}\d*)?\s*", re.ASCII)
