"""The figures of Bayesian kernel learning at their smallest scale."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from meanmap import two_sample_test
from meanmap.kernels import RBF
from meanmap_papers.experiment import Setting, verdict
from meanmap_papers.kernel_learning.figure_2 import kernels_for
from meanmap_papers.kernel_learning.printed import printed_log_density
from meanmap_papers.kernel_learning.samples import grid_of_normals, three_normals, three_normals_embedding
from meanmap_papers.registry import all_experiments

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


def test_the_learned_kernel_is_tested_alone():
    """As in the paper: by its name it would be fused with the default kernels."""
    x, y = (grid_of_normals(np.random.default_rng(seed), 60, ratio) for seed, ratio in ((0, 1.0), (1, 4.0)))
    kernel = kernels_for(np.concatenate([x, y]), 0)["learned"]
    assert isinstance(kernel, RBF)
    alone, by_name = (two_sample_test(x, y, each, n_permutations=19, rng=0) for each in (kernel, "learned"))
    assert (alone.shared, by_name.shared is None) == (None, False)


@pytest.mark.slow
@pytest.mark.parametrize("id", IDS)
def test_it_runs_at_the_smallest_scale(id):
    experiment = all_experiments()[id]
    outcome = experiment.run(Setting("smoke"))
    assert outcome.figures
    assert outcome.table
    assert verdict(experiment.claims, outcome.numbers, "smoke")
    assert all(np.isfinite(number.value) for number in outcome.numbers.values())


def test_the_printed_program_as_loops():
    """Statement by statement, with the indices of the listing."""
    x, z = np.random.default_rng(0).normal(size=7), np.array([-1.0, 0.2, 0.9])
    n, m, scale, noise = 7, 3, 0.6, 0.4
    k = np.exp(-((x[:, None] - z) ** 2) / (2 * scale**2))
    r = np.exp(-((z[:, None] - z) ** 2) / (4 * scale**2))
    j = k * k * (x[:, None] - z) ** 2 / scale**4
    e2, q2 = np.linalg.eigh(r)
    q1, e1 = np.linalg.eigh(np.ones((n, n)))[1], np.zeros(n)
    e1[0] = n
    e = np.zeros(n * m)
    for jj in range(m):
        for ii in range(n):
            e[jj * n + ii] = 1 / (e1[ii] * e2[jj] + noise)
    mv2 = (q2.T @ k.T @ q1).ravel(order="F")
    expected = -0.5 * (np.log(e2 * n + noise).sum() + m * (n - 1) * np.log(noise)) - 0.5 * np.sum(mv2 * e * mv2)
    expected += sum(np.log(0.5 * row.sum()) for row in j)
    with jax.enable_x64(True):
        found = float(printed_log_density(scale, noise, jnp.asarray(x), jnp.asarray(z)))
    assert found == pytest.approx(expected, rel=1e-10)
