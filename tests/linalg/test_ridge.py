"""Ridge solves against dense NumPy formulas."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from meanmap.core import InputError, ParameterError, PrecisionError, ShapeError
from meanmap.linalg import Ridge


@pytest.fixture
def problem():
    rng = np.random.default_rng(0)
    features = rng.normal(size=(40, 9))
    return features, rng.normal(size=(40, 3)), rng.normal(size=(11, 9))


@pytest.mark.parametrize("ridge", [1e-6, 1e-2, 3.0])
def test_gram_and_feature_forms_are_the_dense_formulas_and_predict_the_same(problem, ridge):
    features, y, new = problem
    K = features @ features.T
    dual = Ridge.factor(K, ridge=ridge).solve(y)
    np.testing.assert_allclose(dual, np.linalg.solve(K + 40 * ridge * np.eye(40), y), rtol=1e-7, atol=1e-7)
    primal = Ridge.factor_features(features, ridge=ridge).solve(features.T @ y / 40)
    expected = np.linalg.solve(features.T @ features / 40 + ridge * np.eye(9), features.T @ y / 40)
    np.testing.assert_allclose(primal, expected, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(new @ features.T @ dual, new @ primal, atol=1e-10)


def test_vector_right_sides_determinant_and_untouched_input(problem):
    features, y, _ = problem
    K = features @ features.T
    kept = K.copy()
    solve = Ridge.factor(K, ridge=0.1)
    np.testing.assert_array_equal(K, kept)
    np.testing.assert_allclose(solve.solve(y[:, 0]), solve.solve(y)[:, 0], rtol=1e-13)
    np.testing.assert_allclose(solve.log_determinant(), np.linalg.slogdet(K + 4 * np.eye(40))[1], rtol=1e-12)
    fortran = Ridge.factor(np.asfortranarray(K), ridge=0.1).solve(y)
    np.testing.assert_allclose(fortran, solve.solve(y), rtol=1e-12)


def test_ridge_may_be_zero_where_the_matrix_inverts(problem):
    features, y, _ = problem
    covariance = features.T @ features
    expected = np.linalg.solve(covariance, y[:9])
    np.testing.assert_allclose(Ridge.factor(covariance, ridge=0).solve(y[:9]), expected, rtol=1e-11)


def test_jax_in_jax_out_under_jit_vmap_and_grad(problem):
    features, y, _ = problem
    K = features @ features.T
    with jax.enable_x64(True):

        def fit(K, ridge):
            return Ridge.factor(K, ridge=ridge).solve(jnp.asarray(y))

        solved = jax.jit(fit)(jnp.asarray(K), 0.1)
        assert isinstance(solved, jax.Array)
        np.testing.assert_allclose(solved, Ridge.factor(K, ridge=0.1).solve(y), rtol=1e-10)
        many = jax.vmap(fit, in_axes=(None, 0))(jnp.asarray(K), jnp.asarray([0.1, 1.0]))
        np.testing.assert_allclose(many[1], Ridge.factor(K, ridge=1.0).solve(y), rtol=1e-10)
        slope = jax.grad(lambda lam: jnp.sum(fit(jnp.asarray(K), lam) ** 2))(jnp.asarray(0.1))
        step = 1e-6
        numeric = (np.sum(fit(K, 0.1 + step) ** 2) - np.sum(fit(K, 0.1 - step) ** 2)) / (2 * step)
        np.testing.assert_allclose(slope, numeric, rtol=1e-6)
        both = jax.jit(lambda F: Ridge.factor_features(F, ridge=0.1).solve(F.T @ jnp.asarray(y) / 40))(
            jnp.asarray(features)
        )
        np.testing.assert_allclose(
            both, Ridge.factor_features(features, ridge=0.1).solve(features.T @ y / 40), rtol=1e-10
        )
        mixed = Ridge.factor(K, ridge=0.1).solve(jnp.asarray(y))
        assert isinstance(mixed, jax.Array)
        np.testing.assert_allclose(mixed, solved, rtol=1e-10)


def test_precision_guard_refuses_and_names_the_cure():
    x = np.linspace(-3, 3, 100)
    K = np.exp(-((x[:, None] - x) ** 2) / 2)
    single = jnp.asarray(K, jnp.float32)
    with pytest.raises(
        PrecisionError, match=r"float32 is not precise enough.*trace 100.*Pass NumPy arrays or enable jax_enable_x64"
    ):
        Ridge.factor(single, ridge=1e-7)
    with pytest.raises(PrecisionError, match="the features' covariance has trace"):
        Ridge.factor_features(single, ridge=1e-7)
    with pytest.raises(PrecisionError, match=r"float64 is not precise enough.*Use a larger ridge\.$"):
        Ridge.factor(K, ridge=1e-16)
    # What it lets through is as exact as it says: the worst admitted relative error is about one percent.
    ridge = 2 * np.finfo(np.float32).eps
    right = np.exp(-((x - 0.3) ** 2) / 2)
    exact = np.linalg.solve(K + 100 * 200 * ridge * np.eye(100), right)
    rounded = Ridge.factor(single, ridge=200 * ridge).solve(jnp.asarray(right, jnp.float32))
    assert np.linalg.norm(rounded - exact) / np.linalg.norm(exact) < 2e-2


def test_messages():
    K = np.ones((3, 3))
    with pytest.raises(ParameterError, match=r"ridge is -1; expected a number above 0"):
        Ridge.factor(K, ridge=-1.0)
    with pytest.raises(
        ParameterError, match=r"ridge is 0 but the Gram matrix is singular in float64.*type ridge=1e-06"
    ):
        Ridge.factor(K, ridge=0)
    with pytest.raises(ParameterError, match="is singular in float32"):
        Ridge.factor(jnp.ones((3, 3), jnp.float32), ridge=0.0)
    with pytest.raises(InputError, match=r"not positive semidefinite: it has an eigenvalue below -0\.3"):
        Ridge.factor(-K, ridge=0.1)
    with pytest.raises(InputError, match="not positive semidefinite"):
        Ridge.factor(-jnp.ones((3, 3)), ridge=0.1)
    with pytest.raises(ShapeError, match=r"gram has shape \(3, 2\); expected a square"):
        Ridge.factor(np.ones((3, 2)), ridge=1)
    with pytest.raises(ShapeError, match=r"right has shape \(2,\); expected \(3,\) or \(3, q\)"):
        Ridge.factor(K, ridge=1).solve(np.ones(2))


def test_singular_is_a_question_without_a_unit():
    for unit in (1e-9, 1.0, 1e9):
        with pytest.raises(ParameterError, match="is singular"):
            Ridge.factor(unit * np.ones((3, 3)), ridge=0)
        right = Ridge.factor(unit * (np.ones((3, 3)) + np.eye(3)), ridge=0).solve(unit * np.ones(3))
        np.testing.assert_allclose(right, 0.25, rtol=1e-12)
