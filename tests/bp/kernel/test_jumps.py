"""Numbers of which many rows have the same one, as a top code: what depends on these may jump there."""

import numpy as np
import pytest
from scipy.stats import norm

import meanmap as mm

SLOPE, JUMP, NOISE = 0.5, 0.8, 0.5


def top_coded(seed, n=500, share=0.2):
    """A number cut at its largest fifth, and another that is larger where the first was cut."""
    rng = np.random.default_rng([41, seed])
    top = norm.ppf(1 - share)
    x = np.minimum(rng.normal(size=n), top)
    return {"x": x, "y": SLOPE * x + JUMP * (x == top) + NOISE * rng.normal(size=n)}, top


@pytest.mark.parametrize("seed", range(3))
def test_means_jump_at_a_top_code(seed):
    """They were .2 too small at it, and .5 too large next to it."""
    table, top = top_coded(seed)
    model = mm.KernelGraph([("x", "y")]).fit(table)
    at, below = (model.query({"x": value}, ["y"])["y"].mean() for value in (top, top - 0.1))
    assert abs(at - SLOPE * top - JUMP) < 0.15
    assert abs(below - SLOPE * (top - 0.1)) < 0.25


def test_the_probability_of_a_top_code_is_right():
    """On average it was .13 off where the other number points to it."""
    found = []
    for seed in range(3):
        table, top = top_coded(seed)
        value = SLOPE * top + JUMP
        belief = mm.KernelGraph([("x", "y")]).fit(table).query({"y": value}, ["x"])["x"]
        weights = np.asarray(belief.weights)
        grid = np.linspace(-5, top, 2001)
        others = np.trapezoid(norm.pdf(grid) * norm.pdf(value, SLOPE * grid, NOISE), grid)
        own = 0.2 * norm.pdf(0, 0, NOISE)
        found.append(weights[np.asarray(belief.points)[:, 0] == top].sum() - own / (own + others))
    assert np.abs(found).max() < 0.12


def test_a_column_without_frequent_values_has_the_kernel_it_had():
    rng = np.random.default_rng(0)
    a = rng.normal(size=100)
    model = mm.KernelGraph([("a", "b")]).fit({"a": a, "b": np.round(a + rng.normal(size=100))})
    assert all(isinstance(node.kernel, mm.kernels.RBF) for node in model.samples.nodes)
