"""What was probably meant: "did you mean" for names that are not known."""

import unicodedata
from collections.abc import Collection, Iterable

from meanmap.core.errors import ColumnError

__all__ = ["composed", "did_you_mean", "no_column", "respelled"]


def composed(name: str) -> str:
    """A name in Unicode's form C, in which a letter with an accent is one character."""
    return name if name.isascii() else unicodedata.normalize("NFC", name)


def respelled(name: str, known: Collection[str]) -> str:
    """A name as it stands among those that are known, letters with accents however they are composed; or as it came.

    Examples
    --------
    >>> respelled("cafe\u0301", ["caf\u00e9"]) == "caf\u00e9", respelled("tea", ["caf\u00e9"])
    (True, 'tea')
    """
    if name in known or not isinstance(name, str) or name.isascii():
        return name
    return {composed(each): each for each in known}.get(composed(name), name)


def did_you_mean(name: object, known: Iterable[object]) -> str:
    """The words "did you mean" with the name that is most like one, whatever its capitals; empty if none is.

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


def no_column(where: object, name: object, columns: Collection[object]) -> ColumnError:
    """The error where a table, called so, has not the column of this name."""
    listed = ", ".join(map(repr, columns))
    return ColumnError(f"{where} has no column {name!r}{did_you_mean(name, columns)}; it has {listed}.")
