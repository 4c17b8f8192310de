"""Settings: single numbers, integers with a lower bound, probabilities, and values by name."""

from collections.abc import Iterable, Mapping
from typing import Any, TypeGuard

import numpy as np

from meanmap.core.errors import KindError, ParameterError
from meanmap.core.language import a_type
from meanmap.core.meant import did_you_mean

__all__ = ["by_name", "is_number", "is_whole", "one_of", "probability", "truth", "whole_number"]


def is_whole(value: object) -> TypeGuard[int]:
    """Whether a value is an integer of Python or NumPy; truth values are not."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def is_number(value: object) -> TypeGuard[float]:
    """Whether a value is one real number of Python or NumPy; truth values are not."""
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)


def whole_number(value: object, name: str, least: int = 1) -> int:
    """An integer of at least `least`; anything else is refused. `name` is that of the argument."""
    if is_whole(value) and value >= least:
        return int(value)
    raise ParameterError(f"{name} is {value!r}; expected a whole number of at least {least}.")


def probability(value: object, name: str = "confidence", example: float = 0.95) -> float:
    """A number between 0 and 1, both excluded."""
    if is_number(value) and 0 < value < 1:
        return float(value)
    raise ParameterError(f"{name} is {value!r}; expected a number between 0 and 1, such as {example}.")


def one_of(value: object, name: str, known: Iterable[str | None]) -> Any:
    """One of the known values; anything else is refused, with a suggestion.

    Examples
    --------
    >>> one_of("gp", "method", ("gp", "ar"))
    'gp'
    """
    known = tuple(known)
    if isinstance(value, str | None) and value in known:
        return value
    listed = " or ".join(map(repr, known)) if len(known) < 3 else f"one of {', '.join(map(repr, known))}"
    raise ParameterError(f"{name} is {value!r}{did_you_mean(value, known)}; expected {listed}.")


def truth(value: object, name: str) -> bool:
    """True or False; a text such as "no" is refused, which Python takes for true."""
    if isinstance(value, bool | np.bool_):
        return bool(value)
    raise ParameterError(f"{name} is {value!r}; expected True or False.")


def by_name(
    values: Mapping[Any, Any] | None, argument: str = "evidence", example: str = '{"dose": 1.0}'
) -> dict[Any, Any]:
    """Values by name, none if nothing was given; anything that is not a mapping is refused."""
    if values is None:
        return {}
    if not isinstance(values, Mapping):
        raise KindError(f"{argument} is {a_type(values)}; expected a mapping such as {example}.")
    return dict(values)
