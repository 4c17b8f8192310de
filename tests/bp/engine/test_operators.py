"""What edges do to messages: operators of several ranks."""

import jax
import numpy as np

from meanmap.bp.engine import Factored

POINTS = 32


def factors(ranks):
    random = np.random.default_rng(0)
    sizes = random.integers(20, POINTS + 1, size=(len(ranks), 2))
    return [(random.normal(size=(n, r)), random.normal(size=(r, m))) for (n, m), r in zip(sizes, ranks, strict=True)]


def test_a_few_operators_of_high_rank_do_not_widen_the_others():
    each = factors([3, 200, 5, 16, 40, 1, 17, 2])
    operators = Factored.of(each, POINTS)
    assert operators.number == 8
    assert operators.into.size < 2 * POINTS * sum(-(-outer.shape[0] // 16) * 16 for _, outer in each)
    products = np.random.default_rng(1).normal(size=(11, 2, POINTS))
    template = np.array([1, 0, 7, 4, 4, 1, 2, 3, 5, 6, 1])
    expected = np.zeros(products.shape)
    for row, t in enumerate(template):
        inner, outer = each[t]
        expected[row, :, : outer.shape[1]] = products[row, :, : len(inner)] @ inner @ outer
    with jax.enable_x64(True):
        sent = jax.jit(Factored.send)(operators, products, template)
        same = jax.jit(Factored.apply, static_argnums=2)(operators, products[:1], 1)
    np.testing.assert_allclose(sent, expected, atol=1e-11)
    np.testing.assert_allclose(same, expected[:1], atol=1e-11)


def test_operators_of_like_ranks_are_one_block_each():
    operators = Factored.of(factors([30, 17, 22]), POINTS)
    assert operators.begin is None
    assert operators.into.shape == (3, POINTS, 32)
