"""A line such as "harvest ~ sun + rain | water": what is asked of which columns."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from meanmap.core.errors import ColumnError, ParameterError

__all__ = ["Question"]

# A name in backticks, a name without spaces or signs of the grammar, or one of these signs.
TOKEN = re.compile(r"\s*(?:`(?P<quoted>[^`]+)`|(?P<sign>[~|+,])|(?P<name>[^\s~|+,`]+))")
HELP = 'expected such as "harvest ~ sun", "harvest ~ sun + rain | water", or ". ~ group"'


@dataclass(frozen=True)
class Question:
    """The columns on the left of ~, between ~ and |, and after |, in order.

    Examples
    --------
    >>> Question.read("harvest ~ sun + `rain (mm)` | water", ["harvest", "sun", "rain (mm)", "water"])
    Question(left=('harvest',), right=('sun', 'rain (mm)'), given=('water',))
    """

    left: tuple[str, ...]
    right: tuple[str, ...]
    given: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """All columns that it is about."""
        return (*self.left, *self.right, *self.given)

    @classmethod
    def read(cls, line: str, columns: Sequence[str], also: Sequence[str] = ()) -> "Question":
        """A line about a table with these columns; a point stands for all that are not named, nor in `also`.

        Names are joined by + or a comma; those with spaces or signs are put into backticks.
        """
        parts: list[list[str]] = [[]]
        signs, expects, at = [], True, 0
        while line[at:].strip():
            found = TOKEN.match(line, at)
            if found is None:
                raise ParameterError(f"{line!r} has a backtick without a partner; {HELP}.")
            at, sign = found.end(), found["sign"]
            if (sign is not None) == expects:
                where = f"{line!r} cannot be read at {found.group().strip()!r}"
                raise ParameterError(f"{where}; {_without_backticks(line, columns) or HELP}.")
            if sign in ("~", "|"):
                signs.append(sign)
                parts.append([])
            elif sign is None:
                parts[-1].append(found["quoted"] or found["name"])
            expects = sign is not None
        if expects or signs not in (["~"], ["~", "|"]):
            raise ParameterError(f"{line!r} is no question; {HELP}.")
        named = [name for part in parts for name in part]
        for name in named:
            if name != "." and name not in columns:
                advice = _without_backticks(line, columns) or f"it has {', '.join(map(repr, columns))}"
                raise ColumnError(f"the table has no column {name!r}; {advice}.")
        doubled = [name for name in named if named.count(name) > 1]
        if doubled:
            raise ParameterError(f"{line!r} names {doubled[0]!r} twice; a column stands in one place.")
        others = [name for name in columns if name not in named and name not in also]
        left, right, given = (
            tuple(name for each in part for name in (others if each == "." else [each]))
            for part in (*parts, *([[]] if len(parts) == 2 else []))
        )
        if not left or not right:
            raise ParameterError(f"{line!r} leaves no column for the point; {HELP}.")
        return cls(left, right, given)


def _without_backticks(line: str, columns: Sequence[str]) -> str:
    """What to type instead, if a name with spaces or signs stands in a line as it is."""
    bare = re.sub("`[^`]*`", "", line)
    found = [name for name in columns if re.search(r"[\s~|+,]", name) and name in bare]
    return f"put the name into backticks: `{max(found, key=len)}`" if found else ""
