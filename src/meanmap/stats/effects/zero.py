"""Whether an interval contains zero, as decided by a permutation test, not by the observed variation.

If both sides have rare values, the rows that would show how much an estimate varies are often missing. Intervals based
on the observed variation then exclude zero far too often. Under the null hypothesis rows are exchangeable even if
values are rare.
"""

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from meanmap.stats.designs.exchanges import Exchange
from meanmap.stats.independence.hsic import Margins, centre, one_hsic, permuted_hsic
from meanmap.stats.independence.shifts import Shifts
from meanmap.stats.limits import DistanceLaw
from meanmap.stats.result import Null
from meanmap.stats.samples.cells import row_weights

__all__ = ["chance_by_features", "chance_of_dependence", "chance_of_difference", "draws_for", "excludes_zero"]

# The number of permutations times the probability of the tail, and the largest number of permutations, unless more are
# needed for a p-value in the tail.
EACH, MOST = 5, 1000
# The rounding error of sums of products in single and double precision, relative to the largest of them.
ROUNDING = 1e-6


def draws_for(confidence: float) -> int:
    """The number of permutations needed to tell whether a p-value is in the tail of an interval of this level."""
    tail = (1 - confidence) / 2
    return int(np.ceil(max(min(EACH / tail, MOST), 1 / tail))) - 1


def excludes_zero(law: DistanceLaw, confidence: float) -> bool:
    """Whether the interval of this distribution excludes zero, by the observed variation."""
    return law.above(0.0) <= (1 - confidence) / 2


def chance_of_dependence(k: np.ndarray, m: np.ndarray, confidence: float, generator: np.random.Generator) -> float:
    """The permutation p-value of HSIC of two Gram matrices, as in the test: by cyclic shifts of a random order."""
    shifts = Shifts.draw(len(k), draws_for(confidence), generator)
    margins: tuple[list[Margins], list[Margins]] = ([], [])

    def centred(gram: np.ndarray, side: int) -> Iterator[np.ndarray]:
        n = len(gram)
        space = np.empty((n, n + n // 2), np.float32)
        space[:, :n] = gram[np.ix_(shifts.base, shifts.base)] / gram.diagonal().max()
        margins[side].append(centre(space[:, :n]))
        yield space

    sums = permuted_hsic(centred(k, 0), centred(m, 1), shifts, np.zeros((1, 1)))
    (x,), (y,) = margins
    values, rounding = one_hsic(sums[0, 0], x, y, "biased", shifts)
    return _ranked(values, rounding)


def chance_of_difference(
    squared: Callable[[np.ndarray], float], sizes: Sequence[int], design: Exchange, confidence: float
) -> float:
    """The p-value of the squared distance of samples, with units permuted within strata.

    `squared` computes it from the weight of each row in each part of the distance, (N, parts).
    """
    groups = np.repeat(np.arange(len(sizes)), sizes)
    labels = design.labels(design.of_units(groups), draws_for(confidence), np.random.default_rng(0))
    found = np.array([squared(row_weights(drawn[design.units], len(sizes), design)) for drawn in labels])
    return _ranked(found, ROUNDING * float(found.max()))


def chance_by_features(
    values: Callable[[np.ndarray], np.ndarray], sizes: Sequence[int], design: Exchange, confidence: float
) -> float:
    """`chance_of_difference` from features of some rows at a time; very many units are permuted in bundles."""
    groups = np.repeat(np.arange(len(sizes)), sizes)
    design = design.bundled(groups, np.random.default_rng(1))
    labels, masses = design.of_units(groups), design.masses
    means = design.collapsed_in_parts(values) / np.maximum(masses, np.finfo(float).tiny)[:, None]
    of_units = Exchange(design.strata_of_units, np.arange(len(labels)), masses)
    drawn = of_units.labels(labels, draws_for(confidence), np.random.default_rng(0))
    sums = (row_weights(each, len(sizes), of_units).T @ means for each in drawn)
    found = np.array([np.sum(each**2) for each in sums])
    return _ranked(found, ROUNDING * float(found.max()))


def _ranked(values: np.ndarray, rounding: float) -> float:
    return Null("exchanged rows", values[1:], exact=True, rounding=rounding).pvalue(float(values[0]))
