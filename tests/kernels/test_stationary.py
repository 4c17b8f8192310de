"""Kernels of distances: settings, other people's formulas, smoothness at zero, precision."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.gaussian_process import kernels as of_sklearn
from sklearn.metrics import pairwise

from meanmap.core import EmptyError, KindError, ParameterError, ShapeError
from meanmap.kernels import RBF, Kernel, Laplace, Matern, RationalQuadratic, Torus

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(7, 3)), RNG.normal(size=(5, 3))


@pytest.mark.parametrize(
    ("kernel", "reference"),
    [
        (RBF(0.7), lambda x, y: pairwise.rbf_kernel(x, y, gamma=1 / (2 * 0.7**2))),
        (RBF([0.5, 1.0, 2.0]), of_sklearn.RBF([0.5, 1.0, 2.0])),
        (Laplace(0.7), lambda x, y: pairwise.laplacian_kernel(x, y, gamma=1 / 0.7)),
        (Matern(0.7, 0.5), of_sklearn.Matern(0.7, nu=0.5)),
        (Matern(0.7, 1.5), of_sklearn.Matern(0.7, nu=1.5)),
        (Matern([0.5, 1.0, 2.0], 2.5), of_sklearn.Matern([0.5, 1.0, 2.0], nu=2.5)),
        (RationalQuadratic(0.7, 0.4), of_sklearn.RationalQuadratic(0.7, 0.4)),
    ],
    ids=lambda value: repr(value) if isinstance(value, Kernel) else "",
)
def test_scikit_learn_agrees(kernel, reference):
    np.testing.assert_allclose(kernel(X, Y), reference(X, Y), rtol=1e-12)


def test_rational_quadratic_tends_to_rbf():
    np.testing.assert_allclose(RationalQuadratic(0.7, 1e7)(X), RBF(0.7)(X), atol=1e-6)


@pytest.mark.oldest
@pytest.mark.parametrize("make", [RBF, Laplace, Matern, RationalQuadratic, Torus])
@pytest.mark.parametrize(
    ("lengthscale", "error", "message"),
    [
        (0.0, ParameterError, "lengthscale is 0.0; expected values above 0"),
        (-1.0, ParameterError, "lengthscale is -1.0; expected values above 0"),
        ([1.0, -1.0, 1.0], ParameterError, "expected values above 0"),
        (np.nan, ParameterError, "lengthscale is nan; expected finite numbers"),
        (np.inf, ParameterError, "expected finite numbers"),
        ("median", KindError, "lengthscale is 'median'; expected one number, or one per column"),
        (None, KindError, "lengthscale is None"),
        (1j, KindError, "expected one number"),
        ([[1.0]], ShapeError, r"lengthscale has shape \(1, 1\)"),
        ([], EmptyError, "lengthscale is empty"),
    ],
)
def test_lengthscales_that_are_refused(make, lengthscale, error, message):
    with pytest.raises(error, match=message):
        make(lengthscale)


@pytest.mark.parametrize(
    "kernel", [RBF([1.0, 2.0]), Laplace([1.0, 2.0]), Matern([1.0, 2.0]), Torus([1.0, 2.0])], ids=repr
)
def test_one_lengthscale_per_column(kernel):
    with pytest.raises(ShapeError, match="lengthscale has 2 entries but x has 3 columns"):
        kernel(X)


def test_other_settings_that_are_refused():
    with pytest.raises(ParameterError, match=r"smoothness is 1.0; expected 0.5, 1.5 or 2.5"):
        Matern(1.0, smoothness=1.0)
    with pytest.raises(ParameterError, match=r"alpha is 0.0; expected values above 0"):
        RationalQuadratic(1.0, alpha=0.0)
    with pytest.raises(ShapeError, match=r"alpha has shape \(2,\); expected one number"):
        RationalQuadratic(1.0, alpha=[1.0, 2.0])


KINKED = [Matern(0.9, 0.5), Matern(0.9, 1.5), Matern(0.9, 2.5), Laplace(0.9)]


@pytest.mark.oldest
@pytest.mark.parametrize("kernel", KINKED, ids=repr)
def test_distance_zero_survives_fusion(kernel):
    """XLA computes a distance more than once, and may round it differently each time: no condition may hang on it.

    A root by two `where`s gave 2 on the diagonal here, in the mean but not in the matrix.
    """
    x = jnp.asarray(np.stack([np.random.default_rng(seed).normal(size=(9, 3)) for seed in range(3)]))
    both = jax.jit(jax.vmap(lambda x: (kernel(x), kernel.mean(x), kernel(x, x))))
    gram, mean, again = both(x)
    np.testing.assert_allclose(mean, gram.mean(axis=2), atol=1e-6)
    np.testing.assert_allclose(again, gram, atol=1e-6)


@pytest.mark.parametrize("kernel", [*KINKED, RBF(0.9), RationalQuadratic(0.9)], ids=repr)
def test_float32_diagonal_is_exact(kernel):
    x = jnp.asarray(RNG.normal(size=(40, 10)) + 3)
    np.testing.assert_array_equal(jnp.diagonal(kernel(x)), 1)
    np.testing.assert_allclose(kernel(x), kernel(np.asarray(x)), atol=2e-5)


@pytest.mark.parametrize("shift", [1e3, 1e6])
def test_data_far_from_the_origin(shift):
    """Distances by expansion are taken about the mean, so that a common shift costs no digits."""
    x = np.random.default_rng(1).normal(size=(30, 6))
    np.testing.assert_allclose(RBF(1.5)(x + shift), RBF(1.5)((x + shift) - shift), atol=1e-13 * shift)


def test_huge_and_tiny_numbers_stay_finite():
    x = np.array([[1e150, 0.0, 0.0, 0.0], [-1e150, 0, 0, 0], [1e-150, 0, 0, 0], [0, 0, 0, 0]])
    for kernel in (RBF(1.0), Matern(1.0), Laplace(1.0), RationalQuadratic(1.0)):
        gram = kernel(x)
        np.testing.assert_allclose(gram[:2, 2:], 0, atol=1e-200)
        np.testing.assert_allclose(gram[2:, 2:], 1)
        np.testing.assert_array_equal(gram.diagonal(), 1)
    np.testing.assert_allclose(RBF(1e150)(x)[0, 1], np.exp(-2))


@pytest.mark.parametrize("kernel", [RBF([0.5, 2.0]), Matern(0.7, 1.5), Laplace(1.5)], ids=repr)
def test_columns_are_those_of_the_gram_matrix(kernel):
    x = np.random.default_rng(0).normal(size=(20, 2))
    column, gram = kernel.columns(x), kernel(x)
    for i in (0, 7, 19):
        np.testing.assert_allclose(column(i), gram[:, i], rtol=1e-14, atol=0)
