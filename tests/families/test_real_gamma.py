"""The gamma functions of positive arguments against SciPy, and against series where SciPy itself cancels."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special

from meanmap.families import real_gamma

digamma_minus_log, log_gamma, log_gamma_divergence, stirling_remainder, trigamma = map(
    jax.jit,
    (
        real_gamma.digamma_minus_log,
        real_gamma.log_gamma,
        real_gamma.log_gamma_divergence,
        real_gamma.stirling_remainder,
        real_gamma.trigamma,
    ),
)


def digamma(x):
    return jnp.log(x) + digamma_minus_log(x)


SMALL = np.geomspace(1e-8, 50.0, 200)
LARGE = np.geomspace(100.0, 1e12, 200)


@pytest.fixture(autouse=True)
def double():
    with jax.enable_x64(True):
        yield


def test_against_scipy():
    np.testing.assert_allclose(log_gamma(jnp.asarray(SMALL)), scipy.special.gammaln(SMALL), rtol=1e-13, atol=3e-14)
    np.testing.assert_allclose(digamma(jnp.asarray(SMALL)), scipy.special.digamma(SMALL), rtol=1e-13, atol=1e-14)
    np.testing.assert_allclose(trigamma(jnp.asarray(SMALL)), scipy.special.polygamma(1, SMALL), rtol=1e-13)


def test_large_arguments_keep_their_digits():
    # Two terms of the asymptotic series leave less than 1e-10 relative at x = 100.
    x, inverse = jnp.asarray(LARGE), 1 / LARGE
    phi = -inverse / 2 - inverse**2 / 12 + inverse**4 / 120 - inverse**6 / 252
    np.testing.assert_allclose(digamma_minus_log(x), phi, rtol=1e-13)
    delta = inverse / 12 - inverse**3 / 360 + inverse**5 / 1260
    np.testing.assert_allclose(stirling_remainder(x), delta, rtol=1e-13)
    np.testing.assert_allclose(trigamma(x), inverse + inverse**2 / 2 + inverse**3 / 6 - inverse**5 / 30, rtol=1e-12)


def slopes(function, x):
    return jax.jit(jax.vmap(jax.grad(function)))(x)


def test_derivatives_are_each_other():
    x = jnp.geomspace(1e-3, 1e3, 40)
    np.testing.assert_allclose(slopes(log_gamma, x), digamma(x), rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(slopes(digamma, x), trigamma(x), rtol=1e-13)
    third = slopes(trigamma, x)
    np.testing.assert_allclose(third, scipy.special.polygamma(2, np.asarray(x)), rtol=1e-9)


def test_programs_are_short():
    # What is compiled into every sweep that holds a Beta or a Gamma: few logarithms, and no loop.
    for function, logarithms in ((real_gamma.stirling_remainder, 3), (real_gamma.digamma_minus_log, 2)):
        for program in (function, jax.grad(function)):
            text = str(jax.make_jaxpr(program)(2.0))
            assert len(re.findall(r" (log|log1p) ", text)) <= logarithms
            assert "iota" not in text
            assert "while" not in text


def test_divergence_is_the_rest_of_the_bregman_divergence():
    p, q = jnp.array([0.3, 2.0, 50.0]), jnp.array([1.3, 0.5, 60.0])
    whole = scipy.special.gammaln(q) - scipy.special.gammaln(p) - (q - p) * scipy.special.digamma(p)
    np.testing.assert_allclose(log_gamma_divergence(q, p) + q * jnp.log(q / p) - (q - p), whole, atol=1e-12)


def test_single_precision():
    x = jnp.geomspace(1e-2, 1e6, 50).astype(jnp.float32)
    assert digamma_minus_log(x).dtype == jnp.float32
    expected = digamma_minus_log(x.astype(jnp.float64))
    np.testing.assert_allclose(digamma_minus_log(x), expected, rtol=2e-5)
