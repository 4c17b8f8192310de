"""Sites of the likelihood's own curvature at the posterior mode of the effects, where other starts do not converge."""

from typing import NamedTuple

import numpy as np

from meanmap.ep.linear.elimination import joint_of
from meanmap.ep.linear.family import Family, Observed
from meanmap.ep.linear.joint import Joint
from meanmap.ep.linear.predictor import Predictor, Prior

__all__ = ["Sites", "has_many_rows", "sites_at_mode"]

# The most Newton steps, how often each is halved, and the move of all predictors together, in standard deviations of
# the sites, that is not worth another step.
_STEPS, _HALVINGS, _NEAR = 100, 30, 0.01
# Half the distance for differences, in standard deviations of the first sites; the smallest weight of a site.
_DIFFERENCE, _LEAST = 0.1, 1e-10
# Sums of rows have this relative error, so that a step may seem to lower them by so much.
_ROUNDED = 1e-12
# Of this many rows or more, one in this many is taken to begin.
_MANY, _SHARE = 20_000, 16


class Sites(NamedTuple):
    """A site exp(shift η − weight η² / 2) on each predictor, and the joint belief where it is known."""

    weights: np.ndarray
    shifts: np.ndarray
    joint: Joint | None = None


def sites_at_mode(
    predictor: Predictor, prior: Prior, family: Family, observed: Observed, parameters: np.ndarray
) -> Sites:
    """Newton's method with steps that are halved until the posterior increases; the last site is the start of sweeps.

    Counts of 40 and 40,000 have likelihoods far narrower than a first belief that is off by several units: moments
    under it tell a sweep nothing, but slopes at its mean lead to the mode. Of many rows that share all effects, some
    lead near it.
    """
    return _at_mode(predictor, prior, family, observed, parameters)[0]


def has_many_rows(predictor: Predictor) -> bool:
    """Whether some of the rows say nearly as much as all: all effects are shared."""
    return len(predictor.blocks) == 1 and predictor.blocks[0].size == 1 and predictor.rows >= _MANY


def _at_mode(
    predictor: Predictor, prior: Prior, family: Family, observed: Observed, parameters: np.ndarray
) -> tuple[Sites, np.ndarray]:
    """The sites, and the effects that they are made at."""
    weights, shifts = family.first_sites(observed, parameters)
    step = _DIFFERENCE / np.sqrt(1 + weights)
    if has_many_rows(predictor):
        some = np.random.default_rng(0).permutation(predictor.rows)[: predictor.rows // _SHARE]
        theta = _at_mode(predictor.taken(some), prior, family, observed.taken(some), parameters)[1]
    else:
        # Rows with the same weight each, which is enough for a place to start.
        theta = joint_of(predictor, prior, np.ones_like(weights), shifts / np.maximum(weights, _LEAST)).mean
    sites, height = _sites(family, observed, predictor.at(theta), parameters, step)
    height += _log_prior(predictor, prior, theta)
    for _ in range(_STEPS):
        joint = joint_of(predictor, prior, sites.weights, sites.shifts)
        sites, full = sites._replace(joint=joint), joint.mean - theta
        along = predictor.at(full)
        if np.sqrt(sites.weights @ along**2) < _NEAR:
            break
        for _ in range(_HALVINGS):
            new = theta + full
            found, there = _sites(family, observed, predictor.at(new), parameters, step)
            there += _log_prior(predictor, prior, new)
            if there >= height - _ROUNDED * abs(height):
                break
            full = full / 2
        else:
            break
        theta, sites, height = new, found, there
    return sites, theta


def _sites(
    family: Family, observed: Observed, eta: np.ndarray, parameters: np.ndarray, step: np.ndarray
) -> tuple[Sites, float]:
    """The second-order expansions of rows, and their log likelihood."""
    here, slopes, bends = family.weighted_bends(observed, eta, parameters, step)
    weights = np.maximum(-bends, _LEAST)
    return Sites(weights, slopes + weights * eta), float(here.sum())


def _log_prior(predictor: Predictor, prior: Prior, theta: np.ndarray) -> float:
    """Up to a constant."""
    total = 0.0
    for effects, mean, precision in zip(predictor.split(theta), prior.means, prior.precisions, strict=True):
        away = effects - mean
        total -= float(((away @ precision) * away).sum()) / 2
    return total
