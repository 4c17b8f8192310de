"""Cells of text files as columns: numbers by one grammar, labels, and the words that stand for a missing value."""

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np

from meanmap.core.errors import ColumnError
from meanmap.core.exact import MOST_EXACT
from meanmap.core.held import holds_floats, holds_text, holds_times, holds_whole
from meanmap.core.numerals import (
    TYPESET,
    TYPESET_ADVICE,
    has_comma,
    is_name,
    reads_as_number,
    with_point,
    without_thousands,
)
from meanmap.core.texts import as_labels, check_memory

__all__ = ["MISSING", "Cells", "absent_in"]

# In any case of letters, but for Python's None: "none" is a label, such as of a status or a severity.
MISSING, ABSENT = frozenset(["", "na", "n/a", "nan", "null"]), "None"
# From these characters Python makes no number outside the grammar. Each line is a cell.
PLAIN, WHOLE = re.compile(r"[0-9eE+\-.\s]*"), re.compile(r"[0-9+\-\s]*")
# A number with thousands separators, and a decimal mark of the other kind.
GROUPED = re.compile(r"[-+]?\d{1,3}((,\d{3})+\.\d+|(\.\d{3})+,\d+)", re.ASCII)
# Of more words in a column of numbers, only the first is named.
MOST_ODD = 5
# Ids of hexadecimal digits, a few of which have no letter but one e and read as numbers.
HEXADECIMAL = re.compile(r"[0-9a-f]{8,}|[0-9A-F]{8,}")
NAMES = re.compile(r"^[ \t]*[-+]?(0\d+|\d{20,})[ \t]*$", re.ASCII | re.MULTILINE)


