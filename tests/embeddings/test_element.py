"""The algebra of elements against dense NumPy formulas."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import meanmap as mm
from meanmap.core import InputError, KindError, ShapeError
from meanmap.embeddings import FeatureEmbedding, PointEmbedding

K = mm.kernels.RBF(1.3)


def gaussian(x, y, ell=1.3):
    return np.exp(-((x[:, None, :] - y[None]) ** 2).sum(-1) / (2 * ell**2))


@pytest.fixture
def samples():
    rng = np.random.default_rng(0)
    return rng.normal(size=(30, 2)), rng.normal(0.5, 1.2, size=(41, 2)), rng.normal(size=(17, 2))


def test_evaluation_inner_product_and_norm_are_the_dense_formulas(samples):
    x, y, at = samples
    p, q = mm.embed(x, K), mm.embed(y, K)
    np.testing.assert_allclose(p(at), gaussian(at, x).mean(1), rtol=1e-13)
    assert p.inner(q) == pytest.approx(gaussian(x, y).mean(), rel=1e-13)
    assert p.norm() ** 2 == pytest.approx(gaussian(x, x).mean(), rel=1e-13)
    assert isinstance(p.norm(), float)
    assert isinstance(p.inner(q), float)
    assert p(at).dtype == np.float64


def test_squared_norm_of_a_difference_is_the_v_statistic(samples):
    x, y, _ = samples
    mmd = gaussian(x, x).mean() + gaussian(y, y).mean() - 2 * gaussian(x, y).mean()
    assert (mm.embed(x, K) - mm.embed(y, K)).norm() ** 2 == pytest.approx(mmd, abs=1e-15)


def test_sums_multiples_and_differences_are_pointwise(samples):
    x, y, at = samples
    p, q = mm.embed(x, K), mm.embed(y, K)
    np.testing.assert_allclose((2 * p - q / 4 + (-p))(at), p(at) - q(at) / 4, atol=1e-15)
    np.testing.assert_allclose((p * np.float64(3.0))(at), 3 * p(at), rtol=1e-14)
    shared = p + PointEmbedding(K, p.points, np.arange(30.0))
    assert shared.weights.shape == (30,)  # on the same points weights are added, not points joined
    np.testing.assert_allclose(shared(at), p(at) + gaussian(at, x) @ np.arange(30.0), rtol=1e-13)


def test_batches_broadcast_along_leading_axes(samples):
    x, y, at = samples
    weights = np.random.default_rng(1).normal(size=(4, 3, 30))
    f, q = mm.embed(x, K, weights=weights), mm.embed(y, K)
    assert f.batch == (4, 3)
    np.testing.assert_allclose(f(at), weights @ gaussian(x, at), rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(f.inner(q), weights @ gaussian(x, y).mean(1), rtol=1e-11, atol=1e-13)
    dense = np.einsum("abi,ij,abj->ab", weights, gaussian(x, x), weights)
    np.testing.assert_allclose(f.norm(), np.sqrt(dense), rtol=1e-10)
    np.testing.assert_allclose((f - q)(at), f(at) - q(at), atol=1e-13)
    np.testing.assert_allclose((f * np.arange(3.0))(at), f(at) * np.arange(3.0)[:, None], atol=1e-13)
    np.testing.assert_allclose(f[1, 2](at), f(at)[1, 2], rtol=1e-12, atol=1e-13)
    assert f[:, 0].batch == (4,)
    with pytest.raises(IndexError, match="single function"):
        q[0]


def test_coefficients_are_the_same_algebra_in_features(samples):
    x, y, at = samples
    phi = mm.features.Fourier.draw(K, like=2, n_features=64, rng=0)
    p, q = mm.embed(x, phi), mm.embed(y, phi)
    np.testing.assert_allclose(p.coefficients, phi(x).mean(0), atol=1e-15)
    np.testing.assert_allclose((p - 2 * q)(at), phi(at) @ (phi(x).mean(0) - 2 * phi(y).mean(0)), atol=1e-14)
    assert p.inner(q) == pytest.approx(phi(x).mean(0) @ phi(y).mean(0), rel=1e-13)
    batch = FeatureEmbedding(phi, np.stack([p.coefficients, q.coefficients]))
    np.testing.assert_allclose(batch.inner(p), [p.norm() ** 2, p.inner(q)], rtol=1e-13)
    np.testing.assert_allclose(batch[1](at), q(at), rtol=1e-13)


def test_large_samples_are_streamed(monkeypatch):
    import tracemalloc

    rng = np.random.default_rng(0)
    x, at = rng.normal(size=(40_000, 2)), rng.normal(size=(1000, 2))
    p = mm.embed(x, K)
    p(at)
    tracemalloc.start()
    values = p(at)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 40 * 2**20  # the Gram matrix would be 320 MB
    np.testing.assert_allclose(values[:5], [gaussian(at[i : i + 1], x).mean() for i in range(5)], rtol=1e-11)


def test_jax_in_jax_out_through_jit_vmap_and_grad(samples):
    x, y, at = (jnp.asarray(s, jnp.float32) for s in samples)
    p = mm.embed(x, K)
    assert isinstance(p(at), jax.Array)
    assert p(at).dtype == jnp.float32
    np.testing.assert_allclose(jax.jit(lambda x, at: mm.embed(x, K)(at))(x, at), p(at), rtol=1e-5)

    def distance(x, y):
        return (mm.embed(x, K) - mm.embed(y, K)).norm()

    gradient = np.asarray(jax.jit(jax.grad(distance))(x, y), dtype=float)
    h = 1e-5
    moved = np.array(samples[0])
    moved[3, 1] += h
    numeric = (distance(moved, samples[1]) - distance(samples[0], samples[1])) / h
    assert gradient[3, 1] == pytest.approx(numeric, rel=1e-3)
    stack = jnp.stack([x, x + 1])
    each = jax.vmap(lambda s: mm.embed(s, K).inner(mm.embed(y, K)))(stack)
    np.testing.assert_allclose(each[1], mm.embed(x + 1, K).inner(mm.embed(y, K)), rtol=1e-5)
    # What comes out of `jit` has its hyperparameters in float32 and is still of the same space.
    assert float(jax.jit(lambda x: mm.embed(x, K))(x).inner(mm.embed(y, K))) == pytest.approx(
        gaussian(*samples[:2]).mean(), rel=1e-5
    )


def test_two_spaces_do_not_mix(samples):
    x, y, at = samples
    p = mm.embed(x, K)
    with pytest.raises(InputError, match=r"needs two elements of the same space.*embed both with the same kernel"):
        p.inner(mm.embed(y, mm.kernels.RBF(2.0)))
    with pytest.raises(InputError, match="the sum needs two elements of the same space"):
        _ = p + mm.embed(y, mm.kernels.Laplace(1.3))
    with pytest.raises(InputError, match="the difference"):
        _ = p - mm.embed(y, mm.features.Fourier.draw(K, like=2, n_features=8, rng=0))
    with pytest.raises(KindError, match=r"other is an ndarray.*use f\(points\)"):
        p.inner(at)
    with pytest.raises(ShapeError, match="differ in their columns"):
        p(np.zeros((3, 5)))
    with pytest.raises(ShapeError, match="differ in their columns"):
        p.inner(mm.embed(x[:, :1], K))
    with pytest.raises(TypeError):
        _ = p * "2"
    with pytest.raises(TypeError):
        _ = p + 1.0


def test_labels_texts_and_tables_are_elements_too():
    d = mm.kernels.Delta()
    p, q = mm.embed(["red", "red", "blue", "green"], d), mm.embed(["red", "blue"], d)
    np.testing.assert_allclose(p(["red", "blue", "black"]), [0.5, 0.25, 0.0])
    assert p.inner(q) == pytest.approx(0.5 * 0.5 + 0.25 * 0.5)
    assert (p - q).norm() ** 2 == pytest.approx(0.25**2 + 0.25**2)
    s = mm.kernels.Spectrum(2)
    first, second = ["abab", "cccc"], ["baba"]
    f, g = mm.embed(first, s), mm.embed(second, s)
    assert f.inner(g) == pytest.approx(s(first, second).mean())
    np.testing.assert_allclose((f - g)(first), s(first).mean(1) - s(first, second)[:, 0], atol=1e-14)

    import pandas as pd

    frame = pd.DataFrame({"a": [0.0, 1.0, 2.0], "b": [1.0, 0.0, 1.0]})
    np.testing.assert_allclose(mm.embed(frame, K)(frame), mm.embed(frame.to_numpy(), K)(frame.to_numpy()))
    np.testing.assert_allclose(mm.embed(frame, K).mean(), frame.mean())


def test_sparse_points():
    import scipy.sparse

    rng = np.random.default_rng(0)
    x = np.where(rng.random((20, 50)) < 0.1, rng.normal(size=(20, 50)), 0.0)
    k = mm.kernels.Linear()
    p, dense = mm.embed(scipy.sparse.csr_array(x), k), mm.embed(x, k)
    np.testing.assert_allclose(p(scipy.sparse.csr_array(x[:3])), dense(x[:3]), atol=1e-14)
    assert (p + p).norm() == pytest.approx(2 * dense.norm())
    other = mm.embed(scipy.sparse.csr_array(x[:5]), k)
    assert (p - other).norm() == pytest.approx((dense - mm.embed(x[:5], k)).norm())


def test_the_norm_of_nothing_has_the_slope_zero():
    k, x = mm.kernels.RBF(1.0), jnp.array([0.0, 1.0, 2.0])
    slope = jax.grad(lambda y: (mm.embed(x, k) - mm.embed(y, k)).norm())
    assert slope(x).tolist() == [0, 0, 0]
    assert np.isfinite(slope(x + 0.1)).all()
    same = jax.grad(lambda c: (mm.embeddings.cross_covariance(x, c * x, k, k) * 0.0).norm())
    assert same(1.0) == 0
