"""Levels of labels in messages: how many rows have each, which are unknown, and what text may be instead of numbers."""

from collections.abc import Collection, Iterable
from difflib import SequenceMatcher
from typing import Any

import numpy as np

from meanmap.core.language import in_few_words
from meanmap.core.tables.written import Written

__all__ = ["cell_of", "counted", "not_numbers", "refused_levels", "respelled_groups"]

# The most levels that are listed, and up to how many rows a level is rare enough for these to be named.
_LISTED, _RARE = 6, 3
# Letters and digits that are typed for one another.
_ALIKE = str.maketrans("oil", "011")


def counted(labels: np.ndarray, kept: np.ndarray) -> str:
    """Each label with its number of rows, the most frequent first, and the rows of rare ones."""
    levels, place, counts = np.unique(labels.astype(str), return_inverse=True, return_counts=True)
    said = []
    for at in np.argsort(-counts, kind="stable").tolist():
        rows = kept[place == at] if counts[at] <= _RARE else []
        where = f": {', '.join(map(str, rows))}" if len(rows) else ""
        said.append(f"{str(levels[at])!r} ({counts[at]} row{'s' if counts[at] > 1 else ''}{where})")
    if len(said) <= _LISTED:
        return ", ".join(said)
    # The rare ones are likely to be errors.
    return ", ".join([*said[: _LISTED - 2], f"{len(said) - _LISTED} more", *said[-2:]])


def not_numbers(labels: np.ndarray, kept: np.ndarray) -> str:
    """A cell of a column of text where numbers are expected, and how to convert the column."""
    words = labels.astype(str)
    found = Written.of(sorted(set(words.tolist())))
    if found is None:
        return f"text, such as {str(words[0])!r} in row {kept[0]}"
    return f"text that looks like {found}, {cell_of(found, words, kept)}: {found.advice}"


def cell_of(found: Written, words: np.ndarray, kept: np.ndarray) -> str:
    """The first cell that is no number, or else the first of all, and its row."""
    odd = np.flatnonzero(np.isin(words, found.others)) if found.others else np.zeros(1, int)
    return f"{str(words[odd[0]])!r} in row {kept[odd[0]]}"


def refused_levels(name: str, labels: Iterable[Any], known: Collection[Any]) -> str | None:
    """What to say of labels in new rows that the data of the fit do not have, with the known ones, closest first."""
    there = set(known)
    strange, label = next(((at, label) for at, label in enumerate(labels) if label not in there), (None, None))
    if strange is None:
        return None

    def apart(level: Any) -> float:
        return -SequenceMatcher(None, str(label).casefold(), str(level).casefold()).ratio()

    closest = sorted(known, key=apart)
    return (
        f"column {name!r} of data holds {label!r} in row {strange}, a level that the data of the fit do not have, so "
        f"its effect is unknown; expected {in_few_words([*map(repr, closest)], _LISTED)}."
    )


def respelled_groups(name: str, groups: Collection[Any], known: Collection[Any]) -> list[str]:
    """A note on groups of new rows that are known ones but for case, spaces, marks, and O and I for 0 and 1."""
    there, spelled = set(known), {_bare(level): level for level in known}
    groups = [each for each in dict.fromkeys(groups) if each not in there]
    pairs = {each: spelled[_bare(each)] for each in groups if _bare(each) in spelled}
    if not pairs:
        return []
    like, named = next(iter(pairs.values())), in_few_words([*map(repr, pairs)], 1)
    return [f"the group {named} of {name!r} counts as new; if {like!r} of the fit is meant, type it like that"]


def _bare(level: object) -> str:
    words = level if isinstance(level, tuple) else (level,)
    return ":".join(_letters(word) if isinstance(word, str) else repr(word) for word in words)


def _letters(word: str) -> str:
    return "".join(filter(str.isalnum, word.casefold())).translate(_ALIKE)