@dataclass(frozen=True)
class Cells:
    """How cells are read: the decimal mark, which may be inferred, and the codes for missing values.

    Attributes
    ----------
    decimal : str or None
        "." or ","; None means a point, or a comma if cells are not separated by commas and show decimal commas.
    marks : collection of str
        In addition to empty cells and words such as NA.
    commas : bool
        Whether commas separate cells.
    thousands : str, optional
        What separates thousands in numbers.
    """

    decimal: str | None
    marks: Collection[str]
    commas: bool = False
    thousands: str | None = None

    def pointed(self, word: str) -> str:
        """A number as Python writes it; other words as text that is not a number."""
        if self.thousands is not None:
            word = without_thousands(word, self.thousands, self.decimal or ".")
        return with_point(word) if self.decimal == "," else word

    def _with_thousands(self, grouped: str, words: Sequence[str]) -> bool:
        """Whether all words are numbers if one shows what separates thousands."""
        mark = _separator(grouped)
        reader = replace(self, thousands=mark, decimal="." if mark == "," else ",")
        return self.thousands is None and all(reads_as_number(reader.pointed(word)) for word in words)

    def decimal_comma(self, parts: Sequence[np.ndarray]) -> str | None:
        """A cell of a column that shows that commas are decimal marks: as 0,5 does, and 1,500 does not."""
        words = [word for part in parts if holds_text(part) for word in np.unique(part).tolist() if word]
        if words and all(map(_is_whole, parts)) and has_comma(words):
            return next(word for word in words if "," in word and has_comma([word]) is not None)
        grouped = [word for word in words if GROUPED.fullmatch(word)]
        return next((word for word in grouped if word.rfind(",") > word.rfind(".")), None)

    def read(self, cells: list[str], labels: bool) -> np.ndarray:
        """Some cells of a column: numbers, NaN or masked if missing; otherwise text, "" if missing."""
        found = None if labels or self.marks else self._numbers(cells)
        if found is not None:
            return found
        words = [cell.strip() for cell in cells]
        check_memory(words, "a column")
        text = np.array(words)
        absent = np.array([word.lower() in MISSING or word == ABSENT or word in self.marks for word in words])
        text[absent] = ""
        numbers = None if labels else self._numbers(text[~absent].tolist())
        if numbers is None:
            return text
        if holds_floats(numbers):
            column = np.full(len(words), np.nan)
            column[~absent] = numbers
            return column
        column = np.zeros(len(words), numbers.dtype)
        column[~absent] = numbers
        return np.ma.MaskedArray(column, absent) if absent.any() else column

    def _numbers(self, words: list[str]) -> np.ndarray | None:
        """The numbers that these words mean; None if one is something else, or an identifier made of digits."""
        if self.decimal == "," or self.thousands is not None:
            words = list(map(self.pointed, words))
        lines = "\n".join(words)
        if NAMES.search(lines) or not (PLAIN.fullmatch(lines) or all(map(reads_as_number, words))):
            return None
        try:
            floats = np.array(words, dtype=float)
        except ValueError:
            return None
        if (np.abs(floats) >= MOST_EXACT).any() and WHOLE.fullmatch(lines):
            whole = np.array([int(word) for word in words])
            return whole if holds_whole(whole) else floats
        return floats

    def joined(
        self,
        parts: Sequence[np.ndarray],
        name: str,
        labels: bool,
        path: object,
        tell: Callable[[str], object],
        inferred: list[str],
        said: bool = False,
        evidence: Callable[[], str] = str,
    ) -> np.ndarray:
        """One column from its parts: numbers or labels; a mixture is refused. A note names columns of digits that look
        like identifiers, unless their kind is declared elsewhere (`said`); columns with decimal commas that nobody
        declared are added to those that were `inferred`. `evidence` says what other columns show about commas.
        """
        texts = [part for part in parts if holds_text(part)]
        if not texts:
            return _whole(parts)
        if labels:
            return np.concatenate(parts)
        words = [word for part in texts for word in np.unique(part).tolist() if word]
        read = list(map(self.pointed, words))
        where = f"the column {name!r} of {path}"
        if words and {word.lower() for word in words} <= {"true", "false"} and all(map(_is_empty_or_text, parts)):
            return _truth(np.concatenate([part if holds_text(part) else np.full(len(part), "") for part in parts]))
        if words and all(map(reads_as_number, read)):
            if not said:
                example = next(word for word in words if is_name(word))
                what = "of 20 digits and more" if len(example.strip("+-")) >= 20 else "that begin with zero"
                tell(
                    f"{where} holds whole numbers {what}, such as {example!r}, and counts as labels: if they are "
                    f"numbers, say so with kinds={{{name!r}: 'number'}}"
                )
            return np.concatenate([part if holds_text(part) else _as_words(part) for part in parts])
        if self.decimal is None and not self.commas and words and all(map(_is_whole, parts)):
            comma = has_comma(words)
            if comma is None:
                raise ColumnError(
                    f"{where} holds {next(word for word in words if ',' in word)!r}, which may be a number with a "
                    f"decimal comma or with thousands: say decimal=',' for the first{evidence()}, thousands=',' for "
                    f"the second, or labels=[{name!r}] if the column holds no numbers."
                )
            if comma:
                inferred.append(name)
                whole = replace(self, decimal=",")
                return _whole([whole.read(part.tolist(), False) if holds_text(part) else part for part in parts])
        if len(texts) == len(parts) and _are_hexadecimal(words):
            return np.concatenate(parts)
        marked = self.decimal is None and not self.commas and any(has_comma([word]) for word in words)
        _refuse_mixture(parts, where, name, replace(self, decimal=",") if marked else self)
        grouped = next(filter(GROUPED.fullmatch, words), None)
        if grouped is not None and not said and self._with_thousands(grouped, words):
            raise ColumnError(
                f"{where} holds numbers whose thousands are separated, such as {grouped!r}: say "
                f"thousands={_separator(grouped)!r}, or, for text, labels=[{name!r}]."
            )
        return np.concatenate([part if holds_text(part) else np.full(len(part), "") for part in parts])


def _are_hexadecimal(words: Sequence[str]) -> bool:
    """Whether words are ids of hexadecimal digits, of which a few such as 236418490e095734 read as numbers."""
    alike = len({len(word) for word in words}) == 1
    return alike and all(map(HEXADECIMAL.fullmatch, words)) and 2 * sum(map(reads_as_number, words)) < len(words)


