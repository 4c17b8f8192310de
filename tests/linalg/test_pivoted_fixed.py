"""The traceable pivoted Cholesky against the host form (itself judged by LAPACK) and finite differences."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from meanmap.core import KindError, ParameterError, ShapeError
from meanmap.linalg import pivoted_cholesky, pivoted_cholesky_fixed


def gram(points, scale=1.0):
    return np.exp(-((points[:, None] - points[None]) ** 2).sum(-1) / (2 * scale**2))


def fixed(K, rank):
    return pivoted_cholesky_fixed(jnp.diag(K), lambda i: K[:, i], rank)


def test_fixed_rank_on_a_deficient_matrix_adds_zero_columns_and_no_nan():
    rng = np.random.default_rng(4)
    features = rng.normal(size=(30, 4))
    with jax.enable_x64(True):
        K = jnp.asarray(features @ features.T)
        low = jax.jit(lambda K: fixed(K, 9))(K)
        assert int(low.rank) == 4
        assert (np.asarray(low.factor)[:, 4:] == 0).all()
        np.testing.assert_allclose(low.factor @ low.factor.T, K, atol=1e-12)
        assert len(set(np.asarray(low.pivots).tolist())) == 9
        np.testing.assert_allclose(low.coordinates(K[:, low.pivots]), low.factor, atol=1e-12)
        gradient = jax.jit(jax.grad(lambda K: jnp.sum(jnp.sin(fixed(K, 9).factor))))(K)
        assert np.isfinite(gradient).all()
    assert "numerical rank 4" in low.report.notes[0]
    zero = pivoted_cholesky_fixed(np.zeros(3), lambda i: jnp.zeros(3), 2)
    assert np.isfinite(zero.factor).all()
    assert int(zero.rank) == 0


def test_fixed_rank_equals_the_host_form():
    rng = np.random.default_rng(0)
    weights = rng.uniform(0.5, 2.0, size=150)
    matrix = gram(rng.normal(size=(150, 2))) * weights[:, None] * weights
    with jax.enable_x64(True):
        low = jax.jit(lambda K: fixed(K, 25))(jnp.asarray(matrix))
        triangle = low.pivot_factor
    other = pivoted_cholesky(np.diag(matrix), lambda i: matrix[:, i], tolerance=0.0, max_rank=25)
    np.testing.assert_array_equal(low.pivots, other.pivots)
    np.testing.assert_allclose(triangle, other.pivot_factor, atol=1e-11)
    for name in ("factor", "residual_diagonal", "trace_errors"):
        np.testing.assert_allclose(getattr(low, name), getattr(other, name), atol=1e-11)


@pytest.mark.slow
def test_fixed_rank_derivative_matches_finite_differences():
    rng = np.random.default_rng(5)
    x = rng.normal(size=(25, 2))
    weights = rng.normal(size=(25, 6))
    amplitudes = rng.uniform(1, 2, size=25)

    def loss(scale):
        points = jnp.asarray(x)

        def column(i):
            return amplitudes * amplitudes[i] * jnp.exp(-jnp.sum((points - points[i]) ** 2, 1) / (2 * scale**2))

        with jax.enable_x64(True):
            low = pivoted_cholesky_fixed(jnp.asarray(amplitudes**2), lambda i: column(i), 6)
            return jnp.sum(weights * low.factor) + jnp.sum(low.trace_errors) + jnp.sum(low.residual_diagonal**2)

    with jax.enable_x64(True):
        amplitudes = jnp.asarray(amplitudes)
        step = 1e-6
        centre = jnp.asarray(1.3)
        loss = jax.jit(loss)
        numeric = (loss(centre + step) - loss(centre - step)) / (2 * step)
        np.testing.assert_allclose(jax.grad(loss)(centre), numeric, rtol=1e-6)
        np.testing.assert_allclose(jax.jacfwd(loss)(centre), numeric, rtol=1e-6)


def test_fixed_rank_maps_over_kernels():
    rng = np.random.default_rng(6)
    x = rng.normal(size=(40, 2))
    with jax.enable_x64(True):
        stack = jnp.stack([jnp.asarray(gram(x, scale) * np.linspace(1, 2, 40)) for scale in (0.5, 2.0)])
        stack = (stack + stack.transpose(0, 2, 1)) / 2 + 2 * jnp.eye(40)
        one = jax.jit(lambda K: fixed(K, 5).factor)
        batch = jax.vmap(one)(stack)
        for K, factor in zip(stack, batch, strict=True):
            np.testing.assert_allclose(factor, one(K), atol=1e-12)


def test_messages():
    K = np.array([[1.0, 0.5], [0.5, 1.0]])
    with pytest.raises(ParameterError, match="rank is 3, but the matrix has only 2 rows"):
        pivoted_cholesky_fixed(np.ones(2), lambda i: jnp.ones(2), 3)
    with pytest.raises(ShapeError, match=r"column\(i\) has shape \(3,\); expected \(2,\)"):
        pivoted_cholesky_fixed(np.ones(2), lambda i: jnp.ones(3), 1)
    with pytest.raises(KindError, match="read it outside jit"):
        jax.jit(lambda K: fixed(K, 1).report.steps)(jnp.asarray(K))


def test_the_derivative_of_a_whole_factor_is_that_of_the_matrix():
    points = np.random.default_rng(0).normal(size=(4, 2))

    def product(scale):
        K = jnp.exp(-((points[:, None] - points[None]) ** 2).sum(-1) / (2 * scale**2))
        factor = fixed(K, 4).factor
        return factor @ factor.T

    with jax.enable_x64(True):
        slope = jax.jit(jax.jacfwd(product))(1.0)
    squares = ((points[:, None] - points[None]) ** 2).sum(-1)
    np.testing.assert_allclose(slope, squares * gram(points), atol=1e-9)
