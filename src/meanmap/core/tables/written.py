"""Numbers and dates stored as text: one odd cell is enough to turn a whole column of numbers into text."""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from numbers import Real
from typing import Any

import numpy as np

from meanmap.core.arrays import is_categorical
from meanmap.core.foreign import is_missing
from meanmap.core.language import in_few_words, in_python
from meanmap.core.moments import is_clock, is_date
from meanmap.core.numerals import TYPESET, TYPESET_ADVICE, is_name, reads_as_number
from meanmap.core.tables.signs import decimal_marks, to_numbers
from meanmap.core.types import Data

__all__ = ["Written", "is_number", "words_of", "written_notes"]

# Day, month and year, in the order of some country.
DAY = re.compile(r"\s*\d{1,2}([/.-])\d{1,2}\1(\d\d){1,2}\b")
# The year first, or the name of the month: 2026/01/31, 31 Jan 2026, January 31, 2026.
NAMED_MONTH = r"(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?"
OTHER_DAY = re.compile(
    rf"\s*(\d{{4}}([/.])\d{{1,2}}\2\d{{1,2}}\b|\d{{1,2}}\.?[ -]{NAMED_MONTH}[ -](\d\d){{1,2}}\b"
    rf"|{NAMED_MONTH} \d{{1,2}},? \d{{4}}\b)",
    re.IGNORECASE,
)
# A number followed by one word, such as 2.16 kg.
UNIT = re.compile(r"\s*[-+]?(?:\d+[.,]?\d*|[.,]\d+)\s*([^\W\d_][^\s\d,;]{0,7})\s*")
# Up to one in this many different values may be something else, such as "?".
ODD = 10
# From this many different values on they are hardly the names of a few groups.
MANY = 11
SHOWN = 3


def is_number(word: str) -> bool:
    """Whether a text is a finite number."""
    return reads_as_number(word) and isfinite(float(word))


@dataclass(frozen=True)
class Form:
    """A way to write numbers or dates as text.

    Attributes
    ----------
    what : str
        What they are called.
    test : function of a text
        Whether it is written so.
    marks : str
        Characters of which at least one value holds one; empty for none.
    advice : str
        How to convert a column of it to numbers or times.
    python : str
        How to do so in Python.
    """

    what: str
    test: Callable[[str], Any]
    marks: str
    advice: str
    python: str


SIGNS = "%$€£¥"
# Stands for the calls that make numbers of a column.
TO_NUMBERS = ", for example with {}"
FORMS = (
    Form("numbers", is_number, "", "convert it", ", for example with .astype(float)"),
    Form(
        "numbers with a comma",
        re.compile(r"\s*[-+]?\d[\d.,]*\s*").fullmatch,
        ",",
        "read the file with decimal=',' if the comma is a decimal mark, or thousands=',' if it separates thousands "
        "(Parquet files keep such cells as text: save them as CSV, or as numbers)",
        ", for example with pandas.read_csv",
    ),
    Form(
        "numbers with a sign such as $ or %",
        re.compile(rf"\s*[-+]?[{SIGNS}]?\s*[-+]?\d[\d.,]*\s*[{SIGNS}]?\s*").fullmatch,
        SIGNS,
        "remove signs and convert it",
        TO_NUMBERS,
    ),
    Form(
        "numbers with printed minus signs, parentheses or spaces",
        TYPESET.fullmatch,
        "\u2212( \u00a0\u202f",
        f"{TYPESET_ADVICE}, and convert it",
        "",
    ),
    Form(
        "numbers with a unit",
        UNIT.fullmatch,
        "",
        "remove the unit and convert it",
        TO_NUMBERS,
    ),
    Form("dates", is_date, "", "convert it", ", for example with pandas.to_datetime"),
    Form("times of day", is_clock, "", "convert it to minutes since midnight", ""),
    Form(
        "dates with the day or the month first",
        DAY.match,
        "",
        "convert it",
        ", for example with pandas.to_datetime and its format",
    ),
    Form(
        "dates with a month in letters or with slashes",
        OTHER_DAY.match,
        "",
        "convert it",
        ", for example with pandas.to_datetime and its format",
    ),
)


