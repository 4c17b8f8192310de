"""The figures of Bayesian kernel learning at their smallest scale."""

import numpy as np
import pytest

from meanmap.experiments.experiment import Setting, verdict
from meanmap.experiments.kernel_learning.samples import grid_of_normals, three_normals, three_normals_embedding
from meanmap.experiments.registry import all_experiments
from meanmap.kernels import RBF

IDS = [id for id in all_experiments() if id.startswith("kernel-learning-")]


def test_all_figures_are_registered():
    assert {f"kernel-learning-figure-{k}" for k in (1, 2, 3)} <= set(IDS)


def test_the_true_embedding_is_the_mean_of_many_points():
    at = np.array([-1.0, 0.3])
    mean = RBF(0.5)(at, three_normals(np.random.default_rng(0), 100_000)).mean(axis=1)
    np.testing.assert_allclose(three_normals_embedding(at, 0.5), mean, atol=4e-3)


def test_clusters_have_the_stated_covariance():
    x = grid_of_normals(np.random.default_rng(0), 200_000, 4.0, spacing=100.0)
    inside = x - 100 * np.round(x / 100)
    np.testing.assert_allclose(np.cov(inside.T), [[2.5, -1.5], [-1.5, 2.5]], atol=0.05)


@pytest.mark.slow
@pytest.mark.parametrize("id", IDS)
def test_it_runs_at_the_smallest_scale(id):
    experiment = all_experiments()[id]
    outcome = experiment.run(Setting("smoke"))
    assert outcome.figures
    assert outcome.table
    assert verdict(experiment.claims, outcome.numbers, "smoke")
    assert all(np.isfinite(number.value) for number in outcome.numbers.values())
