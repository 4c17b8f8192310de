"""Bandwidths for densities: against the best width for known densities, found by its exact error."""

import numpy as np
import pytest

from meanmap.embeddings.bandwidth import diffusion_widths

GRID = np.linspace(-6, 6, 1201)
STEP = GRID[1] - GRID[0]


def normal(x, mean, sd):
    return np.exp(-(((x - mean) / sd) ** 2) / 2) / (sd * np.sqrt(2 * np.pi))


LAWS = {
    "normal": (lambda rng, n: rng.normal(size=n), normal(GRID, 0, 1)),
    "two modes": (
        lambda rng, n: np.where(rng.random(n) < 0.5, -2, 2) + 0.4 * rng.normal(size=n),
        (normal(GRID, -2, 0.4) + normal(GRID, 2, 0.4)) / 2,
    ),
}


def squared_error(sample, width, density):
    found = normal(GRID[:, None], sample, width).mean(axis=1)
    return np.sum((found - density) ** 2) * STEP


@pytest.mark.parametrize("name", LAWS)
def test_errors_are_near_those_of_the_best_width(name):
    draw, density = LAWS[name]
    ratios = []
    for seed in range(20):
        sample = draw(np.random.default_rng(seed), 200)
        best = min(squared_error(sample, width, density) for width in np.geomspace(0.05, 1.5, 40))
        ratios.append(squared_error(sample, diffusion_widths(sample[:, None])[0], density) / best)
    assert np.median(ratios) < 1.5


def test_scotts_rule_is_far_off_where_there_are_two_modes():
    draw, density = LAWS["two modes"]
    sample = draw(np.random.default_rng(0), 200)
    scott = sample.std() * 200**-0.2
    assert squared_error(sample, scott, density) > 5 * squared_error(
        sample, diffusion_widths(sample[:, None])[0], density
    )


def test_widths_follow_units_and_columns():
    sample = np.random.default_rng(1).normal(size=(300, 1))
    one = diffusion_widths(sample)[0]
    np.testing.assert_allclose(diffusion_widths(100 * sample + 7), 100 * one, rtol=1e-6)
    both = diffusion_widths(np.concatenate([sample, 5 * sample], axis=1))
    np.testing.assert_allclose(both, np.array([1, 5]) * one * 300 ** (1 / 5 - 1 / 6), rtol=1e-6)


def test_a_handful_of_values_gets_scotts_width():
    assert diffusion_widths(np.ones((5, 1)))[0] > 0
    few = np.array([[1.0], [1.0], [2.0]])
    np.testing.assert_allclose(diffusion_widths(few), few.std() * 3**-0.2)
