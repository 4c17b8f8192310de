"""Distances, inner products and the root between them."""

import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.spatial.distance import cdist, pdist

from meanmap.core import KindError
from meanmap.core.points import abreast
from meanmap.kernels import geometry
from meanmap.kernels.geometry import (
    inner_products,
    known,
    pair_distances,
    safe_sqrt,
    squared_distances,
    unaided_distances,
)

pytestmark = pytest.mark.oldest


@given(st.integers(1, 6).flatmap(lambda d: arrays(float, (4, d), elements=st.integers(-9, 9).map(float))))
def test_squared_distances(x):
    with jax.enable_x64(True):
        ours = np.asarray(squared_distances(jnp.asarray(x), jnp.asarray(x[:2])))
    np.testing.assert_allclose(ours, cdist(x, x[:2], "sqeuclidean"), atol=1e-12)
    assert (ours >= 0).all()
    sparse = squared_distances(scipy.sparse.csr_array(x), scipy.sparse.csr_array(x[:2]))
    np.testing.assert_allclose(sparse, cdist(x, x[:2], "sqeuclidean"), atol=1e-4)


@pytest.mark.parametrize("metric", ["euclidean", "cityblock"])
def test_distances_of_all_pairs_are_those_of_scipy(metric):
    points = np.random.default_rng(0).normal(size=(7, 4)) + 1e3
    for x in (points, points[:, :1], points[:2], points[:1]):
        for distances in (pair_distances, unaided_distances):
            np.testing.assert_array_equal(distances(x, metric), pdist(x, metric))
    assert unaided_distances(np.array([[-1.5e308], [1.5e308]]), metric).tolist() == [np.inf]


def test_distances_of_many_pairs_are_worth_an_import_and_those_of_few_are_not(monkeypatch):
    monkeypatch.delitem(sys.modules, "scipy.spatial.distance")
    pair_distances(np.ones((40, 3)))
    assert "scipy.spatial.distance" not in sys.modules
    monkeypatch.setattr(geometry, "WORTH_SCIPY", 40 * 40 * 3)
    pair_distances(np.ones((40, 3)))
    assert "scipy.spatial.distance" in sys.modules


def test_root_and_its_derivatives():
    values = jnp.array([0.0, 1e-20, 0.25, 4.0])
    np.testing.assert_allclose(safe_sqrt(values), np.sqrt(values))
    np.testing.assert_allclose(jax.vmap(jax.grad(safe_sqrt))(values), [0, 5e9, 1, 0.25], rtol=1e-5)
    np.testing.assert_allclose(jax.grad(jax.grad(safe_sqrt))(4.0), -1 / 32)
    assert jax.jacfwd(safe_sqrt)(jnp.zeros(2)).tolist() == [[0, 0], [0, 0]]
    assert jax.jit(jax.grad(jax.grad(safe_sqrt)))(0.0) == 0


def test_products_of_all_mixtures():
    x, y = np.eye(3)[:2], np.arange(9.0).reshape(3, 3)
    for first in (x, scipy.sparse.csr_array(x), scipy.sparse.csr_matrix(x), jnp.asarray(x)):
        for second in (y, scipy.sparse.csr_array(y), jnp.asarray(y)):
            np.testing.assert_array_equal(inner_products(first, second), y.T[:2])


def test_very_wide_sparse_products():
    x = scipy.sparse.csr_array((np.array([1.0, 2.0, 3.0]), [5, 2**61, 5], [0, 2, 3]), shape=(2, 2**62))
    np.testing.assert_array_equal(inner_products(x, x), [[5, 3], [3, 9]])


def test_columns_abreast():
    sparse = scipy.sparse.csr_array(np.eye(2))
    assert scipy.sparse.issparse(abreast([sparse, sparse]))
    np.testing.assert_array_equal(abreast([sparse, np.ones((2, 1))]), [[1, 0, 1], [0, 1, 1]])


def test_traced_hyperparameters_do_not_meet_sparse_points():
    with pytest.raises(KindError, match=r"lengthscale is traced by jit or grad, and sparse .*: pass x.toarray\(\)"):
        jax.grad(lambda scale: known(scale, "lengthscale"))(1.0)
