"""Complex log-gamma and its ratio against scipy.special.loggamma; large a is in test_characteristic.py."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special

from meanmap.families.complex_gamma import complex_log_gamma, log_gamma_ratio


@pytest.fixture(autouse=True)
def double():
    with jax.enable_x64(True):
        yield


def points(region):
    rng = np.random.default_rng(0)
    n = 5000
    real, imaginary = {
        "square": lambda: (rng.uniform(-30, 30, n), rng.uniform(-30, 30, n)),
        "near the real axis": lambda: (rng.uniform(-5, 5, n), 1e-3 * rng.normal(size=n)),
        "right, large": lambda: (10 ** rng.uniform(-2, 7, n), 100 * rng.normal(size=n)),
        "far up": lambda: (rng.uniform(-40, 40, n), rng.uniform(-5000, 5000, n)),
        "near poles": lambda: (np.round(rng.uniform(-10, 0, n)) + 1e-6, 1e-6 * rng.normal(size=n)),
    }[region]()
    return real + 1j * imaginary


@pytest.mark.parametrize("region", ["square", "near the real axis", "right, large", "far up", "near poles"])
def test_against_scipy(region):
    z = points(region)
    expected = scipy.special.loggamma(z)
    error = np.abs(np.asarray(complex_log_gamma(jnp.asarray(z))) - expected) / np.maximum(1, np.abs(expected))
    assert error.max() < 1e-12


def test_real_values_and_both_sides_of_the_cut():
    x = np.array([0.5, 1.0, 2.0, 3.5, 100.0])
    np.testing.assert_allclose(complex_log_gamma(jnp.asarray(x + 0j)), scipy.special.gammaln(x), atol=1e-13, rtol=1e-13)
    for z in (-2.5 + 1e-12j, -2.5 - 1e-12j, 0.3 - 7j, 0.3 + 7j):
        np.testing.assert_allclose(complex_log_gamma(jnp.asarray(z)), scipy.special.loggamma(z), rtol=1e-12)


def test_derivative_is_digamma_on_both_branches():
    z = jnp.array([2.0 + 3.0j, -1.7 + 2.0j, 0.4 - 0.5j, 12.0 + 0.0j])
    slope = jax.jit(jax.vmap(jax.grad(complex_log_gamma, holomorphic=True)))(z)
    np.testing.assert_allclose(slope, scipy.special.digamma(np.asarray(z)), rtol=1e-11)


def test_ratio_is_the_difference():
    a = np.array([0.05, 0.3, 2.0, 20.0])[:, None]
    w = np.linspace(-41, 41, 83)
    expected = scipy.special.loggamma(a + 1j * w) - scipy.special.loggamma(a)
    np.testing.assert_allclose(jax.jit(log_gamma_ratio)(jnp.asarray(a), jnp.asarray(w)), expected, atol=2e-13)


def test_single_precision_stays_single():
    z = jnp.asarray(np.array([1 + 2j, -3 + 0.5j]), jnp.complex64)
    assert complex_log_gamma(z).dtype == jnp.complex64
    np.testing.assert_allclose(complex_log_gamma(z), scipy.special.loggamma(np.asarray(z)), rtol=1e-5)
    single = jax.eval_shape(log_gamma_ratio, jnp.float32(3.0), jnp.float32(2.0))
    assert single.dtype == jnp.complex64
