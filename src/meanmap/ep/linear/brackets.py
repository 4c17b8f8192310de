"""Which group effects are correlated, by the brackets of a formula."""

from dataclasses import dataclass
from typing import Any

from meanmap.core.errors import ParameterError
from meanmap.ep.linear.frames import formulae

__all__ = ["Together", "read_brackets"]


@dataclass(frozen=True)
class Together:
    """Effects of one factor that are correlated: in the order of a formula."""

    factor: str
    terms: tuple[Any, ...]


def read_brackets(text: str) -> tuple[str, list[Together]]:
    """The formula with | for every ||, and the sets of correlated effects.

    As in lme4, effects in one bracket are correlated, `(1 + x || g)` is `(1 | g) + (0 + x | g)`, and brackets are
    independent of each other.
    """
    package, found, plain = formulae(), [], text
    for begin, end in _brackets(text):
        inside, apart = text[begin:end], "||" in text[begin:end]
        single = inside.replace("||", "|")
        plain = plain.replace(inside, single)
        terms = package.model_description(f"0 + ({single})").group_terms
        for factor in dict.fromkeys(term.factor.name for term in terms):
            own = tuple(term for term in terms if term.factor.name == factor)
            found += [Together(factor, (term,)) for term in own] if apart else [Together(factor, own)]
    return plain, found


def _brackets(text: str) -> list[tuple[int, int]]:
    """Start and end of each bracket that contains a bar of its own."""
    found, open_ = [], []
    for at, letter in enumerate(text):
        if letter == "(":
            open_.append((at, False))
        elif letter == "|":
            if not open_:
                raise ParameterError(f"formula {text!r} has a | outside of brackets; type (1 | group).")
            open_[-1] = (open_[-1][0], True)
        elif letter == ")" and open_:
            begin, barred = open_.pop()
            found += [(begin + 1, at)] if barred else []
    return found
