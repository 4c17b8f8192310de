"""Which columns of a design a product or function of numbers is made of."""

from collections.abc import Iterable
from typing import Any

__all__ = ["margins_of"]


def margins_of(terms: Iterable[Any]) -> dict[int, list[int]]:
    """For each column of a product or function of numbers, the columns of terms that it is made of: those of fewer
    variables, and earlier ones of the same.
    """
    read, start = [], 0
    for term in terms:
        if term.kind != "offset":
            components = getattr(term, "components", ())
            variables = {name for component in components for name in component.var_names} - {""}
            numeric = any(component.kind == "numeric" for component in components)
            read.append((variables, numeric, range(start, start := start + len(term.labels))))
    found = {}
    for place, (variables, numeric, columns) in enumerate(read):
        below = [
            at
            for other, (fewer, _, those) in enumerate(read)
            if fewer and (fewer < variables or (fewer == variables and other < place))
            for at in those
        ]
        found |= dict.fromkeys(columns, below) if numeric and below else {}
    return found
