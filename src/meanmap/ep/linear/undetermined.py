"""Expected responses under a log link whose mean does not exist or is set by values that hardly ever occur."""

import numpy as np

from meanmap.core.language import counted
from meanmap.ep.linear.family import Family
from meanmap.ep.linear.formula import Rows
from meanmap.ep.linear.mixtures import Normals
from meanmap.ep.linear.skewed import Skewed

__all__ = ["NODES", "SHARES", "no_mean", "possible", "undetermined"]

# Nodes of the trapezium rule for means over a Normal, in standard deviations.
NODES = np.linspace(-8, 8, 81)
SHARES = np.exp(-(NODES**2) / 2) / np.exp(-(NODES**2) / 2).sum()
# A mean is not determined if the largest values, which have this probability, are more than this share of it: with 5
# groups they are nearly all of it, with 20 a tenth. Thousands of draws have only a few of these values.
_RARE, _MOST = 1e-3, 0.5
# Standard deviations of the logarithm below which that is impossible.
_WIDE = 1.5
# Rows that are looked at together.
_PIECE = 2000


def possible(family: Family, law: Normals) -> bool:
    """Whether any predictor is wide enough for that."""
    return family.link == "log" and bool((law.sds > _WIDE).any())


def undetermined(skewed: Skewed) -> np.ndarray:
    """Which rows (n,) have a distribution, but no mean to speak of.

    The standard deviation of effects has a posterior that falls like a power of it, and E exp(sd · z) = exp(sd² / 2):
    for a new group the integral of both diverges. With many groups that shows only where sd has no probability to speak
    of; with few groups it is most of the mean.
    """
    found = np.zeros(len(skewed.law.means), bool)
    if not possible(skewed.model.family, skewed.law):
        return found
    wide = (skewed.law.sds.max(axis=1) > _WIDE) & ~skewed.wanting
    # Draws of a predictor reach its tails, but not those of the effects of new groups.
    drawn = np.zeros(len(found), bool)
    drawn[skewed.by_draws] = True
    drawn &= ~skewed.new.any(axis=1)
    for some, values in skewed.drawn() if (drawn & wide).any() else ():
        chosen = (drawn & wide)[some]
        found[some[chosen]] = _share_of_largest(values[chosen], np.ones(values.shape[1])) > _MOST
    rows = np.flatnonzero(wide & ~drawn)
    weights = np.concatenate([share * SHARES for share in skewed.model.shares])
    for start in range(0, len(rows), _PIECE):
        some = rows[start : start + _PIECE]
        values = [skewed.values(NODES, some, node) for node in range(len(skewed.model.nodes))]
        found[some] = _share_of_largest(np.concatenate(values, axis=1), weights) > _MOST
    return found


def _share_of_largest(logs: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The share of the mean of exp(logs), (n, k), that comes from the largest values."""
    order = np.argsort(-logs, axis=1)
    weights = (weights / weights.sum())[order]
    each = weights * np.exp(np.take_along_axis(logs, order, axis=1) - logs.max(axis=1, keepdims=True))
    before = np.cumsum(weights, axis=1) - weights
    inside = np.clip((_RARE - before) / np.maximum(weights, np.finfo(float).tiny), 0, 1)
    return (each * inside).sum(1) / each.sum(1)


def no_mean(count: int, rows: Rows, what: str) -> str:
    """A note on such rows; `what` says what it means for the result."""
    new = [f"sd({label} | {group.name})" for group in rows.groups if (group.index < 0).any() for label in group.labels]
    why, instead = "their predictors are so uncertain", ""
    if new:
        why = f"few groups do not rule out very large values of {' and '.join(new)}, and the prior allows them"
        instead = f", groups=False for groups without effects, or priors={{{new[0]!r}: scale}} if you know more of it"
    return (
        f"the mean response of {counted(count, 'row')} does not exist, or is set by values that hardly ever occur: "
        f"{why}. {what}. Type np.median(fit.expected(data), axis=0) for the median{instead}"
    )
