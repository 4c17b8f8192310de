"""Ways in which messages come together, against plain products and sums, for few slots and for many."""

import math

import numpy as np
import pytest

from meanmap.bp.engine.algebra import PRODUCT, SUM, Counted
from meanmap.bp.engine.products import LOWEST, UNROLLED, split
from meanmap.core.door import Door

SHARE = 0.7


def parts(slots, seed=0):
    rng = np.random.default_rng(seed)
    return rng.uniform(0.5, 1.5, size=(3, 2, 4)), rng.uniform(0.5, 1.5, size=(3, slots, 2, 4))


@pytest.mark.parametrize("slots", [3, UNROLLED + 3])
def test_sums_of_all_and_of_all_but_one(slots):
    own, incoming = parts(slots)
    with Door():
        whole, scale = SUM.whole(own, incoming)
        others = np.asarray(SUM.all_but_one(own, incoming))
    np.testing.assert_allclose(whole, own + incoming.sum(axis=1), rtol=1e-12)
    assert not np.any(scale)
    for j in range(slots):
        np.testing.assert_allclose(others[:, j], own + np.delete(incoming, j, axis=1).sum(axis=1), rtol=1e-12)


def test_counted_messages_are_powers_over_the_one_that_is_left_out():
    own, incoming = parts(3)
    with Door():
        algebra = Counted(np.float64(SHARE))
        whole, _ = algebra.whole(own, incoming)
        others = np.asarray(algebra.all_but_one(own, incoming))
    product = own * (incoming**SHARE).prod(axis=1)
    np.testing.assert_allclose(whole, product / product.max(axis=-1, keepdims=True), rtol=1e-12)
    for j in range(3):
        expected = product / incoming[:, j]
        got = others[:, j]
        np.testing.assert_allclose(
            got / got.max(-1, keepdims=True), expected / expected.max(-1, keepdims=True), rtol=1e-12
        )


def test_plain_numbers_are_taken_where_they_hold_every_product():
    tiny = float(np.finfo(np.float64).tiny)
    most = int(0.5 * math.log(tiny) / math.log(1e-3))
    assert PRODUCT.floored(most, 1e-3, np.float64).narrow
    assert not PRODUCT.floored(most + 1, 1e-3, np.float64).narrow
    assert not PRODUCT.floored(1, 0.0, np.float64).narrow


def test_split_numbers_are_mantissas_times_powers_of_two():
    values = np.array([0.0, 3.0, -0.125, 1e-300])
    mantissa, exponent = split(values, 5)
    assert exponent[0] == LOWEST
    np.testing.assert_array_equal(np.ldexp(mantissa[1:], exponent[1:] - 5), values[1:])
    assert np.all(np.abs(mantissa[1:]) < 1)
    assert np.all(np.abs(mantissa[1:]) >= 0.5)
