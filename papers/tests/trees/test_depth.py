"""Theorem 3 along a chain of angles: the true messages, and estimates that come near them."""

import numpy as np

from meanmap_papers.trees.depth import DEPTH, NOISE, VARIANCE, bound, errors, true_messages
from meanmap_papers.trees.operators import features


def test_true_messages_are_densities_of_what_was_seen():
    """p(seen | x) 2π of a wrapped normal variable whose variance grows by every edge."""
    x, turns = np.linspace(-3, 3, 7), 2 * np.pi * np.arange(-3, 4)[:, None]
    for edges, message in enumerate(true_messages(0.7), 1):
        variance = edges * NOISE**2
        wrapped = np.exp(-((0.7 - x + turns) ** 2) / (2 * variance)).sum(axis=0) / np.sqrt(2 * np.pi * variance)
        np.testing.assert_allclose(features(x) @ message, 2 * np.pi * wrapped, rtol=1e-6, atol=1e-6)


def test_features_have_the_variances_of_uniform_angles():
    x = 2 * np.pi * (np.arange(1000) + 0.5) / 1000
    np.testing.assert_allclose(features(x).T @ features(x) / 1000, np.diag(VARIANCE), atol=1e-12)


def test_errors_fall_with_pairs_and_the_bound_grows_with_edges():
    few, many = (np.array(errors(np.random.default_rng(0), m)) for m in (300, 100_000))
    assert (many[0] < few[0]).all()
    assert few.shape == (3, DEPTH)
    assert (np.diff(bound(0.7)) > 1).all()
