"""Standard deviations of many numbers by chains that begin at the beliefs and move by Hamiltonian dynamics."""

from typing import Any, NamedTuple

import numpy as np

from meanmap.ep.inference.few_numbers import FewNumbers

__all__ = ["Chains", "chains"]

# Chains, moves of each in a part, and parts; lengths of steps are sought in the first two.
_CHAINS, _MOVES, _PARTS, _SEEKING = 64, 50, 12, 2
# By how much the log length of steps follows the share that is accepted, and the least share that is good enough.
_FOLLOW, _ACCEPTED = 0.3, 0.5
# A part agrees with the one before where no log variance differs by more than this many standard errors.
_SETTLED = 4.0


class Chains(NamedTuple):
    """What chains say of the standard deviations of numbers, and of how many independent draws each is worth."""

    sd: np.ndarray
    worth: np.ndarray


def chains(model: FewNumbers, centre: np.ndarray, spread: np.ndarray, generator: np.random.Generator) -> Chains | None:
    """The posterior near beliefs with these moments, in the coordinates of families; None if chains do not settle.

    All moves but those of the first parts count, and of these no more than the second half. Standard errors are those
    of chains, which are independent of each other.
    """
    places = centre + spread * generator.normal(size=(_CHAINS, len(centre)))
    length, parts = 0.5 * len(centre) ** -0.25, []
    for part in range(_PARTS):
        follow = np.full(_MOVES, _FOLLOW if part < _SEEKING else 0.0)
        noise = generator.normal(size=(_MOVES, *places.shape)), np.log(generator.random((_MOVES, _CHAINS))), follow
        found, shares, length = model.moved((places, spread, np.asarray(length)), noise)
        places = found[-1]
        if part < _SEEKING:
            continue
        if not shares.mean() > _ACCEPTED:
            return None
        values = model.points(found.reshape(-1, places.shape[1])).reshape(found.shape)
        parts.append(values)
        if len(parts) % 2 == 0 and _agree(*np.array_split(np.concatenate(parts), 2)):
            return _moments(np.concatenate(parts))
    return None


def _moments(values: np.ndarray) -> Chains:
    """Of (moves, chains, numbers)."""
    squares = ((values - values.mean((0, 1))) ** 2).mean(0)
    variance = squares.mean(0)
    error = squares.std(0, ddof=1) / np.sqrt(len(squares)) / variance
    return Chains(np.sqrt(variance), 2 / error**2)


def _agree(first: np.ndarray, second: np.ndarray) -> bool:
    """Whether two halves of the moves have the same variances but for chance."""
    one, two = _moments(first), _moments(second)
    error = np.sqrt(2 / one.worth + 2 / two.worth)
    away: Any = np.abs(2 * np.log(one.sd / two.sd)) / error
    return bool((away < _SETTLED).all())
