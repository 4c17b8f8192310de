"""Weighted draws, given a node, of the effects outside the largest factor and of those of some of its groups."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse
from scipy.special import gammaincinv, ndtri

from meanmap.ep.linear.family import Family, Observed
from meanmap.ep.linear.grouped import Groups
from meanmap.ep.linear.sites import Settled
from meanmap.ep.linear.surface import even_points
from meanmap.ep.linear.weights import excess, pieces, reach, whole_of
from meanmap.ep.weighted_draws import Weighted, pareto_shape

__all__ = ["Affected"]

# Draws of this many effects or fewer come from a Student distribution with these degrees of freedom; its moments are
# those of this many first draws, and so many for each number, in two turns, if these are worth enough equal ones for
# each number.
_FEW, _NU, _TRIED, _TRIED_EACH, _TURNS, _SURE = 20, 6.0, 256, 80, 2, 5
# Points for each coefficient of the quadratic that stands for groups without skewed rows.
_TIMES = 3
# The largest Pareto k with which weighted means can be trusted, and the effective share from which it does not matter.
_TRUSTED, _EVEN = 0.7, 0.95


@dataclass(frozen=True, eq=False)
class Affected:
    """Some rows at a node, with their groups of the largest factor: their likelihood counts as it is, that of all other
    rows as it is for the Gaussian belief.

    Attributes
    ----------
    rows : (rows,) array
    onto : (first, rest) array
        Means of the effects of the largest factor, as deviations, given deviations of all others.
    rule : nodes (nodes, width) and log masses
    """

    settled: Settled
    family: Family
    observed: Observed
    parameters: np.ndarray
    rows: np.ndarray
    onto: np.ndarray
    rule: tuple[np.ndarray, np.ndarray]

    @classmethod
    def of(
        cls, settled: Settled, family: Family, observed: Observed, parameters: np.ndarray, rows: np.ndarray
    ) -> "Affected":
        """At a node."""
        onto = settled.joint.first_given(np.eye(settled.joint.rest))
        rule = Groups(settled, family, observed, parameters).dense()
        return cls(settled, family, observed, parameters, rows, onto, rule)

    @cached_property
    def groups(self) -> np.ndarray:
        """Of these rows."""
        return np.unique(self.settled.joint.first.index[self.rows])

    @cached_property
    def own(self) -> np.ndarray:
        """Positions of the effects of these groups among those of the largest factor."""
        width = self.settled.joint.first.width
        return (self.groups[:, None] * width + np.arange(width)).ravel()

    def drawn(self, count: int, each: int, seed: int) -> "tuple[Weighted, np.ndarray]":
        """Weighted draws (count · each, rest) of deviations of the other effects, and (count · each, own) of those of
        these groups, drawn `each` times from their exact distribution given the others.
        """
        joint = self.settled.joint
        noise, log_ratios = self._proposed(count, seed)
        rest, generator = joint.rest_from(noise), np.random.default_rng(seed)
        log_ratios = log_ratios + self._remainder(noise)
        logs, nodes = list[np.ndarray](), list[np.ndarray]()
        for terms in self._terms(self.rows, rest, self.rule):
            whole = whole_of(terms)
            logs.append(whole.sum(0))
            below = np.cumsum(np.exp(terms - whole[:, :, None]), axis=2)[:, :, None]
            even = generator.permuted(np.tile(np.arange(each), (*whole.shape, 1)), axis=2)
            levels = (even + generator.random(even.shape)) / each
            nodes.append((below < levels[..., None]).sum(3).clip(0, len(self.rule[0]) - 1))
        node = np.concatenate(nodes, axis=1).transpose(2, 1, 0).reshape(each * count, -1)
        own = np.tile((self.onto[self.own] @ rest).T, (each, 1))
        own += reach(joint, self.rule[0], self.groups)[node, np.arange(len(self.groups))].reshape(own.shape)
        return Weighted(np.tile(rest.T, (each, 1)), np.tile(log_ratios + np.concatenate(logs), each)), own

    def _proposed(self, count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
        """Standard noise (rest, count) of the other effects, and the logs of their Normal density over that of the
        proposal: a Student distribution about the mean and covariance of a few first draws, where effects are few. No
        weight of these is larger than √n times their mean (Ionides 2008).
        """
        size = self.settled.joint.rest
        if size > _FEW:
            half = np.random.default_rng(seed).normal(size=(size, count // 2))
            noise = np.concatenate([half, -half], axis=1)
            return noise, np.zeros(noise.shape[1])
        middle, root, tried = np.zeros(size), np.eye(size), max(_TRIED, _TRIED_EACH * (size + 1))
        for turn in range(_TURNS):
            first, logs = _student(tried, middle, root, [seed, turn + 1])
            logs = logs + self._remainder(first)
            rest = self.settled.joint.rest_from(first)
            logs += np.concatenate([whole_of(terms).sum(0) for terms in self._terms(self.rows, rest, self.rule)])
            shares = np.exp(logs - logs.max())
            shares = np.minimum(shares, shares.mean() * np.sqrt(tried))
            shares /= shares.sum()
            if 1 / (shares @ shares) < _SURE * (size + 1):
                break
            middle = first @ shares
            away = first - middle[:, None]
            root = np.linalg.cholesky((away * shares) @ away.T + 1e-9 * np.eye(size))
        return _student(count, middle, root, [seed])

    def _remainder(self, noise: np.ndarray) -> np.ndarray:
        """What all other rows add to log weights: nothing where sites are those of expectation propagation, whose
        moments are right. A site on shared effects holds what all groups together say of them; then it is replaced by a
        quadratic fitted to the sums of the other rows.
        """
        site, joint = self.settled.shared, self.settled.joint
        if site is None or not len(site.shifts):
            return np.zeros(noise.shape[1])
        beta = joint.predictor.split(joint.mean)[site.block].reshape(-1, 1) + joint.rest_from(noise)
        found = (beta * (site.weights @ beta)).sum(0) / 2 - site.shifts @ beta
        return found if self._fitted is None else found + _quadratic(noise) @ self._fitted

    @cached_property
    def _fitted(self) -> np.ndarray | None:
        """Coefficients of the quadratic; None if there are no other rows."""
        joint = self.settled.joint
        left = np.setdiff1d(np.arange(joint.predictor.rows), self.rows)
        if not len(left):
            return None
        terms = (joint.rest + 1) * (joint.rest + 2) // 2
        noise = ndtri(even_points(_TIMES * terms, joint.rest)).T
        rule = Groups(self.settled, self.family, self.observed, self.parameters).nodes()
        sums = [whole_of(each).sum(0) for each in self._terms(left, joint.rest_from(noise), rule)]
        return np.linalg.lstsq(_quadratic(noise), np.concatenate(sums))[0]

    def _terms(self, rows: np.ndarray, rest: np.ndarray, rule: tuple[np.ndarray, np.ndarray]) -> Iterator[np.ndarray]:
        """Logs of likelihood over sites of some rows at the nodes of a rule, with their masses, (groups, draws, nodes),
        at deviations (rest, draws) of the other effects, for some draws at a time.
        """
        joint, (nodes, log_masses) = self.settled.joint, rule
        groups, index = np.unique(joint.first.index[rows], return_inverse=True)
        some = joint.predictor.taken(rows)
        first = some.blocks[joint.order[0]]
        by = np.einsum("na,nba->nb", first.design, joint.inverse[first.index])
        around = by @ nodes.T
        others = sparse.hstack([some.blocks[at].matrix for at in joint.order[1:]] or [sparse.csr_array((len(rows), 0))])
        combined = others.toarray() + first.matrix @ self.onto
        by_group = sparse.csr_array(
            (np.ones(len(rows)), (index.ravel(), np.arange(len(rows)))), (len(groups), len(rows))
        )
        model = (self.settled, self.family, self.observed, self.parameters)
        for piece in pieces(rest.shape[1], max(len(rows) * len(nodes), 1)):
            eta = self.settled.means[rows, None] + combined @ rest[:, piece]
            eta = (eta[:, :, None] + around[:, None, :]).reshape(len(rows), -1)
            terms = by_group @ excess(*model, eta, rows)
            yield terms.reshape(len(groups), -1, len(nodes)) + log_masses


def is_sound(logs: np.ndarray, worth: float) -> bool:
    """Whether weights can be trusted, and are worth so many equal ones."""
    effective = Weighted(np.zeros((len(logs), 0)), logs).effective
    return (effective > _EVEN or pareto_shape(logs) < _TRUSTED) and effective * len(logs) > worth


def _student(count: int, middle: np.ndarray, root: np.ndarray, seed: list[int]) -> tuple[np.ndarray, np.ndarray]:
    """Even points (size, count) of a Student distribution, shifted at random, and the logs of the standard Normal
    density over its.
    """
    size = len(middle)
    even = (even_points(count, size + 1) + np.random.default_rng(seed).random(size + 1)) % 1
    standard = ndtri(even[:, 1:]) / np.sqrt(2 * gammaincinv(_NU / 2, even[:, :1]) / _NU)
    noise = middle[:, None] + root @ standard.T
    logs = (_NU + size) / 2 * np.log1p((standard**2).sum(1) / _NU) - (noise**2).sum(0) / 2
    return noise, logs


def _quadratic(noise: np.ndarray) -> np.ndarray:
    """Columns 1, x and products of pairs, (points, terms), of points (size, points)."""
    one, two = np.triu_indices(len(noise))
    return np.concatenate([np.ones((1, noise.shape[1])), noise, noise[one] * noise[two]]).T
