"""Checks that each field in a file has the type that its class declares, so that errors are found at once."""

from collections.abc import Mapping
from dataclasses import is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import jax
import numpy as np

__all__ = ["fits", "hints_of"]

# What stands for itself in a file, and is never another thing that a class declares.
PLAIN = (str, dict, list, bool, int, float, NoneType)
# And what are no points, which are loosely typed.
NO_POINTS = (str, bool, int, float, NoneType)


@cache
def hints_of(kind: type) -> Mapping[str, Any]:
    """What the fields of a class are declared to be; nothing where that is not known when the program runs."""
    try:
        return get_type_hints(kind, include_extras=True)
    except (NameError, TypeError, AttributeError):
        return {}


def fits(value: Any, hint: Any) -> bool:
    """Whether a value may be what is declared; where a declaration says little, whatever came may be.

    Numbers may be arrays, as those of families and kernels are.

    Examples
    --------
    >>> fits("text", float), fits(3, float), fits(np.ones(2), float), fits("text", int | None), fits(None, int | None)
    (False, True, True, False, True)
    >>> from meanmap.core.types import Array
    >>> fits("text", Array), fits(3, Array), fits(None, Array | None)
    (False, True, True)
    """
    if get_origin(hint) is Annotated:
        return not isinstance(value, NO_POINTS) if "points" in hint.__metadata__ else fits(value, get_args(hint)[0])
    if get_origin(hint) in (Union, UnionType):
        return any(fits(value, each) for each in get_args(hint))
    if hint is NoneType or hint is None:
        return value is None
    if hint is str:
        return isinstance(value, str)
    if hint in (int, float, bool):
        return not isinstance(value, str | dict | list | tuple | NoneType) and not is_dataclass(value)
    if (get_origin(hint) or hint) is tuple:
        return not isinstance(value, str | dict | int | float | NoneType)
    if (get_origin(hint) or hint) in (np.ndarray, jax.Array):
        return not isinstance(value, str | dict | NoneType) and not is_dataclass(value)
    if isinstance(hint, type) and is_dataclass(hint):
        return not isinstance(value, PLAIN)
    return True
