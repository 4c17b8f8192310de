"""Settings that every test shares, read and checked in one place."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from meanmap.core.errors import ParameterError

__all__ = ["LEAST_POINTS", "check_choice", "check_draws"]

# Fewer points than this have too few permutations for any p-value below 0.05.
LEAST_POINTS = 5
LEAST_PERMUTATIONS, MOST_PERMUTATIONS = 19, 1_000_000


def check_choice(statistic: str, null: str, choices: Mapping[str, Sequence[str]]) -> None:
    """Refuse names that are unknown or do not go together; `choices` are the nulls of each statistic."""
    nulls = list(dict.fromkeys(name for names in choices.values() for name in names))
    for name, value, known in (("statistic", statistic, choices), ("null", null, ["auto", *nulls])):
        if value not in known:
            raise ParameterError(f"{name} is {value!r}; expected one of {', '.join(map(repr, known))}.")
    if null != "auto" and null not in choices[statistic]:
        fitting = [name for name in choices if null in choices[name]]
        raise ParameterError(
            f"statistic={statistic!r} has no null={null!r}: pass null={' or '.join(map(repr, choices[statistic]))}, "
            f"or statistic={' or '.join(map(repr, fitting))}."
        )


def check_draws(n_permutations: Any) -> None:
    """Refuse fewer draws than the level 0.05 needs, and more than memory holds."""
    whole = isinstance(n_permutations, int | np.integer) and not isinstance(n_permutations, bool)
    if not whole or not LEAST_PERMUTATIONS <= n_permutations <= MOST_PERMUTATIONS:
        raise ParameterError(
            f"n_permutations is {n_permutations!r}; expected a whole number of at least {LEAST_PERMUTATIONS} and at "
            f"most {MOST_PERMUTATIONS}."
        )
