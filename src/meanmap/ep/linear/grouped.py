"""Integrals over the effects of each group, by quadrature, and the belief about shared effects that follows from them.

Expectation propagation is nearly exact for a group of one row. Where a group has few, each cumulant of a row that the
site leaves out meets those of the other rows (Opper, Paquet & Winther 2013), and over many groups these errors add up.
"""

from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import NamedTuple

import numpy as np
from numpy.polynomial.hermite_e import hermegauss
from scipy.special import logsumexp

from meanmap.ep.linear.elimination import joint_of
from meanmap.ep.linear.family import Family, Observed
from meanmap.ep.linear.joint import Joint
from meanmap.ep.linear.predictor import Prior
from meanmap.ep.linear.sites import Settled, SharedSite

__all__ = ["Groups", "Regrouped", "integrates_groups", "lacking", "regrouped", "rule_nodes"]

# Rules by the number of effects of a group, from the cheapest: (nodes of Gauss & Hermite,) or (spacing, reach) of the
# trapezium rule, in each dimension. Labels in a group with a wide prior are steps, which only the trapezium rule sums.
_RULES: dict[int, tuple[tuple[float, ...], ...]] = {
    1: ((9,), (15,), (0.4, 9.2), (0.2, 12.0), (0.1, 12.0)),
    2: ((7,), (11,), (17,), (0.6, 9.0)),
    3: ((4,), (7,)),
}
# The first rule that reaches tails.
_TAILS = 2
# A rule is used if all groups together differ by no more than this from the next one; of many groups, about this many
# are examined.
_SURE, _EXAMINED = 0.01, 500
# Evaluations of the likelihood held in memory at once.
_PIECE = 500_000
# The log evidence that expectation propagation may lack within groups before they are integrated: weighted draws add it
# at each node, and it is about the third power of a standard deviation, so that nodes are laid around a log that is off
# by at most .75 times its variance.
_LACKS = 0.25
# The step for derivatives by predictors, in standard deviations of these.
_STEP = 1e-3
# The most Newton steps; a step of this many standard deviations is the last, as it leaves half its square times the
# skewness; and the longest.
_STEPS, _SHORT, _LONG = 20, 0.1, 2.0
# If the belief moves by less, integrals at its mean are enough: they are expanded to second order.
_TINY = 0.03
# A step is halved if the log posterior falls by more than this.
_LEVEL = 1e-6


def integrates_groups(settled: Settled) -> bool:
    """Whether the effects of the largest factor can be integrated given the others."""
    first = settled.joint.first
    return first.width in _RULES and first.size > 1


def rule_nodes(width: int) -> int:
    """The number of nodes of the cheapest rule."""
    return len(_rule(width, 0)[0])


