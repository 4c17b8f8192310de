"""The normal part of densities of residuals: normal noise costs little, and other noise is as probable as before."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit

from meanmap.bp.conditionals.given_parents import GivenParents


def bimodal(rng: np.random.Generator, n: int) -> np.ndarray:
    return np.where(rng.random(n) < 0.3, -3.0, 2.0) + rng.normal(size=n)


NOISE = {
    "normal": lambda rng, n: rng.normal(size=n),
    "two modes": bimodal,
    "heavy tails": lambda rng, n: rng.standard_t(2, n),
    "skew": lambda rng, n: rng.exponential(size=n),
    "uniform": lambda rng, n: rng.uniform(-1, 1, n),
}


def gain(noise: Callable, seed: int, n: int = 500) -> tuple[float, float]:
    """How much more probable 2000 new rows are with the normal part, and by least squares with normal noise."""
    rng = np.random.default_rng([771, seed])
    x = rng.normal(size=(n + 2000, 1))
    y = x + noise(rng, len(x))[:, None]
    law = GivenParents.fit(x[:n], y[:n])
    bare = replace(law, normal=replace(law.normal, share=0.0))
    slope, centre = np.polyfit(x[:n, 0], y[:n, 0], 1)
    left = (y - centre - slope * x)[:, 0]
    size = left[:n].std()
    line = -((left[n:] / size) ** 2) / 2 - np.log(np.sqrt(2 * np.pi) * size)
    ours, before = law.log_chance(x[n:], y[n:]), bare.log_chance(x[n:], y[n:])
    return float((ours - before).mean()), float((line - ours).mean())


def test_normal_noise_costs_little() -> None:
    """Kernels alone lost .0054 nats a row to the line."""
    found = np.array([gain(NOISE["normal"], seed) for seed in range(12)])
    assert found[:, 0].mean() > 0.004
    assert found[:, 1].mean() < 0.002


@pytest.mark.parametrize("name", NOISE)
def test_other_noise_is_as_probable_as_before(name: str) -> None:
    found = np.array([gain(NOISE[name], 100 + seed)[0] for seed in range(6)])
    assert found.mean() > -1e-3
    assert found.min() > -0.01


def test_ranks_are_those_of_the_density() -> None:
    rng = np.random.default_rng(772)
    x = rng.normal(size=(400, 1))
    law = GivenParents.fit(x, x + rng.standard_t(4, (400, 1)))
    assert 0 < law.normal.share < 1
    at, grid = np.array([[0.5]]), np.linspace(-30, 30, 60_001)
    density = np.exp(law.log_chance(np.repeat(at, len(grid), axis=0), grid[:, None]))
    below = np.cumsum(density) * (grid[1] - grid[0])
    for k in (29_000, 30_500, 32_000):
        assert abs(expit(law.log_odds(at, grid[k])) - below[k]) < 2e-3


def test_one_value_has_no_normal_part() -> None:
    law = GivenParents.fit(np.zeros((30, 0)), np.ones((30, 1)))
    assert law.normal.share == 0
    assert np.isfinite(law.log_chance(np.zeros((1, 0)), np.ones((1, 1)))).all()
