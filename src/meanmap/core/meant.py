"""Suggestions for unknown names: "did you mean"."""

import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable
from typing import TypeVar

from meanmap.core.errors import ColumnError
from meanmap.core.language import in_few_words

__all__ = [
    "composed",
    "did_you_mean",
    "listed",
    "names_none",
    "nearest",
    "nearly",
    "no_column",
    "no_column_of",
    "refuse_doubled",
    "respelled",
]

T = TypeVar("T")


def composed(name: str) -> str:
    """A name in Unicode normal form C, in which an accented letter is one character."""
    return name if name.isascii() else unicodedata.normalize("NFC", name)


def respelled(name: str, known: Collection[str]) -> str:
    """The known name equal to this one, however accented letters are composed; otherwise the name unchanged.

    Examples
    --------
    >>> respelled("cafe\u0301", ["caf\u00e9"]) == "caf\u00e9", respelled("tea", ["caf\u00e9"])
    (True, 'tea')
    """
    if name in known or not isinstance(name, str) or name.isascii():
        return name
    return {composed(each): each for each in known}.get(composed(name), name)


def did_you_mean(name: object, known: Iterable[object]) -> str:
    """The words "did you mean" with the most similar name, ignoring case; empty if none is similar.

    Examples
    --------
    >>> did_you_mean("Site", ["site", "dose"]), did_you_mean("n_permutation", ["kernel", "n_permutations"])
    (" (did you mean 'site'?)", " (did you mean 'n_permutations'?)")
    >>> did_you_mean("age", ["site", "dose"])
    ''
    """
    meant = nearest(name, known)
    return f" (did you mean {meant!r}?)" if meant is not None else ""


def nearest(name: object, known: Iterable[T]) -> T | None:
    """The most similar of the known names, ignoring case; None if none is similar."""
    from difflib import get_close_matches

    names = {str(each).casefold(): each for each in known if isinstance(each, str) or isinstance(name, str)}
    found = get_close_matches(str(name).casefold(), names, 1)
    return names[found[0]] if found else None


def refuse_doubled(names: Iterable[str], where: object) -> None:
    """Refuse names of columns that come twice."""
    doubled = sorted(name for name, times in Counter(names).items() if times > 1)
    if doubled:
        raise ColumnError(f"{where} has more than one column called {doubled[0]!r}. Rename one of them.")


def no_column(where: object, name: object, columns: Collection[object], what: str = "column") -> ColumnError:
    """The error for a column, or a node or label, that something lacks."""
    return ColumnError(f"{where} has no {what} {name!r}{did_you_mean(name, columns)}; it has {listed(columns)}.")


def names_none(argument: str, name: object, where: object, columns: Collection[object]) -> ColumnError:
    """The error for an argument that names a column which something lacks."""
    meant = did_you_mean(name, columns)
    return ColumnError(f"{argument} names {name!r}{meant}; the columns of {where} are {listed(columns)}.")


def no_column_of(where: object, columns: Collection[object], model: Collection[object]) -> ColumnError:
    """The error for a table that has no column of a model."""
    meant = next(filter(None, (did_you_mean(name, model) for name in columns)), "")
    return ColumnError(f"{where} has {listed(columns)}{meant}; expected some of the model's columns: {listed(model)}.")


def nearly(columns: Iterable[str], model: Iterable[object], where: str) -> tuple[str, ...]:
    """Notes on columns of a model that a table lacks, while it has one of nearly the same name that is not used.

    Examples
    --------
    >>> nearly(["dos", "age"], ["dose", "age"], "frame")
    ("frame has no column 'dose', which counts as missing in all rows; its column 'dos' is not used: is it meant?",)
    """
    known = set(map(str, model))
    others = [name for name in columns if name not in known]
    lacking = ((name, nearest(name, others)) for name in sorted(known - set(columns)))
    return tuple(
        f"{where} has no column {name!r}, which counts as missing in all rows; its column {near!r} is not used: is it "
        "meant?"
        for name, near in lacking
        if near is not None
    )


def listed(names: Collection[object]) -> str:
    """Names for a message, the first of many.

    Examples
    --------
    >>> listed(["site", "dose"]), listed(range(100))[-22:]
    ("'site', 'dose'", '17, 18, 19 and 80 more')
    """
    return in_few_words([repr(name) for name in names])
