"""Settings that every test shares, read and checked in one place."""

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np

from meanmap.core.arrays import out_of_range
from meanmap.core.errors import ParameterError
from meanmap.core.settings import is_whole, one_of
from meanmap.kernels.geometry import pair_distances

__all__ = [
    "FEW_FOR_A_LIMIT",
    "LEAST_POINTS",
    "LEAST_PVALUE",
    "MOST_PERMUTATIONS",
    "PERMUTED",
    "WHOLE",
    "check_choice",
    "check_draws",
    "doubt_about_limit",
    "finite_distances",
]

# Up to this many points in all "auto" uses full Gram matrices, and beyond it features.
WHOLE = 3000
# Up to this many points in all features are permuted; beyond, the samples are large enough for the Gaussian limit.
PERMUTED = 20_000
# Fewer points than this have too few permutations for any p-value below 0.05.
LEAST_POINTS = 5
# Smaller p-values count as this: the quantile of 0 is infinite, and no p-value is 0.
LEAST_PVALUE = 1e-300
LEAST_PERMUTATIONS, MOST_PERMUTATIONS = 19, 1_000_000
# With fewer points in the smallest sample a limit is doubtful, and the result has a note.
FEW_FOR_A_LIMIT = 100


def check_choice(statistic: str, null: str, choices: Mapping[str, Sequence[str]]) -> None:
    """Refuse names that are unknown or do not go together; `choices` are the nulls of each statistic."""
    nulls = list(dict.fromkeys(name for names in choices.values() for name in names))
    for name, value, known in (("statistic", statistic, choices), ("null", null, ["auto", *nulls])):
        one_of(value, name, known)
    if null != "auto" and null not in choices[statistic]:
        fitting = [name for name in choices if null in choices[name]]
        raise ParameterError(
            f"statistic={statistic!r} has no null={null!r}: pass null={' or '.join(map(repr, choices[statistic]))}, "
            f"or statistic={' or '.join(map(repr, fitting))}."
        )


def check_draws(n_permutations: object, level: float = 0.05) -> None:
    """Refuse fewer draws than a level needs, as then no p-value is as small, and more than memory holds."""
    # Rounded: 1 / 0.05 is a little more than 20 in binary.
    least = max(LEAST_PERMUTATIONS, int(np.ceil(np.round(1 / level, 6))) - 1)
    if not is_whole(n_permutations) or not least <= n_permutations <= MOST_PERMUTATIONS:
        needed = f", which level {level:g} needs," if least > LEAST_PERMUTATIONS else ""
        raise ParameterError(
            f"n_permutations is {n_permutations!r}; expected a whole number of at least {least}{needed} and at most "
            f"{MOST_PERMUTATIONS}."
        )


def doubt_about_limit(exact: bool, sizes: Sequence[int]) -> tuple[str, ...]:
    """The note on a limiting null distribution that may be inaccurate for few points."""
    if exact or min(sizes) >= FEW_FOR_A_LIMIT:
        return ()
    where = f"the smaller one has {min(sizes)} points" if len(sizes) > 1 else f"there are {min(sizes)} points"
    return (f"the limiting distribution needs large samples, and {where}: null='auto' keeps the level exactly.",)


def finite_distances(points: np.ndarray, metric: Literal["cityblock", "euclidean"]) -> np.ndarray:
    """Distances of all pairs, from which lengthscales are chosen; refused where one is infinite."""
    distances = pair_distances(points, metric)
    if not np.isfinite(distances).all():
        raise out_of_range("two points are further apart than the largest number")
    return distances
