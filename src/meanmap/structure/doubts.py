"""What a search for a graph leaves in doubt, in words."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from meanmap.structure.colliders import Colliders
from meanmap.structure.conditional_tests import Tests
from meanmap.structure.discovered import CONTRADICTS, NARROWLY
from meanmap.structure.skeleton import Answers

__all__ = ["few", "notes_of_search"]

# More notes of one kind are one.
MOST_NOTED = 3
# An edge is removed narrowly if no test had a p-value above this multiple of the level. Of pairs that are independent
# at most 5% are, at a level of .05.
NARROW = 2


def notes_of_search(
    tests: Tests,
    answers: Answers,
    found: Colliders,
    refused: list[tuple[int, int]],
    level: float,
    barred: np.ndarray,
) -> list[str]:
    """What contradicts itself, what the tests leave open, which edges were removed narrowly, and what was not asked."""
    names = tests.names
    against = [
        f"{names[a]} → {names[b]} ← {names[c]}{CONTRADICTS}it was not used to orient edges."
        f"{_cancelled(names, answers, (a, b, c), level, barred)}{_hidden(names, (a, b, c), found.conflicting)}"
        for a, b, c in found.conflicting
        if not _as_known(answers, (a, b, c), level, barred)
    ]
    unsaid = [
        f"{names[a]} — {names[b]} — {names[c]}: the tests do not say whether {names[b]} is an effect of both."
        for a, b, c in found.ambiguous
        if not (barred[a, b] or barred[c, b] or (barred[b, a] and barred[b, c]))  # known without tests
    ]
    both_ways = [f"{names[a]} — {names[b]} would have to point both ways: it was left undirected." for a, b in refused]
    narrowly = _narrowly(names, answers, level, barred)
    notes = [*few(against), *few(unsaid), *few(both_ways), *narrowly, *tests.notes()]
    if answers.skipped:
        notes.append(
            f"the rows are too few to condition on more than {tests.most_given} variables: there may be too many "
            f"edges, and directions should not be trusted.{tests.crowded()}"
        )
    return notes


def few(notes: list[str]) -> list[str]:
    """Notes of one kind; of many the first, with their number."""
    if len(notes) <= MOST_NOTED:
        return notes
    return [f"{notes[0]} The same holds for {len(notes) - 1} other triples or edges."]


def _as_known(answers: Answers, triple: tuple[int, int, int], level: float, barred: np.ndarray) -> bool:
    """Whether prior knowledge says that b is no effect of both a and c, and a separating set with b agrees: others may
    separate a and c, too, as their dependence through b is weak.
    """
    a, b, c = triple
    return bool(barred[a, b] or barred[c, b]) and any(b in given and p > level for given, p in answers.of(a, c).items())


def _cancelled(names: Sequence[str], answers: Answers, triple: tuple[int, int, int], level: float, barred: Any) -> str:
    """The other explanation of a contradictory collider a → b ← c, and what to type: the edge between a and c was
    removed because their dependence nearly cancels.
    """
    a, b, c = triple
    asked = answers.of(a, c)
    joint = min((given for given in asked if b in given), key=lambda given: asked[given], default=())
    if not asked or (joint and asked[joint] > level):
        return ""
    apart = max(asked, key=lambda given: asked[given])
    condition = f"given {', '.join(names[i] for i in apart)}" if apart else "without conditioning on anything"
    found = f"found independent {condition} (p = {asked[apart]:.2g})"
    if joint:
        found += f" and dependent given {', '.join(names[i] for i in joint)} (p = {asked[joint]:.2g})"
    first, last = (c, a) if barred[a, c] else (a, c)
    return (
        f" {names[a]} and {names[c]} were {found}. If {names[b]} is not an effect of both, then dependences of "
        f"{names[a]} and {names[c]} nearly cancel, and their edge is missing: "
        f"required=[({names[first]!r}, {names[last]!r})] adds it."
    )


def _hidden(names: Sequence[str], triple: tuple[int, int, int], all_: Sequence[tuple[int, int, int]]) -> str:
    """The explanation by a common cause that is not in the table: of two variables, each of which is an effect of the
    other in one of two colliders.
    """
    a, b, c = triple
    both = [end for end in (a, c) if any(middle == end and b in (x, y) for x, middle, y in all_)]
    if not both:
        return " Or a common cause of two of the three is missing from the table."
    pair = f"{names[b]} — {names[both[0]]}"
    return (
        f" Or a common cause of {names[b]} and {names[both[0]]} is missing from the table: then the edge {pair} stands "
        "for it, and neither causes the other."
    )


def _narrowly(names: Sequence[str], answers: Answers, level: float, barred: np.ndarray) -> list[str]:
    """Notes on the removed edges whose largest p-value is the nearest to the level."""
    near: list[tuple[float, tuple[int, int], tuple[int, ...]]] = []
    for (a, b), asked in answers.pvalues.items():
        if barred[a, b] and barred[b, a]:  # no edge to be added
            continue
        apart = max(asked, key=lambda given: asked[given])
        if level < asked[apart] <= NARROW * level:
            near.append((asked[apart], (b, a) if barred[a, b] else (a, b), apart))
    notes = []
    for p, (a, b), apart in sorted(near)[:MOST_NOTED]:
        condition = f"given {', '.join(names[i] for i in apart)}" if apart else "without conditioning on anything"
        notes.append(
            f"{names[a]} — {names[b]}{NARROWLY}p = {p:.2g} {condition}, and the level is {level:g}. If you know that "
            f"{names[a]!r} causes {names[b]!r}, required=[({names[a]!r}, {names[b]!r})] adds the edge."
        )
    if len(near) > MOST_NOTED:
        notes.append(f"{len(near) - MOST_NOTED} more edges were removed with p at most {NARROW * level:g}.")
    return notes
