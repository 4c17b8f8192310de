"""Each baseline against an answer found in another way."""

import numpy as np
import pytest

from meanmap import kernels
from meanmap_papers.trees.baselines.embedding_dynamics import EmbeddingDynamics
from meanmap_papers.trees.baselines.kalman import LinearDynamics
from meanmap_papers.trees.baselines.lengths import length_distance, normalised
from meanmap_papers.trees.baselines.topics import BilingualTopics, jensen_shannon, route


def dynamics():
    rng = np.random.default_rng(0)
    q, r = 0.3 * np.eye(2), np.diag([0.5, 0.2, 0.9])
    return LinearDynamics(
        np.array([1.0, -1.0]),
        np.array([[1.0, 0.3], [0.3, 2.0]]),
        np.array([[0.9, 0.2], [-0.1, 0.8]]),
        np.array([0.1, 0.2]),
        q,
        rng.normal(size=(3, 2)),
        np.array([0.5, 0.0, -0.5]),
        r,
    )


def test_filter_and_smoother_are_conditionals_of_the_joint_gaussian():
    model, n = dynamics(), 5
    a, c = model.transition, model.observation
    mean, covariance = [model.mean], np.zeros((2 * n, 2 * n))
    for _ in range(1, n):
        mean.append(a @ mean[-1] + model.drift)
    for t in range(n):
        before = covariance[2 * t - 2 : 2 * t, 2 * t - 2 : 2 * t]
        covariance[2 * t : 2 * t + 2, 2 * t : 2 * t + 2] = (
            model.covariance if t == 0 else a @ before @ a.T + model.noise
        )
        for s in range(t):
            block = a @ covariance[2 * t - 2 : 2 * t, 2 * s : 2 * s + 2]
            covariance[2 * t : 2 * t + 2, 2 * s : 2 * s + 2] = block
            covariance[2 * s : 2 * s + 2, 2 * t : 2 * t + 2] = block.T
    mean = np.concatenate(mean)
    onto, offset = np.kron(np.eye(n), c), np.tile(model.offset, n)
    seen = np.random.default_rng(1).normal(size=(n, 3))

    def given(count):
        h = onto[: 3 * count]
        gain = covariance @ h.T @ np.linalg.inv(h @ covariance @ h.T + np.kron(np.eye(count), model.observation_noise))
        rest = seen[:count].ravel() - h @ mean - offset[: 3 * count]
        return mean + gain @ rest, covariance - gain @ h @ covariance

    means, spreads = model.filter(seen)
    smoothed, around = model.smooth(seen)
    everything = given(n)
    for t in range(n):
        here = slice(2 * t, 2 * t + 2)
        expected = given(t + 1)
        np.testing.assert_allclose(means[t], expected[0][here], atol=1e-10)
        np.testing.assert_allclose(spreads[t], expected[1][here, here], atol=1e-10)
        np.testing.assert_allclose(smoothed[t], everything[0][here], atol=1e-10)
        np.testing.assert_allclose(around[t], everything[1][here, here], atol=1e-10)


def test_regressions_find_the_dynamics():
    rng, model = np.random.default_rng(2), dynamics()
    states = np.zeros((5000, 2))
    noise = 0.3**0.5 * rng.normal(size=states.shape)
    for t in range(1, len(states)):
        states[t] = model.transition @ states[t - 1] + model.drift + noise[t]
    seen = (
        states @ model.observation.T + model.offset + rng.normal(size=(len(states), 3)) * [0.5**0.5, 0.2**0.5, 0.9**0.5]
    )
    fitted = LinearDynamics.fit(states, seen)
    for name in ("transition", "drift", "noise", "observation", "offset", "observation_noise"):
        np.testing.assert_allclose(getattr(fitted, name), getattr(model, name), atol=0.1)


EDGES = [(0, 1), (1, 2), (1, 3), (3, 4)]


def tree_table(m):
    rng = np.random.default_rng(3)
    table = rng.normal(size=(m, 5))
    for s, t in EDGES:
        table[:, t] = 0.7 * table[:, s] + 0.5 * table[:, t] + 1
    return table


def test_embedding_dynamics_are_the_regression_written_out():
    rng = np.random.default_rng(4)
    states, seen = rng.normal(size=(31, 1)), rng.normal(size=(31, 2))
    k, kernel = kernels.RBF(0.7), kernels.RBF(1.1)
    new = rng.normal(size=(3, 2))
    found = EmbeddingDynamics(states, seen, k, kernel, 0.01).filter(new)
    weights = np.full(30, 1 / 30)
    for row, observation in zip(found, new, strict=True):
        right = k(states[:-1], states[1:]) @ weights + kernel(seen[1:], observation[None])[:, 0]
        weights = np.linalg.solve(k(states[:-1]) + kernel(seen[1:]) + 0.3 * np.eye(30), right)
        np.testing.assert_allclose(row, weights, rtol=1e-8)


def test_topics_pair_documents_of_the_same_theme():
    rng = np.random.default_rng(5)
    themes = rng.integers(3, size=120)
    first = rng.poisson(0.1 + 3.0 * (np.arange(30) // 10 == themes[:, None]))
    second = rng.poisson(0.1 + 3.0 * (np.arange(45) // 15 == themes[:, None]))
    topics = BilingualTopics(first[:80], second[:80], topics=3)
    nearest = topics.divergence(first[80:], second[80:]).argmin(axis=1)
    assert (themes[80:][nearest] == themes[80:]).all()
    back = topics.divergence(second[80:], first[80:], side=1)
    np.testing.assert_allclose(back, topics.divergence(first[80:], second[80:]).T, atol=1e-12)


def test_jensen_shannon_is_that_of_scipy_and_routes_compose_nearest_documents():
    from scipy.spatial.distance import jensenshannon

    p, q = np.random.default_rng(6).dirichlet(np.ones(4), size=(2, 5))
    expected = [[jensenshannon(a, b) ** 2 for b in q] for a in p]
    np.testing.assert_allclose(jensen_shannon(p, q), expected, atol=1e-12)
    one, two = np.random.default_rng(7).random((2, 5, 5))
    np.testing.assert_array_equal(route([one, two]), two[one.argmin(axis=1)])
    np.testing.assert_array_equal(route([one]), one)


def test_lengths_are_compared_in_units_of_their_language():
    english, french = np.array([10.0, 20.0, 30.0]), np.array([15.0, 30.0, 45.0])
    distance = length_distance([normalised(french)], normalised(english))
    np.testing.assert_allclose(np.diagonal(distance), 0, atol=1e-12)
    assert distance[0, 2] == pytest.approx(20 / english.std())
