"""Sparse points: the same numbers as dense ones, and never made dense."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse
from sklearn.feature_extraction.text import TfidfVectorizer

from meanmap import features
from meanmap.core import KindError
from meanmap.kernels import (
    RBF,
    Cosine,
    Laplace,
    Linear,
    Matern,
    OnColumns,
    Polynomial,
    RandomProjection,
    RationalQuadratic,
    Torus,
)

DENSE = np.random.default_rng(0).normal(size=(20, 8)) * (np.random.default_rng(1).uniform(size=(20, 8)) < 0.4)
SPARSE = scipy.sparse.csr_array(DENSE)

KERNELS = [
    Linear(),
    Cosine(),
    Polynomial(2, 0.5),
    RandomProjection(np.ones((2, 8))),
    RBF(0.9),
    RBF(np.arange(1.0, 9)),
    RationalQuadratic([1.5], 0.7),
    RBF(1.5) * Matern(2.0) ** 2 + 0.5 * Linear(),
    OnColumns(RBF(1.0), [3, 0]),
]


@pytest.mark.oldest
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_sparse_is_dense(kernel):
    gram, y = kernel(DENSE), DENSE[:7]
    close = {"rtol": 0, "atol": 1e-13 * np.abs(gram).max()}
    np.testing.assert_allclose(kernel(SPARSE), gram, **close)
    np.testing.assert_array_equal(kernel(SPARSE).diagonal(), kernel.diag(SPARSE))
    np.testing.assert_allclose(kernel.diag(SPARSE), kernel.diag(DENSE), **close)
    np.testing.assert_allclose(kernel(SPARSE, scipy.sparse.csc_matrix(y)), kernel(DENSE, y), **close)
    np.testing.assert_allclose(kernel(SPARSE, y), kernel(DENSE, y), **close)
    np.testing.assert_allclose(kernel(y, SPARSE), kernel(y, DENSE), **close)
    np.testing.assert_allclose(kernel.mean(SPARSE, scipy.sparse.coo_array(y)), kernel(DENSE, y).mean(axis=1), **close)
    np.testing.assert_allclose(kernel.matvec(y, SPARSE, np.arange(20.0)), kernel(y, DENSE) @ np.arange(20), rtol=1e-10)


def test_sparse_with_jax_is_jax():
    for gram in (RBF(1.0)(SPARSE, jnp.asarray(DENSE)), RBF(jnp.float32(1.0))(SPARSE)):
        assert isinstance(gram, jax.Array)
        np.testing.assert_allclose(gram, RBF(1.0)(DENSE), atol=1e-6)
    assert RBF(1.0).matvec(SPARSE, None, jnp.ones(20)).dtype == jnp.float32
    assert RBF(jnp.float32(1.0)).mean(SPARSE).shape == (20,)
    assert RBF(jnp.float32(1.0)).diag(SPARSE).dtype == jnp.float32
    with pytest.raises(KindError, match="lengthscale is traced by jit or grad"):
        jax.grad(lambda scale: RBF(scale)(SPARSE).sum())(1.0)
    with pytest.raises(KindError, match="the dense one of x and y is traced"):
        jax.jit(lambda y: RBF(1.0)(SPARSE, y))(DENSE)


@pytest.mark.parametrize("kernel", [Laplace(1.0), Torus(1.0), Laplace(1.0) + RBF(1.0)], ids=repr)
def test_kernels_that_need_dense_points_say_so(kernel):
    with pytest.raises(KindError, match=r"x is sparse, which is not supported here: pass x.toarray\(\)"):
        kernel(SPARSE)


@pytest.mark.oldest
def test_texts_by_tf_idf():
    texts = [f"kernel {word} mean {word} embedding" for word in ("tree", "loopy", "graph", "belief", "tree")]
    rows = TfidfVectorizer().fit_transform(texts)
    assert scipy.sparse.issparse(rows)
    for kernel in (Linear(), Cosine(), RBF(0.8)):
        np.testing.assert_allclose(kernel(rows), kernel(rows.toarray()), atol=1e-13)


@pytest.fixture
def wide(monkeypatch):
    """1,500 rows of 20,000 columns (240 MB if dense), whose conversion to a dense matrix is an error."""
    rng = np.random.default_rng(0)
    columns = np.sort(rng.integers(20_000, size=(1500, 20)), axis=1)
    matrix = scipy.sparse.csr_matrix((rng.uniform(size=30_000), columns.ravel(), np.arange(0, 30_001, 20)))
    matrix.resize(1500, 20_000)
    matrix.sum_duplicates()

    def guard(method):
        def guarded(self, *args, **kwargs):
            assert self.shape[1] < 10_000 or self.shape[0] <= 1, "a wide sparse matrix was made dense"
            return method(self, *args, **kwargs)

        return guarded

    for kind in (scipy.sparse.csr_matrix, scipy.sparse.csc_matrix, scipy.sparse.coo_matrix):
        for name in ("toarray", "todense"):
            monkeypatch.setattr(kind, name, guard(getattr(kind, name)))
    with pytest.raises(AssertionError, match="made dense"):
        matrix.toarray()
    return matrix


@pytest.mark.parametrize(
    "kernel", [Linear(), Cosine(), RBF(1.0), Matern(np.ones(20_000))], ids=lambda k: type(k).__name__
)
def test_wide_sparse_points_are_never_made_dense(kernel, wide):
    gram = kernel(wide)
    assert gram.shape == (1500, 1500)
    some = [0, 700, 1499]
    small = np.asarray([wide[[i], :].toarray().ravel() for i in some])
    np.testing.assert_allclose(gram[np.ix_(some, some)], kernel(small), atol=1e-12)
    np.testing.assert_allclose(kernel.mean(wide[:100], wide), gram[:100].mean(axis=1), atol=1e-12)
    np.testing.assert_allclose(kernel.diag(wide), gram.diagonal(), atol=1e-12)


@pytest.mark.slow
def test_features_of_wide_sparse_points(wide):
    phi = features.Fourier.draw(RBF(1.0), like=wide, n_features=400, rng=0)
    assert np.abs(phi(wide[:50]) @ phi(wide[:50]).T - RBF(1.0)(wide[:50])).max() < 0.35
    low = features.PivotedCholesky.fit(Linear(), wide[:60], tolerance=1e-10)
    np.testing.assert_allclose(low(wide[:60]) @ low(wide[:60]).T, Linear()(wide[:60]), atol=1e-8)
    nystrom = features.Nystrom.fit(Cosine(), wide[:60], n_landmarks=60, rng=0)
    np.testing.assert_allclose(nystrom(wide[:60]) @ nystrom(wide[:60]).T, Cosine()(wide[:60]), atol=1e-8)
    np.testing.assert_allclose(low.mean(wide[:60]), low(wide[:60]).mean(axis=0), atol=1e-12)
