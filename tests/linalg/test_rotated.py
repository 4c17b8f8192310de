"""Ridges from the decomposed covariance, against `choose_ridge_features`, which has all digits."""

import numpy as np
import pytest

from meanmap.linalg.ridge import Ridge
from meanmap.linalg.ridge_path import choose_ridge_features
from meanmap.linalg.rotated import Rotated


@pytest.mark.parametrize("shape", [(300, 20), (60, 60), (40, 90)])
@pytest.mark.parametrize("outputs", [1, 3, 40])
def test_scores_weights_and_leverages_are_those_of_the_ridge_path(shape, outputs):
    rng = np.random.default_rng(0)
    features = rng.normal(size=shape) * np.geomspace(1, 1e-4, shape[1])
    targets = features[:, :1] + 0.1 * rng.normal(size=(shape[0], outputs))
    mean = np.full(shape[0], 1 / shape[0])
    features, targets = features - features.mean(axis=0), targets - targets.mean(axis=0)
    rotated, path = Rotated.of(features, mean), choose_ridge_features(features, targets, taken=mean)
    np.testing.assert_allclose(rotated.shifts, shape[0] * path.ridges, rtol=1e-12)
    np.testing.assert_allclose(rotated.leave_one_out(targets), path.scores, rtol=1e-6)
    for ridge in path.ridges[[0, 12, 24]]:
        weights, leverages = rotated.regression(targets, shape[0] * ridge)
        solved = Ridge.factor_features(features, ridge=ridge).solve(features.T).T / shape[0]
        np.testing.assert_allclose(features @ weights, features @ solved.T @ targets, rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(leverages, np.sum(features * solved, axis=1), rtol=1e-7)
