"""Formulas such as "harvest ~ sun + rain | water": which columns a question is about."""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace

from meanmap.core.errors import ColumnError, KindError, ParameterError
from meanmap.core.meant import no_column, respelled

__all__ = ["Question"]

# A name in backticks, a name without spaces or signs of the grammar, or one of these signs.
TOKEN = re.compile(r"\s*(?:`(?P<quoted>[^`]+)`|(?P<sign>[~|+,])|(?P<name>[^\s~|+,`]+))")
HELP = 'expected a question such as "harvest ~ sun", "harvest ~ sun + rain | water", or ". ~ group"'


@dataclass(frozen=True)
class Question:
    """The columns on the left of ~, between ~ and |, and after |, in order; those that a dot stands for are `dotted`.

    Examples
    --------
    >>> Question.read("harvest ~ sun + `rain (mm)` | water", ["harvest", "sun", "rain (mm)", "water"])
    Question(left=('harvest',), right=('sun', 'rain (mm)'), given=('water',))
    """

    left: tuple[str, ...]
    right: tuple[str, ...]
    given: tuple[str, ...]
    dotted: tuple[str, ...] = field(default=(), repr=False)

    @property
    def names(self) -> tuple[str, ...]:
        """All columns named."""
        return (*self.left, *self.right, *self.given)

    @property
    def typed(self) -> tuple[str, ...]:
        """The columns named, but not by a dot."""
        return tuple(name for name in self.names if name not in self.dotted)

    def without(self, names: Collection[str]) -> "Question":
        """The question without columns that a dot stands for, unless it stands for no others."""
        if set(self.dotted) <= set(names):
            return self
        left, right, given, dotted = (
            tuple(name for name in part if name not in names or name not in self.dotted)
            for part in (self.left, self.right, self.given, self.dotted)
        )
        return replace(self, left=left, right=right, given=given, dotted=dotted)

    @classmethod
    def read(cls, line: str, columns: Sequence[str], also: Sequence[str] = ()) -> "Question":
        """Parse a formula about a table with these columns; a dot stands for all columns neither named nor in `also`.

        Names are joined by + or a comma; those with spaces or operators are put into backticks.
        """
        if not isinstance(line, str):
            raise KindError(f"the question is {line!r}; {HELP}.")
        formula = _as_formula(line, columns)
        if formula:
            raise ParameterError(f"{line!r} cannot be read: {formula}.")
        parts: list[list[tuple[str, bool]]] = [[]]
        signs, expects, at = [], True, 0
        while line[at:].strip():
            found = TOKEN.match(line, at)
            if found is None:
                raise ParameterError(f"{line!r} has an unmatched backtick; {HELP}.")
            at, sign = found.end(), found["sign"]
            if (sign is not None) == expects:
                where = f"{line!r} cannot be read at {found.group().strip()!r}"
                raise ParameterError(f"{where}; {_without_backticks(line, columns) or HELP}.")
            if sign in ("~", "|"):
                signs.append(sign)
                parts.append([])
            elif sign is None:
                parts[-1].append((respelled(found["quoted"] or found["name"], columns), found["quoted"] is None))
            expects = sign is not None
        if expects or signs not in (["~"], ["~", "|"]):
            raise ParameterError(f"{line!r} is not a question; {HELP}.")
        every = [each for part in parts for each in part]
        named = [name for name, bare in every if name != "." or not bare]
        for name in (name for name in named if name not in columns):
            advice = _without_backticks(line, columns)
            if advice:
                raise ColumnError(f"the table has no column {name!r}; {advice}.")
            raise no_column("the table", name, columns)
        written = [*named, *("." for name, bare in every if bare and name == ".")]
        doubled = [name for name in written if written.count(name) > 1 and (name != "." or "." not in named)]
        if doubled:
            raise ParameterError(f"{line!r} names {doubled[0]!r} twice; name each column once.")
        others = [name for name in columns if name not in named and name not in also]
        left, right, given = (
            tuple(name for each, bare in part for name in (others if bare and each == "." else [each]))
            for part in (*parts, *([[]] if len(parts) == 2 else []))
        )
        if not left or not right:
            raise ParameterError(f"{line!r} leaves no column for the dot; {HELP}.")
        return cls(left, right, given, tuple(others) if "." in written[len(named) :] else ())


def _without_backticks(line: str, columns: Sequence[str]) -> str:
    """A suggestion, if a name with spaces or operators lacks its backticks."""
    bare = re.sub("`[^`]*`", "", line)
    found = [name for name in columns if re.search(r"[\s~|+,]", name) and name in bare]
    return f"put the name into backticks: `{max(found, key=len)}`" if found else ""


# Terms of regression formulas that questions do not have, and what to type instead.
FORMULAS = {
    r"\(\s*(?:1|0)\s*\|\s*(?P<name>[^()|]+?)\s*\)": "for grouped rows pass within='{name}' to compare within "
    "groups, or clusters='{name}' to keep groups whole",
    r"\b(?:C|factor|as\.factor)\(\s*(?P<name>[^()]+?)\s*\)": "pass kinds={{'{name}': 'label'}} to make "
    "{name} a label, and write only its name in the question",
    r"\b(?P<name>[A-Za-z_][\w.]*\([^()]*\))": "a question cannot compute anything. Make a column of {name} and use its "
    "name; most tests need no such column, because kernels detect dependence of any form",
    r"(?P<name>[\w.]+\s*[:*/]\s*[\w.]+)": "{name} would be an interaction, but columns on one side are tested jointly: "
    "write + instead",
    r"(?P<name>[\w.]+\s*\^\s*\d+)": "{name} would be a power, but kernels detect dependence of any form: write only "
    "the column's name",
    r"(?P<name>(?<![\w.])-\s*[\w.]+)": "a question lists its columns, and has neither subtraction nor an intercept: "
    "leave {name} out",
    r"(?:^|[~+|])\s*(?P<name>[01])\s*(?:$|[~+|])": "a question has no intercept: leave {name} out",
}


def _as_formula(line: str, columns: Sequence[str]) -> str:
    """A suggestion, if a formula has regression terms that are not columns."""
    bare = re.sub("`[^`]*`", "", line)
    for name in sorted(columns, key=len, reverse=True):
        bare = bare.replace(name, " ") if re.search(r"[():*^|/-]", name) else bare
        bare = re.sub(rf"(?<![\w.]){name}(?![\w.])", " ", bare) if name in ("0", "1") else bare
    for pattern, remedy in FORMULAS.items():
        found = re.search(pattern, bare)
        if found:
            return remedy.format(name=found["name"])
    return ""
