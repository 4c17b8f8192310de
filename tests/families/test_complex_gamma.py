"""The ratio of complex gamma functions against scipy.special.loggamma; large a is in test_characteristic.py."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special

from meanmap.families.complex_gamma import log_gamma_ratio


@pytest.fixture(autouse=True)
def double():
    with jax.enable_x64(True):
        yield


def test_ratio_is_the_difference():
    a = np.array([0.05, 0.3, 2.0, 20.0])[:, None]
    w = np.linspace(-41, 41, 83)
    expected = scipy.special.loggamma(a + 1j * w) - scipy.special.loggamma(a)
    np.testing.assert_allclose(jax.jit(log_gamma_ratio)(jnp.asarray(a), jnp.asarray(w)), expected, atol=2e-13)


def test_single_precision_stays_single():
    single = jax.eval_shape(log_gamma_ratio, jnp.float32(3.0), jnp.float32(2.0))
    assert single.dtype == jnp.complex64
