"""The part of a discrete network that a query needs: observations substituted, factors that sum to one dropped."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

import numpy as np

from meanmap.graphs import Factors

__all__ = ["Needed", "constant_sum"]


@dataclass(frozen=True, eq=False)
class Needed:
    """Fewer and smaller factors with the same marginals of some variables.

    Attributes
    ----------
    factors : Factors
        On the variables that are left.
    number : mapping
        The new number of each of these, by its old one.
    log_constant : float
        The logarithm of the sum of everything left out.
    """

    factors: Factors
    number: Mapping[int, int]
    log_constant: float

    @classmethod
    def of(
        cls,
        factors: Factors,
        targets: Collection[int],
        given: Collection[int],
        seen: Mapping[int, int],
        constant: Callable[[int, int], float | None],
    ) -> "Needed":
        """The factors that targets need given evidence on some variables, of which some are `seen` in a known state.

        `constant(c, i)` is `constant_sum` of factor c and its variable i.
        """
        holding: list[set[int]] = [set() for _ in range(factors.size)]
        for c, scope in enumerate(factors.scopes):
            for i in scope:
                holding[i].add(c)
        asked, left, kept, log = {*targets, *given}, set(range(factors.size)), set(range(len(factors.scopes))), 0.0
        waiting = [i for i in left if i not in asked and len(holding[i]) < 2]
        while waiting:
            i = waiting.pop()
            if i not in left:
                continue
            if not holding[i]:
                left.remove(i)
                log += np.log(factors.cardinalities[i])
                continue
            (c,) = holding[i]
            total = constant(c, i)
            if total is None:
                continue
            left.remove(i)
            kept.remove(c)
            log += np.log(total)
            for j in factors.scopes[c]:
                holding[j].discard(c)
                if j != i and j not in asked and len(holding[j]) < 2:
                    waiting.append(j)
        order = sorted(left.difference(seen))
        number = {i: place for place, i in enumerate(order)}
        scopes, tables = [], []
        for c in sorted(kept):
            scope, table = factors.scopes[c], np.asarray(factors.tables[c], dtype=float)
            tables.append(table[tuple(seen.get(i, slice(None)) for i in scope)])
            scopes.append(tuple(number[i] for i in scope if i in number))
        return cls(Factors(factors.cardinalities[order], tuple(scopes), tuple(tables)), number, log)


def constant_sum(table: np.ndarray, axis: int) -> float | None:
    """The sum of a table over an axis if it is constant up to rounding; otherwise None."""
    sums = np.asarray(table, dtype=float).sum(axis=axis)
    most = float(sums.max())
    alike = most > 0 and most - float(sums.min()) <= 4 * np.finfo(float).eps * table.shape[axis] * most
    return most if alike else None
