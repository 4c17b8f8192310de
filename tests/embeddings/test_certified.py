"""Norms of embeddings of many points: a few points and a bound, against all pairs."""

import time

import numpy as np
import pytest

import meanmap as mm
from meanmap.embeddings import certified

X = np.random.default_rng(0).normal(size=(600, 2))


@pytest.fixture
def many(monkeypatch):
    """A few hundred points count as many, and the answers of `squared_norm` are kept."""
    answers = []
    whole = certified.squared_norm
    monkeypatch.setattr(certified, "MANY", 500)
    monkeypatch.setattr(certified, "squared_norm", lambda *arguments: answers.append(whole(*arguments)) or answers[-1])
    return answers


@pytest.mark.parametrize("kernel", [mm.kernels.RBF(2.0), 3.0 * mm.kernels.Polynomial(2)])
def test_smooth_kernels_need_few_points(many, kernel):
    element = mm.embed(X, kernel) - 0.3 * mm.embed(X[:550] + 1.0, kernel)
    assert element.norm() == pytest.approx(float(element.inner(element)) ** 0.5, rel=1e-8)
    assert many[0] is not None


def test_rough_kernels_and_differences_of_nothing_are_summed_up(many):
    rough = mm.embed(X, mm.kernels.Laplace(0.1))
    assert rough.squared_norm() == rough.inner(rough)
    close = mm.embed(X, mm.kernels.RBF(1.0)) - mm.embed(X + 1e-9, mm.kernels.RBF(1.0))
    assert close.squared_norm() == max(close.inner(close), 0.0)
    assert many == [None, None]


def test_points_far_from_the_chosen_ones_are_not_forgotten(many, monkeypatch):
    """The bound is over all points, not over those among which pivots were chosen."""
    monkeypatch.setattr(certified, "AMONG", 100)
    x = X.copy()
    x[301] = 40.0
    with pytest.warns(UserWarning, match="holds 40 in row 301"):
        element = mm.embed(x, mm.kernels.RBF(2.0), weights=np.where(np.arange(600) == 301, 1.0, 1e-3))
    assert element.squared_norm() == pytest.approx(element.inner(element), rel=1e-12)
    assert many == [None]


def test_fewer_points_batches_and_sparse_points_are_summed_up(many):
    import scipy.sparse

    mm.embed(X[:400], mm.kernels.RBF(1.0)).norm()
    mm.embed(X, mm.kernels.RBF(1.0), weights=np.ones((2, 600))).norm()
    assert many == []
    mm.embed(scipy.sparse.csr_array(X), mm.kernels.RBF(1.0)).norm()
    assert many == [None]


@pytest.mark.slow
def test_the_norm_of_a_hundred_thousand_points_takes_seconds():
    element = mm.embed(np.random.default_rng(0).normal(size=(100_000, 2)), mm.kernels.RBF(1.0))
    start = time.process_time()
    assert element.norm() == pytest.approx(3**-0.5, rel=0.01)  # of the normal law itself: (1 + 2 / ℓ²)^(−d/4)
    assert time.process_time() - start < 20
