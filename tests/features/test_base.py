"""What all features share."""

import jax.numpy as jnp
import numpy as np
import pytest

from meanmap.features import Concatenated, FeatureKernel, Features, Fourier, PivotedCholesky
from meanmap.kernels import RBF, OnColumns, Polynomial

X = np.random.default_rng(0).normal(size=(30, 2))


class Moments(Features):
    """Features as a user writes them: 1, √2 x and x², the features of the quadratic kernel in one dimension."""

    kernel: Polynomial

    def transform(self, x):
        return jnp.concatenate([jnp.ones_like(x), np.sqrt(2) * x, x**2], axis=1)

    def check(self, points, argument):
        assert points.shape[1] == 1

    @property
    def size(self):
        return 3


@pytest.mark.oldest
def test_features_can_be_written_by_hand():
    phi, x = Moments(Polynomial(2)), X[:, 0]
    np.testing.assert_allclose(phi(x) @ phi(x).T, Polynomial(2)(x), atol=1e-12)
    np.testing.assert_allclose(phi.mean(x), [1, np.sqrt(2) * x.mean(), (x**2).mean()])
    np.testing.assert_allclose(FeatureKernel(phi)(x), Polynomial(2)(x), atol=1e-12)
    assert repr(phi) == "Moments(3 features of Polynomial(degree=2, offset=1.0))"
    assert phi.domain == Polynomial(2).domain


@pytest.mark.oldest
def test_concatenated_features_are_those_of_the_sum():
    k = OnColumns(RBF(1.0), 0) + OnColumns(Polynomial(2), 1)
    phi = Concatenated(k, (PivotedCholesky.fit(RBF(1.0), X[:, 0], tolerance=1e-12), Moments(Polynomial(2))))
    np.testing.assert_allclose(phi(X) @ phi(X).T, k(X), atol=1e-5)
    assert phi.size == phi(X).shape[1]


def test_feature_kernels_can_be_approximated_again():
    phi = Fourier.draw(RBF(1.0), like=2, n_features=6, rng=0)
    psi = PivotedCholesky.fit(FeatureKernel(phi), X, tolerance=1e-12)
    assert psi.size <= 6
    np.testing.assert_allclose(psi(X) @ psi(X).T, phi(X) @ phi(X).T, atol=1e-5)
    np.testing.assert_allclose((FeatureKernel(phi) + RBF(1.0))(X), phi(X) @ phi(X).T + RBF(1.0)(X), atol=1e-12)
