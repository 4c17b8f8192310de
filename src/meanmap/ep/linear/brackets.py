"""Which group effects are correlated, by the brackets of a formula, and whether all of it was understood."""

from dataclasses import dataclass
from typing import Any

from meanmap.core.errors import ParameterError
from meanmap.ep.linear.frames import formulae

__all__ = ["Together", "check_powers", "check_whole", "read_brackets"]


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


def check_powers(text: str) -> None:
    """Refuse the power of a single column, which means no more than the column."""
    power = _power_of_one(_parser(text.replace("||", "|")).parse())
    if power:
        raise ParameterError(
            f"formula {text!r} has {power}, which means no more than the column; type I({power}) for its values, or "
            "poly(x, 2)."
        )


def check_whole(text: str, plain: str) -> None:
    """Refuse what the parser passes over: whatever follows the first token that it does not expect, as in `x == 1`."""
    parser = _parser(plain)
    parser.parse()
    if not parser.at_end():
        raise ParameterError(
            f"formula {text!r} cannot be read from {parser.peek().lexeme!r} on; expected terms joined by +, -, *, : or "
            "/. Other operators belong into I(...), such as I(x > 1)."
        )


def _parser(text: str) -> Any:
    return formulae("formulae.parser").Parser(formulae("formulae.scanner").Scanner(text).scan())


def _power_of_one(expr: Any) -> str:
    """A power of a column outside of functions."""
    kind, parts = type(expr).__name__, getattr(expr, "__dict__", {})
    if kind == "Call":
        return ""
    if kind == "Binary" and expr.operator.kind == "STAR_STAR":
        left = {"Variable": "name", "QuotedName": "expression"}.get(type(expr.left).__name__)
        if left:
            return f"{getattr(expr.left, left).lexeme} ** {getattr(expr.right, 'value', 2)}"
    return next((said for part in parts.values() if (said := _power_of_one(part))), "")


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
