"""Whether zero is in an interval: as a test of the hypothesis says, not the variation that the rows happen to show.

Where something is rare on both sides, rows that would show how much an estimate varies are often missing, and intervals
that rest on what is seen exclude zero far too often. Under the hypothesis rows may be exchanged, whatever is rare.
"""

from collections.abc import Sequence

import numpy as np

from meanmap.stats.designs.exchanges import Exchange
from meanmap.stats.limits import DistanceLaw
from meanmap.stats.result import larger_and_tied

__all__ = ["chance_of_dependence", "chance_of_difference", "draws_for", "excludes_zero"]

# Exchanges for each unit of the tail's chance, up to so many in all unless fewer could not reach the tail.
EACH, MOST = 5, 1000
# Rounding of sums of products in single and double precision, for the largest of them.
ROUNDING = 1e-6


def draws_for(level: float) -> int:
    """How many exchanges tell whether a p-value is in the tail of an interval of this level."""
    tail = (1 - level) / 2
    return int(np.ceil(max(min(EACH / tail, MOST), 1 / tail))) - 1


def excludes_zero(law: DistanceLaw, level: float) -> bool:
    """Whether the interval of this law excludes zero, by the variation that the rows show."""
    return law.above(0.0) <= (1 - level) / 2


def chance_of_dependence(k: np.ndarray, m: np.ndarray, level: float, generator: np.random.Generator) -> float:
    """The p-value of HSIC of two Gram matrices, whose pairs are exchanged."""
    k = (k - k.mean(axis=0) - k.mean(axis=1)[:, None] + k.mean()).astype(np.float32)
    m = m.astype(np.float32)
    orders = (generator.permutation(len(k)) for _ in range(draws_for(level)))
    found = np.array([np.vdot(k, m), *(np.vdot(k, m[np.ix_(order, order)]) for order in orders)], float)
    return _ranked(found, ROUNDING * float(np.vdot(np.abs(k), np.abs(m))))


def chance_of_difference(gram: np.ndarray, sizes: Sequence[int], level: float) -> float:
    """The p-value of Σ_g n_g ‖μ_g − μ̄‖² of samples one after another, from inner products of all rows."""
    gram = gram - gram.mean(axis=0) - gram.mean(axis=1)[:, None] + gram.mean()
    groups = np.repeat(np.arange(len(sizes)), sizes)
    labels = Exchange.of(len(groups)).labels(groups, draws_for(level), np.random.default_rng(0))
    found = np.zeros(len(labels))
    for g, n in enumerate(sizes):
        of_group = (labels == g).astype(float)
        found += np.einsum("ij,ij->i", of_group @ gram, of_group) / n
    return _ranked(found, ROUNDING * float(np.abs(gram).max()))


def _ranked(values: np.ndarray, rounding: float) -> float:
    larger, tied = larger_and_tied(float(values[0]), values[1:], rounding)
    return (1 + larger + tied) / len(values)
