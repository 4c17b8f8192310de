"""Background knowledge about causes."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from meanmap.core.errors import InputError, KindError
from meanmap.core.meant import names_none
from meanmap.core.values import as_known, is_sequence
from meanmap.graphs import PDAG
from meanmap.graphs.orientation import find_cycle

__all__ = ["Knowledge"]


@dataclass(frozen=True)
class Knowledge:
    """Arrows that must be present and arrows that must be absent.

    Attributes
    ----------
    required : bool array (d, d)
        True at (i, j) where i → j is known.
    forbidden : bool array (d, d)
        True at (i, j) where i → j is impossible; with (j, i) too, the two are not adjacent.
    """

    required: np.ndarray
    forbidden: np.ndarray

    @classmethod
    def of(
        cls,
        names: Sequence[str],
        required: Iterable[tuple[str, str]] = (),
        forbidden: Iterable[tuple[str, str]] = (),
        tiers: Iterable[Iterable[str]] = (),
    ) -> "Knowledge":
        """Read pairs (cause, effect), and tiers from the earliest to the last: no later one causes an earlier one.

        Unknown names and contradictory knowledge are refused.
        """
        number = {name: i for i, name in enumerate(names)}
        must, must_not = (np.zeros((len(names), len(names)), dtype=bool) for _ in range(2))
        for matrix, pairs, argument in ((must, required, "required"), (must_not, forbidden, "forbidden")):
            for pair in _sequence(pairs, argument):
                a, b = _pair(pair, number, argument)
                matrix[a, b] = True
        _forbid_backwards(must_not, tiers, number)
        both = np.argwhere(must & must_not)
        if len(both):
            a, b = (names[i] for i in both[0])
            raise InputError(f"the arrow {a!r} → {b!r} is required, and forbidden by forbidden=... or tiers=....")
        if cycle := find_cycle(PDAG.of([(names[a], names[b]) for a, b in np.argwhere(must & ~must.T)], nodes=names)):
            raise InputError(f"required has a cycle: {' → '.join(map(repr, [*cycle, cycle[0]]))}.")
        if (must & must.T).any():
            a, b = (names[i] for i in np.argwhere(must & must.T)[0])
            raise InputError(f"required has both {a!r} → {b!r} and {b!r} → {a!r}; expected one of them.")
        return cls(must, must_not)

    @property
    def apart(self) -> np.ndarray:
        """Pairs that are known not to be adjacent, symmetric."""
        return self.forbidden & self.forbidden.T

    @property
    def barred(self) -> np.ndarray:
        """Arrows that must not be drawn."""
        return self.forbidden | self.required.T

    def apply(self, adjacency: np.ndarray) -> np.ndarray:
        """The PDAG (as `PDAG.matrix`) of an undirected graph when one direction of some edges is forbidden."""
        return adjacency & ~self.barred


def _sequence(values: Iterable, argument: str) -> Iterable:
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise KindError(f"{argument} is {values!r}; expected a list.")
    return values


def _pair(pair: object, number: dict[str, int], argument: str) -> tuple[int, int]:
    if not is_sequence(pair) or len(pair) != 2:
        raise KindError(f'{argument} holds {pair!r}; expected pairs (cause, effect) such as ("rain", "street").')
    a, b = (_known(name, number, argument) for name in pair)
    if a == b:
        raise InputError(f"{argument} holds an arrow from {pair[0]!r} to itself.")
    return a, b


def _known(name: object, number: dict[str, int], argument: str) -> int:
    known = as_known(name, number)
    if known is None:
        raise names_none(argument, name, "the table", number)
    return number[known]


def _forbid_backwards(forbidden: np.ndarray, tiers: Iterable[Iterable[str]], number: dict[str, int]) -> None:
    """Forbid arrows from each tier into the ones before it. Names in no tier are free."""
    earlier: list[int] = []
    for tier in _sequence(tiers, "tiers"):
        here = [_known(name, number, "tiers") for name in _sequence(tier, "a tier of tiers")]
        doubled = [name for name, i in number.items() if i in here and i in earlier]
        if doubled:
            raise InputError(f"tiers has {doubled[0]!r} in two tiers; expected each name once.")
        forbidden[np.ix_(here, earlier)] = True
        earlier += here
