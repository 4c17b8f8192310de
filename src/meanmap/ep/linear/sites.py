"""Expectation propagation with a Gaussian site on each scalar predictor, all updated at once."""

from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.polynomial.hermite_e import hermegauss, hermevander
from scipy.special import factorial

from meanmap.ep.linear.elimination import joint_of
from meanmap.ep.linear.family import Family, Observed
from meanmap.ep.linear.joint import Joint
from meanmap.ep.linear.newton import Sites
from meanmap.ep.linear.predictor import Predictor, Prior

__all__ = ["Predictors", "Settled", "SharedSite", "Tilted", "settle"]

# Quadrature rules around the belief of each predictor, in its standard deviations; the first that is accurate enough is
# used. The trapezium rule is the last. A belief may be a third as wide as the cavity (a count of 0, a label), whose
# tail the rule must reach: the error of this rule is 1e-4 for a cavity of sd 5, and below 1e-8 if the cavity is as
# wide as the belief.
_STEP, _REACH = 0.4, 12.0
# The rules before it are Gauss-Hermite rules with these numbers of nodes; the first is used if the variance is below
# _NARROW, because odds and log rates vary on a scale of 1.
_NODES, _NARROW = (5, 9, 15), 0.02
# The ratio of likelihood and site is a series of Hermite polynomials. A rule with m nodes cannot distinguish degrees
# 2m − 2 and above from those that are needed. Their coefficients are about the squares of those of degrees m − 2 and
# m − 1, which the rule does compute. If both are below _LAST times the constant, errors of means are below 1e-8
# standard deviations, and relative errors of variances below 1e-7. Above _HOPELESS the next rule is skipped as well.
_LAST, _HOPELESS = 3e-5, 1e-3


class _Rule(NamedTuple):
    """Nodes, their log weights, and normalised Hermite polynomials at the nodes, whose sums are the coefficients.

    Degrees are 0 to 3, and for the error estimate the last two.
    """

    nodes: np.ndarray
    log_weights: np.ndarray
    polynomials: np.ndarray

    @classmethod
    def of(cls, nodes: np.ndarray, weights: np.ndarray, degrees: tuple[int, ...]) -> "_Rule":
        found = hermevander(nodes, max(degrees))[:, degrees] / np.sqrt(factorial(degrees))
        return cls(nodes, np.log(weights / weights.sum()), found.T)


@cache
def _rules() -> tuple[_Rule, ...]:
    nodes = np.arange(-_REACH, _REACH + _STEP / 2, _STEP)
    hermite = (_Rule.of(*hermegauss(count), (0, 1, 2, 3, count - 2, count - 1)) for count in _NODES)
    return (*hermite, _Rule.of(nodes, np.exp(-(nodes**2) / 2), (0, 1, 2, 3)))


# Rows whose nodes are stored at once.
_PIECE = 8192
# The step size follows from two successive residuals (Barzilai & Borwein 1988): if all rows of a group move at once,
# they overshoot and oscillate, and a shorter step is damped. It is never below this minimum.
_LEAST = 1 / 32
# Remaining moves of many rows, each negligible, add up in the effects that they share: in the last sweep no combination
# of effects may have moved by more than this many standard deviations.
_TOGETHER = 0.01
# A variance that shrinks to less than this share in one sweep was computed from too few nodes to be reliable.
_SHRINKS = 0.02


