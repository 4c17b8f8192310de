"""Products of messages against loops: signs, zeros, many factors."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from meanmap.bp.engine.algebra import PRODUCT
from meanmap.bp.engine.products import Wide, scaled
from meanmap.core.door import Door


@pytest.mark.parametrize("slots", [0, 1, 3, 4, 8, 9, 40])
def test_products_of_signed_values_with_zeros(slots):
    rng = np.random.default_rng(slots)
    own, incoming = rng.normal(size=(5, 2, 3)), rng.normal(size=(5, slots, 2, 3))
    incoming[rng.random(incoming.shape) < 0.05] = 0
    with Door():
        product, log_scale = PRODUCT.whole(jnp.asarray(own), jnp.asarray(incoming))
        others = np.asarray(PRODUCT.all_but_one(jnp.asarray(own), jnp.asarray(incoming))) if slots else None
    exact = own * incoming.prod(axis=1)
    np.testing.assert_allclose(np.asarray(product) * np.exp(np.asarray(log_scale))[..., None], exact, rtol=1e-10)
    for j in range(slots):
        expected = own * np.delete(incoming, j, axis=1).prod(axis=1)
        top = np.abs(expected).max(axis=-1, keepdims=True)
        got = others[:, j] / np.maximum(np.abs(others[:, j]).max(axis=-1, keepdims=True), 1e-300)
        np.testing.assert_allclose(got, expected / np.where(top > 0, top, 1), rtol=1e-9, atol=1e-300)


def test_a_thousand_small_factors_keep_their_direction_in_single_precision():
    incoming = np.full((1, 1000, 1, 2), 1e-3, np.float32) * np.array([1.0, 1.001], np.float32)
    product, log_scale = PRODUCT.whole(jnp.ones((1, 1, 2)), jnp.asarray(incoming))
    np.testing.assert_allclose(product[0, 0], [1.001**-1000, 1], rtol=1e-3)
    np.testing.assert_allclose(log_scale, 1000 * np.log(1.001e-3), rtol=1e-5)


def test_zeros_stay_zeros():
    values, log_scale = scaled(jnp.zeros((1, 3)))
    assert values.tolist() == [[0.0, 0.0, 0.0]]
    assert log_scale.tolist() == [-np.inf]


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_what_half_of_the_factors_all_but_exclude_the_others_bring_back(kind):
    """Each of 2000 factors halves one of two values: their ratio is lost by any scale that both share."""
    first = np.arange(2000)[:, None] < 999
    with Door():
        incoming = jnp.asarray(np.where(first, [1, 0.5], [0.5, 1])[None].astype(kind))
        own = jnp.ones((1, 2), kind)
        product, log_scale = PRODUCT.whole(own, incoming)
        others = PRODUCT.all_but_one(own, incoming)
    np.testing.assert_allclose(product, [[0.25, 1]])
    np.testing.assert_allclose(log_scale, -999 * np.log(2), rtol=1e-6)
    np.testing.assert_allclose(others[0, [0, -1]], [[0.125, 1], [0.5, 1]])


def test_wide_products_have_the_derivatives_of_plain_ones():
    def loss(values, lift):
        factors = [lift(values[i]) for i in range(3)]
        product = factors[0] * factors[1] * factors[2]
        values, log_scale = product.scaled() if isinstance(product, Wide) else scaled(product)
        return (values @ jnp.array([1.0, 2.0, -1.0])) + log_scale

    values = jnp.array([[0.1, 0.5, 0.0], [3.0, -0.4, 1.0], [0.7, 0.2, 5.0]])
    wide, plain = (jax.grad(loss)(values, lift) for lift in (Wide.of, lambda x: x))
    np.testing.assert_allclose(wide, plain, rtol=1e-5)
