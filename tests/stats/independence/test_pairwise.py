"""Independence of many pairs against the single test's own sums, and its level."""

import numpy as np
import pytest
from scipy.stats import binom

from meanmap.core.door import Door
from meanmap.core.errors import ColumnError
from meanmap.kernels.gram import gram_matrix
from meanmap.kernels.reading import read_points
from meanmap.stats.independence.hsic import diagonal_sums
from meanmap.stats.independence.pairwise import PairwiseHSIC
from meanmap.stats.independence.variables import kernels_of


def columns(generator, rows):
    a = generator.normal(size=rows)
    return {"a": a, "b": np.abs(a) + 0.5 * generator.normal(size=rows), "label": np.where(a > 0, "up", "down")}


def test_sums_are_those_of_permuted_matrices():
    """With 90 permutations of 40 points there are three orders."""
    data = columns(np.random.default_rng(0), 40)
    pairwise = PairwiseHSIC(data, 90, np.random.default_rng(1))
    centre = np.eye(40) - 1 / 40
    with Door() as door:
        grams = {
            name: [
                centre @ np.asarray(gram_matrix(door.cast(k), read_points(k, column, name, door))) @ centre
                for k in kernels_of(None, column, name, "fused", pairwise._seed)
            ]
            for name, column in data.items()
        }
    base, shifts = pairwise.shifts.base, pairwise.shifts
    orders = shifts.values(lambda order: np.array([np.roll(order, -s) for s in range(40)]).T).T
    for x, y in [("a", "b"), ("b", "label")]:
        sums, behind = pairwise.sums(x, y)
        assert sums.shape == (len(grams[x]), len(grams[y]), 91)
        margins = [pairwise._transformed(name)[0] for name in (x, y)]
        for i, j in np.argwhere(np.isfinite(behind)):
            found = sums[i, j] + diagonal_sums(margins[0][i], margins[1][j], shifts)
            for b in (0, 1, 40, 90):
                order = np.empty(40, dtype=int)
                order[base] = base[orders[b]]
                expected = np.sum(grams[x][i] * grams[y][j][np.ix_(order, order)])
                assert found[b] == pytest.approx(expected, rel=1e-4, abs=1e-3)


def test_power_and_level():
    data = columns(np.random.default_rng(0), 100)
    pairwise = PairwiseHSIC(data, 1000, np.random.default_rng(1))
    assert pairwise.pvalue("a", "b") == pytest.approx(1 / 1001)  # however few the points
    assert pairwise.pvalue("label", "b") > pairwise.pvalue("label", "a")
    rejected = 0
    for seed in range(30):
        generator = np.random.default_rng(seed)
        noise = {name: generator.normal(size=50) for name in "ab"}
        tests = PairwiseHSIC(noise, 99, np.random.default_rng(1000 + seed))
        rejected += tests.pvalue("a", "b") <= 0.1
    assert rejected <= binom.ppf(1 - 1e-4, 30, 0.1)


def test_a_constant_column_is_named():
    with pytest.raises(ColumnError, match="b is constant"):
        PairwiseHSIC({"a": np.arange(9.0), "b": np.ones(9)}, 5, np.random.default_rng(0)).pvalue("a", "b")