@dataclass(frozen=True)
class Predictors:
    """The belief about each predictor, without its offset, and the site that it includes.

    Attributes
    ----------
    means, variances : (n,) arrays
        Moments of the belief.
    weights, shifts : (n,) arrays
        The site is exp(shift η − weight η² / 2).
    """

    means: np.ndarray
    variances: np.ndarray
    weights: np.ndarray
    shifts: np.ndarray

    def taken(self, rows: np.ndarray | slice) -> "Predictors":
        """The predictors of some rows."""
        return Predictors(self.means[rows], self.variances[rows], self.weights[rows], self.shifts[rows])

    def log_tilt(
        self, family: Family, observed: Observed, parameters: np.ndarray, rule: _Rule | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Nodes of each row, and the log masses there of belief × likelihood / site; both (nodes, n)."""
        nodes, log_weights, _ = rule or _rules()[-1]
        eta = self.means + np.sqrt(self.variances) * nodes[:, None]
        site = eta * (self.shifts - self.weights / 2 * eta)
        return eta, family.weighted(observed, eta, parameters) - site + log_weights[:, None]

    def tilted(self, family: Family, observed: Observed, parameters: np.ndarray) -> "Tilted":
        """Moments of belief × likelihood / site, row by row."""
        found, rules = np.empty((4, len(self.means))), _rules()
        due = np.where(self.variances < _NARROW, 0, 1)  # index of the rule to be used next
        for at, rule in enumerate(rules):
            chosen = np.flatnonzero(due == at)
            for start in range(0, len(chosen), _PIECE):
                some = chosen[start : start + _PIECE]
                # Rows one after the other are not copied.
                rows = slice(some[0], some[-1] + 1) if some[-1] - some[0] == len(some) - 1 else some
                mine = self.taken(rows)
                _, log_tilted = mine.log_tilt(family, observed.taken(rows), parameters, rule)
                top = log_tilted.max(0)
                total, *sums = rule.polynomials @ np.exp(log_tilted - top)
                one, two, three, *last = (each / total for each in sums)
                if last:
                    left = np.abs(last).max(0)
                    due[rows] = np.where(left < _LAST, -1, np.where(left < _HOPELESS, at + 1, len(rules) - 1))
                found[:, rows] = (
                    np.log(total) + top,
                    mine.means + np.sqrt(mine.variances) * one,
                    mine.variances * (1 + 2**0.5 * two - one**2),
                    mine.variances**1.5 * (6**0.5 * three - 3 * 2**0.5 * one * two + 2 * one**3),
                )
        return Tilted(*found)


class Tilted(NamedTuple):
    """Log mass, mean, variance, and third central moment of each row."""

    gains: np.ndarray
    means: np.ndarray
    variances: np.ndarray
    thirds: np.ndarray


class SharedSite(NamedTuple):
    """A site exp(shifts · β − β · weights β / 2 + log_factor) on shared effects, part of the prior of the belief."""

    block: int
    weights: np.ndarray
    shifts: np.ndarray
    log_factor: float


@dataclass(frozen=True)
class Settled:
    """Converged sites, and the resulting belief.

    Attributes
    ----------
    means : (n,) array
        Means of the beliefs about the predictors.
    weights, shifts : (n,) arrays
        The sites.
    joint : Joint
        The belief about all effects.
    log_evidence : number
    gains : (n,) array
        log E[likelihood / site] under the belief.
    thirds : (n,) array or None
        Third central moments of the tilted predictors; None if the sites are the likelihood.
    shared : SharedSite or None
        Where groups were integrated after the last sweep.
    rule : (int, bool) or None
        The rule by which they were, and whether it is accurate.
    """

    means: np.ndarray
    weights: np.ndarray
    shifts: np.ndarray
    joint: Joint
    log_evidence: float
    gains: np.ndarray
    sweeps: int
    moved: float
    converged: bool
    thirds: np.ndarray | None = None
    shared: SharedSite | None = None
    rule: tuple[int, bool] | None = None

    @property
    def variances(self) -> np.ndarray:
        """Variances of the beliefs about the predictors."""
        return self.joint.of_rows

    def given_shared(self) -> Predictors:
        """Beliefs and sites given the mean of all effects but those of the largest factor."""
        first, inverse = self.joint.first, self.joint.inverse
        variances = (np.einsum("nab,nb->na", inverse[first.index], first.design) ** 2).sum(1)
        return Predictors(self.means, variances, self.weights, self.shifts)

    def taken(self, rows: np.ndarray | slice) -> Predictors:
        """Beliefs and sites of some rows."""
        return Predictors(self.means, self.variances, self.weights, self.shifts).taken(rows)


def settle(
    predictor: Predictor,
    prior: Prior,
    family: Family,
    observed: Observed,
    parameters: np.ndarray,
    start: Settled | Sites | None = None,
    tolerance: float = 1e-6,
    most: int = 100,
    longest: float = 1.5,
) -> Settled:
    """Sweep until no mean moves by more than the tolerance, in standard deviations, and no variance relative to itself.

    Nor may any combination of effects move by a hundredth of its standard deviation, as many rows move it together.
    Each sweep is one factorisation. Sites stay positive if the likelihood is log-concave. The change of a site is the
    difference of the tilted distribution and the belief in natural parameters. No step is longer than `longest`.
    """
    if start is None or family.exact:
        weights, shifts = family.first_sites(observed, parameters)
    else:
        weights, shifts = start.weights, start.shifts
    sizes = tuple(block.size for block in predictor.blocks)
    if family.exact:
        # One factorisation is enough. Likelihood over site is constant, so its value at 0 is used.
        joint, gains = (
            joint_of(predictor, prior, weights, shifts),
            family.weighted(observed, np.zeros(predictor.rows), parameters),
        )
        log_evidence = joint.log_normaliser - prior.log_normaliser(sizes) + float(gains.sum())
        return Settled(predictor.at(joint.mean), weights, shifts, joint, log_evidence, gains, 1, 0.0, True)
    known = start.joint if isinstance(start, Sites) else None
    joint = joint_of(predictor, prior, weights, shifts) if known is None else known
    share, before, sweep = min(1.0, longest), None, 0
    pushed = earlier = None
    while True:
        sweep += 1
        means, variances = predictor.at(joint.mean), joint.of_rows
        if not (np.isfinite(means).all() and (variances > 0).all()):
            raise np.linalg.LinAlgError("the joint belief is not positive")
        belief = Predictors(means, variances, weights, shifts)
        gains, tilted_means, tilted_variances, thirds = belief.tilted(family, observed, parameters)
        left = np.stack([(tilted_means - means) / np.sqrt(variances), tilted_variances / variances - 1])
        moved = float(np.abs(left).max(initial=0))
        # Together the rows move a combination by at most the sum of their moves; after a sweep the bound is sharper.
        together = float(np.abs(left[0]).sum())
        if pushed is not None:
            together = min(together, float(np.sqrt(max(pushed @ (means - earlier), 0.0))))
        settled = moved < tolerance and together < _TOGETHER
        if settled or sweep == most:
            break
        share = share if before is None else _share(share, before, left, longest)
        before = left
        # If a belief is hardly wider than its own site allows, there is no cavity, and the site is not updated.
        open_ = 1 / variances - weights > 1e-10 / variances
        spread = np.maximum(tilted_variances, _SHRINKS * variances)
        step_weights = np.where(open_, 1 / spread - 1 / variances, 0.0)
        step_shifts = np.where(open_, tilted_means / spread - means / variances, 0.0)
        while True:
            try:
                joint = joint_of(predictor, prior, weights + share * step_weights, shifts + share * step_shifts)
                break
            except np.linalg.LinAlgError:
                if share <= _LEAST:
                    raise
                share /= 2
        pushed, earlier = share * (step_shifts - step_weights * means), means
        weights, shifts = weights + share * step_weights, shifts + share * step_shifts
    log_evidence = joint.log_normaliser - prior.log_normaliser(sizes) + float(gains.sum())
    return Settled(means, weights, shifts, joint, log_evidence, gains, sweep, moved, settled, thirds)


def _share(share: float, before: np.ndarray, left: np.ndarray, longest: float) -> float:
    """The next step size, from the residuals before and after a step of the present size."""
    turned = float((before * left).sum() / (before * before).sum())
    return float(np.clip(share / (1 - turned), _LEAST, longest)) if turned < 1 else share
