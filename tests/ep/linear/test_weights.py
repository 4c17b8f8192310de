"""Importance weights of the joint Gaussian, against exact posteriors on a grid."""

import numpy as np

from meanmap.ep.linear.likelihoods import FAMILIES, Observed
from meanmap.ep.linear.predictor import Block, Predictor, Prior
from meanmap.ep.linear.sites import settle
from meanmap.ep.linear.weights import integrates_groups, log_weights, pareto_shape

NONE = np.zeros(0)
BERNOULLI = FAMILIES["bernoulli", "logit"]


def test_groups_are_integrated_given_what_is_shared():
    """Weights are the exact marginal posterior of the shared effect over its belief, up to a constant."""
    rng = np.random.default_rng(0)
    index, x = np.repeat(np.arange(5), 6), rng.normal(size=30)
    observed = Observed.of((rng.random(30) < 1 / (1 + np.exp(-x - rng.normal(size=5)[index]))).astype(float))
    predictor = Predictor((Block.fixed(x[:, None]), Block(index, np.ones((30, 1)), 5)))
    prior = Prior((np.zeros(1), np.zeros(1)), (4 * np.eye(1), np.eye(1)))
    settled = settle(predictor, prior, BERNOULLI, observed, NONE, tolerance=1e-9)
    assert integrates_groups(settled)
    drawn, logs = log_weights(settled, BERNOULLI, observed, NONE, 20, rng)
    mean, variance = settled.joint.mean[0], settled.joint.covariances[0, 0][0, 0, 0, 0]
    u = np.linspace(-8, 8, 801)
    exact = []
    for b in drawn[:, 0]:
        eta = b * x[:, None] + u
        log_p = observed.response[:, None] * eta - np.logaddexp(0, eta)
        by_group = np.stack([log_p[index == group].sum(0) for group in range(5)]) - u**2 / 2
        exact.append(np.log(np.exp(by_group).sum(1)).sum() - b**2 / 8 + (b - mean) ** 2 / (2 * variance))
    np.testing.assert_allclose(logs - logs.mean(), np.array(exact) - np.mean(exact), atol=2e-4)


def test_all_effects_are_drawn_where_factors_cross():
    rng = np.random.default_rng(1)
    one, two = rng.integers(0, 4, 40), rng.integers(0, 3, 40)
    predictor = Predictor((Block(one, np.ones((40, 1)), 4), Block(two, np.ones((40, 1)), 3)))
    observed = Observed.of(rng.poisson(2.0, 40))
    prior = Prior((np.zeros(1), np.zeros(1)), (np.eye(1), np.eye(1)))
    poisson = FAMILIES["poisson", "log"]
    settled = settle(predictor, prior, poisson, observed, NONE)
    assert not integrates_groups(settled)
    _, logs = log_weights(settled, poisson, observed, NONE, 300, np.random.default_rng(2))
    weights = np.exp(logs - logs.max())
    assert weights.sum() ** 2 / (weights @ weights) > 250
    assert pareto_shape(logs) < 0.7
    # Without an own constant: the density of data and effects, over that of the belief at the same draws.
    thetas = settled.joint.draws(300, np.random.default_rng(2))
    A = np.concatenate([block.matrix.toarray() for block in predictor.blocks], axis=1)
    P = np.eye(7) + A.T @ np.diag(settled.weights) @ A
    off = thetas - settled.joint.mean
    belief = np.einsum("ni,ij,nj->n", off, P, off) / 2
    exact = belief + [poisson.log_density(observed, A @ t, NONE).sum() - t @ t / 2 for t in thetas]
    np.testing.assert_allclose(logs - logs.mean(), np.array(exact) - np.mean(exact), atol=1e-8)


def test_the_shape_of_tails():
    rng = np.random.default_rng(0)
    for shape in (0.3, 1.0):
        found = np.mean([pareto_shape(-shape * np.log(rng.random(4000))) for _ in range(20)])
        assert abs(found - shape) < 0.1
    assert pareto_shape(np.zeros(400)) == -np.inf
