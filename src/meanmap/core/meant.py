"""Suggestions for unknown names: "did you mean"."""

import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable

from meanmap.core.errors import ColumnError

__all__ = ["composed", "did_you_mean", "no_column", "refuse_doubled", "respelled"]


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
    from difflib import get_close_matches

    names = {str(each).casefold(): str(each) for each in known}
    found = get_close_matches(str(name).casefold(), names, 1)
    return f" (did you mean {names[found[0]]!r}?)" if found else ""


def refuse_doubled(names: Iterable[str], where: object) -> None:
    """Refuse names of columns that come twice."""
    doubled = sorted(name for name, times in Counter(names).items() if times > 1)
    if doubled:
        raise ColumnError(f"{where} has more than one column called {doubled[0]!r}. Rename one of them.")


def no_column(where: object, name: object, columns: Collection[object]) -> ColumnError:
    """The error for a column that a table lacks."""
    listed = ", ".join(map(repr, columns))
    return ColumnError(f"{where} has no column {name!r}{did_you_mean(name, columns)}; it has {listed}.")
