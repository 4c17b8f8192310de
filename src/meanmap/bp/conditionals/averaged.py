"""What draws say about a variable: probabilities given its parents, averaged over draws of these, where values have
some.
"""

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from meanmap.bp.conditionals.at_points import AtPoints
from meanmap.bp.conditionals.given_parents import joined
from meanmap.bp.conditionals.in_range import InRange
from meanmap.bp.conditionals.labels_given_parents import LabelsGivenParents
from meanmap.bp.conditionals.laws import Law
from meanmap.bp.conditionals.weighted_draws import evenly
from meanmap.graphs.relevance import ancestors

__all__ = ["Weighed", "averaged", "log_likelihood"]

# Evidence about effects is weighed under every value of a variable up to so many values times draws; beyond, draws of
# the variable are counted.
MOST_WEIGHED = 100_000


@dataclass(frozen=True, eq=False)
class Weighed:
    """The distribution of a variable as weighted values.

    Attributes
    ----------
    values : array (A + n, width)
        Labels as indicators, numbers standardised: first those with a probability of their own, then draws.
    weights : array (A + n,)
        They add up to one.
    listed : int
        A.
    """

    values: np.ndarray
    weights: np.ndarray
    listed: int

    def as_points(self, n: int) -> tuple[np.ndarray, np.ndarray]:
        """Points and weights that are about as many as n draws: each value repeated, its probability divided. One point
        of large weight would count as few draws where densities are smoothed.
        """
        times = np.ones(len(self.weights), dtype=int)
        times[: self.listed] = np.ceil(n * self.weights[: self.listed]).clip(min=1)
        return np.repeat(self.values, times, axis=0), np.repeat(self.weights / times, times)

    def of_size(self, n: int) -> "Weighed":
        """With n draws beside the listed values: each as often as its weight says, up to one, if there were more."""
        draws, weights = self.values[self.listed :], self.weights[self.listed :]
        if len(draws) in (0, n):
            return self
        mass, first = float(weights.sum()), self.values[: self.listed]
        chosen = evenly(weights / max(mass, np.finfo(float).tiny), n)
        alike = np.append(self.weights[: self.listed], np.full(n, mass / n))
        return Weighed(np.concatenate([first, draws[chosen]]), alike, self.listed)


def averaged(
    name: Hashable,
    laws: Mapping[Hashable, Law],
    parents: Mapping[Hashable, Sequence[Hashable]],
    drawn: Mapping[Hashable, np.ndarray],
    weights: np.ndarray,
    hearing: Collection[Hashable],
    known: Collection[Hashable],
    random: np.random.Generator,
) -> Weighed:
    """The distribution of a variable from n weighted draws of all that matters: p(v) = Σᵢ wᵢ p(v | parentsᵢ), averaged
    over the draws of its parents (Rao-Blackwell; Casella & Robert 1996).

    The share of draws that are v has the same mean, but misses rare values: one of three in 10,000 rows is missing from
    a third of all sets of 4000 draws. Where effects of v were observed (`hearing` gave the weights), p(v | parentsᵢ) is
    multiplied by their likelihood. Draws are counted if evidence lies beyond effects that are not `known`, and if
    effects of a number with a density were observed.
    """
    law, own = laws[name], drawn[name]
    values = _listed(law, own.shape[1])
    if not len(values):
        return Weighed(own, weights, 0)
    effects = [each for each in hearing if name in parents[each]]
    hidden = any(name in parents[each] for each in ancestors(parents, hearing).difference(known))
    others = own[:0] if _is_listed(law) else own
    if hidden or (effects and (len(others) or own.shape[0] * len(values) > MOST_WEIGHED)):
        shares = own if own.shape[1] > 1 else (own == values.T).astype(float)
    else:
        rows = joined([drawn[parent] for parent in parents[name]], len(own))
        alike = set(parents[name]) <= set(known)  # then one row is all of them
        shares = np.broadcast_to(_chances(law, rows[:1] if alike else rows), (len(own), len(values)))
        if effects:
            every = [{**drawn, name: np.tile(value, (len(own), 1))} for value in values]
            logs = [log_likelihood(effects, laws, parents, each, len(own)) for each in every]
            shares = _updated(shares, np.stack(logs, axis=1))
        if len(others):
            others = _others(law, rows, random)
    left = weights * (1 - shares.sum(axis=1)).clip(min=0) if len(others) else weights[:0]
    return Weighed(np.concatenate([values, others]), np.concatenate([weights @ shares, left]), len(values))


def log_likelihood(
    effects: Iterable[Hashable],
    laws: Mapping[Hashable, Law],
    parents: Mapping[Hashable, Sequence[Hashable]],
    values: Mapping[Hashable, np.ndarray],
    n: int,
) -> np.ndarray:
    """Of observed effects, at n rows of these and their parents, (n,)."""
    total = np.zeros(n)
    for name in effects:
        total += laws[name].log_chance(joined([values[parent] for parent in parents[name]], n), values[name])
    return total


def _listed(law: Law, width: int) -> np.ndarray:
    """The values that have a probability of their own, (A, width)."""
    if isinstance(law, LabelsGivenParents):
        return np.eye(width)
    if isinstance(law, AtPoints):
        points = law.points[:, None]
        return points if law.number is None else np.concatenate([points, _listed(law.number, 1)])
    if isinstance(law, InRange) and law.few is not None:
        return ((law.few.values - law.centre) / law.scale)[:, None]
    return np.zeros((0, 1))


def _is_listed(law: Law) -> bool:
    """Whether no other values than these have a probability."""
    if isinstance(law, AtPoints):
        return law.number is None or _is_listed(law.number)
    return isinstance(law, LabelsGivenParents) or (isinstance(law, InRange) and law.few is not None)


def _chances(law: Law, rows: np.ndarray) -> np.ndarray:
    """The probabilities of these values at rows of the parents, (m, A)."""
    if isinstance(law, LabelsGivenParents):
        return law.shares(rows)
    if isinstance(law, AtPoints):
        shares, points = law.which.shares(rows), len(law.points)
        inside = np.zeros((len(rows), 0)) if law.number is None else shares[:, points:] * _chances(law.number, rows)
        return np.concatenate([shares[:, :points], inside], axis=1)
    return law.shares(rows) if isinstance(law, InRange) else np.zeros((len(rows), 0))


def _others(law: Law, rows: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """A draw (m, 1) of all other numbers at each row of the parents."""
    assert isinstance(law, AtPoints)  # of other distributions all or no values are listed
    assert law.number is not None
    return law.number.draw(rows, random)


def _updated(shares: np.ndarray, logs: np.ndarray) -> np.ndarray:
    """Probabilities (m, A) after evidence of this log likelihood; zeros where all contradict it."""
    top = logs.max(axis=1, keepdims=True)
    found = shares * np.exp(logs - np.where(np.isfinite(top), top, 0.0))
    return found / np.maximum(found.sum(axis=1, keepdims=True), np.finfo(float).tiny)
