"""The rank of a batch among random subsets of pool and batch together, and the next pool."""

from dataclasses import replace
from typing import Any

import numpy as np

from meanmap.core.points import count, joined, rows
from meanmap.core.types import Points
from meanmap.stats.permutations import Permuted
from meanmap.stats.result import larger_and_tied
from meanmap.stats.samples.drift_counts import with_counts
from meanmap.stats.samples.drift_strata import within_strata
from meanmap.stats.samples.scores import Scores
from meanmap.stats.samples.subsets import TIE, among_subsets

__all__ = ["at_most", "rank_of", "ranked", "scores_of"]

# A batch that ranks first is ranked again among at most this many subsets.
MOST_DRAWN = 20_000
# Pools grow to this many points, or remain as large as they begin: the more points, the longer a pool remembers.
GROWS_TO = 5000


def at_most(most: int, points: Points, codes: np.ndarray, seed: list[int]) -> tuple[Points, np.ndarray]:
    """Points and the codes of their strata, if any; `most` of them, drawn at random, if there are more."""
    if count(points) <= most:
        return points, codes
    drawn = np.sort(np.random.default_rng(seed).choice(count(points), most, replace=False))
    return rows(points, drawn), codes[drawn] if len(codes) else codes


def ranked(
    monitor: Any, points: Points, new: np.ndarray, codes: np.ndarray, generator: np.random.Generator
) -> tuple[float, dict[str, Any]]:
    """The p-value of a batch, from its points, features and strata, and the next pool if there is no alarm."""
    both, strata, features = np.concatenate([monitor.pool, new]), monitor.strata, monitor.features
    scores = scores_of(monitor, points)

    def drawn(draws: int) -> tuple[Permuted, np.ndarray | None]:
        if strata is None:
            return among_subsets(features, both, len(new), monitor.mean_squares, draws, generator, scores), None
        subsets, exchanged, left = strata.exchanged(codes, draws, generator)
        return within_strata(features, both, subsets, exchanged, generator, scores), left

    found, left = drawn(monitor.n_permutations)
    pvalue, first = rank_of(found, generator)
    again = int(np.ceil(1 / monitor.pvalue_limit))
    if first and monitor.n_permutations < again <= MOST_DRAWN:
        # P-values below this bound need both ranks to be first, so they are no more frequent than with the second
        # alone.
        pvalue = min(rank_of(drawn(again)[0], generator)[0], 1 / (monitor.n_permutations + 1))
    after = strata
    if strata is None:
        pvalue = with_counts(pvalue, monitor.points, points)
        size = min(len(both), max(len(monitor.pool), GROWS_TO))
        left = generator.choice(len(both), size, replace=False)
    else:
        of_both = np.concatenate([strata.codes, codes])
        known = np.flatnonzero(of_both < len(strata.known))
        left = known if len(known) <= GROWS_TO else left
        after = replace(strata, codes=of_both[left])
    return pvalue, {"pool": both[left], "points": rows(joined(monitor.points, points), left), "strata": after}


def scores_of(monitor: Any, points: Points) -> Scores | None:
    """The scores of single columns for pool and batch together, if columns are compared."""
    if not monitor.widths:
        return None
    domain, together = monitor.features.members[0].kernel.domain, joined(monitor.points, points)
    return Scores.of(domain, together, tuple(monitor.widths), monitor.widths)


def rank_of(found: Permuted, generator: np.random.Generator) -> tuple[float, bool]:
    """The p-value of the first of some statistics, ties broken at random, and whether it is larger than all others."""
    values, rounding = found
    near = max(rounding, TIE * float(np.abs(values).max()))
    larger, tied = larger_and_tied(float(values[0]), values[1:], near)
    return (larger + (1.0 - generator.random()) * (1 + tied)) / len(values), larger + tied == 0
