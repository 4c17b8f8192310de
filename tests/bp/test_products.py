"""Products of messages against loops: signs, zeros, many factors."""

import jax.numpy as jnp
import numpy as np
import pytest

from meanmap.bp.products import all_but_one, scaled, whole
from meanmap.core.door import Door


@pytest.mark.parametrize("slots", [0, 1, 3, 4, 5, 16, 17, 40])
def test_products_of_signed_values_with_zeros(slots):
    rng = np.random.default_rng(slots)
    own, incoming = rng.normal(size=(5, 2, 3)), rng.normal(size=(5, slots, 2, 3))
    incoming[rng.random(incoming.shape) < 0.05] = 0
    with Door():
        product, log_scale = whole(jnp.asarray(own), jnp.asarray(incoming))
        others = np.asarray(all_but_one(jnp.asarray(own), jnp.asarray(incoming))) if slots else None
    exact = own * incoming.prod(axis=1)
    np.testing.assert_allclose(np.asarray(product) * np.exp(np.asarray(log_scale))[..., None], exact, rtol=1e-10)
    for j in range(slots):
        expected = own * np.delete(incoming, j, axis=1).prod(axis=1)
        top = np.abs(expected).max(axis=-1, keepdims=True)
        got = others[:, j] / np.maximum(np.abs(others[:, j]).max(axis=-1, keepdims=True), 1e-300)
        np.testing.assert_allclose(got, expected / np.where(top > 0, top, 1), rtol=1e-9, atol=1e-300)


def test_a_thousand_small_factors_keep_their_direction_in_single_precision():
    incoming = np.full((1, 1000, 1, 2), 1e-3, np.float32) * np.array([1.0, 1.001], np.float32)
    product, log_scale = whole(jnp.ones((1, 1, 2)), jnp.asarray(incoming))
    np.testing.assert_allclose(product[0, 0], [1.001**-1000, 1], rtol=1e-3)
    np.testing.assert_allclose(log_scale, 1000 * np.log(1.001e-3), rtol=1e-5)


def test_zeros_stay_zeros():
    values, log_scale = scaled(jnp.zeros((1, 3)))
    assert values.tolist() == [[0.0, 0.0, 0.0]]
    assert log_scale.tolist() == [-np.inf]