@cache
def _rule(width: int, rung: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes (nodes, width) and log masses for a standard Normal."""
    told = _RULES[width][rung]
    if len(told) == 1:
        x, w = hermegauss(int(told[0]))
        log = np.log(w)
    else:
        spacing, reach = told
        x = spacing * np.arange(-np.floor(reach / spacing), np.floor(reach / spacing) + 1)
        log = -(x**2) / 2
    log = log - np.logaddexp.reduce(log)
    nodes = np.stack(np.meshgrid(*[x] * width, indexing="ij"), axis=-1).reshape(-1, width)
    return nodes, sum(np.meshgrid(*[log] * width, indexing="ij"), np.zeros(())).ravel()


class _Found(NamedTuple):
    """At a value of the shared effects.

    Attributes
    ----------
    log_ratio : number
        Σ log E[likelihood / sites] over groups, given that value.
    gradient, curvature : (r,) and (r, r) arrays
        Of the exact log posterior of the shared effects; the curvature is minus the second derivative.
    second : (width, width) array
        Σ E(u uᵀ) over groups, exact less Gaussian.
    by_parameters : (parameters,) array
        The derivatives of the exact log likelihood by parameters of the family.
    """

    log_ratio: float
    gradient: np.ndarray
    curvature: np.ndarray
    second: np.ndarray
    by_parameters: np.ndarray


@dataclass(frozen=True, eq=False)
class Groups:
    """The groups of the largest factor of a settled run, with their rows in order."""

    settled: Settled
    family: Family
    observed: Observed
    parameters: np.ndarray

    @cached_property
    def _rows(self) -> np.ndarray:
        return np.argsort(self.settled.joint.first.index, kind="stable")

    @cached_property
    def _starts(self) -> tuple[np.ndarray, np.ndarray]:
        """The groups that have rows, and where those of each begin."""
        return np.unique(self.settled.joint.first.index[self._rows], return_index=True)

    def _pieces(self, nodes: int, step: int = 1) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Every so many groups, together those with few enough rows: the groups, their rows, and where each begins."""
        groups, starts = self._starts
        ends = np.append(starts[1:], len(self._rows))
        chosen = np.arange(0, len(groups), step)
        sizes = (ends - starts)[chosen]
        reached, found, at, room = np.cumsum(sizes), [], 0, max(1, _PIECE // nodes)
        while at < len(chosen):
            before = reached[at] - sizes[at]
            to = max(at + 1, int(np.searchsorted(reached, before + room, side="right")))
            own = chosen[at:to]
            spans = [slice(starts[own[0]], ends[own[-1]])]
            if step > 1:
                spans = [slice(starts[one], ends[one]) for one in own.tolist()]
            rows = np.concatenate([self._rows[span] for span in spans])
            found.append((groups[own], rows, reached[at:to] - sizes[at:to] - before))
            at = to
        return found

    def _site(self, eta: np.ndarray, rows: np.ndarray) -> np.ndarray:
        s = self.settled
        return eta * (s.shifts[rows, None] - s.weights[rows, None] / 2 * eta)

    def _around(self, groups: np.ndarray, rows: np.ndarray, nodes: np.ndarray) -> np.ndarray:
        """What the nodes of each group add to the predictors of its rows."""
        joint = self.settled.joint
        index, design = joint.first.index[rows], joint.first.design[rows]
        by = np.einsum("na,nba->nb", design, joint.inverse[index])
        return by @ nodes.T

    @cached_property
    def rule(self) -> tuple[int, bool]:
        """The first rule that is accurate at the mean, or the last, and whether it is accurate."""
        if self.settled.rule is not None:
            return self.settled.rule
        width, last = self.settled.joint.first.width, None
        step = 1 + (len(self._starts[0]) - 1) // _EXAMINED
        for rung in range(len(_RULES[width])):
            nodes, log_masses = _rule(width, rung)
            found = []
            for groups, rows, starts in self._pieces(len(nodes), step):
                eta = self.settled.means[rows, None] + self._around(groups, rows, nodes)
                observed = self.observed.taken(rows).columns()
                excess = self.family.weighted(observed, eta, self.parameters) - self._site(eta, rows)
                found.append(logsumexp(np.add.reduceat(excess, starts) + log_masses, axis=1))
            ratios = np.concatenate(found)
            if last is not None and step * float(np.abs(ratios - last).sum()) < _SURE:
                return rung - 1, True
            last = ratios
        return len(_RULES[width]) - 1, False

    def nodes(self) -> tuple[np.ndarray, np.ndarray]:
        """Of the rule, with their log masses; a single one where groups are not integrated."""
        return self._nodes(0)

    def dense(self) -> tuple[np.ndarray, np.ndarray]:
        """Those of a rule that reaches tails, or of a finer one that is needed."""
        return self._nodes(_TAILS)

    def _nodes(self, least: int) -> tuple[np.ndarray, np.ndarray]:
        width = self.settled.joint.first.width
        if not integrates_groups(self.settled):
            return np.zeros((1, width)), np.zeros(1)
        return _rule(width, max(self.rule[0], min(least, len(_RULES[width]) - 1)))

    def left_out(self) -> np.ndarray:
        """log p(y_i | the other rows of its group) given the mean of all other effects, of each row: 1 / E[1 / p(y_i)],
        of which tails matter.
        """
        nodes, log_masses = self.dense()
        found = np.empty(len(self.settled.means))
        for groups, rows, starts in self._pieces(len(nodes)):
            eta = self.settled.means[rows, None] + self._around(groups, rows, nodes)
            here = self.family.weighted(self.observed.taken(rows).columns(), eta, self.parameters)
            logs = np.add.reduceat(here - self._site(eta, rows), starts) + log_masses
            logs -= np.logaddexp.reduce(logs, axis=1, keepdims=True)
            of_rows = np.repeat(logs, np.diff(np.append(starts, len(rows))), axis=0)
            found[rows] = -np.logaddexp.reduce(of_rows - here, axis=1)
        return found

    def at(self, away: np.ndarray, sloped: bool = False) -> _Found:
        """Given shared effects (r,) that are their mean and `away` from it."""
        joint, s = self.settled.joint, self.settled
        shared, first, (nodes, log_masses) = _shared(joint), joint.first, self.nodes()
        effects, means = joint.predictor.split(joint.mean)[joint.order[0]], s.means
        if away.any():
            moved = joint.first_given(away[:, None]).reshape(first.size, first.width)
            effects, means = effects + moved, means + first.times(moved) + shared @ away
        step = _STEP * np.sqrt(s.variances)
        total, r, second = 0.0, shared.shape[1], np.zeros((first.width, first.width))
        gradient, curvature = np.zeros(r), np.zeros((r, r))
        if r:
            at = joint.order[1]
            curvature = joint.prior.precisions[at].copy()
            gradient = curvature @ (joint.prior.means[at] - joint.predictor.split(joint.mean)[at][0] - away)
        by_parameters = np.zeros(len(self.parameters))
        for groups, rows, starts in self._pieces(len(nodes)):
            observed = self.observed.taken(rows).columns()
            eta = means[rows, None] + self._around(groups, rows, nodes)
            h = step[rows, None]
            here, slopes, bends = self.family.weighted_bends(observed, eta, self.parameters, h)
            logs = np.add.reduceat(here - self._site(eta, rows), starts) + log_masses
            top = logs.max(1, keepdims=True)
            masses = np.exp(logs - top)
            sums = masses.sum(1, keepdims=True)
            total += float((np.log(sums) + top).sum())
            masses /= sums
            of_rows = np.repeat(masses, np.diff(np.append(starts, len(rows))), axis=0)
            x = shared[rows]
            gradient += x.T @ np.einsum("nm,nm->n", of_rows, slopes)
            bent = np.einsum("nm,nm->n", of_rows, bends)
            curvature -= (x * bent[:, None]).T @ x
            scores = np.empty((r, *masses.shape))
            for at, column in enumerate(x.T):
                scores[at] = np.add.reduceat(slopes * column[:, None], starts)
            scores -= (scores * masses).sum(2, keepdims=True)
            curvature -= (scores * masses).reshape(r, masses.size) @ scores.reshape(r, masses.size).T
            if sloped:
                one, inverse, mean = masses @ nodes, joint.inverse[groups], effects[groups]
                two = np.einsum("gm,ma,mb->gab", masses, nodes, nodes) - np.eye(first.width)
                second += np.einsum("gca,gcd,gdb->ab", inverse, two, inverse)
                cross = np.einsum("ga,gc,gcb->ab", mean, one, inverse)
                second += cross + cross.T
                if len(by_parameters):
                    each = self.family.weighted_slopes(observed, eta, self.parameters)
                    by_parameters += [float((of_rows * slope).sum()) for slope in each]
        return _Found(total, gradient, curvature, second, by_parameters)


class Regrouped(NamedTuple):
    """A run whose shared effects follow exact integrals over groups; the gradient of its evidence needs the others.

    Attributes
    ----------
    second : (width, width) array
        Σ E(u uᵀ) over groups, exact less Gaussian.
    by_parameters : (parameters,) array
    """

    settled: Settled
    second: np.ndarray
    by_parameters: np.ndarray


def lacking(settled: Settled) -> float:
    """About how much log evidence is due to pairs of rows in a group: the first term of the series of Opper, Paquet &
    Winther (2013), with all predictors of a group fully correlated.
    """
    if settled.thirds is None or not integrates_groups(settled):
        return 0.0
    skew, index = np.abs(settled.thirds) / settled.variances**1.5, settled.joint.first.index
    return float((np.bincount(index, skew) ** 2 - np.bincount(index, skew**2)).sum()) / 12


def regrouped(settled: Settled, family: Family, observed: Observed, parameters: np.ndarray) -> Regrouped | None:
    """The belief about the shared effects from their exact posterior given the components, where groups are integrated:
    its mode, moved by its skewness, and its curvature. None if this changes little.

    Beside other factors the belief stays, and the evidence alone is that of groups given the mean of all other effects.
    """
    if family.exact or lacking(settled) < _LACKS:
        return None
    groups = Groups(settled, family, observed, parameters)
    try:
        return _climbed(groups)
    except np.linalg.LinAlgError:
        return None


def _climbed(groups: Groups) -> Regrouped | None:
    """By Newton's method from the mean of the belief; None if it does not converge."""
    joint = groups.settled.joint
    r = _shared(joint).shape[1]
    away, scale = np.zeros(r), np.linalg.inv(joint.within(joint.order[1])[0]) if r else np.zeros((0, 0))
    found, step, height = groups.at(away, True), np.zeros(r), -np.inf
    for _ in range(_STEPS):
        new = found.log_ratio - float(away @ scale @ away) / 2
        if new < height - _LEVEL:
            away, step = away - step / 2, step / 2
        else:
            np.linalg.cholesky(found.curvature)
            step, height = np.linalg.solve(found.curvature, found.gradient), new
            size = float(np.sqrt(max(step @ found.gradient, 0.0)))
            if size < _SHORT:
                beyond = _beyond_mode(groups.settled, found.curvature)
                mean, size = away + step + beyond, size + float(np.sqrt(beyond @ found.curvature @ beyond))
                if away.any() or size > _TINY:
                    away, found = mean, groups.at(mean, True)
                return _with(groups, found, away, mean, scale)
            step = step * min(1.0, _LONG / size)
            away = away + step
        found = groups.at(away)
    return None


def _with(groups: Groups, found: _Found, away: np.ndarray, moved: np.ndarray, scale: np.ndarray) -> Regrouped:
    """The belief with another marginal distribution of the shared effects: their mean is `moved`, `found` at `away`."""
    settled, r = groups.settled, len(away)
    joint, prior = settled.joint, settled.joint.prior
    if r:
        log_evidence = settled.log_evidence - float(settled.gains.sum()) + found.log_ratio
        at = joint.order[1]
        left = np.linalg.solve(found.curvature, found.gradient)
        log_evidence += (np.linalg.slogdet(scale)[1] - np.linalg.slogdet(found.curvature)[1]) / 2
        log_evidence += float(found.gradient @ left - away @ scale @ away) / 2
        mean = joint.predictor.split(joint.mean)[at][0]
        weights, shifts = found.curvature - scale, found.curvature @ (mean + moved) - scale @ mean
        precision = prior.precisions[at] + weights
        middle = np.linalg.solve(precision, prior.precisions[at] @ prior.means[at] + shifts)
        means, covariances = list(prior.means), list(prior.covariances)
        means[at], covariances[at] = middle, np.linalg.inv(precision)
        new = joint_of(joint.predictor, Prior(tuple(means), tuple(covariances)), settled.weights, settled.shifts)
        gaussian = new.log_normaliser - joint.log_normaliser + settled.log_evidence
        site = SharedSite(at, weights, shifts, log_evidence - gaussian)
        joint = new
    else:
        given = settled.given_shared().tilted(groups.family, groups.observed, groups.parameters)
        log_evidence = settled.log_evidence - float(given.gains.sum()) + found.log_ratio
        site = SharedSite(joint.order[0], scale, away, log_evidence - settled.log_evidence)
    means = joint.predictor.at(joint.mean)
    return Regrouped(
        replace(settled, means=means, joint=joint, log_evidence=log_evidence, shared=site, rule=groups.rule),
        found.second,
        found.by_parameters,
    )


def _beyond_mode(settled: Settled, curvature: np.ndarray) -> np.ndarray:
    """How far the mean of the shared effects lies from their mode, by third cumulants of the rows."""
    joint, r = settled.joint, len(curvature)
    if not r:
        return np.zeros(0)
    starts = np.cumsum([0, *(block.total for block in joint.predictor.blocks)])
    chosen = np.zeros((r, joint.predictor.total))
    chosen[np.arange(r), starts[joint.order[1]] + np.arange(r)] = 1.0
    by = np.stack([joint.predictor.at(each) for each in joint.solve(chosen)], axis=1) / settled.variances[:, None]
    return by.T @ (settled.thirds * np.einsum("na,ab,nb->n", by, curvature, by)) / 2


def _shared(joint: Joint) -> np.ndarray:
    """The columns of the shared effects; none if there are other factors."""
    blocks, others = joint.predictor.blocks, joint.order[1:]
    if len(others) == 1 and blocks[others[0]].size == 1:
        return blocks[others[0]].design
    return np.zeros((joint.predictor.rows, 0))