def absent_in(values: np.ndarray) -> np.ndarray:
    """Which entries of a column are missing: masked, NaN, NaT or empty text; in a block, each number."""
    if isinstance(values, np.ma.MaskedArray):
        return np.ma.getmaskarray(values)
    if holds_text(values):
        return values == ""
    return (
        np.isnan(values)
        if holds_floats(values)
        else np.isnat(values)
        if holds_times(values)
        else np.zeros(values.shape, bool)
    )


def _is_empty_or_text(part: np.ndarray) -> bool:
    """Whether cells are text; if all cells of a part are missing, they count as missing numbers."""
    return holds_text(part) or bool(absent_in(part).all())


def _truth(words: np.ndarray) -> np.ndarray:
    """Cells with true or false as truth values, masked if empty."""
    found = np.isin(np.char.lower(words), "true")
    return np.ma.MaskedArray(found, words == "") if (words == "").any() else found


def _is_whole(part: np.ndarray) -> bool:
    """Whether numbers next to text have no fraction, as in a column with decimal commas."""
    return not holds_floats(part) or bool(np.all((part == np.round(part)) | np.isnan(part)))


def _as_words(part: np.ndarray) -> np.ndarray:
    absent = absent_in(part)
    found = as_labels(np.where(absent, 0, np.asarray(part)))
    return np.where(absent, "", found)


def _whole(parts: Sequence[np.ndarray]) -> np.ndarray:
    """The parts as one array, of exact integers if one part has these and the others can be converted."""
    if any(holds_whole(part) for part in parts) and all(map(_is_whole, parts)):
        absent = np.concatenate([absent_in(part) for part in parts])
        kind = np.result_type(*(part.dtype for part in parts if holds_whole(part)))
        if kind.kind in "iu":
            held = [np.where(absent_in(part), 0, np.asarray(part)).astype(kind) for part in parts]
            return np.ma.MaskedArray(np.concatenate(held), absent) if absent.any() else np.concatenate(held)
    return np.concatenate([np.asarray(np.ma.filled(part.astype(float), np.nan)) for part in parts])


def _refuse_mixture(parts: Sequence[np.ndarray], where: str, name: str, reader: Cells) -> None:
    """Refuse a column that holds numbers and other words."""
    row, number = 0, None
    odd: dict[str, int] = {}  # the row of each word that is no number
    for part in parts:
        for value, absent in zip(part.tolist(), absent_in(part).tolist(), strict=True):
            row += 1
            if absent or value in odd:
                continue
            if reads_as_number(reader.pointed(value) if isinstance(value, str) else value):
                number = value
            elif len(odd) <= MOST_ODD:
                odd[value] = row
            if number is not None and len(odd) > MOST_ODD:
                break
    if number is not None and odd:
        (found, at), *_ = odd.items()
        more = list(odd)[1:] if len(odd) <= MOST_ODD else []
        also = f", and also {', '.join(map(repr, more))}" if more else ""
        raise ColumnError(
            f"{where} holds numbers, such as {number}, and in row {at} {found!r}{also}. Correct it; or, if "
            f"{_remedy(found, [*sorted(reader.marks), found, *more])}; or read it as "
            f"labels: labels=[{name!r}]. Row 1 is the first below the header."
        )


def _separator(grouped: str) -> str:
    """What separates thousands in a number that shows it."""
    return "," if grouped.find(",") < grouped.find(".") else "."


def _remedy(word: str, codes: Sequence[str]) -> str:
    """The advice if a word is a number after all, or is one of the codes for missing values."""
    said = str(word)
    if GROUPED.fullmatch(said):
        mark = _separator(said)
        return f"{mark!r} separates its thousands, say so: thousands={mark!r}"
    if (comma := has_comma([said])) is not False and "," in said:
        thousands = "" if comma else ", or, if it separates thousands: thousands=','"
        return f"its comma is a decimal mark, say so: decimal=','{thousands}"
    if TYPESET.fullmatch(said):
        return f"that is a number, {TYPESET_ADVICE}"
    return f"that stands for a missing value, say so: missing=[{', '.join(map(repr, codes))}]"
