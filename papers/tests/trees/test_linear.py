"""Linear maps between words against answers found in another way."""

import numpy as np
from scipy.sparse import csr_array

from meanmap_papers.trees.baselines.linear import Canonical, Regression, Semantic, cosines


def documents(n=30, seed=0):
    """Two languages of which three topics are the words, nearly."""
    rng = np.random.default_rng(seed)
    topics = rng.gamma(1.0, size=(n, 3))
    pair = [np.abs(topics @ rng.gamma(0.3, size=(3, words)) + 0.01 * rng.normal(size=(n, words))) for words in (12, 15)]
    return [each / np.linalg.norm(each, axis=1, keepdims=True) for each in pair]


def test_regression_is_that_of_the_primal_and_goes_both_ways():
    first, second = documents()
    model = Regression(csr_array(first), csr_array(second))
    for side, (x, y) in enumerate(((first, second), (second, first))):
        weights = np.linalg.solve(x.T @ x + model.ridge * np.eye(x.shape[1]), x.T @ y)
        np.testing.assert_allclose(model.carried(csr_array(x[:4]), side), x[:4] @ weights, atol=1e-10)
        np.testing.assert_allclose(model.alike(x, y, side), cosines(x @ weights, y), atol=1e-10)


def test_indexing_is_the_projection_of_the_singular_vectors(monkeypatch):
    monkeypatch.setattr(Semantic, "dimensions", 4)
    first, second = documents()
    right = np.linalg.svd(np.hstack([first, second]))[2][:4]
    one, two = right[:, :12].T, right[:, 12:].T
    model = Semantic(csr_array(first), csr_array(second))
    np.testing.assert_allclose(model.carried(first, 0), first @ one @ two.T, atol=1e-8)
    np.testing.assert_allclose(model.alike(second, first, 1), cosines(second @ two, first @ one), atol=1e-8)


def test_canonical_correlations_are_those_of_the_generalised_eigenproblem():
    from scipy.linalg import eigh

    first, second = documents()
    model = Canonical(csr_array(first), csr_array(second))
    x, y = first - first.mean(axis=0), second - second.mean(axis=0)
    cross = x.T @ y
    within = [each.T @ each + model.ridge * np.eye(each.shape[1]) for each in (x, y)]
    squares = eigh(cross @ np.linalg.solve(within[1], cross.T), within[0], eigvals_only=True)[::-1]
    np.testing.assert_allclose(model.correlations[:5] ** 2, squares[:5], atol=1e-10)
    # Carried by all variates, a document is where regularised regression puts it.
    expected = x @ np.linalg.solve(within[0], cross) + second.mean(axis=0)
    np.testing.assert_allclose(model.carried(first, 0), expected, atol=1e-8)
