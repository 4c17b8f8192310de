import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import gamma, j0

from meanmap.core.errors import KindError
from meanmap.kernels import RBF, Laplace, Matern, Smoothed


def by_quadrature(kernel, x, y, width=None):
    """∫ k(x, u) k(u, y) ν(du) in one dimension, between the kinks."""

    def integrand(u):
        weight = 1.0 if width is None else np.exp(-u * u / 2 / width**2)
        return float(kernel([x], [u])[0, 0] * kernel([u], [y])[0, 0]) * weight

    ends = [-30.0, *sorted({x, y}), 30.0]
    return sum(quad(integrand, a, b, limit=200, epsabs=1e-12)[0] for a, b in itertools.pairwise(ends))


@pytest.mark.parametrize(
    ("kernel", "width"),
    [
        *((RBF(0.7), width) for width in (None, 1.3)),
        *((RBF(0.7) + 0.5 * RBF(2.0), width) for width in (None, 1.3)),
        *((Matern(0.8, nu), None) for nu in (0.5, 1.5, 2.5)),
    ],
)
@pytest.mark.parametrize(("x", "y"), [(0.3, 0.3), (-1.0, 1.5)])
def test_one_dimension_against_quadrature(kernel, width, x, y):
    assert Smoothed(kernel, width)([x], [y])[0, 0] == pytest.approx(by_quadrature(kernel, x, y, width), rel=1e-8)


@pytest.mark.parametrize("smoothness", [0.5, 1.5, 2.5])
def test_matern_in_two_dimensions_against_its_spectrum(smoothness):
    constant = 4 * np.pi * gamma(smoothness + 1) * (2 * smoothness) ** smoothness / gamma(smoothness)

    def integrand(w):
        return (constant * (2 * smoothness + w * w) ** -(smoothness + 1)) ** 2 * j0(w) * w / (2 * np.pi)

    expected = quad(integrand, 0, np.inf, limit=2000)[0]
    assert Smoothed(Matern(1.0, smoothness))([[0.0, 0.0]], [[0.6, 0.8]])[0, 0] == pytest.approx(expected, rel=1e-6)


def test_columns_multiply_under_an_rbf_kernel():
    x, y = np.random.default_rng(0).normal(size=(2, 5, 3))
    for width in (None, [1.0, 2.0, 3.0]):
        whole = Smoothed(RBF([0.5, 1.0, 2.0]), width)(x, y)
        parts = [
            Smoothed(RBF(scale), None if width is None else width[d])(x[:, d], y[:, d])
            for d, scale in enumerate((0.5, 1.0, 2.0))
        ]
        np.testing.assert_allclose(whole, np.prod(parts, axis=0), rtol=1e-12)


def test_a_wide_measure_is_the_lebesgue_measure():
    x = np.random.default_rng(1).normal(size=(6, 2))
    np.testing.assert_allclose(Smoothed(RBF(1.0), 1e6)(x), Smoothed(RBF(1.0))(x), rtol=1e-9)


@pytest.mark.parametrize("kernel", [RBF([0.5, 2.0]), Matern([0.5, 2.0], 0.5), Matern(1.0, 2.5)])
def test_gram_matrices_are_positive_and_differentiable(kernel):
    x = np.random.default_rng(2).normal(size=(8, 2))
    smoothed = Smoothed(kernel)
    assert np.linalg.eigvalsh(smoothed(x)).min() > -1e-10
    np.testing.assert_allclose(smoothed.diag(x), np.diag(smoothed(x)), rtol=1e-10)
    slope = jax.grad(lambda p: smoothed(p, jnp.asarray(x, jnp.float32)).sum())(jnp.asarray(x[:2], jnp.float32))
    assert np.isfinite(slope).all()


def test_other_kernels_are_refused():
    with pytest.raises(KindError, match="expected RBF, a sum of RBF, or Matern"):
        Smoothed(Laplace(1.0))
    with pytest.raises(KindError, match="width=None for Matern"):
        Smoothed(Matern(1.0), 2.0)
