"""Correlations of few groups, whose posterior bends between nodes of a lattice."""

import numpy as np
import pytest

import meanmap as mm


def test_a_correlation_of_four_groups_beside_weighted_draws():
    """Its upper 90% end was .281. Two grids over components and 12,900 effective draws agree on the values below."""
    rng = np.random.default_rng(4)
    g, x = np.arange(20_000) % 4, rng.integers(-4, 5, 20_000) / 3.0
    x, u = x - x.mean(), rng.normal(size=(2, 4))
    y = 0.2 * x + 0.3 * u[0][g] + 0.1 * u[1][g] * x + rng.normal(size=20_000)
    shown = mm.fit("y ~ x + (1 + x | g)", {"y": y, "x": x, "g": g}).to_frame(0.9)
    assert shown.loc["cor(Intercept, x | g)", "high"] == pytest.approx(0.375, abs=0.03)
    assert shown.loc["cor(Intercept, x | g)", "estimate"] == pytest.approx(-0.567, abs=0.02)
    assert shown.loc["sd(Intercept | g)", "estimate"] == pytest.approx(0.3905, abs=0.02)
