"""Settings that every test shares, read and checked in one place."""

from typing import Any

import numpy as np

from meanmap.core.errors import ParameterError

__all__ = ["LEAST_POINTS", "NULLS", "check_settings"]

NULLS = ("auto", "permutation", "gamma", "spectral")
# Fewer points than this have too few permutations for any p-value below 0.05.
LEAST_POINTS = 5
LEAST_PERMUTATIONS = 19


def check_settings(null: str, statistic: str, statistics: tuple[str, ...], n_permutations: Any) -> None:
    """Refuse unknown names, and fewer draws than the level 0.05 needs."""
    for name, value, known in (("null", null, NULLS), ("statistic", statistic, statistics)):
        if value not in known:
            raise ParameterError(f"{name} is {value!r}; expected one of {', '.join(map(repr, known))}.")
    whole = isinstance(n_permutations, int | np.integer) and not isinstance(n_permutations, bool)
    if not whole or n_permutations < LEAST_PERMUTATIONS:
        raise ParameterError(
            f"n_permutations is {n_permutations!r}; expected a whole number of at least {LEAST_PERMUTATIONS}."
        )
