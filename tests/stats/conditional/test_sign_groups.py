"""Random signs by groups of rows."""

import numpy as np
import pytest

from meanmap.stats.conditional import statistics
from meanmap.stats.conditional.sign_groups import bounds, group_signs, number_of_groups
from meanmap.stats.conditional.statistics import Local, Products
from meanmap.stats.conditional.straight import Straight


@pytest.mark.parametrize("rows", [4, 128])
def test_signs_of_groups_count_as_signs_of_rows(rows, monkeypatch):
    """Forms of few sign vectors, in each row of the answer with the signs of whole groups of rows changed."""
    monkeypatch.setattr(statistics, "BLOCK", rows)
    rng, groups = np.random.default_rng(11), 4
    left, right, z = rng.normal(size=(30, 4)), rng.normal(size=(30, 2)), rng.normal(size=(30, 3))
    signs = np.sign(rng.normal(size=(30, 5))).astype(np.float32)
    group = np.searchsorted(bounds(30, groups), np.arange(30), side="right") - 1
    changes = group_signs(groups)[:, group]
    np.testing.assert_array_equal(group_signs(groups) @ group_signs(groups).T, groups * np.eye(groups))
    products = Products([(left, right)], [1.0], Local(z))
    expected = [products.forms((change[:, None] * signs).astype(np.float32))[0] for change in changes]
    np.testing.assert_allclose(products.forms(signs, groups), expected, rtol=1e-4)
    ratios = rng.uniform(0.5, 2.0, size=30)
    whole = (left[:, :1] * right) * np.sqrt(ratios)[:, None]
    straight = Straight(left[:, :1] * right, ratios, 1.0)
    expected = [np.sum((whole.T @ (change[:, None] * signs)) ** 2, axis=0)[1:] / 30 for change in changes]
    np.testing.assert_allclose(straight.forms(signs, groups)[:, 1:], expected)
    order = rng.permutation(30)
    np.testing.assert_allclose(products.in_order(order).forms(signs[order]), products.forms(signs), rtol=1e-4)


def test_draws_by_groups_of_rows_are_as_good_as_independent_ones():
    """P-values of one data set by other draws scatter no more than those of independent draws, also of sorted rows."""
    rng, n = np.random.default_rng(12), 1024
    z = np.sort(rng.normal(size=(n, 1)), axis=0)
    left, right = np.exp(z) * rng.normal(size=(n, 2)), rng.normal(size=(n, 1))
    products, straight = Products([(left, right)], [1.0], Local(z)), Straight(left * right, np.ones(n), 1.0)
    assert number_of_groups(n) == 8
    found = [products.bootstrap(np.ones(n), 200, np.random.default_rng(k)) for k in range(60)]
    values = {value for value, _ in found}
    assert len(values) == 1
    (value,) = values
    draws = np.stack([law.draws for _, law in found])
    exceeded = draws >= np.quantile(draws, 0.9)
    # 60 shares of 200 independent draws have this standard deviation, within its own standard error of a tenth.
    assert np.std(exceeded.mean(axis=1)) < 1.3 * np.sqrt(0.9 * 0.1 / 200)
    matrix = products.block(slice(None)).astype(float)
    assert draws.mean() == pytest.approx(np.trace(matrix) / n, rel=0.05)
    off = matrix - np.diag(np.diag(matrix))
    assert draws.std() == pytest.approx(np.sqrt(2 * np.sum(off**2)) / n, rel=0.1)
    assert value == pytest.approx(matrix.sum() / n, rel=1e-5)
    both, law = products.bootstrap(np.ones(n), 999, np.random.default_rng(0), straight=straight)
    alone = products.bootstrap(np.ones(n), 999, np.random.default_rng(0), np.arange(n), straight)
    assert len(law.draws) == 999
    assert alone[1].pvalue(alone[0]) == pytest.approx(law.pvalue(both), abs=0.08)  # signs of single rows
