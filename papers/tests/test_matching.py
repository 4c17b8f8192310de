"""Matching two views: semi-global costs by enumeration, the learned likelihood beside the one that drew the data."""

import itertools

import numpy as np
import pytest

from meanmap_papers.loopy.matching import MatchingLikelihood, semi_global, window
from meanmap_papers.loopy.scenes import DISPARITIES


def enumerated(costs, path, step, jump):
    """The least cost of all disparities along a path that ends in its last cell with each disparity, (K,)."""
    found = np.full(costs.shape[-1], np.inf)
    for choice in itertools.product(range(costs.shape[-1]), repeat=len(path)):
        total = sum(costs[(*cell, d)] for cell, d in zip(path, choice, strict=True))
        for one, other in itertools.pairwise(choice):
            total += 0 if one == other else step if abs(one - other) == 1 else jump
        found[choice[-1]] = min(found[choice[-1]], total)
    return found


def test_semi_global_costs_are_those_of_all_paths():
    costs = np.random.default_rng(0).random((3, 4, 3))
    found, (height, width) = semi_global(costs, 0.2, 0.5), costs.shape[:2]
    for i, j in ((0, 0), (1, 2), (2, 3)):
        wanted = np.zeros(3)
        for down, right in itertools.product((-1, 0, 1), repeat=2):
            if (down, right) == (0, 0):
                continue
            path = [(i - down * k, j - right * k) for k in range(4)]
            path = [cell for cell in path if 0 <= cell[0] < height and 0 <= cell[1] < width]
            wanted += enumerated(costs, path[::-1], 0.2, 0.5)
        # Each step takes away what does not depend on the disparity.
        np.testing.assert_allclose(found[i, j] - found[i, j].min(), wanted - wanted.min(), atol=1e-12)
    np.testing.assert_array_equal(window(costs, np.array([8, 9, 10])), costs.argmin(axis=-1) + 8)


def test_the_learned_likelihood_is_that_which_drew_the_data():
    rng = np.random.default_rng(1)
    costs = rng.gamma(2.0, 0.05, size=(3000, len(DISPARITIES), 1))
    drawn = MatchingLikelihood(DISPARITIES.astype(float), np.array([-30.0, -10.0]), 0.25)
    flat = costs.reshape(len(costs), -1)
    chance = drawn.chances(flat)
    true = (rng.random((len(chance), 1)) > chance.cumsum(axis=1)).sum(axis=1)
    found = MatchingLikelihood.fit(np.log(DISPARITIES[true]), flat)
    assert found.share == pytest.approx(0.25, abs=0.05)
    np.testing.assert_allclose(found.chances(flat).sum(axis=1), 1)
    rows = np.arange(len(true))
    loss = [-np.log(each.chances(flat)[rows, true]).mean() for each in (found, drawn)]
    assert loss[0] < loss[1] + 1e-3
    values = found.at(flat[:5], np.log(DISPARITIES + 0.0)[:, None])
    np.testing.assert_allclose(values, (each := found.chances(flat[:5])) / each.max(axis=1, keepdims=True))
    assert found.width == len(DISPARITIES)
