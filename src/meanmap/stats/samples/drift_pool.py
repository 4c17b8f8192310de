"""A batch ranked among random subsets of pool and batch together, and the pool after it."""

from dataclasses import replace
from typing import Any

import numpy as np

from meanmap.core.points import count, joined, rows
from meanmap.core.types import Points
from meanmap.stats.result import larger_and_tied
from meanmap.stats.samples.drift_counts import with_counts
from meanmap.stats.samples.drift_strata import within_strata
from meanmap.stats.samples.subsets import TIE, among_subsets

__all__ = ["at_most", "ranked"]


def at_most(most: int, points: Points, codes: np.ndarray, seed: list[int]) -> tuple[Points, np.ndarray]:
    """Points, and the codes of their strata if they have any; so many of them, drawn at random, if there are more."""
    if count(points) <= most:
        return points, codes
    drawn = np.sort(np.random.default_rng(seed).choice(count(points), most, replace=False))
    return rows(points, drawn), codes[drawn] if len(codes) else codes


def ranked(
    monitor: Any, points: Points, new: np.ndarray, codes: np.ndarray, generator: np.random.Generator
) -> tuple[float, dict[str, Any]]:
    """The p-value of a batch, from its points, features and strata, and what becomes of the pool without an alarm."""
    both, strata = np.concatenate([monitor.pool, new]), monitor.strata
    if strata is None:
        draws = monitor.n_permutations
        values, rounding = among_subsets(monitor.features, both, len(new), monitor.mean_squares, draws, generator)
        left = None
    else:
        subsets, codes, left = strata.exchanged(codes, monitor.n_permutations, generator)
        values, rounding = within_strata(monitor.features, both, subsets, codes)
        strata = replace(strata, codes=codes[left])
    near = max(rounding, TIE * float(np.abs(values).max()))
    larger, tied = larger_and_tied(float(values[0]), values[1:], near)
    pvalue = (larger + (1.0 - generator.random()) * (1 + tied)) / len(values)
    if strata is None:
        pvalue = with_counts(pvalue, monitor.points, points)
    left = generator.choice(len(both), len(monitor.pool), replace=False) if left is None else left
    return pvalue, {"pool": both[left], "points": rows(joined(monitor.points, points), left), "strata": strata}