@dataclass(frozen=True)
class Written:
    """The format of all, or nearly all, values of a column of text.

    Attributes
    ----------
    what : str
        "numbers", "dates" and so on.
    example : str
        One of them.
    others : tuple of str
        Values that are something else.
    many : bool
        Whether they are too many to be the names of a few groups.
    marks : str
        The decimal marks, where signs or units have to go.
    """

    what: str
    example: str
    others: tuple[str, ...]
    many: bool
    marks: str = ""

    @classmethod
    def of(cls, words: Collection[str]) -> "Written | None":
        """The format of the distinct values of a column; None if they are ordinary text.

        Examples
        --------
        >>> found = Written.of(["0.5", "12", "?", *map(str, range(-5, 5))])
        >>> print(found)
        numbers (but for '?')
        >>> Written.of(["north", "south"]) is None
        True
        """
        for form in FORMS:
            others: set[str] = set()
            for word in words:
                if not form.test(word):
                    others.add(word)
                    if ODD * len(others) > len(words):
                        break
            else:
                alike = set(words) - others
                marked = not form.marks or any(mark in word for word in alike for mark in form.marks)
                units = (
                    {match[1] for match in map(UNIT.fullmatch, alike) if match} if form.test == UNIT.fullmatch else ()
                )
                if alike and marked and len(units) < 2 and not any(map(is_name, alike)):
                    # The first in order, as the order of the rows carries no information.
                    marks = decimal_marks(alike) if form.python == TO_NUMBERS else ""
                    return cls(form.what, min(alike), tuple(sorted(others)), len(alike) >= MANY, marks)
        return None

    @property
    def advice(self) -> str:
        """How to convert them, and what becomes of the others."""
        if self.what == "numbers" and self.others:
            how = ", for example with pandas.to_numeric and errors='coerce', which makes the others missing"
            return f"convert it{in_python(how)}"
        form = next(form for form in FORMS if form.what == self.what)
        if self.what == "numbers":  # in a file they are text if they were read with another decimal mark
            points = " (with decimal=',' decimal points are not read)" if "." in self.example else ""
            return form.advice + in_python(form.python, points)
        return form.advice + in_python(form.python.format(to_numbers(self.marks)) if self.marks else form.python)

    @property
    def refusal(self) -> str:
        """What to do where such a column has to be one of numbers, for which a file must change."""
        if not self.what.startswith("numbers"):
            return ""
        in_file = f", with pandas: data[NAME] = data[NAME]{to_numbers(self.marks)}, and save the file"
        return f": {self.advice}{in_python('', in_file) if self.marks else ''}"

    def __str__(self) -> str:
        """What they look like, and what does not."""
        shown = ", ".join(map(repr, self.others[:SHOWN])) + (", ..." if len(self.others) > SHOWN else "")
        return f"{self.what}{f' (but for {shown})' if shown else ''}"

    def note(self, where: str, name: object = None) -> str:
        """The note on the column of this name."""
        return self._said(where, name, ", and counts as labels")

    def refused(self, where: str, name: object = None) -> str:
        """The error about the column of this name."""
        return self._said(where, name, "")

    def _said(self, where: str, name: object, counts: str) -> str:
        kind = {"numbers": "number", "dates": "time", "times of day": "time of day"}.get(self.what)
        said = f", or say so with kinds={{{name!r}: {kind!r}}}" if kind and name is not None and not self.others else ""
        if name is None:
            labels = "convert it to categories"
        else:
            labels = f"{in_python('convert it to categories, or ')}say so with kinds={{{name!r}: 'label'}}"
        seen = f"{where} is text that looks like {self}, such as {self.example!r}{counts}"
        return f"{seen}: {self.advice}{said}. If labels are meant, {labels}."


def written_notes(found: Mapping[Any, Written], of: str) -> list[str]:
    """Notes on columns of a table: a sentence for each, or for all with the same format. If the first line of a file
    was taken for data, every column is text.
    """
    notes = []
    for form in FORMS:
        alike = {name: written for name, written in found.items() if written.what == form.what}
        if len(alike) <= SHOWN:
            notes += [
                written.note(f"column {name!r} of {of}" if name is not None else of, name)
                for name, written in alike.items()
            ]
            continue
        first, *_ = alike.values()
        others = sorted({other for written in alike.values() for other in written.others})
        whole = replace(first, others=tuple(others))
        shown = f"columns {in_few_words([*map(repr, alike)], SHOWN)} of {of}"
        advice = whole.advice.replace("convert it", "convert them")
        notes.append(
            f"{shown} are text that looks like {whole}, such as {first.example!r}, and count as labels: {advice}. If "
            f"labels are meant, {in_python('make categories of them', 'name them with --labels')}."
        )
    return notes


def words_of(columns: Sequence[Data], *, categories: bool = False) -> set[str] | None:
    """The distinct values of columns of text, without missing ones; None for other columns.

    Numbers among texts count as texts, as they do for `Table`. Categories are always labels, and are
    read only if asked for (`categories`).
    """
    words: set[Any] = set()
    for column in columns:
        if is_categorical(column) and not categories:
            return None
        if getattr(getattr(column, "dtype", None), "kind", "O") not in "OUT":
            return None
        values = np.asarray(column)
        if values.dtype.kind not in "OUT" or values.ndim > 1:
            return None
        try:
            words |= set(values.tolist())
        except TypeError:  # lists, arrays
            return None
    there = {word for word in words if not is_missing(word)}
    if not all(isinstance(word, str | Real) for word in there) or not any(isinstance(word, str) for word in there):
        return None
    return set(map(str, there))
